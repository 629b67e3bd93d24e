/* See control.h. The operations are run in src/program/control.c. */
#include "control.h"

#include <string.h>
#include "../base/memory.h"
#include "../base/rng.h"
#include "rules.h"

/* The values behind a packed vector. */
struct values {
    int count;
    struct shape shape[MAX_INPUTS];
};

static int floats_of(const struct values *values) {
    size_t floats = 0;
    for (int i = 0; i < values->count; i++) floats += shape_count(&values->shape[i]);
    return floats < DIMENSION_MOST ? (int)floats : DIMENSION_MOST;
}

/* Looks at nodes[count]: float32, 1 to MAX_INPUTS of them. */
static int look(struct graph *g, const char *what, const node *nodes, int count, struct values *values) {
    values->count = count;
    if (g->error.code != OK) return g->error.code;
    if (count < 1 || count > MAX_INPUTS)
        return graph_mistake(g, "%s: found %d values, expected 1 to %d", what, count, MAX_INPUTS);
    for (int i = 0; i < count; i++) {
        const bool is_node = nodes[i] >= 0 && nodes[i] < g->count;
        if (!is_node || g->nodes[nodes[i]].type != TYPE_FLOAT)
            return graph_mistake(g, "%s: value %d is %s, expected a float32 node", what, i + 1,
                                 is_node ? type_name(g->nodes[nodes[i]].type) : "no node of this graph");
        values->shape[i] = g->nodes[nodes[i]].shape;
    }
    return OK;
}

static node pack(struct graph *g, const node *nodes, int count) {
    node flat[MAX_INPUTS];
    for (int i = 0; i < count; i++) flat[i] = graph_reshape(g, nodes[i], SHAPE(-1));
    return count == 1 ? flat[0] : graph_concat(g, flat, count, 0);
}

static void unpack(struct graph *g, node packed, const struct values *values, node *nodes) {
    int begin = 0;
    for (int i = 0; i < values->count; i++) {
        const int floats = (int)shape_count(&values->shape[i]);
        const node part = values->count == 1 ? packed : graph_slice(g, packed, &begin, SHAPE(floats));
        nodes[i] = graph_reshape(g, part, values->shape[i]);
        begin += floats;
    }
}

/* --- branches --- */

static void free_inner(struct owned *owned) {
    struct inner *inner = (struct inner *)(void *)owned;
    for (int i = 0; i < BRANCHES; i++) graph_close(&inner->branch[i].graph);
    memory_free(inner);
}

static struct inner *open_inner(struct graph *g) {
    struct inner *inner = NULL;
    if (memory_array(&inner, 1, "a graph within a graph", &g->error) != OK) return NULL;
    inner->owned = (struct owned){g->owned, free_inner};
    g->owned = &inner->owned;
    for (int i = 0; i < BRANCHES; i++) {
        graph_open(&inner->branch[i].graph, g->training, rng_mix(g->seed, (uint64_t)(g->count + i)));
        inner->branch[i].dy = inner->branch[i].gradient = NONE;
    }
    return inner;
}

static int check_own(struct graph *g, const char *what, const struct branch *branch) {
    const struct graph *own = &branch->graph;
    int placeholders = 0;
    for (node n = 0; n < own->count; n++) placeholders += own->nodes[n].op == OP_placeholder;
    if (own->error.code != OK) return graph_mistake(g, "%s: %s", what, own->error.words);
    if (own->layout.count > 0)
        return graph_mistake(g, "%s: it makes variable \"%s\", expected none", what,
                             own->layout.ranges[0].name);
    if (placeholders == 1) return OK;
    return graph_mistake(g, "%s: it makes placeholders, expected none", what);
}

/* Builds the values out[count] from `in`; what they are into *found. */
static int build(struct graph *g, const char *what, struct branch *branch, graph_build *build_it,
                 void *argument, const struct values *in, node *out, int count) {
    struct graph *own = &branch->graph;
    node values[MAX_INPUTS];
    branch->in = graph_placeholder(own, "in", TYPE_FLOAT, SHAPE(floats_of(in)));
    unpack(own, branch->in, in, values);
    for (int i = 0; i < count; i++) out[i] = NONE;
    if (own->error.code == OK) build_it(argument, own, values, in->count, out);
    return check_own(g, what, branch);
}

/* The same of a branch that gives float32 values, which are packed. */
static int build_values(struct graph *g, const char *what, struct branch *branch, graph_build *build_it,
                        void *argument, const struct values *in, int count, struct values *found) {
    node out[MAX_INPUTS];
    if (count < 1 || count > MAX_INPUTS)
        return graph_mistake(g, "%s: %d results, expected 1 to %d", what, count, MAX_INPUTS);
    RETURN_IF(build(g, what, branch, build_it, argument, in, out, count));
    if (look(&branch->graph, "result", out, count, found) == OK)
        branch->out = graph_unary(&branch->graph, OP_copy, pack(&branch->graph, out, count));
    return check_own(g, what, branch);
}

static int expect_same(struct graph *g, const char *what, const struct values *found,
                       const struct values *expected) {
    for (int i = 0; i < expected->count; i++)
        if (!shape_equal(&found->shape[i], &expected->shape[i]))
            return graph_mistake(g, "%s: result %d is %s, expected %s", what, i + 1, TEXT(&found->shape[i]),
                                 TEXT(&expected->shape[i]));
    return OK;
}

