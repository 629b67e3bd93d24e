/* Operations on matrices: the shape rule, call and gradient of each. */
#include <stdio.h>
#include "rules.h"

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

node graph_matmul(struct graph *g, node a, node b, bool transpose_a, bool transpose_b) {
    struct node_info info = {.op = OP_matmul, .inputs = 2, .input = {a, b}};
    info.attributes.transpose_a = transpose_a;
    info.attributes.transpose_b = transpose_b;
    return graph_make(g, &info);
}

/* With y = A B, A = a or a', B = b or b': dA = dy B', dB = A' dy; transposed when the operand was. */
void gradient_matmul(struct backward *b) {
    const struct attributes attributes = backward_attributes(b);
    const bool ta = attributes.transpose_a, tb = attributes.transpose_b;
    if (b->wanted[0])
        b->dx[0] = ta ? graph_matmul(b->g, b->x[1], b->dy, tb, true)
                      : graph_matmul(b->g, b->dy, b->x[1], false, !tb);
    if (b->wanted[1])
        b->dx[1] = tb ? graph_matmul(b->g, b->dy, b->x[0], true, ta)
                      : graph_matmul(b->g, b->x[0], b->dy, !ta, false);
}

int shape_dense(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_matmul(g, n));
    RETURN_IF(expect_type(g, n, 2, TYPE_FLOAT));
    return expect_shape(g, n, 2, &SHAPE(n->shape.dims[1]));
}

node graph_dense(struct graph *g, node x, int out, struct initial kernel, struct initial bias) {
    if (g->error.code != OK) return NONE;
    if (x < 0 || x >= g->count || g->nodes[x].shape.rank != 2 || out < 1) {
        graph_mistake(g, "dense: %s to %d, expected [batch, in] to 1 or more",
                      x < 0 || x >= g->count ? "no node" : TEXT(&g->nodes[x].shape), out);
        return NONE;
    }
    const int layer = ++g->layers;
    char name[64];
    snprintf(name, sizeof name, "dense%d/kernel", layer);
    const node w = graph_variable(g, name, SHAPE(g->nodes[x].shape.dims[1], out), kernel);
    snprintf(name, sizeof name, "dense%d/bias", layer);
    const node b = graph_variable(g, name, SHAPE(out), bias);
    return graph_add(g, graph_matmul(g, x, w, false, false), b);
}
