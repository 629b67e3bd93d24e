/* Operations that rearrange arrays: the shape rule, call and gradient of each. */
#include <string.h>
#include "rules.h"

static node make_shaped(struct graph *g, enum op op, node x, struct shape shape) {
    return graph_make(g, &(struct node_info){.op = op, .inputs = 1, .input = {x}, .attributes.shape = shape});
}

/* --- reshape, broadcast_to --- */

int shape_reshape(struct graph *g, struct node_info *n) {
    const struct shape *from = operand_shape(g, n, 0);
    struct shape *to = &n->attributes.shape;
    const struct shape asked = *to;
    int open = -1;
    size_t known = 1;
    for (int axis = 0; axis < to->rank && to->rank <= MAX_RANK; axis++) {
        if (to->dims[axis] == -1 && open < 0)
            open = axis;
        else if (to->dims[axis] >= 1)
            known *= (size_t)to->dims[axis];
        else
            return graph_mistake(g, "reshape: %s, expected dimensions of 1 or more and at most one -1",
                                 TEXT(to));
    }
    if (open >= 0) to->dims[open] = shape_count(from) % known == 0 ? (int)(shape_count(from) / known) : 1;
    RETURN_IF(expect_valid(g, n, to));
    if (shape_count(from) != shape_count(to))
        return graph_mistake(g, "reshape: %s has %zu elements and does not fit %s", TEXT(from),
                             shape_count(from), TEXT(&asked));
    n->type = operand(g, n, 0)->type;
    n->shape = *to;
    return OK;
}

node graph_reshape(struct graph *g, node x, struct shape shape) {
    return make_shaped(g, OP_reshape, x, shape);
}

void gradient_reshape(struct backward *b) {
    b->dx[0] = graph_reshape(b->g, b->dy, shape_of(b->g, b->x[0]));
}

int shape_broadcast_to(struct graph *g, struct node_info *n) {
    const struct shape *from = operand_shape(g, n, 0), *to = &n->attributes.shape;
    RETURN_IF(expect_valid(g, n, to));
    struct shape common;
    if (!shape_common(from, to, &common) || !shape_equal(&common, to))
        return graph_mistake(g, "broadcast_to: %s does not broadcast to %s", TEXT(from), TEXT(to));
    n->type = operand(g, n, 0)->type;
    n->shape = *to;
    return OK;
}

node graph_broadcast(struct graph *g, node x, struct shape shape) {
    return make_shaped(g, OP_broadcast_to, x, shape);
}

void gradient_broadcast_to(struct backward *b) {
    backward_give(b, 0, b->dy);
}

/* --- transpose --- */

int shape_transpose(struct graph *g, struct node_info *n) {
    const struct shape *from = operand_shape(g, n, 0);
    bool seen[MAX_RANK] = {false};
    n->type = operand(g, n, 0)->type;
    n->shape.rank = from->rank;
    for (int axis = 0; axis < from->rank; axis++) {
        const int source = n->attributes.order[axis];
        if (source < 0 || source >= from->rank || seen[source])
            return graph_mistake(g, "transpose: axis %d of the order is %d, expected each of 0 to %d once",
                                 axis, source, from->rank - 1);
        seen[source] = true;
        n->shape.dims[axis] = from->dims[source];
    }
    return OK;
}

node graph_transpose(struct graph *g, node x, const int *order) {
    struct node_info info = {.op = OP_transpose, .inputs = 1, .input = {x}};
    const int rank = g->error.code == OK && x >= 0 && x < g->count ? g->nodes[x].shape.rank : 0;
    memcpy(info.attributes.order, order, (size_t)rank * sizeof *order);
    return graph_make(g, &info);
}

void gradient_transpose(struct backward *b) {
    const struct attributes attributes = backward_attributes(b);
    int back[MAX_RANK] = {0};
    for (int axis = 0; axis < shape_of(b->g, b->y).rank; axis++) back[attributes.order[axis]] = axis;
    b->dx[0] = graph_transpose(b->g, b->dy, back);
}

/* --- concat --- */

int shape_concat(struct graph *g, struct node_info *n) {
    n->type = operand(g, n, 0)->type;
    n->shape = *operand_shape(g, n, 0);
    RETURN_IF(expect_axis(g, n, n->shape.rank, &n->attributes.axis));
    const int at = n->attributes.axis;
    for (int i = 1; i < n->inputs; i++) {
        RETURN_IF(expect_type(g, n, i, n->type));
        struct shape part = *operand_shape(g, n, i);
        const int length = part.rank == n->shape.rank ? part.dims[at] : 0;
        part.dims[at] = n->shape.dims[at];
        if (!shape_equal(&part, &n->shape))
            return graph_mistake(g, "concat: %s and %s along axis %d: other dimensions differ",
                                 TEXT(operand_shape(g, n, 0)), TEXT(operand_shape(g, n, i)), at);
        n->shape.dims[at] += length;
        RETURN_IF(expect_valid(g, n, &n->shape)); /* before the next is added */
    }
    return expect_valid(g, n, &n->shape);
}

node graph_concat(struct graph *g, const node *parts, int count, int axis) {
    if (g->error.code == OK && (count < 1 || count > MAX_INPUTS))
        graph_mistake(g, "concat: %d parts, expected 1 to %d", count, MAX_INPUTS);
    if (g->error.code != OK) return NONE;
    struct node_info info = {.op = OP_concat, .inputs = count, .attributes.axis = axis};
    memcpy(info.input, parts, (size_t)count * sizeof *parts);
    return graph_make(g, &info);
}

