/* Shape rules: from operation, operands and attributes to the type and shape of the result. Said once, for
 * all backends. */
#include <string.h>
#include "rules.h"

const struct node_info *operand(const struct graph *g, const struct node_info *n, int i) {
    return &g->nodes[n->input[i]];
}

const struct shape *operand_shape(const struct graph *g, const struct node_info *n, int i) {
    return &operand(g, n, i)->shape;
}

int expect_type(struct graph *g, const struct node_info *n, int i, enum type type) {
    const enum type found = operand(g, n, i)->type;
    if (found == type) return OK;
    return graph_mistake(g, "%s: operand %d is %s, expected %s", op_name(n->op), i + 1, type_name(found),
                         type_name(type));
}

int expect_shape(struct graph *g, const struct node_info *n, int i, const struct shape *shape) {
    if (shape_equal(operand_shape(g, n, i), shape)) return OK;
    return graph_mistake(g, "%s: operand %d is %s, expected %s", op_name(n->op), i + 1,
                         TEXT(operand_shape(g, n, i)), TEXT(shape));
}

int expect_rank(struct graph *g, const struct node_info *n, int i, int rank) {
    if (operand_shape(g, n, i)->rank == rank) return OK;
    return graph_mistake(g, "%s: operand %d is %s, expected %d dimensions", op_name(n->op), i + 1,
                         TEXT(operand_shape(g, n, i)), rank);
}

int expect_valid(struct graph *g, const struct node_info *n, const struct shape *shape) {
    if (shape->rank < 0 || shape->rank > MAX_RANK)
        return graph_mistake(g, "%s: %d dimensions, expected 0 to %d", op_name(n->op), shape->rank, MAX_RANK);
    double count = 1;
    for (int axis = 0; axis < shape->rank; axis++) {
        if (shape->dims[axis] < 1)
            return graph_mistake(g, "%s: shape %s, expected dimensions of 1 or more", op_name(n->op),
                                 TEXT(shape));
        count *= shape->dims[axis];
    }
    if (count > 1e12)
        return graph_mistake(g, "%s: shape %s has %g elements, expected at most 1e12", op_name(n->op),
                             TEXT(shape), count);
    return OK;
}

/* *axis from 0 to rank-1, counted from the end when negative. */
static int expect_axis(struct graph *g, const struct node_info *n, int rank, int *axis) {
    const int found = *axis;
    if (found < -rank || found >= rank)
        return graph_mistake(g, "%s: axis %d of %s, expected %d to %d", op_name(n->op), found,
                             TEXT(operand_shape(g, n, 0)), -rank, rank - 1);
    if (found < 0) *axis += rank;
    return OK;
}

bool shape_common(const struct shape *a, const struct shape *b, struct shape *out) {
    *out = (struct shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int from_end = 1; from_end <= out->rank; from_end++) {
        const int x = from_end <= a->rank ? a->dims[a->rank - from_end] : 1;
        const int y = from_end <= b->rank ? b->dims[b->rank - from_end] : 1;
        if (x != y && x != 1 && y != 1) return false;
        out->dims[out->rank - from_end] = x == 1 ? y : x;
    }
    return true;
}

int shape_attribute(struct graph *g, struct node_info *n) {
    n->shape = n->attributes.shape;
    return expect_valid(g, n, &n->shape);
}

int shape_broadcast(struct graph *g, struct node_info *n) {
    const struct node_info *a = operand(g, n, 0), *b = operand(g, n, 1);
    if (a->type != b->type)
        return graph_mistake(g, "%s: %s and %s, expected operands of one type", op_name(n->op),
                             type_name(a->type), type_name(b->type));
    const bool ints = n->op != OP_div && n->op != OP_pow;
    if (a->type == TYPE_BOOL || (a->type == TYPE_INT && !ints))
        return graph_mistake(g, "%s: operands are %s, expected %s", op_name(n->op), type_name(a->type),
                             ints ? "float32 or int32" : "float32");
    if (!shape_common(&a->shape, &b->shape, &n->shape))
        return graph_mistake(g, "%s: %s and %s do not broadcast", op_name(n->op), TEXT(&a->shape),
                             TEXT(&b->shape));
    n->type = a->type;
    return expect_valid(g, n, &n->shape);
}

