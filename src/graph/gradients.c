/* Gradient rules: one function an operation, which adds the nodes that turn the gradient dy of its result
 * into those of its operands. */
#include <string.h>
#include "rules.h"

static struct shape shape_of(const struct graph *g, node n) {
    return n == NONE ? SCALAR : g->nodes[n].shape;
}

static struct attributes attributes_of(const struct backward *b) {
    return b->g->nodes[b->y].attributes;
}

static node make_gradient(struct graph *g, enum op op, node first, node second) {
    return graph_make(g, &(struct node_info){.op = op, .inputs = 2, .input = {first, second}});
}

/* dy times a number; a scalar constant is multiplied here and now. */
static node scale(struct graph *g, node dy, float factor) {
    if (dy == NONE) return NONE;
    const struct node_info *info = &g->nodes[dy];
    if (info->op == OP_constant && info->shape.rank == 0 && info->type == TYPE_FLOAT)
        return graph_scalar(g, *(const float *)info->constant * factor);
    return graph_mul(g, dy, graph_scalar(g, factor));
}

/* Undoes a broadcast: sums dy over the axes along which a value of shape `to` was repeated. */
static node sum_to(struct graph *g, node dy, struct shape to) {
    struct shape from = shape_of(g, dy);
    if (dy == NONE || shape_equal(&from, &to)) return dy;
    if (shape_count(&to) == 1) return graph_reshape(g, graph_reduce_sum(g, dy, ALL_AXES, false), to);
    const int extra = from.rank - to.rank;
    /* A maxpool's gradient puts each element of what it reads in one place of the same channel: their sum is
     * that of the fewer. */
    if (extra == 3 && g->nodes[dy].op == OP_maxpool_grad) {
        dy = g->nodes[dy].input[1];
        from = shape_of(g, dy);
    }
    if (extra > 0) { /* the leading axes as one, so that rows are added */
        struct shape rows = {.rank = to.rank + 1, .dims = {1}};
        for (int axis = 0; axis < extra; axis++) rows.dims[0] *= from.dims[axis];
        memcpy(rows.dims + 1, from.dims + extra, (size_t)to.rank * sizeof(int));
        if (extra > 1) dy = graph_reshape(g, dy, rows);
        dy = graph_reduce_sum(g, dy, 0, false);
    }
    from = shape_of(g, dy);
    for (int axis = 0; axis < to.rank; axis++)
        if (to.dims[axis] == 1 && from.dims[axis] != 1) dy = graph_reduce_sum(g, dy, axis, true);
    return dy;
}

/* Sets the gradient of operand i, reduced to its shape. */
static void give(struct backward *b, int i, node dx) {
    b->dx[i] = sum_to(b->g, dx, shape_of(b->g, b->x[i]));
}

/* --- elementwise --- */

void gradient_add(struct backward *b) {
    for (int i = 0; i < 2; i++)
        if (b->wanted[i]) give(b, i, b->dy);
}

void gradient_sub(struct backward *b) {
    if (b->wanted[0]) give(b, 0, b->dy);
    if (b->wanted[1]) give(b, 1, scale(b->g, b->dy, -1.0f));
}

void gradient_mul(struct backward *b) {
    for (int i = 0; i < 2; i++)
        if (b->wanted[i]) give(b, i, graph_mul(b->g, b->dy, b->x[1 - i]));
}

/* y = a/b: dy/b and -dy y/b */
void gradient_div(struct backward *b) {
    const node share = graph_div(b->g, b->dy, b->x[1]);
    if (b->wanted[0]) give(b, 0, share);
    if (b->wanted[1]) give(b, 1, scale(b->g, graph_mul(b->g, share, b->y), -1.0f));
}

/* y = a^b: dy b a^(b-1), and dy y log(a) where a > 0, else 0 (as TensorFlow does; the true one does not exist
 * there) */
void gradient_pow(struct backward *b) {
    struct graph *g = b->g;
    const node one = graph_scalar(g, 1.0f);
    if (b->wanted[0]) {
        const node slope = graph_mul(g, b->x[1], graph_pow(g, b->x[0], graph_sub(g, b->x[1], one)));
        give(b, 0, graph_mul(g, b->dy, slope));
    }
    if (b->wanted[1]) {
        const node positive = graph_cast(g, graph_greater(g, b->x[0], graph_scalar(g, 0.0f)), TYPE_FLOAT);
        const node safe = graph_add(g, graph_mul(g, b->x[0], positive), graph_sub(g, one, positive));
        give(b, 1, graph_mul(g, b->dy, graph_mul(g, b->y, graph_log(g, safe))));
    }
}

void gradient_exp(struct backward *b) {
    b->dx[0] = graph_mul(b->g, b->dy, b->y);
}
void gradient_log(struct backward *b) {
    b->dx[0] = graph_div(b->g, b->dy, b->x[0]);
}

/* When all of dy is the gradient of a maxpool of y, it is 0 already where y is (gradient_maxpool). */
void gradient_relu(struct backward *b) {
    const struct node_info *dy = b->dy == NONE ? NULL : &b->g->nodes[b->dy];
    const bool done = dy && dy->op == OP_maxpool_grad && dy->input[0] == b->y;
    b->dx[0] = done ? b->dy : make_gradient(b->g, OP_relu_grad, b->y, b->dy);
}

