/* Shape rules of operations on images: windows over [batch, rows, columns, channels]. */
#include "rules.h"
#include "window.h"

/* An image, and windows that can slide over it; puts how many there are into out[2]. */
static int expect_windows(struct graph *g, const struct node_info *n, const struct shape *x,
                          const int *length, int *out) {
    const struct attributes *a = &n->attributes;
    for (int axis = 0; axis < 2; axis++) {
        if (length[axis] < 1 || a->stride[axis] < 1)
            return graph_mistake(g, "%s: windows of %dx%d every %dx%d, expected 1 or more", op_name(n->op),
                                 length[0], length[1], a->stride[0], a->stride[1]);
        out[axis] = window_along(x->dims[axis + 1], length[axis], a->stride[axis], a->padding).out;
        if (out[axis] < 1)
            return graph_mistake(g, "%s: windows of %dx%d do not fit into %s", op_name(n->op), length[0],
                                 length[1], TEXT(x));
    }
    return OK;
}

/* *y: the shape of x convolved with the kernel. */
static int convolved(struct graph *g, const struct node_info *n, const struct shape *x,
                     const struct shape *kernel, struct shape *y) {
    if (kernel->rank != 4 || x->rank != 4 || kernel->dims[2] != x->dims[3])
        return graph_mistake(g,
                             "%s: %s by a kernel of %s, expected [batch, rows, columns, channels] and "
                             "[rows, columns, channels, out]",
                             op_name(n->op), TEXT(x), TEXT(kernel));
    int out[2];
    RETURN_IF(expect_windows(g, n, x, kernel->dims, out));
    *y = SHAPE(x->dims[0], out[0], out[1], kernel->dims[3]);
    return expect_valid(g, n, y);
}

int shape_conv2d(struct graph *g, struct node_info *n) {
    for (int i = 0; i < 2; i++) RETURN_IF(expect_type(g, n, i, TYPE_FLOAT));
    n->type = TYPE_FLOAT;
    return convolved(g, n, operand_shape(g, n, 0), operand_shape(g, n, 1), &n->shape);
}

int shape_conv2d_bias(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_conv2d(g, n));
    RETURN_IF(expect_type(g, n, 2, TYPE_FLOAT));
    return expect_shape(g, n, 2, &SHAPE(n->shape.dims[3]));
}

/* The gradient is of shape x or kernel; operand 1, y or its gradient, is what they give. */
static int expect_convolved(struct graph *g, struct node_info *n, const struct shape *x,
                            const struct shape *kernel) {
    struct shape y;
    RETURN_IF(shape_attribute(g, n));
    for (int i = 0; i < n->inputs; i++) RETURN_IF(expect_type(g, n, i, TYPE_FLOAT));
    n->type = TYPE_FLOAT;
    RETURN_IF(convolved(g, n, x, kernel, &y));
    return expect_shape(g, n, 1, &y);
}

int shape_conv2d_grad_x(struct graph *g, struct node_info *n) {
    return expect_convolved(g, n, &n->attributes.shape, operand_shape(g, n, 0));
}

int shape_conv2d_grad_kernel(struct graph *g, struct node_info *n) {
    return expect_convolved(g, n, operand_shape(g, n, 0), &n->attributes.shape);
}

int shape_conv2d_pool_grad_kernel(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_conv2d_grad_kernel(g, n));
    const struct pooling *pool = &n->attributes.pool;
    const struct shape *y = operand_shape(g, n, 1);
    struct shape pooled = *y;
    for (int axis = 0; axis < 2; axis++) {
        if (pool->window[axis] < 1 || pool->stride[axis] < 1)
            return graph_mistake(g, "%s: windows of %dx%d every %dx%d, expected 1 or more", op_name(n->op),
                                 pool->window[0], pool->window[1], pool->stride[0], pool->stride[1]);
        pooled.dims[axis + 1] =
            window_along(y->dims[axis + 1], pool->window[axis], pool->stride[axis], pool->padding).out;
    }
    return expect_shape(g, n, 2, &pooled);
}