int shape_compare(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_broadcast(g, n));
    n->type = TYPE_BOOL;
    return OK;
}

int shape_same(struct graph *g, struct node_info *n) {
    if (n->op != OP_copy) RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    n->type = operand(g, n, 0)->type;
    n->shape = *operand_shape(g, n, 0);
    if (n->op == OP_softmax && n->shape.rank == 0)
        return graph_mistake(g, "softmax: found a scalar, expected 1 dimension or more");
    return OK;
}

int shape_cast(struct graph *g, struct node_info *n) {
    n->shape = *operand_shape(g, n, 0); /* the type was said by who made the node */
    return OK;
}

/* Labels of [batch, classes] values: int [batch]. */
static int expect_labels(struct graph *g, const struct node_info *n) {
    RETURN_IF(expect_rank(g, n, 0, 2));
    RETURN_IF(expect_type(g, n, 1, TYPE_INT));
    return expect_shape(g, n, 1, &SHAPE(operand_shape(g, n, 0)->dims[0]));
}

int shape_first(struct graph *g, struct node_info *n) {
    RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    n->type = TYPE_FLOAT;
    n->shape = *operand_shape(g, n, 0);
    if (n->op == OP_dropout) {
        RETURN_IF(expect_type(g, n, 1, TYPE_INT));
        return expect_shape(g, n, 1, &SCALAR);
    }
    if (n->inputs == 3) { /* values, labels, gradient an example */
        RETURN_IF(expect_labels(g, n));
        return expect_shape(g, n, 2, &SHAPE(n->shape.dims[0]));
    }
    RETURN_IF(expect_type(g, n, 1, TYPE_FLOAT));
    return expect_shape(g, n, 1, &n->shape);
}

int shape_second(struct graph *g, struct node_info *n) {
    RETURN_IF(expect_type(g, n, 1, operand(g, n, 0)->type));
    RETURN_IF(expect_shape(g, n, 1, operand_shape(g, n, 0)));
    n->type = operand(g, n, 1)->type;
    n->shape = *operand_shape(g, n, 1);
    return OK;
}

int shape_matmul(struct graph *g, struct node_info *n) {
    for (int i = 0; i < 2; i++) {
        RETURN_IF(expect_type(g, n, i, TYPE_FLOAT));
        RETURN_IF(expect_rank(g, n, i, 2));
    }
    const struct shape *a = operand_shape(g, n, 0), *b = operand_shape(g, n, 1);
    const bool ta = n->attributes.transpose_a, tb = n->attributes.transpose_b;
    const int inner_a = a->dims[ta ? 0 : 1], inner_b = b->dims[tb ? 1 : 0];
    if (inner_a != inner_b)
        return graph_mistake(g, "matmul: %s%s times %s%s: inner dimensions %d and %d differ", TEXT(a),
                             ta ? " transposed" : "", TEXT(b), tb ? " transposed" : "", inner_a, inner_b);
    n->type = TYPE_FLOAT;
    n->shape = SHAPE(a->dims[ta ? 1 : 0], b->dims[tb ? 0 : 1]);
    return expect_valid(g, n, &n->shape);
}

int shape_dense(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_matmul(g, n));
    RETURN_IF(expect_type(g, n, 2, TYPE_FLOAT));
    return expect_shape(g, n, 2, &SHAPE(n->shape.dims[1]));
}

int shape_per_example(struct graph *g, struct node_info *n) {
    RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    RETURN_IF(expect_labels(g, n));
    n->type = TYPE_FLOAT;
    n->shape = SHAPE(operand_shape(g, n, 0)->dims[0]);
    return OK;
}

/* --- arrays --- */

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
    }
    return expect_valid(g, n, &n->shape);
}

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

int shape_shape(struct graph *g, struct node_info *n) {
    const int rank = operand_shape(g, n, 0)->rank;
    if (rank == 0) return graph_mistake(g, "shape: found a scalar, whose shape has no elements");
    n->type = TYPE_INT;
    n->shape = SHAPE(rank);
    return OK;
}

int shape_rank(struct graph *g, struct node_info *n) {
    (void)g;
    n->type = TYPE_INT;
    n->shape = SCALAR;
    return OK;
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

/* --- reductions --- */

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
