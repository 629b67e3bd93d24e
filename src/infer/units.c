/* See units.h. With values y' = (y - mean) / deviation and y' = x kernel + bias, y = x (kernel deviation) +
 * (bias deviation + mean). */
#include "units.h"

static const struct range *range_of(const struct graph *graph, node n) {
    const struct node_info *info = &graph->nodes[n];
    return info->op == OP_variable ? &graph->layout.ranges[info->attributes.variable] : NULL;
}

struct last_layer units_layer(const struct network *network) {
    const struct graph *graph = &network->graph;
    const struct node_info *sum = &graph->nodes[network->logits];
    const struct node_info *product = sum->op == OP_add ? &graph->nodes[sum->input[0]] : NULL;
    struct last_layer last = {0};
    if (!product || product->op != OP_matmul || product->attributes.transpose_a ||
        product->attributes.transpose_b)
        return last;
    last.kernel = range_of(graph, product->input[1]);
    last.bias = range_of(graph, sum->input[1]);
    return last.kernel && last.bias ? last : (struct last_layer){0};
}

static int find(const struct network *network, const char *path, struct last_layer *last,
                struct error *error) {
    *last = units_layer(network);
    if (last->kernel) return OK;
    return error_set(error, ERROR_FILE,
                     "%s: expected a dense layer with biases at the end, to have the values in their units "
                     "(a data set with standardize=0 has none)",
                     path);
}

/* give: out of standardised form, into the values' units; else back. */
static int convert(const struct network *network, const struct units *units, const char *path, bool give,
                   float *weights, struct error *error) {
    struct last_layer last;
    if (!units->deviation) return OK;
    RETURN_IF(find(network, path, &last, error));
    const float *mean = units->mean, *deviation = units->deviation;
    const size_t outputs = last.bias->floats;
    float *kernel = weights + last.kernel->begin, *bias = weights + last.bias->begin;
    for (size_t i = 0; i < last.kernel->floats; i++)
        kernel[i] = give ? kernel[i] * deviation[i % outputs] : kernel[i] / deviation[i % outputs];
    for (size_t o = 0; o < outputs; o++)
        bias[o] = give ? bias[o] * deviation[o] + mean[o] : (bias[o] - mean[o]) / deviation[o];
    return OK;
}

int units_give(const struct network *network, const struct units *units, const char *path, float *weights,
               struct error *error) {
    return convert(network, units, path, true, weights, error);
}

int units_take(const struct network *network, const struct units *units, const char *path, float *weights,
               struct error *error) {
    return convert(network, units, path, false, weights, error);
}