/* *y: the shape of x after pooling. */
static int pooled(struct graph *g, const struct node_info *n, struct shape *y) {
    int out[2];
    RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    RETURN_IF(expect_rank(g, n, 0, 4));
    const struct shape *x = operand_shape(g, n, 0);
    RETURN_IF(expect_windows(g, n, x, n->attributes.window, out));
    *y = SHAPE(x->dims[0], out[0], out[1], x->dims[3]);
    return OK;
}

int shape_maxpool(struct graph *g, struct node_info *n) {
    n->type = TYPE_FLOAT;
    return pooled(g, n, &n->shape);
}

int shape_maxpool_grad(struct graph *g, struct node_info *n) {
    struct shape y;
    RETURN_IF(pooled(g, n, &y));
    RETURN_IF(expect_type(g, n, 1, TYPE_FLOAT));
    n->type = TYPE_FLOAT;
    n->shape = *operand_shape(g, n, 0);
    return expect_shape(g, n, 1, &y);
}

/* Channels of a value whose last axis they are. */
static int expect_channels(struct graph *g, const struct node_info *n, int *channels) {
    const struct shape *x = operand_shape(g, n, 0);
    RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    if (x->rank < 2)
        return graph_mistake(g, "%s: operand 1 is %s, expected 2 or more dimensions", op_name(n->op),
                             TEXT(x));
    *channels = x->dims[x->rank - 1];
    return OK;
}

/* Operand i: float, of that shape. */
static int expect_floats(struct graph *g, const struct node_info *n, int i, const struct shape *shape) {
    RETURN_IF(expect_type(g, n, i, TYPE_FLOAT));
    return expect_shape(g, n, i, shape);
}

int shape_moments(struct graph *g, struct node_info *n) {
    int channels = 1;
    RETURN_IF(expect_channels(g, n, &channels));
    n->type = TYPE_FLOAT;
    n->shape = SHAPE(2, channels);
    return OK;
}

int shape_batch_norm(struct graph *g, struct node_info *n) {
    int channels = 1;
    RETURN_IF(expect_channels(g, n, &channels));
    if (!(n->attributes.epsilon > 0.0f))
        return graph_mistake(g, "batch_norm: epsilon %g, expected more than 0",
                             (double)n->attributes.epsilon);
    RETURN_IF(expect_floats(g, n, 1, &SHAPE(2, channels)));
    for (int i = 2; i < 4; i++) RETURN_IF(expect_floats(g, n, i, &SHAPE(channels)));
    n->type = TYPE_FLOAT;
    n->shape = *operand_shape(g, n, 0);
    return OK;
}

int shape_batch_norm_sums(struct graph *g, struct node_info *n) {
    int channels = 1;
    RETURN_IF(expect_channels(g, n, &channels));
    RETURN_IF(expect_floats(g, n, 1, &SHAPE(2, channels)));
    RETURN_IF(expect_floats(g, n, 2, operand_shape(g, n, 0)));
    n->type = TYPE_FLOAT;
    n->shape = SHAPE(2, channels);
    return OK;
}

int shape_batch_norm_grad(struct graph *g, struct node_info *n) {
    int channels = 1;
    RETURN_IF(expect_channels(g, n, &channels));
    RETURN_IF(expect_floats(g, n, 1, &SHAPE(2, channels)));
    RETURN_IF(expect_floats(g, n, 2, &SHAPE(channels)));
    RETURN_IF(expect_floats(g, n, 3, &SHAPE(2, channels)));
    n->type = TYPE_FLOAT;
    n->shape = *operand_shape(g, n, 0);
    return expect_floats(g, n, 4, &n->shape);
}

int shape_lrn(struct graph *g, struct node_info *n) {
    const struct lrn *lrn = &n->attributes.lrn;
    RETURN_IF(shape_same(g, n));
    if (n->shape.rank == 0) return graph_mistake(g, "lrn: found a scalar, expected 1 dimension or more");
    if (lrn->radius < 0 || lrn->radius > MAX_LRN_RADIUS || !(lrn->bias > 0.0f) || !(lrn->alpha >= 0.0f))
        return graph_mistake(g, "lrn: radius %d, bias %g, alpha %g, expected 0 to %d, more than 0, 0 or more",
                             lrn->radius, (double)lrn->bias, (double)lrn->alpha, MAX_LRN_RADIUS);
    return OK;
}
