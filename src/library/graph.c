/* Graphs, as trainer.h has them: each function is one of src/graph. */
#include <math.h>
#include <stdio.h>
#include "../base/memory.h"
#include "../graph/rules.h"
#include "parts.h"

_Static_assert((int)TRAINER_MOST_RANK == (int)MAX_RANK && (int)TRAINER_MOST_INPUTS == (int)MAX_INPUTS &&
                   (int)TRAINER_NONE == (int)NONE && (int)TRAINER_ALL_AXES == (int)ALL_AXES &&
                   (int)TRAINER_BOOL == (int)TYPE_BOOL && (int)TRAINER_SAME == (int)PADDING_SAME &&
                   (int)TRAINER_GLOROT_UNIFORM == (int)INITIAL_GLOROT_UNIFORM &&
                   (int)TRAINER_DIVERGED == (int)ERROR_DIVERGED,
               "trainer.h says the same as the headers behind it");

const char *trainer_version(void) {
    return TRAINER_VERSION;
}

int library_tell(const struct error *why, struct trainer_error *error) {
    if (error) {
        error->code = why->code;
        snprintf(error->words, sizeof error->words, "%s", why->words);
    }
    return why->code;
}

int trainer_graph_open(struct trainer_graph **graph, bool training, uint64_t seed,
                       struct trainer_error *error) {
    struct error why = {0};
    *graph = NULL;
    if (memory_array(graph, 1, "a graph", &why) == OK) graph_open(&(*graph)->graph, training, seed);
    return library_tell(&why, error);
}

void trainer_graph_close(struct trainer_graph *graph) {
    if (graph) graph_close(&graph->graph);
    memory_free(graph);
}

int trainer_graph_check(const struct trainer_graph *graph, struct trainer_error *error) {
    return library_tell(&graph->graph.error, error);
}

int trainer_graph_nodes(const struct trainer_graph *graph) {
    return graph->graph.count;
}

trainer_node trainer_graph_find(const struct trainer_graph *graph, const char *name) {
    return graph_find(&graph->graph, name);
}

/* NULL: it is none of the graph. */
static const struct node_info *info_of(const struct trainer_graph *graph, trainer_node n) {
    return n >= 0 && n < graph->graph.count ? &graph->graph.nodes[n] : NULL;
}

struct trainer_shape trainer_node_shape(const struct trainer_graph *graph, trainer_node n) {
    const struct node_info *info = info_of(graph, n);
    struct trainer_shape shape = {.rank = info ? info->shape.rank : 0};
    for (int axis = 0; axis < shape.rank; axis++) shape.dims[axis] = info->shape.dims[axis];
    return shape;
}

enum trainer_type trainer_node_type(const struct trainer_graph *graph, trainer_node n) {
    const struct node_info *info = info_of(graph, n);
    return info ? (enum trainer_type)info->type : TRAINER_FLOAT;
}

const char *trainer_node_operation(const struct trainer_graph *graph, trainer_node n) {
    const struct node_info *info = info_of(graph, n);
    return info ? op_name(info->op) : "";
}

/* A number that is to be one of an enumeration. */
static bool is_one(struct trainer_graph *graph, const char *what, int value, int last) {
    if (value >= 0 && value <= last) return true;
    graph_mistake(&graph->graph, "%s: found %d, expected 0 to %d", what, value, last);
    return false;
}

/* --- sources --- */

trainer_node trainer_placeholder(struct trainer_graph *graph, const char *name, enum trainer_type type,
                                 struct trainer_shape shape) {
    if (!is_one(graph, "placeholder: the type", (int)type, TRAINER_BOOL)) return NONE;
    return graph_placeholder(&graph->graph, name, (enum type)type, shape_in(shape));
}

trainer_node trainer_constant(struct trainer_graph *graph, struct trainer_shape shape, const float *values) {
    return graph_constant(&graph->graph, shape_in(shape), values);
}

trainer_node trainer_constant_int(struct trainer_graph *graph, struct trainer_shape shape,
                                  const int *values) {
    return graph_constant_int(&graph->graph, shape_in(shape), values);
}

trainer_node trainer_scalar(struct trainer_graph *graph, float value) {
    return graph_scalar(&graph->graph, value);
}

