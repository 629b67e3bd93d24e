/* See layers_of.h. */
#include "layers_of.h"

#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/names.h"

struct reading {
    struct layers_of *of;
    const struct graph *graph;
    int *uses;  /* [nodes] how many operands each is, of what the logits need */
    int *place; /* [nodes] of its layer; -1: part of another one, or not needed */
    node *norm; /* [nodes] where the layer normalisation ends that it is within; NONE: in none */
    struct error *error;
};

/* Counts those that n needs; nodes follow their operands, so that one pass from the end sees all. */
static void count_uses(struct reading *reading, node last) {
    reading->uses[last] = 1;
    for (node n = last; n >= 0; n--)
        for (int i = 0; reading->uses[n] > 0 && i < reading->graph->nodes[n].inputs; i++)
            reading->uses[reading->graph->nodes[n].input[i]]++;
}

static const struct range *range_of(const struct reading *reading, node n) {
    const struct node_info *info = &reading->graph->nodes[n];
    return info->op == OP_variable ? &reading->graph->layout.ranges[info->attributes.variable] : NULL;
}

/* What a reshape is of. */
static node behind_reshape(const struct reading *reading, node n) {
    return reading->graph->nodes[n].op == OP_reshape ? reading->graph->nodes[n].input[0] : n;
}

/* Whether a convolution's kernel is [rows, columns, channels, multiplier], seen in another shape. */
static bool is_depthwise(const struct reading *reading, const struct node_info *convolution) {
    const struct node_info *nodes = reading->graph->nodes, *kernel = &nodes[convolution->input[1]];
    if (convolution->op != OP_conv2d || kernel->op != OP_reshape) return false;
    const struct range *range = range_of(reading, kernel->input[0]);
    return range && range->shape.rank == 4 && kernel->shape.dims[2] == 1 &&
           range->shape.dims[2] == nodes[convolution->input[0]].shape.dims[3];
}

/* The weights of a convolution or product; NULL: another value. */
static const struct range *kernel_of(const struct reading *reading, const struct node_info *product) {
    const node kernel = product->input[1];
    return range_of(reading, is_depthwise(reading, product) ? behind_reshape(reading, kernel) : kernel);
}

/* Whether n adds a bias to what only it has of such an operation. */
static bool adds_bias(const struct reading *reading, node n) {
    const struct node_info *nodes = reading->graph->nodes, *info = &nodes[n];
    if (info->op != OP_add || reading->uses[info->input[0]] != 1) return false;
    const struct node_info *product = &nodes[info->input[0]];
    const struct range *bias = range_of(reading, info->input[1]);
    if (!bias || bias->shape.rank != 1 || bias->shape.dims[0] != info->shape.dims[info->shape.rank - 1])
        return false;
    return (product->op == OP_conv2d || product->op == OP_matmul) && kernel_of(reading, product) != NULL &&
           !product->attributes.transpose_a && !product->attributes.transpose_b;
}

/* Whether a bias is still to be added to n by somebody else: then it is no layer yet. */
static bool awaits_bias(const struct reading *reading, node n) {
    for (node m = n + 1; m < reading->graph->count; m++)
        if (reading->uses[m] > 0 && adds_bias(reading, m) && reading->graph->nodes[m].input[0] == n)
            return true;
    return false;
}

static bool is_global_pool(const struct reading *reading, node n) {
    const struct node_info *nodes = reading->graph->nodes, *info = &nodes[n];
    if (info->op != OP_reduce_mean && info->op != OP_reduce_max) return false;
    if (info->attributes.axis != 1 || info->attributes.keep) return false;
    const struct node_info *pixels = &nodes[info->input[0]];
    if (pixels->op != OP_reshape || reading->uses[info->input[0]] != 1) return false;
    const struct shape *image = &nodes[pixels->input[0]].shape;
    return image->rank == 4 && pixels->shape.rank == 3 &&
           pixels->shape.dims[1] == image->dims[1] * image->dims[2];
}

/* --- layer normalisation: (x - mean) (variance + epsilon)^-1/2 scale + shift, over the last axis --- */

enum {
    NORM_SUM,
    NORM_SCALED,
    NORM_PRODUCT,
    NORM_INVERSE,
    NORM_ADDED,
    NORM_VARIANCE,
    NORM_SQUARES,
    NORM_FROM_MEAN,
    NORM_MEAN,
    NORM_NODES
};

