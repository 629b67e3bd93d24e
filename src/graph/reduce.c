/* Reductions: their shape rules, calls and gradients. */
#include "rules.h"

int shape_reduce(struct graph *g, struct node_info *n) {
    const enum type type = operand(g, n, 0)->type;
    if (n->op == OP_reduce_mean || type == TYPE_BOOL) RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    const struct shape *from = operand_shape(g, n, 0);
    if (n->attributes.axis != ALL_AXES) RETURN_IF(expect_axis(g, n, from->rank, &n->attributes.axis));
    n->type = type;
    n->shape = SCALAR;
    for (int axis = 0; axis < from->rank; axis++) {
        const bool reduced = n->attributes.axis == ALL_AXES || n->attributes.axis == axis;
        if (!reduced || n->attributes.keep) n->shape.dims[n->shape.rank++] = reduced ? 1 : from->dims[axis];
    }
    return OK;
}

int shape_argmax(struct graph *g, struct node_info *n) {
    if (n->attributes.axis == ALL_AXES) return graph_mistake(g, "argmax: expected one axis, found all");
    RETURN_IF(shape_reduce(g, n));
    n->type = TYPE_INT;
    return OK;
}

/* --- calls --- */

static node make_reduce(struct graph *g, enum op op, node x, int axis, bool keep) {
    struct node_info info = {.op = op, .inputs = 1, .input = {x}};
    info.attributes.axis = axis;
    info.attributes.keep = keep;
    return graph_make(g, &info);
}

node graph_reduce_sum(struct graph *g, node x, int axis, bool keep) {
    return make_reduce(g, OP_reduce_sum, x, axis, keep);
}

node graph_reduce_mean(struct graph *g, node x, int axis, bool keep) {
    return make_reduce(g, OP_reduce_mean, x, axis, keep);
}

node graph_reduce_max(struct graph *g, node x, int axis, bool keep) {
    return make_reduce(g, OP_reduce_max, x, axis, keep);
}

node graph_argmax(struct graph *g, node x, int axis) {
    return make_reduce(g, OP_argmax, x, axis, false);
}

/* --- gradients --- */

/* A reduced value with its reduced axes back, of length 1. */
static node with_axes(struct backward *b, node reduced) {
    const struct attributes attributes = backward_attributes(b);
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
    b->dx[0] = graph_broadcast(b->g, with_axes(b, backward_scale(b->g, b->dy, share)), from);
}

/* Equal shares to all that reach the maximum. */
void gradient_reduce_max(struct backward *b) {
    struct graph *g = b->g;
    const node reached = graph_cast(g, graph_equal(g, b->x[0], with_axes(b, b->y)), TYPE_FLOAT);
    const node ties = graph_reduce_sum(g, reached, backward_attributes(b).axis, true);
    b->dx[0] = graph_mul(g, reached, graph_div(g, with_axes(b, b->dy), ties));
}