static struct initial initial_in(struct trainer_graph *graph, struct trainer_initial initial) {
    is_one(graph, "the first weights", (int)initial.kind, TRAINER_GLOROT_UNIFORM);
    if (!isfinite(initial.value))
        graph_mistake(&graph->graph, "the first weights: found the number %g, expected a finite one",
                      (double)initial.value);
    return (struct initial){(enum initial_kind)initial.kind, initial.value, initial.values};
}

trainer_node trainer_variable(struct trainer_graph *graph, const char *name, struct trainer_shape shape,
                              struct trainer_initial initial) {
    return graph_variable(&graph->graph, name, shape_in(shape), initial_in(graph, initial));
}

trainer_node trainer_assign(struct trainer_graph *graph, trainer_node variable, trainer_node value) {
    return graph_assign(&graph->graph, variable, value);
}

trainer_node trainer_assign_add(struct trainer_graph *graph, trainer_node variable, trainer_node value) {
    return graph_assign_add(&graph->graph, variable, value);
}

/* --- elementwise --- */

#define UNARY_CALL(name)                                                                                     \
    trainer_node trainer_##name(struct trainer_graph *graph, trainer_node x) {                               \
        return graph_##name(&graph->graph, x);                                                               \
    }
#define BINARY_CALL(name)                                                                                    \
    trainer_node trainer_##name(struct trainer_graph *graph, trainer_node a, trainer_node b) {               \
        return graph_##name(&graph->graph, a, b);                                                            \
    }
BINARY_CALL(add)
BINARY_CALL(sub)
BINARY_CALL(mul)
BINARY_CALL(div)
BINARY_CALL(pow)
BINARY_CALL(greater)
BINARY_CALL(less)
BINARY_CALL(equal)
BINARY_CALL(sigmoid_cross_entropy)
UNARY_CALL(exp)
UNARY_CALL(log)
UNARY_CALL(relu)
UNARY_CALL(relu6)
UNARY_CALL(sigmoid)
UNARY_CALL(tanh)
UNARY_CALL(gelu)
UNARY_CALL(silu)
UNARY_CALL(global_average)
UNARY_CALL(global_max)
UNARY_CALL(flatten)
UNARY_CALL(softmax)
UNARY_CALL(shuffle)
UNARY_CALL(inverse)
UNARY_CALL(determinant)
BINARY_CALL(softmax_cross_entropy)
BINARY_CALL(cross_entropy)

trainer_node trainer_cast(struct trainer_graph *graph, trainer_node x, enum trainer_type type) {
    if (!is_one(graph, "cast: the type", (int)type, TRAINER_BOOL)) return NONE;
    return graph_cast(&graph->graph, x, (enum type)type);
}

trainer_node trainer_dropout(struct trainer_graph *graph, trainer_node x, float rate) {
    return graph_dropout(&graph->graph, x, rate);
}

/* --- matrices and layers --- */

trainer_node trainer_matmul(struct trainer_graph *graph, trainer_node a, trainer_node b, bool transpose_a,
                            bool transpose_b) {
    return graph_matmul(&graph->graph, a, b, transpose_a, transpose_b);
}

trainer_node trainer_dense(struct trainer_graph *graph, const char *name, trainer_node x, int out,
                           struct trainer_initial kernel) {
    return graph_dense_of(&graph->graph, x, out,
                          &(struct weights){.name = name, .kernel = initial_in(graph, kernel)});
}

trainer_node trainer_embedding(struct trainer_graph *graph, const char *name, trainer_node x, int vocabulary,
                               int units, struct trainer_initial kernel) {
    return graph_embedding_of(&graph->graph, x, vocabulary, units,
                              &(struct weights){.name = name, .kernel = initial_in(graph, kernel)});
}

/* --- images --- */

static struct pooling windows_in(struct trainer_graph *graph, struct trainer_windows windows) {
    is_one(graph, "the padding", (int)windows.padding, TRAINER_SAME);
    return (struct pooling){.window = {windows.window[0], windows.window[1]},
                            .stride = {windows.stride[0], windows.stride[1]},
                            .padding = (enum padding)windows.padding};
}