/* Each is an operand, of that number, of an earlier one, and is used so often. */
static const struct {
    enum op op;
    int of, operand, uses;
} norm_nodes[NORM_NODES] = {[NORM_SUM] = {OP_add, -1, 0, 0},
                            [NORM_SCALED] = {OP_mul, NORM_SUM, 0, 1},
                            [NORM_PRODUCT] = {OP_mul, NORM_SCALED, 0, 1},
                            [NORM_INVERSE] = {OP_pow, NORM_PRODUCT, 1, 1},
                            [NORM_ADDED] = {OP_add, NORM_INVERSE, 0, 1},
                            [NORM_VARIANCE] = {OP_reduce_mean, NORM_ADDED, 0, 1},
                            [NORM_SQUARES] = {OP_mul, NORM_VARIANCE, 0, 1},
                            [NORM_FROM_MEAN] = {OP_sub, NORM_SQUARES, 0, 3},
                            [NORM_MEAN] = {OP_reduce_mean, NORM_FROM_MEAN, 1, 1}};

static bool is_row_mean(const struct graph *graph, node n) {
    const struct node_info *info = &graph->nodes[n];
    return info->attributes.keep && info->attributes.axis == info->shape.rank - 1;
}

static bool is_number(const struct graph *graph, node n, float least, float most) {
    const struct node_info *info = &graph->nodes[n];
    if (info->op != OP_constant || info->type != TYPE_FLOAT || shape_count(&info->shape) != 1) return false;
    const float number = *(const float *)info->constant;
    return number >= least && number <= most;
}

/* Whether n is the last node of one: at[NORM_NODES]. */
static bool is_layer_norm(const struct reading *reading, node n, node at[NORM_NODES]) {
    const struct graph *graph = reading->graph;
    const struct node_info *nodes = graph->nodes;
    for (int i = 0; i < NORM_NODES; i++) {
        at[i] = i == 0 ? n : nodes[at[norm_nodes[i].of]].input[norm_nodes[i].operand];
        if (nodes[at[i]].op != norm_nodes[i].op) return false;
        if (i > 0 && reading->uses[at[i]] != norm_nodes[i].uses) return false;
    }
    const node from_mean = at[NORM_FROM_MEAN];
    const struct range *scale = range_of(reading, nodes[at[NORM_SCALED]].input[1]),
                       *shift = range_of(reading, nodes[at[NORM_SUM]].input[1]);
    return scale && shift && scale->shape.rank == 1 && shape_equal(&scale->shape, &shift->shape) &&
           nodes[at[NORM_PRODUCT]].input[0] == from_mean && nodes[at[NORM_SQUARES]].input[1] == from_mean &&
           nodes[from_mean].input[0] == nodes[at[NORM_MEAN]].input[0] && is_row_mean(graph, at[NORM_MEAN]) &&
           is_row_mean(graph, at[NORM_VARIANCE]) &&
           is_number(graph, nodes[at[NORM_INVERSE]].input[1], -0.5f, -0.5f) &&
           is_number(graph, nodes[at[NORM_ADDED]].input[1], 0.0f, 1.0f);
}

static void find_layer_norms(struct reading *reading) {
    node at[NORM_NODES];
    for (node n = 0; n < reading->graph->count; n++)
        if (reading->uses[n] > 0 && is_layer_norm(reading, n, at))
            for (int i = 0; i < NORM_NODES; i++) reading->norm[at[i]] = n;
}

/* --- names --- */

/* That of its weights without the last part; a weight that is a layer has its whole name. False: it has
 * none. */
static bool name_by_weights(struct layer_of *layer) {
    for (int w = 0; w < FOUND_WEIGHTS; w++) {
        if (!layer->weights[w]) continue;
        const char *name = layer->weights[w]->name,
                   *slash = layer->op == OP_variable ? NULL : strrchr(name, '/');
        snprintf(layer->name, sizeof layer->name, "%.*s", slash ? (int)(slash - name) : (int)strlen(name),
                 name);
        return true;
    }
    return false;
}