void gradient_concat(struct backward *b) {
    const int axis = backward_attributes(b).axis, parts = b->g->nodes[b->y].inputs;
    int begin[MAX_RANK] = {0};
    for (int i = 0; i < parts; i++) {
        const struct shape part = shape_of(b->g, b->x[i]);
        if (b->wanted[i]) b->dx[i] = graph_slice(b->g, b->dy, begin, part);
        begin[axis] += part.dims[axis];
    }
}

/* --- slice, pad --- */

int shape_slice(struct graph *g, struct node_info *n) {
    const struct shape *from = operand_shape(g, n, 0);
    struct shape *size = &n->attributes.shape;
    if (size->rank != from->rank)
        return graph_mistake(g, "slice: %d sizes for %s, expected %d", size->rank, TEXT(from), from->rank);
    for (int axis = 0; axis < from->rank; axis++) {
        const int begin = n->attributes.begin[axis];
        if (size->dims[axis] == -1) size->dims[axis] = from->dims[axis] - begin;
        if (begin < 0 || size->dims[axis] < 1 || size->dims[axis] > from->dims[axis] - begin)
            return graph_mistake(g, "slice: %d elements from %d along axis %d of %s", size->dims[axis], begin,
                                 axis, TEXT(from));
    }
    n->type = operand(g, n, 0)->type;
    n->shape = *size;
    return OK;
}

node graph_slice(struct graph *g, node x, const int *begin, struct shape size) {
    struct node_info info = {.op = OP_slice, .inputs = 1, .input = {x}, .attributes.shape = size};
    if (size.rank >= 0 && size.rank <= MAX_RANK)
        memcpy(info.attributes.begin, begin, (size_t)size.rank * sizeof *begin);
    return graph_make(g, &info);
}

void graph_split(struct graph *g, node x, int count, int axis, node *parts) {
    for (int i = 0; i < count; i++) parts[i] = NONE;
    if (g->error.code != OK) return;
    const int rank = x >= 0 && x < g->count ? g->nodes[x].shape.rank : 0;
    const int at = axis < 0 ? axis + rank : axis;
    if (at < 0 || at >= rank || count < 1 || g->nodes[x].shape.dims[at] % count != 0) {
        graph_mistake(g, "split: %s into %d parts along axis %d, expected equal parts",
                      rank == 0 ? "[]" : TEXT(&g->nodes[x].shape), count, axis);
        return;
    }
    struct shape size = g->nodes[x].shape;
    int begin[MAX_RANK] = {0};
    size.dims[at] /= count;
    for (int i = 0; i < count; i++, begin[at] += size.dims[at]) parts[i] = graph_slice(g, x, begin, size);
}

void gradient_slice(struct backward *b) {
    struct node_info info = {
        .op = OP_pad, .inputs = 1, .input = {b->dy}, .attributes = backward_attributes(b)};
    info.attributes.shape = shape_of(b->g, b->x[0]);
    b->dx[0] = graph_make(b->g, &info);
}

int shape_pad(struct graph *g, struct node_info *n) {
    const struct shape *from = operand_shape(g, n, 0), *full = &n->attributes.shape;
    RETURN_IF(expect_valid(g, n, full));
    if (full->rank != from->rank)
        return graph_mistake(g, "pad: %s into %s, expected %d dimensions", TEXT(from), TEXT(full),
                             from->rank);
    for (int axis = 0; axis < from->rank; axis++) {
        const int begin = n->attributes.begin[axis];
        if (begin < 0 || from->dims[axis] > full->dims[axis] - begin)
            return graph_mistake(g, "pad: %s from %d along axis %d of %s does not fit", TEXT(from), begin,
                                 axis, TEXT(full));
    }
    n->type = operand(g, n, 0)->type;
    n->shape = *full;
    return OK;
}

node graph_pad(struct graph *g, node x, const int *before, const int *after) {
    const struct shape *shape = expect_dims(g, "pad", x, 0, MAX_RANK);
    if (!shape) return NONE;
    struct node_info info = {.op = OP_pad, .inputs = 1, .input = {x}, .attributes.shape = *shape};
    for (int axis = 0; axis < shape->rank; axis++) {
        if (before[axis] < 0 || after[axis] < 0) {
            graph_mistake(g, "pad: %d and %d around axis %d, expected 0 or more", before[axis], after[axis],
                          axis);
            return NONE;
        }
        info.attributes.begin[axis] = before[axis];
        info.attributes.shape.dims[axis] += before[axis] + after[axis];
    }
    return graph_make(g, &info);
}

void gradient_pad(struct backward *b) {
    const struct attributes attributes = backward_attributes(b);
    b->dx[0] = graph_slice(b->g, b->dy, attributes.begin, shape_of(b->g, b->x[0]));
}

/* --- shape, rank --- */

int shape_shape(struct graph *g, struct node_info *n) {
    const int rank = operand_shape(g, n, 0)->rank;
    if (rank == 0) return graph_mistake(g, "shape: found a scalar, whose shape has no elements");
    n->type = TYPE_INT;
    n->shape = SHAPE(rank);
    return OK;
}

node graph_shape(struct graph *g, node x) {
    return graph_unary(g, OP_shape, x);
}

int shape_rank(struct graph *g, struct node_info *n) {
    (void)g;
    n->type = TYPE_INT;
    n->shape = SCALAR;
    return OK;
}

node graph_rank(struct graph *g, node x) {
    return graph_unary(g, OP_rank, x);
}
