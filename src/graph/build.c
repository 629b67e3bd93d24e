/* The calls that build a graph. Each one says its operation, operands and attributes; shapes, types and
 * mistakes are the shape rules' business. */
#include <stdio.h>
#include <string.h>
#include "../base/rng.h"
#include "graph.h"
#include "rules.h"

static node make_unary(struct graph *g, enum op op, node x) {
    return graph_make(g, &(struct node_info){.op = op, .inputs = 1, .input = {x}});
}

static node make_binary(struct graph *g, enum op op, node a, node b) {
    return graph_make(g, &(struct node_info){.op = op, .inputs = 2, .input = {a, b}});
}

/* --- elementwise --- */

node graph_add(struct graph *g, node a, node b) {
    return make_binary(g, OP_add, a, b);
}
node graph_sub(struct graph *g, node a, node b) {
    return make_binary(g, OP_sub, a, b);
}
node graph_mul(struct graph *g, node a, node b) {
    return make_binary(g, OP_mul, a, b);
}
node graph_div(struct graph *g, node a, node b) {
    return make_binary(g, OP_div, a, b);
}
node graph_pow(struct graph *g, node a, node b) {
    return make_binary(g, OP_pow, a, b);
}
node graph_greater(struct graph *g, node a, node b) {
    return make_binary(g, OP_greater, a, b);
}
node graph_less(struct graph *g, node a, node b) {
    return make_binary(g, OP_less, a, b);
}
node graph_equal(struct graph *g, node a, node b) {
    return make_binary(g, OP_equal, a, b);
}
node graph_exp(struct graph *g, node x) {
    return make_unary(g, OP_exp, x);
}
node graph_log(struct graph *g, node x) {
    return make_unary(g, OP_log, x);
}
node graph_relu(struct graph *g, node x) {
    return make_unary(g, OP_relu, x);
}
node graph_sigmoid(struct graph *g, node x) {
    return make_unary(g, OP_sigmoid, x);
}
node graph_tanh(struct graph *g, node x) {
    return make_unary(g, OP_tanh, x);
}

node graph_activate(struct graph *g, node x, enum activation activation) {
    switch (activation) {
    case ACTIVATION_NONE:
        return g->error.code == OK ? x : NONE;
    case ACTIVATION_RELU:
        return graph_relu(g, x);
    case ACTIVATION_SIGMOID:
        return graph_sigmoid(g, x);
    case ACTIVATION_TANH:
        return graph_tanh(g, x);
    }
    return NONE;
}

node graph_cast(struct graph *g, node x, enum type type) {
    return graph_make(g, &(struct node_info){.op = OP_cast, .type = type, .inputs = 1, .input = {x}});
}

/* The int scalar that tells the dropouts of a graph which step this is; made on first use, shared by all. */
static node step_placeholder(struct graph *g) {
    const node step = graph_find(g, "step");
    return step != NONE ? step : graph_placeholder(g, "step", TYPE_INT, SCALAR);
}

node graph_dropout(struct graph *g, node x, float rate) {
    if (g->error.code != OK) return NONE;
    if (!(rate >= 0.0f && rate < 1.0f)) {
        graph_mistake(g, "dropout: rate %g, expected 0 or more and less than 1", (double)rate);
        return NONE;
    }
    if (!g->training) return x;
    const node step = step_placeholder(g);
    struct node_info info = {.op = OP_dropout, .inputs = 2, .input = {x, step}};
    info.attributes.rate = rate;
    info.attributes.seed = rng_mix(g->seed, (uint64_t)g->count);
    return graph_make(g, &info);
}

/* --- matrix --- */

node graph_matmul(struct graph *g, node a, node b, bool transpose_a, bool transpose_b) {
    struct node_info info = {.op = OP_matmul, .inputs = 2, .input = {a, b}};
    info.attributes.transpose_a = transpose_a;
    info.attributes.transpose_b = transpose_b;
    return graph_make(g, &info);
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

/* --- arrays --- */

static node make_shaped(struct graph *g, enum op op, node x, struct shape shape) {
    return graph_make(g, &(struct node_info){.op = op, .inputs = 1, .input = {x}, .attributes.shape = shape});
}

node graph_reshape(struct graph *g, node x, struct shape shape) {
    return make_shaped(g, OP_reshape, x, shape);
}
node graph_broadcast(struct graph *g, node x, struct shape shape) {
    return make_shaped(g, OP_broadcast_to, x, shape);
}
node graph_shape(struct graph *g, node x) {
    return make_unary(g, OP_shape, x);
}
node graph_rank(struct graph *g, node x) {
    return make_unary(g, OP_rank, x);
}

node graph_transpose(struct graph *g, node x, const int *order) {
    struct node_info info = {.op = OP_transpose, .inputs = 1, .input = {x}};
    const int rank = g->error.code == OK && x >= 0 && x < g->count ? g->nodes[x].shape.rank : 0;
    memcpy(info.attributes.order, order, (size_t)rank * sizeof *order);
    return graph_make(g, &info);
}

node graph_concat(struct graph *g, const node *parts, int count, int axis) {
    if (g->error.code == OK && (count < 1 || count > MAX_INPUTS))
        graph_mistake(g, "concat: %d parts, expected 1 to %d", count, MAX_INPUTS);
    if (g->error.code != OK) return NONE;
    struct node_info info = {.op = OP_concat, .inputs = count, .attributes.axis = axis};
    memcpy(info.input, parts, (size_t)count * sizeof *parts);
    return graph_make(g, &info);
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

/* --- reductions --- */

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

/* --- nets --- */

node graph_softmax(struct graph *g, node x) {
    return make_unary(g, OP_softmax, x);
}

/* Of a softmax: built from the logits instead, which is stable where a probability is 0, and one operation
 * less each way. The softmax itself runs only when something else asks for it. */
node graph_cross_entropy(struct graph *g, node p, node labels) {
    if (g->error.code == OK && p >= 0 && p < g->count && g->nodes[p].op == OP_softmax &&
        g->nodes[p].shape.rank == 2)
        return graph_softmax_cross_entropy(g, g->nodes[p].input[0], labels);
    return make_binary(g, OP_cross_entropy, p, labels);
}

node graph_softmax_cross_entropy(struct graph *g, node logits, node labels) {
    return make_binary(g, OP_softmax_cross_entropy, logits, labels);
}