/* That of the operation with a number. */
static void name_by_number(struct layer_of *layer, int made[OPS]) {
    const char *what = layer->kind == FOUND_GLOBAL_AVERAGE ? "global_average"
                       : layer->kind == FOUND_GLOBAL_MAX   ? "global_max"
                                                           : op_name(layer->op);
    snprintf(layer->name, sizeof layer->name, "%s%d", what, ++made[layer->op]);
}

/* Those that somebody gave are taken first. */
static int name_layers(struct layers_of *of, struct error *error) {
    struct names names = {0};
    int made[OPS] = {0}, code = OK;
    for (int i = 0; code == OK && i < of->count; i++)
        if (name_by_weights(&of->layers[i]))
            code = names_take(&names, of->layers[i].name, sizeof of->layers[i].name, error);
    for (int i = 0; code == OK && i < of->count; i++) {
        struct layer_of *layer = &of->layers[i];
        if (layer->name[0]) continue;
        name_by_number(layer, made);
        code = names_take(&names, layer->name, sizeof layer->name, error);
    }
    names_close(&names);
    return code;
}

/* --- layers --- */

static void put_layer(struct reading *reading, const struct layer_of *layer) {
    reading->place[layer->at] = reading->of->count;
    reading->of->layers[reading->of->count++] = *layer;
}

/* A weight or a constant that is an operand like any other is a layer without operands. */
static int add_layer(struct reading *reading, struct layer_of *layer, const node *inputs) {
    for (int i = 0; i < layer->inputs; i++) {
        const enum op op = reading->graph->nodes[inputs[i]].op;
        if ((op == OP_variable || op == OP_constant) && reading->place[inputs[i]] < 0) {
            struct layer_of source = {
                .kind = FOUND_OPERATION, .op = op, .at = inputs[i], .computes = inputs[i]};
            source.weights[WEIGHT_KERNEL] = range_of(reading, inputs[i]);
            put_layer(reading, &source);
        }
        layer->input[i] = reading->place[inputs[i]];
        if (layer->input[i] < 0)
            return error_set(reading->error, ERROR_FILE, "%s: one of its operands is not a value of a layer",
                             op_name(layer->op));
    }
    put_layer(reading, layer);
    return OK;
}

/* A convolution, product or embedding with its kernel, and the bias behind it. */
static int add_product(struct reading *reading, node n, node product) {
    const struct node_info *info = &reading->graph->nodes[product];
    struct layer_of layer = {.kind = is_depthwise(reading, info) ? FOUND_DEPTHWISE
                                     : info->op == OP_conv2d     ? FOUND_CONV
                                     : info->op == OP_embedding  ? FOUND_EMBEDDING
                                                                 : FOUND_DENSE,
                             .op = info->op,
                             .at = n,
                             .computes = product,
                             .inputs = 1};
    layer.weights[WEIGHT_KERNEL] = kernel_of(reading, info);
    if (n != product) layer.weights[WEIGHT_BIAS] = range_of(reading, reading->graph->nodes[n].input[1]);
    return add_layer(reading, &layer, info->input);
}

/* x, mean and variance in two rows, scale, shift. */
static int add_norm(struct reading *reading, node n) {
    const struct node_info *nodes = reading->graph->nodes, *info = &nodes[n], *rows = &nodes[info->input[1]];
    struct layer_of layer = {.kind = FOUND_BATCH_NORM, .op = info->op, .at = n, .computes = n, .inputs = 1};
    layer.weights[WEIGHT_SCALE] = range_of(reading, info->input[2]);
    layer.weights[WEIGHT_SHIFT] = range_of(reading, info->input[3]);
    for (int i = 0; i < 2 && rows->op == OP_concat && rows->inputs == 2; i++)
        layer.weights[WEIGHT_MEAN + i] = range_of(reading, behind_reshape(reading, rows->input[i]));
    for (int w = WEIGHT_SCALE; w <= WEIGHT_VARIANCE; w++)
        if (!layer.weights[w])
            return error_set(reading->error, ERROR_FILE, "batch_norm: its statistics are not weights");
    return add_layer(reading, &layer, info->input);
}

