/* Elementwise operations: their shape rules, calls and gradients. For the rows UNARY, BINARY and SLOPE of
 * ops.def, calls and gradients are generated here. */
#include "../base/rng.h"
#include "graph.h"
#include "rules.h"

/* --- shape rules --- */

static int broadcast(struct graph *g, struct node_info *n, bool ints) {
    const struct node_info *a = operand(g, n, 0), *b = operand(g, n, 1);
    if (a->type != b->type)
        return graph_mistake(g, "%s: %s and %s, expected operands of one type", op_name(n->op),
                             type_name(a->type), type_name(b->type));
    if (a->type == TYPE_BOOL || (a->type == TYPE_INT && !ints))
        return graph_mistake(g, "%s: operands are %s, expected %s", op_name(n->op), type_name(a->type),
                             ints ? "float32 or int32" : "float32");
    if (!shape_common(&a->shape, &b->shape, &n->shape))
        return graph_mistake(g, "%s: %s and %s do not broadcast", op_name(n->op), TEXT(&a->shape),
                             TEXT(&b->shape));
    n->type = a->type;
    return expect_valid(g, n, &n->shape);
}

int shape_broadcast_number(struct graph *g, struct node_info *n) {
    return broadcast(g, n, true);
}
int shape_broadcast_float(struct graph *g, struct node_info *n) {
    return broadcast(g, n, false);
}
int shape_broadcast_truth(struct graph *g, struct node_info *n) {
    RETURN_IF(broadcast(g, n, true));
    n->type = TYPE_BOOL;
    return OK;
}

int shape_cast(struct graph *g, struct node_info *n) {
    n->shape = *operand_shape(g, n, 0); /* the type was said by who made the node */
    return OK;
}

int shape_dropout(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_same(g, n));
    RETURN_IF(expect_type(g, n, 1, TYPE_INT));
    return expect_shape(g, n, 1, &SCALAR);
}

/* --- calls --- */

#define UNARY(name, ...)                                                                                     \
    node graph_##name(struct graph *g, node x) {                                                             \
        return graph_unary(g, OP_##name, x);                                                                 \
    }
#define BINARY(name, ...)                                                                                    \
    node graph_##name(struct graph *g, node a, node b) {                                                     \
        return graph_binary(g, OP_##name, a, b);                                                             \
    }
#define SLOPE(name) BINARY(name, float, NONE, NONE)
#include "ops.def"

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

/* The int scalar that tells the dropouts and shuffles of a graph which step this is; made on first use,
 * shared by all. */
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

/* --- gradients; those functions first that rows of ops.def call --- */

/* y = a^b: dy b a^(b-1), and dy y log(a) where a > 0, else 0 (as TensorFlow does; the true one does not exist
 * there) */
static node pow_gradient_a(struct graph *g, node a, node b, node dy) {
    const node less = graph_sub(g, b, graph_scalar(g, 1.0f));
    return graph_mul(g, dy, graph_mul(g, b, graph_pow(g, a, less)));
}
static node pow_gradient_b(struct graph *g, node a, node y, node dy) {
    const node positive = graph_cast(g, graph_greater(g, a, graph_scalar(g, 0.0f)), TYPE_FLOAT);
    const node safe = graph_add(g, graph_mul(g, a, positive), graph_sub(g, graph_scalar(g, 1.0f), positive));
    return graph_mul(g, dy, graph_mul(g, y, graph_log(g, safe)));
}

/* What alpha counts for in elu(a, alpha): exp(a) - 1 below 0. */
static node elu_share(struct graph *g, node a) {
    return graph_elu(g, graph_sub(g, a, graph_relu(g, a)), graph_scalar(g, 1.0f));
}

/* When all of dy is the gradient of a maxpool of y, it is 0 already where y is (gradient_maxpool). */
static node relu_gradient(struct graph *g, node y, node dy) {
    const struct node_info *info = dy == NONE ? NULL : &g->nodes[dy];
    if (info && info->op == OP_maxpool_grad && info->input[0] == y) return dy;
    return graph_binary(g, OP_relu_grad, y, dy);
}

#define UNARY(name, gradient)                                                                                \
    void gradient_##name(struct backward *back) {                                                            \
        struct graph *g = back->g;                                                                           \
        const node x = back->x[0], y = back->y, dy = back->dy;                                               \
        (void)g, (void)x, (void)y, (void)dy;                                                                 \
        back->dx[0] = gradient;                                                                              \
    }
#define BINARY(name, types, da, db)                                                                          \
    void gradient_##name(struct backward *back) {                                                            \
        struct graph *g = back->g;                                                                           \
        const node a = back->x[0], b = back->x[1], y = back->y, dy = back->dy;                               \
        (void)g, (void)a, (void)b, (void)y, (void)dy;                                                        \
        if (back->wanted[0]) backward_give(back, 0, da);                                                     \
        if (back->wanted[1]) backward_give(back, 1, db);                                                     \
    }
#include "ops.def"

void gradient_copy(struct backward *b) {
    b->dx[0] = b->dy;
}
void gradient_cast(struct backward *b) {
    b->dx[0] = b->dy;
} /* float to float; others are not wanted */

/* --- shuffle --- */

int shape_shuffle(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_dropout(g, n));
    if (n->shape.rank >= 1) return OK;
    return graph_mistake(g, "%s: found a scalar, expected rows", op_name(n->op));
}

node graph_shuffle(struct graph *g, node x) {
    if (g->error.code != OK) return NONE;
    const node step = step_placeholder(g);
    struct node_info info = {.op = OP_shuffle, .inputs = 2, .input = {x, step}};
    info.attributes.seed = rng_mix(g->seed, (uint64_t)g->count);
    return graph_make(g, &info);
}

void gradient_shuffle(struct backward *b) {
    b->dx[0] = backward_node(b, OP_unshuffle, b->dy, b->x[1]);
}

/* The same mask again: it depends on seed, step and position only. */
void gradient_dropout(struct backward *b) {
    b->dx[0] = backward_node(b, OP_dropout, b->dy, b->x[1]);
}
