/* What shape rules share: checks of operands, and the rules of more than one operation. A shape rule goes
 * from operation, operands and attributes to the type and shape of the result, for all backends. */
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
        if (shape->dims[axis] > DIMENSION_MOST)
            return graph_mistake(g, "%s: shape %s, expected dimensions of at most %d", op_name(n->op),
                                 TEXT(shape), DIMENSION_MOST);
        count *= shape->dims[axis];
    }
    if (count > 1e12)
        return graph_mistake(g, "%s: shape %s has %g elements, expected at most 1e12", op_name(n->op),
                             TEXT(shape), count);
    return OK;
}

int expect_axis(struct graph *g, const struct node_info *n, int rank, int *axis) {
    const int found = *axis;
    if (rank == 0)
        return graph_mistake(g, "%s: found a scalar, expected 1 dimension or more", op_name(n->op));
    if (found < -rank || found >= rank)
        return graph_mistake(g, "%s: axis %d of %s, expected %d to %d", op_name(n->op), found,
                             TEXT(operand_shape(g, n, 0)), -rank, rank - 1);
    if (found < 0) *axis += rank;
    return OK;
}

const struct shape *expect_dims(struct graph *g, const char *what, node x, int least, int most) {
    if (g->error.code != OK) return NULL;
    if (x < 0 || x >= g->count) {
        graph_mistake(g, "%s: operand 1 is not a node of this graph", what);
        return NULL;
    }
    const struct shape *shape = &g->nodes[x].shape;
    if (shape->rank >= least && shape->rank <= most) return shape;
    graph_mistake(g, "%s: operand 1 is %s, expected %d%s dimensions", what, TEXT(shape), least,
                  most > least ? " or more" : "");
    return NULL;
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

/* --- rules of more than one operation --- */

int shape_attribute(struct graph *g, struct node_info *n) {
    n->shape = n->attributes.shape;
    return expect_valid(g, n, &n->shape);
}

/* As the operand, float32. */
int shape_same(struct graph *g, struct node_info *n) {
    RETURN_IF(expect_type(g, n, 0, TYPE_FLOAT));
    return shape_copy(g, n);
}

/* As the operand, of any type. */
int shape_copy(struct graph *g, struct node_info *n) {
    n->type = operand(g, n, 0)->type;
    n->shape = *operand_shape(g, n, 0);
    return OK;
}

/* Two operands of one shape, the result, too. */
int shape_first(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_same(g, n));
    RETURN_IF(expect_type(g, n, 1, TYPE_FLOAT));
    return expect_shape(g, n, 1, &n->shape);
}

int shape_decayed(struct graph *g, struct node_info *n) {
    for (int i = 0; i < n->inputs; i++) RETURN_IF(expect_type(g, n, i, TYPE_FLOAT));
    n->type = TYPE_FLOAT;
    n->shape = SCALAR;
    return n->attributes.keep ? OK : expect_shape(g, n, 0, &n->shape);
}

int shape_second(struct graph *g, struct node_info *n) {
    RETURN_IF(expect_type(g, n, 1, operand(g, n, 0)->type));
    RETURN_IF(expect_shape(g, n, 1, operand_shape(g, n, 0)));
    n->type = operand(g, n, 1)->type;
    n->shape = *operand_shape(g, n, 1);
    return OK;
}