static int add_layer_norm(struct reading *reading, node n) {
    const struct node_info *nodes = reading->graph->nodes;
    node at[NORM_NODES];
    struct layer_of layer = {.kind = FOUND_LAYER_NORM, .op = OP_add, .at = n, .computes = n, .inputs = 1};
    if (!is_layer_norm(reading, n, at)) return OK;
    layer.weights[WEIGHT_SCALE] = range_of(reading, nodes[at[NORM_SCALED]].input[1]);
    layer.weights[WEIGHT_SHIFT] = range_of(reading, nodes[n].input[1]);
    layer.epsilon = *(const float *)nodes[nodes[at[NORM_ADDED]].input[1]].constant;
    return add_layer(reading, &layer, nodes[at[NORM_MEAN]].input);
}

/* Part of another layer: a weight, statistics in rows, what awaits its bias, the pixels of a global pooling,
 * what is within a layer normalisation. */
static bool is_part(const struct reading *reading, node n) {
    const struct node_info *info = &reading->graph->nodes[n];
    if (info->op == OP_variable || info->op == OP_constant) return true;
    if (reading->norm[n] != NONE && reading->norm[n] != n) return true;
    if ((info->op == OP_reshape || info->op == OP_concat) && reading->place[info->input[0]] < 0) return true;
    if (info->op == OP_conv2d || info->op == OP_matmul) return awaits_bias(reading, n);
    for (node m = n + 1; info->op == OP_reshape && m < reading->graph->count; m++)
        if (reading->uses[m] > 0 && is_global_pool(reading, m) && reading->graph->nodes[m].input[0] == n)
            return true;
    return false;
}

static int read_node(struct reading *reading, node n) {
    const struct node_info *nodes = reading->graph->nodes, *info = &nodes[n];
    struct layer_of layer = {
        .kind = FOUND_OPERATION, .op = info->op, .at = n, .computes = n, .inputs = info->inputs};
    if (is_part(reading, n)) return OK;
    if (adds_bias(reading, n)) return add_product(reading, n, info->input[0]);
    if ((info->op == OP_conv2d || info->op == OP_matmul || info->op == OP_embedding) &&
        kernel_of(reading, info) && !info->attributes.transpose_a && !info->attributes.transpose_b)
        return add_product(reading, n, n);
    if (info->op == OP_batch_norm) return add_norm(reading, n);
    if (reading->norm[n] == n) return add_layer_norm(reading, n);
    if (is_global_pool(reading, n)) {
        layer.kind = info->op == OP_reduce_mean ? FOUND_GLOBAL_AVERAGE : FOUND_GLOBAL_MAX;
        return add_layer(reading, &layer, nodes[info->input[0]].input);
    }
    if ((info->op == OP_leaky_relu || info->op == OP_elu) && nodes[info->input[1]].op == OP_constant) {
        layer.alpha = *(const float *)nodes[info->input[1]].constant;
        layer.inputs = 1;
    }
    if (info->op == OP_placeholder) layer.kind = FOUND_INPUT;
    if (info->op == OP_reshape) layer.kind = FOUND_RESHAPE;
    return add_layer(reading, &layer, info->input);
}

int layers_of_open(struct layers_of *of, const struct network *network, struct error *error) {
    const struct graph *graph = &network->graph;
    struct reading reading = {.of = of, .graph = graph, .error = error};
    *of = (struct layers_of){
        .graph = graph, .batch = graph->nodes[network->x].shape.dims[0], .task = network->task};
    int code = memory_array(&of->layers, graph->count, "the layers", error);
    if (code == OK) code = memory_array(&reading.uses, graph->count, "the layers", error);
    if (code == OK) code = memory_array(&reading.place, graph->count, "the layers", error);
    if (code == OK) code = memory_array(&reading.norm, graph->count, "the layers", error);
    for (node n = 0; code == OK && n < graph->count; n++) reading.place[n] = -1, reading.norm[n] = NONE;
    if (code == OK) count_uses(&reading, network->logits);
    if (code == OK) find_layer_norms(&reading);
    for (node n = 0; code == OK && n <= network->logits; n++)
        if (reading.uses[n] > 0) code = read_node(&reading, n);
    if (code == OK) code = name_layers(of, error);
    memory_free(reading.uses);
    memory_free(reading.place);
    memory_free(reading.norm);
    return code;
}

void layers_of_close(struct layers_of *of) {
    memory_free(of->layers);
    *of = (struct layers_of){0};
}

const struct shape *layers_of_kernel(const struct layers_of *of, const struct layer_of *layer) {
    const struct node_info *nodes = of->graph->nodes;
    return &nodes[nodes[layer->computes].input[1]].shape;
}
