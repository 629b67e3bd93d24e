/* The graph itself: opening, closing, adding a node, and the nodes that are no operations: placeholders,
 * constants, variables.
 *
 * A mistake in a graph is an ERROR_USAGE: a model does not fit its data or settings. */
#include "graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "../base/memory.h"
#include "rules.h"

const struct operation operations[OPS] = {
#define OP(name, inputs, rule, gradient, ...)                                                                \
    [OP_##name] = {#name, inputs, shape_##rule, gradient_##gradient},
#include "ops.def"
};

const char *op_name(enum op op) {
    return operations[op].name;
}

void graph_open(struct graph *g, bool training, uint64_t seed) {
    *g = (struct graph){.training = training, .seed = seed};
}

void graph_close(struct graph *g) {
    for (int n = 0; n < g->count; n++) memory_free((void *)g->nodes[n].constant);
    memory_free(g->nodes);
    memory_free(g->layout.ranges);
    for (struct owned *owned = g->owned, *next; owned; owned = next) {
        next = owned->next;
        owned->free(owned);
    }
    *g = (struct graph){0};
}

int graph_check(const struct graph *g, struct error *error) {
    return g->error.code == OK ? OK : error_set(error, g->error.code, "%s", g->error.words);
}

int graph_mistake(struct graph *g, const char *format, ...) {
    char words[sizeof g->error.words];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return error_set(&g->error, ERROR_USAGE, "%s", words);
}

node graph_make(struct graph *g, const struct node_info *wanted) {
    if (g->error.code != OK) return NONE;
    struct node_info info = *wanted;
    info.gradient_of = -1;
    info.follows = NONE;
    for (int i = 0; i < info.inputs; i++)
        if (info.input[i] < 0 || info.input[i] >= g->count) {
            graph_mistake(g, "%s: operand %d is not a node of this graph", op_name(info.op), i + 1);
            return NONE;
        }
    if (operations[info.op].shape(g, &info) != OK) return NONE;
    if (g->count == g->capacity) {
        const int capacity = g->capacity == 0 ? 64 : 2 * g->capacity;
        if (memory_grow(&g->nodes, g->capacity, capacity, "graph nodes", &g->error) != OK) return NONE;
        g->capacity = capacity;
    }
    g->nodes[g->count] = info;
    return g->count++;
}

/* Whether a placeholder or variable may bear this name; remembers the mistake when not. */
static bool name_is_free(struct graph *g, enum op op, const char *name) {
    if (name[0] == '\0' || strlen(name) >= sizeof g->nodes->name) {
        graph_mistake(g, "%s: found a name of %zu characters, \"%.40s%s\", expected 1 to %zu", op_name(op),
                      strlen(name), name, strlen(name) > 40 ? "..." : "", sizeof g->nodes->name - 1);
        return false;
    }
    for (int n = 0; n < g->count; n++)
        if (strcmp(g->nodes[n].name, name) == 0) {
            graph_mistake(g, "%s: the name \"%s\" is taken by a %s", op_name(op), name,
                          op_name(g->nodes[n].op));
            return false;
        }
    return true;
}

static node make_named(struct graph *g, struct node_info *info, const char *name) {
    if (g->error.code != OK || !name_is_free(g, info->op, name)) return NONE;
    snprintf(info->name, sizeof info->name, "%s", name);
    return graph_make(g, info);
}

node graph_placeholder(struct graph *g, const char *name, enum type type, struct shape shape) {
    struct node_info info = {.op = OP_placeholder, .type = type, .attributes.shape = shape};
    return make_named(g, &info, name);
}

static node make_constant(struct graph *g, enum type type, struct shape shape, const void *values) {
    const node n =
        graph_make(g, &(struct node_info){.op = OP_constant, .type = type, .attributes.shape = shape});
    if (n == NONE) return NONE;
    const size_t bytes = shape_count(&shape) * type_bytes(type);
    char *copy = NULL;
    if (memory_array(&copy, bytes, "constant", &g->error) != OK) return NONE;
    memcpy(copy, values, bytes);
    g->nodes[n].constant = copy;
    return n;
}

node graph_constant(struct graph *g, struct shape shape, const float *values) {
    return make_constant(g, TYPE_FLOAT, shape, values);
}

node graph_constant_int(struct graph *g, struct shape shape, const int *values) {
    return make_constant(g, TYPE_INT, shape, values);
}

node graph_scalar(struct graph *g, float value) {
    return graph_constant(g, SCALAR, &value);
}

/* Appends the variable's range to the layout. */
static int add_range(struct graph *g, const struct range *wanted) {
    struct layout *layout = &g->layout;
    RETURN_IF(memory_grow(&layout->ranges, layout->count, layout->count + 1, "layout", &g->error));
    struct range *range = &layout->ranges[layout->count++];
    *range = *wanted;
    range->begin = layout->floats;
    range->floats = shape_count(&range->shape);
    layout->floats += (range->floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    layout->parameters += range->floats;
    return OK;
}

node graph_variable(struct graph *g, const char *name, struct shape shape, struct initial initial) {
    struct node_info info = {.op = OP_variable, .type = TYPE_FLOAT};
    info.attributes.shape = shape;
    info.attributes.variable = g->layout.count;
    const node n = make_named(g, &info, name);
    if (n == NONE) return NONE;
    struct range range = {
        .shape = shape, .kind = RANGE_TRAINABLE, .rate_multiplier = 1.0f, .initial = initial};
    snprintf(range.name, sizeof range.name, "%s", name);
    if (g->frozen && layout_matches(g->frozen, range.name)) range.kind = RANGE_FROZEN;
    return add_range(g, &range) == OK ? n : NONE;
}

/* The range of a variable's node, or NULL after a mistake. */
static struct range *range_of(struct graph *g, const char *what, node variable) {
    if (g->error.code != OK) return NULL;
    if (variable < 0 || variable >= g->count || g->nodes[variable].op != OP_variable) {
        graph_mistake(g, "%s: expected a variable, found %s", what,
                      variable < 0 || variable >= g->count ? "no node" : op_name(g->nodes[variable].op));
        return NULL;
    }
    return &g->layout.ranges[g->nodes[variable].attributes.variable];
}

void graph_freeze(struct graph *g, node variable) {
    struct range *range = range_of(g, "freeze", variable);
    if (range) range->kind = RANGE_FROZEN;
}

void graph_decay(struct graph *g, node variable, float decay) {
    struct range *range = range_of(g, "decay", variable);
    if (range) range->decay = decay;
}

void graph_rate(struct graph *g, node variable, float multiplier) {
    struct range *range = range_of(g, "rate", variable);
    if (range) range->rate_multiplier = multiplier;
}

node graph_statistic(struct graph *g, node variable, node batch_value, float momentum) {
    struct range *range = range_of(g, "statistic", variable);
    if (!range || range->kind == RANGE_FROZEN) return NONE;
    range->kind = RANGE_STATISTIC;
    const node follow = graph_mul(g, graph_sub(g, variable, batch_value), graph_scalar(g, 1.0f - momentum));
    if (follow == NONE) return NONE;
    if (!shape_equal(&g->nodes[follow].shape, &g->nodes[variable].shape)) {
        graph_mistake(g, "statistic: a value of %s for %s", TEXT(&g->nodes[batch_value].shape),
                      TEXT(&g->nodes[variable].shape));
        return NONE;
    }
    g->nodes[follow].gradient_of = g->nodes[variable].attributes.variable;
    return follow;
}

node graph_find(const struct graph *g, const char *name) {
    for (node n = 0; n < g->count; n++)
        if (g->nodes[n].name[0] != '\0' && strcmp(g->nodes[n].name, name) == 0) return n;
    return NONE;
}

static node make_assign(struct graph *g, enum op op, node variable, node value) {
    if (!range_of(g, op_name(op), variable)) return NONE;
    struct node_info info = {.op = op, .inputs = 2, .input = {variable, value}};
    info.attributes.variable = g->nodes[variable].attributes.variable;
    return graph_make(g, &info);
}

node graph_assign(struct graph *g, node variable, node value) {
    return make_assign(g, OP_assign, variable, value);
}

node graph_assign_add(struct graph *g, node variable, node value) {
    return make_assign(g, OP_assign_add, variable, value);
}

/* A convolution makes a column of the kernel's multiply-adds for each of its results, and each of its
 * gradients as many. */
static double convolution(const struct shape *kernel, const struct shape *y) {
    return (double)shape_count(y) * (double)shape_count(kernel) / kernel->dims[3];
}

double op_multiply_adds(enum op op, const struct attributes *attributes, const struct shape *const *operand,
                        const struct shape *result) {
    switch (op) {
    case OP_matmul:
    case OP_dense:
        return (double)shape_count(result) * operand[0]->dims[attributes->transpose_a ? 0 : 1];
    case OP_conv2d:
    case OP_conv2d_bias:
        return convolution(operand[1], result);
    case OP_conv2d_grad_x:
        return convolution(operand[0], operand[1]);
    case OP_conv2d_grad_kernel:
        return convolution(result, operand[1]);
    case OP_conv2d_pool_grad_kernel: /* only what the pooling let through counts */
        return convolution(result, operand[2]);
    default:
        return 0.0;
    }
}

double graph_multiply_adds(const struct graph *g, node n) {
    const struct node_info *info = &g->nodes[n];
    const struct shape *operand[MAX_INPUTS];
    for (int i = 0; i < info->inputs; i++) operand[i] = &g->nodes[info->input[i]].shape;
    return op_multiply_adds(info->op, &info->attributes, operand, &info->shape);
}
