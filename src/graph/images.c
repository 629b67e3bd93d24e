/* Operations on images [batch, rows, columns, channels]: the shape rule, call and gradient of each. */
#include <math.h>
#include <string.h>
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
            return graph_mistake(g, "%s: windows of %dx%d do not fit into images of %dx%d", op_name(n->op),
                                 length[0], length[1], x->dims[1], x->dims[2]);
    }
    return OK;
}

/* --- convolution --- */

/* *y: the shape of x convolved with the kernel, in the groups that their channels say. */
static int convolved(struct graph *g, const struct node_info *n, const struct shape *x,
                     const struct shape *kernel, struct shape *y) {
    if (kernel->rank != 4 || x->rank != 4 || x->dims[3] % kernel->dims[2] != 0 ||
        kernel->dims[3] % convolution_groups(x, kernel) != 0)
        return graph_mistake(g,
                             "%s: %s by a kernel of %s, expected [batch, rows, columns, channels] and "
                             "[rows, columns, channels, out], or an equal part of the channels for each "
                             "group of out",
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

/* An operation on windows over x; `kernel` is NONE where it has none. */
static node slide(struct graph *g, enum op op, node x, node kernel, const struct pooling *windows) {
    struct node_info info = {.op = op, .inputs = op == OP_conv2d ? 2 : 1, .input = {x, kernel}};
    if (op != OP_conv2d) memcpy(info.attributes.window, windows->window, sizeof info.attributes.window);
    memcpy(info.attributes.stride, windows->stride, sizeof info.attributes.stride);
    info.attributes.padding = windows->padding;
    return graph_make(g, &info);
}

node graph_conv2d(struct graph *g, node x, node kernel, int stride, enum padding padding) {
    const struct pooling windows = {.stride = {stride, stride}, .padding = padding};
    return slide(g, OP_conv2d, x, kernel, &windows);
}

node graph_conv(struct graph *g, node x, int out, int window, int stride, enum padding padding,
                struct initial kernel, struct initial bias) {
    const struct pooling windows = {{window, window}, {stride, stride}, padding};
    return graph_conv_of(g, x, out, &windows, &(struct weights){.kernel = kernel, .bias = bias});
}

node graph_conv_of(struct graph *g, node x, int out, const struct pooling *windows,
                   const struct weights *weights) {
    const struct shape *shape = expect_dims(g, "conv", x, 4, 4);
    if (!shape) return NONE;
    const struct layer_names names = {weights->name, "conv", weights->name ? 0 : ++g->convolutions};
    node kernel, bias;
    layer_weights(g, &names, SHAPE(windows->window[0], windows->window[1], shape->dims[3], out), out, weights,
                  &kernel, &bias);
    return layer_biased(g, slide(g, OP_conv2d, x, kernel, windows), bias);
}

/* The kernel's last two axes seen as one are the channels of the result: what is left is a convolution with a
 * group for each channel. */
node graph_depthwise_of(struct graph *g, node x, int multiplier, const struct pooling *windows,
                        const struct weights *weights) {
    const struct shape *shape = expect_dims(g, "depthwise", x, 4, 4);
    if (!shape) return NONE;
    const struct layer_names names = {weights->name, "depthwise", weights->name ? 0 : ++g->depthwises};
    const int *window = windows->window, channels = shape->dims[3];
    if (multiplier < 1 || multiplier > DIMENSION_MOST / channels) {
        graph_mistake(g, "depthwise: %d channels from each of %d, expected 1 or more, in all at most %d",
                      multiplier, channels, DIMENSION_MOST);
        return NONE;
    }
    const int out = channels * multiplier;
    node kernel, bias;
    layer_weights(g, &names, SHAPE(window[0], window[1], channels, multiplier), out, weights, &kernel, &bias);
    const node grouped = graph_reshape(g, kernel, SHAPE(window[0], window[1], 1, out));
    return layer_biased(g, slide(g, OP_conv2d, x, grouped, windows), bias);
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

/* A gradient in the shape of the operand `like`. */
static node make_shaped(struct backward *b, enum op op, node first, node second, node like) {
    struct node_info info = {
        .op = op, .inputs = 2, .input = {first, second}, .attributes = backward_attributes(b)};
    info.attributes.shape = shape_of(b->g, like);
    return graph_make(b->g, &info);
}

void gradient_conv2d(struct backward *b) {
    if (b->wanted[0]) b->dx[0] = make_shaped(b, OP_conv2d_grad_x, b->x[1], b->dy, b->x[0]);
    if (b->wanted[1]) b->dx[1] = make_shaped(b, OP_conv2d_grad_kernel, b->x[0], b->dy, b->x[1]);
}

/* --- pooling --- */

/* *y: the shape of x after pooling; operand 0 is x, or as many dimensions. */
static int pooled(struct graph *g, const struct node_info *n, const struct shape *x, struct shape *y) {
    int out[2];
    RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    RETURN_IF(expect_rank(g, n, 0, 4));
    RETURN_IF(expect_windows(g, n, x, n->attributes.window, out));
    *y = SHAPE(x->dims[0], out[0], out[1], x->dims[3]);
    return OK;
}

int shape_maxpool(struct graph *g, struct node_info *n) {
    n->type = TYPE_FLOAT;
    return pooled(g, n, operand_shape(g, n, 0), &n->shape);
}

int shape_maxpool_grad(struct graph *g, struct node_info *n) {
    struct shape y;
    RETURN_IF(pooled(g, n, operand_shape(g, n, 0), &y));
    RETURN_IF(expect_type(g, n, 1, TYPE_FLOAT));
    n->type = TYPE_FLOAT;
    n->shape = *operand_shape(g, n, 0);
    return expect_shape(g, n, 1, &y);
}

int shape_avgpool_grad(struct graph *g, struct node_info *n) {
    struct shape y;
    RETURN_IF(shape_attribute(g, n));
    if (n->shape.rank != 4)
        return graph_mistake(g, "avgpool_grad: shape %s, expected 4 dimensions", TEXT(&n->shape));
    RETURN_IF(pooled(g, n, &n->shape, &y));
    n->type = TYPE_FLOAT;
    return expect_shape(g, n, 0, &y);
}

node graph_maxpool(struct graph *g, node x, int window, int stride, enum padding padding) {
    return graph_maxpool_of(g, x, &(struct pooling){{window, window}, {stride, stride}, padding});
}

node graph_maxpool_of(struct graph *g, node x, const struct pooling *windows) {
    return slide(g, OP_maxpool, x, NONE, windows);
}

/* Of a relu: what its gradient would let through is known here already, by the largest of each window, of
 * which there are fewer than there are elements. gradient_relu relies on it. */
void gradient_maxpool(struct backward *b) {
    struct graph *g = b->g;
    node dy = b->dy;
    if (g->nodes[b->x[0]].op == OP_relu) dy = graph_binary(g, OP_relu_grad, b->y, dy);
    b->dx[0] = backward_node(b, OP_maxpool_grad, b->x[0], dy);
}

node graph_avgpool(struct graph *g, node x, const struct pooling *windows) {
    return slide(g, OP_avgpool, x, NONE, windows);
}

void gradient_avgpool(struct backward *b) {
    struct node_info info = {
        .op = OP_avgpool_grad, .inputs = 1, .input = {b->dy}, .attributes = backward_attributes(b)};
    info.attributes.shape = shape_of(b->g, b->x[0]);
    b->dx[0] = graph_make(b->g, &info);
}

/* [batch, rows, columns, channels] -> [batch, pixels, channels] */
static node pixels_of(struct graph *g, const char *what, node x) {
    const struct shape *shape = expect_dims(g, what, x, 4, 4);
    return shape ? graph_reshape(g, x, SHAPE(shape->dims[0], -1, shape->dims[3])) : NONE;
}

node graph_global_average(struct graph *g, node x) {
    return graph_reduce_mean(g, pixels_of(g, "global average", x), 1, false);
}

node graph_global_max(struct graph *g, node x) {
    return graph_reduce_max(g, pixels_of(g, "global maximum", x), 1, false);
}

/* --- local response normalisation --- */

int shape_lrn(struct graph *g, struct node_info *n) {
    const struct lrn *lrn = &n->attributes.lrn;
    RETURN_IF(shape_same(g, n));
    if (n->shape.rank == 0) return graph_mistake(g, "lrn: found a scalar, expected 1 dimension or more");
    if (lrn->radius < 0 || lrn->radius > MAX_LRN_RADIUS || !(lrn->bias > 0.0f) || !(lrn->alpha >= 0.0f))
        return graph_mistake(g, "lrn: radius %d, bias %g, alpha %g, expected 0 to %d, more than 0, 0 or more",
                             lrn->radius, (double)lrn->bias, (double)lrn->alpha, MAX_LRN_RADIUS);
    return OK;
}

node graph_lrn(struct graph *g, node x, struct lrn lrn) {
    struct node_info info = {.op = OP_lrn, .inputs = 1, .input = {x}};
    info.attributes.lrn = lrn;
    return graph_make(g, &info);
}

void gradient_lrn(struct backward *b) {
    b->dx[0] = backward_node(b, OP_lrn_grad, b->x[0], b->dy);
}

/* --- images and rows of numbers --- */

node graph_image(struct graph *g, node x) {
    const struct shape *shape = expect_dims(g, "image", x, 2, 4);
    if (!shape || shape->rank == 4) return shape ? x : NONE;
    if (shape->rank == 3) return graph_reshape(g, x, SHAPE(-1, shape->dims[1], shape->dims[2], 1));
    const int pixels = shape->dims[1], side = (int)lround(sqrt(pixels));
    if (side * side == pixels) return graph_reshape(g, x, SHAPE(-1, side, side, 1));
    graph_mistake(
        g, "image: examples of %s, expected [batch, rows, columns, channels] or a square image's pixels",
        TEXT(shape));
    return NONE;
}

node graph_flatten(struct graph *g, node x) {
    const struct shape *shape = expect_dims(g, "flatten", x, 1, MAX_RANK);
    if (shape && shape->rank == 2) return x;
    return shape ? graph_reshape(g, x, SHAPE(shape->dims[0], -1)) : NONE;
}