trainer_node trainer_conv2d(struct trainer_graph *graph, trainer_node x, trainer_node kernel, int stride,
                            enum trainer_padding padding) {
    if (!is_one(graph, "conv2d: the padding", (int)padding, TRAINER_SAME)) return NONE;
    return graph_conv2d(&graph->graph, x, kernel, stride, (enum padding)padding);
}

trainer_node trainer_conv(struct trainer_graph *graph, const char *name, trainer_node x, int out,
                          struct trainer_windows windows, struct trainer_initial kernel) {
    const struct pooling inside = windows_in(graph, windows);
    return graph_conv_of(&graph->graph, x, out, &inside,
                         &(struct weights){.name = name, .kernel = initial_in(graph, kernel)});
}

trainer_node trainer_maxpool(struct trainer_graph *graph, trainer_node x, struct trainer_windows windows) {
    const struct pooling inside = windows_in(graph, windows);
    return graph_maxpool_of(&graph->graph, x, &inside);
}

trainer_node trainer_avgpool(struct trainer_graph *graph, trainer_node x, struct trainer_windows windows) {
    const struct pooling inside = windows_in(graph, windows);
    return graph_avgpool(&graph->graph, x, &inside);
}

trainer_node trainer_lrn(struct trainer_graph *graph, trainer_node x, int radius, float bias, float alpha,
                         float beta) {
    return graph_lrn(&graph->graph, x, (struct lrn){radius, bias, alpha, beta});
}

trainer_node trainer_batch_norm(struct trainer_graph *graph, const char *name, trainer_node x, float momentum,
                                float epsilon) {
    return graph_batch_norm_of(&graph->graph, x, name, momentum, epsilon);
}

/* --- arrays --- */

trainer_node trainer_reshape(struct trainer_graph *graph, trainer_node x, struct trainer_shape shape) {
    return graph_reshape(&graph->graph, x, shape_in(shape));
}

trainer_node trainer_transpose(struct trainer_graph *graph, trainer_node x, const int *order) {
    return graph_transpose(&graph->graph, x, order);
}

trainer_node trainer_concat(struct trainer_graph *graph, const trainer_node *parts, int count, int axis) {
    return graph_concat(&graph->graph, parts, count, axis);
}

trainer_node trainer_slice(struct trainer_graph *graph, trainer_node x, const int *begin,
                           struct trainer_shape size) {
    return graph_slice(&graph->graph, x, begin, shape_in(size));
}

void trainer_split(struct trainer_graph *graph, trainer_node x, int count, int axis, trainer_node *parts) {
    graph_split(&graph->graph, x, count, axis, parts);
}

trainer_node trainer_pad(struct trainer_graph *graph, trainer_node x, const int *before, const int *after) {
    return graph_pad(&graph->graph, x, before, after);
}

trainer_node trainer_broadcast(struct trainer_graph *graph, trainer_node x, struct trainer_shape shape) {
    return graph_broadcast(&graph->graph, x, shape_in(shape));
}

trainer_node trainer_shape_of(struct trainer_graph *graph, trainer_node x) {
    return graph_shape(&graph->graph, x);
}

trainer_node trainer_rank_of(struct trainer_graph *graph, trainer_node x) {
    return graph_rank(&graph->graph, x);
}

/* --- reductions, gradients --- */

trainer_node trainer_reduce_sum(struct trainer_graph *graph, trainer_node x, int axis, bool keep) {
    return graph_reduce_sum(&graph->graph, x, axis, keep);
}

trainer_node trainer_reduce_mean(struct trainer_graph *graph, trainer_node x, int axis, bool keep) {
    return graph_reduce_mean(&graph->graph, x, axis, keep);
}

trainer_node trainer_reduce_max(struct trainer_graph *graph, trainer_node x, int axis, bool keep) {
    return graph_reduce_max(&graph->graph, x, axis, keep);
}

trainer_node trainer_argmax(struct trainer_graph *graph, trainer_node x, int axis) {
    return graph_argmax(&graph->graph, x, axis);
}

void trainer_gradients(struct trainer_graph *graph, trainer_node loss, const trainer_node *targets, int count,
                       trainer_node *gradients) {
    graph_gradients(&graph->graph, loss, targets, count, gradients);
}