void gradient_sigmoid(struct backward *b) {
    b->dx[0] = make_gradient(b->g, OP_sigmoid_grad, b->y, b->dy);
}
void gradient_tanh(struct backward *b) {
    b->dx[0] = make_gradient(b->g, OP_tanh_grad, b->y, b->dy);
}
void gradient_copy(struct backward *b) {
    b->dx[0] = b->dy;
}
void gradient_cast(struct backward *b) {
    b->dx[0] = b->dy;
} /* float to float; others are not wanted */

/* The same mask again: it depends on seed, step and position only. */
void gradient_dropout(struct backward *b) {
    struct node_info info = {
        .op = OP_dropout, .inputs = 2, .input = {b->dy, b->x[1]}, .attributes = attributes_of(b)};
    b->dx[0] = graph_make(b->g, &info);
}

/* --- matrix --- */

/* With y = A B, A = a or a', B = b or b': dA = dy B', dB = A' dy; transposed when the operand was. */
void gradient_matmul(struct backward *b) {
    const struct attributes attributes = attributes_of(b);
    const bool ta = attributes.transpose_a, tb = attributes.transpose_b;
    if (b->wanted[0])
        b->dx[0] = ta ? graph_matmul(b->g, b->x[1], b->dy, tb, true)
                      : graph_matmul(b->g, b->dy, b->x[1], false, !tb);
    if (b->wanted[1])
        b->dx[1] = tb ? graph_matmul(b->g, b->dy, b->x[0], true, ta)
                      : graph_matmul(b->g, b->x[0], b->dy, !ta, false);
}

/* --- arrays --- */

void gradient_reshape(struct backward *b) {
    b->dx[0] = graph_reshape(b->g, b->dy, shape_of(b->g, b->x[0]));
}
void gradient_broadcast_to(struct backward *b) {
    give(b, 0, b->dy);
}

void gradient_transpose(struct backward *b) {
    const struct attributes attributes = attributes_of(b);
    int back[MAX_RANK] = {0};
    for (int axis = 0; axis < shape_of(b->g, b->y).rank; axis++) back[attributes.order[axis]] = axis;
    b->dx[0] = graph_transpose(b->g, b->dy, back);
}

void gradient_concat(struct backward *b) {
    const int axis = attributes_of(b).axis, parts = b->g->nodes[b->y].inputs;
    int begin[MAX_RANK] = {0};
    for (int i = 0; i < parts; i++) {
        const struct shape part = shape_of(b->g, b->x[i]);
        if (b->wanted[i]) b->dx[i] = graph_slice(b->g, b->dy, begin, part);
        begin[axis] += part.dims[axis];
    }
}

void gradient_slice(struct backward *b) {
    struct node_info info = {.op = OP_pad, .inputs = 1, .input = {b->dy}, .attributes = attributes_of(b)};
    info.attributes.shape = shape_of(b->g, b->x[0]);
    b->dx[0] = graph_make(b->g, &info);
}

void gradient_pad(struct backward *b) {
    const struct attributes attributes = attributes_of(b);
    b->dx[0] = graph_slice(b->g, b->dy, attributes.begin, shape_of(b->g, b->x[0]));
}

/* --- reductions --- */

/* A reduced value with its reduced axes back, of length 1. */
static node with_axes(struct backward *b, node reduced) {
    const struct attributes attributes = attributes_of(b);
    if (attributes.keep) return reduced;
    struct shape kept = shape_of(b->g, b->x[0]);
    for (int axis = 0; axis < kept.rank; axis++)
        if (attributes.axis == ALL_AXES || attributes.axis == axis) kept.dims[axis] = 1;
    /* A scalar broadcasts as it is, and its value may be known. */
    return shape_of(b->g, reduced).rank == 0 ? reduced : graph_reshape(b->g, reduced, kept);
}

void gradient_reduce_sum(struct backward *b) {
    b->dx[0] = graph_broadcast(b->g, with_axes(b, b->dy), shape_of(b->g, b->x[0]));
}

void gradient_reduce_mean(struct backward *b) {
    const struct shape from = shape_of(b->g, b->x[0]), to = shape_of(b->g, b->y);
    const float share = (float)((double)shape_count(&to) / (double)shape_count(&from));
    b->dx[0] = graph_broadcast(b->g, with_axes(b, scale(b->g, b->dy, share)), from);
}

/* Equal shares to all that reach the maximum. */
void gradient_reduce_max(struct backward *b) {
    struct graph *g = b->g;
    const node reached = graph_cast(g, graph_equal(g, b->x[0], with_axes(b, b->y)), TYPE_FLOAT);
    const node ties = graph_reduce_sum(g, reached, attributes_of(b).axis, true);
    b->dx[0] = graph_mul(g, reached, graph_div(g, with_axes(b, b->dy), ties));
}

/* --- nets --- */

void gradient_softmax(struct backward *b) {
    b->dx[0] = make_gradient(b->g, OP_softmax_grad, b->y, b->dy);
}

static node label_gradient(struct backward *b, enum op op) {
    return graph_make(b->g, &(struct node_info){.op = op, .inputs = 3, .input = {b->x[0], b->x[1], b->dy}});
}

void gradient_cross_entropy(struct backward *b) {
    b->dx[0] = label_gradient(b, OP_cross_entropy_grad);
}

void gradient_softmax_cross_entropy(struct backward *b) {
    b->dx[0] = label_gradient(b, OP_softmax_cross_entropy_grad);
}