/* The nodes for its gradient, once. */
static int differentiate(struct graph *g, const char *what, struct branch *branch) {
    struct graph *own = &branch->graph;
    if (branch->gradient != NONE) return OK;
    branch->dy = graph_placeholder(own, "dy", TYPE_FLOAT, shape_of(own, branch->out));
    const node loss = graph_reduce_sum(own, graph_mul(own, branch->out, branch->dy), ALL_AXES, false);
    graph_gradients(own, loss, &branch->in, 1, &branch->gradient);
    if (own->error.code == OK && branch->gradient == NONE) /* it gives the same, whatever it is given */
        branch->gradient = graph_broadcast(own, graph_scalar(own, 0.0f), shape_of(own, branch->in));
    branch->gradient = graph_unary(own, OP_copy, branch->gradient);
    return own->error.code == OK ? OK : graph_mistake(g, "%s: %s", what, own->error.words);
}

/* --- while --- */

static int build_loop(struct graph *g, const struct loop *loop, const struct values *states,
                      struct inner *inner) {
    struct branch *condition = &inner->branch[WHILE_CONDITION], *body = &inner->branch[WHILE_BODY];
    struct values found;
    node holds;
    if (loop->limit < 1)
        return graph_mistake(g, "while: a limit of %d rounds, expected 1 or more", loop->limit);
    RETURN_IF(
        build(g, "the condition of while", condition, loop->condition, loop->argument, states, &holds, 1));
    const struct node_info *info =
        holds >= 0 && holds < condition->graph.count ? &condition->graph.nodes[holds] : NULL;
    if (!info || info->type != TYPE_BOOL || info->shape.rank > 0)
        return graph_mistake(g, "the condition of while: found %s, expected a bool scalar",
                             info ? type_name(info->type) : "no node");
    condition->out = graph_unary(&condition->graph, OP_copy, holds);
    RETURN_IF(build_values(g, "the body of while", body, loop->body, loop->argument, states, states->count,
                           &found));
    return expect_same(g, "the body of while", &found, states);
}

void graph_while(struct graph *g, const struct loop *loop, const node *states, int count, node *results) {
    struct values values;
    struct inner *inner = NULL;
    for (int i = 0; i < count; i++) results[i] = NONE;
    if (look(g, "while", states, count, &values) != OK) return;
    if (!(inner = open_inner(g)) || build_loop(g, loop, &values, inner) != OK) return;
    struct node_info info = {.op = OP_while, .inputs = 1, .input = {pack(g, states, count)}};
    info.attributes.inner = inner;
    info.attributes.limit = loop->limit;
    unpack(g, graph_make(g, &info), &values, results);
}

int shape_state(struct graph *g, struct node_info *n) {
    RETURN_IF(shape_same(g, n));
    return expect_rank(g, n, 0, 1);
}

/* The branches of y, which the graph owns: only their owner changes them. */
static struct inner *inner_of(const struct backward *b) {
    return (struct inner *)(void *)backward_attributes(b).inner;
}

void gradient_while(struct backward *b) {
    if (differentiate(b->g, "the body of while", &inner_of(b)->branch[WHILE_BODY]) == OK)
        b->dx[0] = backward_node(b, OP_while_grad, b->x[0], b->dy);
}

/* --- cond --- */

void graph_cond(struct graph *g, node predicate, const struct alternatives *both, const node *operands,
                int count, node *results, int result_count) {
    static const char *const names[] = {[COND_TRUE] = "cond, if true", [COND_FALSE] = "cond, if false"};
    struct values values, found[BRANCHES];
    struct inner *inner = NULL;
    for (int i = 0; i < result_count; i++) results[i] = NONE;
    if (look(g, "cond", operands, count, &values) != OK || !(inner = open_inner(g))) return;
    for (int i = 0; i < BRANCHES; i++)
        if (build_values(g, names[i], &inner->branch[i], i == COND_TRUE ? both->if_true : both->if_false,
                         both->argument, &values, result_count, &found[i]) != OK)
            return;
    if (expect_same(g, names[COND_FALSE], &found[COND_FALSE], &found[COND_TRUE]) != OK) return;
    struct node_info info = {.op = OP_cond, .inputs = 2, .input = {predicate, pack(g, operands, count)}};
    info.attributes.inner = inner;
    info.attributes.shape = SHAPE(floats_of(&found[COND_TRUE]));
    unpack(g, graph_make(g, &info), &found[COND_TRUE], results);
}

int shape_cond(struct graph *g, struct node_info *n) {
    RETURN_IF(expect_type(g, n, 0, TYPE_BOOL));
    RETURN_IF(expect_shape(g, n, 0, &SCALAR));
    RETURN_IF(expect_type(g, n, 1, TYPE_FLOAT));
    return shape_attribute(g, n);
}

int shape_cond_grad(struct graph *g, struct node_info *n) {
    n->shape = *operand_shape(g, n, 1);
    return expect_type(g, n, 2, TYPE_FLOAT);
}

void gradient_cond(struct backward *b) {
    struct inner *inner = inner_of(b);
    for (int i = 0; i < BRANCHES; i++)
        if (differentiate(b->g, "cond", &inner->branch[i]) != OK) return;
    struct node_info info = {.op = OP_cond_grad,
                             .inputs = 3,
                             .input = {b->x[0], b->x[1], b->dy},
                             .attributes = backward_attributes(b)};
    b->dx[1] = graph_make(b->g, &info);
}

/* --- queues --- */

int shape_enqueue(struct graph *g, struct node_info *n) {
    return shape_same(g, n);
}

node graph_enqueue(struct graph *g, struct queue *queue, node x) {
    struct node_info info = {.op = OP_enqueue, .inputs = 1, .input = {x}, .attributes.queue = queue};
    return graph_make(g, &info);
}

node graph_dequeue(struct graph *g, struct queue *queue, struct shape shape) {
    struct node_info info = {.op = OP_dequeue, .type = TYPE_FLOAT, .attributes.shape = shape};
    info.attributes.queue = queue;
    return graph_make(g, &info);
}
