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

/* --- inverse, determinant --- */

int shape_inverse(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_same(g, n));
    if (n->shape.rank == 2 && n->shape.dims[0] == n->shape.dims[1]) return OK;
    return graph_mistake(g, "%s: %s, expected a square matrix", op_name(n->op), TEXT(&n->shape));
}

int shape_determinant(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_inverse(g, n));
    n->shape = SCALAR;
    return OK;
}

node graph_inverse(struct graph *g, node x) {
    return graph_unary(g, OP_inverse, x);
}

node graph_determinant(struct graph *g, node x) {
    return graph_unary(g, OP_determinant, x);
}

/* From X Y = 1: dX = -Y' dY Y'. */
void gradient_inverse(struct backward *b) {
    const node left = graph_matmul(b->g, b->y, b->dy, true, false);
    b->dx[0] = backward_scale(b->g, graph_matmul(b->g, left, b->y, false, true), -1.0f);
}

/* Jacobi's formula: dX = dy det(X) inverse(X)'. */
void gradient_determinant(struct backward *b) {
    const node inverse = graph_transpose(b->g, graph_inverse(b->g, b->x[0]), (int[]){1, 0});
    b->dx[0] = graph_mul(b->g, graph_mul(b->g, b->dy, b->y), inverse);
}

/* --- layers with weights --- */

node layer_variable(struct graph *g, const struct layer_names *names, const char *what, struct shape shape,
                    struct initial initial) {
    char name[300]; /* longer than a variable's may be, which says so */
    if (names->name)
        snprintf(name, sizeof name, "%s/%s", names->name, what);
    else
        snprintf(name, sizeof name, "%s%d/%s", names->usual, names->number, what);
    return graph_variable(g, name, shape, initial);
}

void layer_weights(struct graph *g, const struct layer_names *names, struct shape shape, int out,
                   const struct weights *weights, node *kernel, node *bias) {
    *bias = NONE;
    *kernel = layer_variable(g, names, "kernel", shape, weights->kernel);
    if (weights->decay > 0.0f) graph_decay(g, *kernel, weights->decay);
    if (!weights->no_bias) *bias = layer_variable(g, names, "bias", SHAPE(out), weights->bias);
}

node layer_biased(struct graph *g, node y, node bias) {
    return bias == NONE ? y : graph_add(g, y, bias);
}

int shape_dense(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_matmul(g, n));
    RETURN_IF(expect_type(g, n, 2, TYPE_FLOAT));
    return expect_shape(g, n, 2, &SHAPE(n->shape.dims[1]));
}

node graph_dense(struct graph *g, node x, int out, struct initial kernel, struct initial bias) {
    return graph_dense_of(g, x, out, &(struct weights){.kernel = kernel, .bias = bias});
}

node graph_dense_of(struct graph *g, node x, int out, const struct weights *weights) {
    if (g->error.code != OK) return NONE;
    if (x < 0 || x >= g->count || g->nodes[x].shape.rank != 2 || out < 1) {
        graph_mistake(g, "dense: %s to %d, expected [batch, in] to 1 or more",
                      x < 0 || x >= g->count ? "no node" : TEXT(&g->nodes[x].shape), out);
        return NONE;
    }
    const struct layer_names names = {weights->name, "dense", weights->name ? 0 : ++g->layers};
    node kernel, bias;
    layer_weights(g, &names, SHAPE(g->nodes[x].shape.dims[1], out), out, weights, &kernel, &bias);
    return layer_biased(g, graph_matmul(g, x, kernel, false, false), bias);
}
