/* See units.h. With values y' = (y - mean) / deviation and y' = x kernel + bias, y = x (kernel deviation) +
 * (bias deviation + mean). */
#include "units.h"

#include <string.h>

#include "../base/memory.h"

bool units_equal(const struct units *a, const struct units *b, int outputs) {
    const size_t bytes = (size_t)outputs * sizeof(float);
    if (!a->deviation || !b->deviation) return !a->deviation && !b->deviation;
    return memcmp(a->mean, b->mean, bytes) == 0 && memcmp(a->deviation, b->deviation, bytes) == 0;
}

int units_read(struct units *units, const struct safetensors *content, const char *path, int outputs,
               struct error *error) {
    const char *mean = safetensors_text(content, "target_mean"),
               *deviation = safetensors_text(content, "target_deviation");
    *units = (struct units){0};
    if (!mean && !deviation) return OK;
    RETURN_IF(memory_array(&units->mean, outputs, "means", error));
    RETURN_IF(memory_array(&units->deviation, outputs, "deviations", error));
    bool usable = mean && deviation && checkpoint_reals(mean, units->mean, outputs) &&
                  checkpoint_reals(deviation, units->deviation, outputs);
    for (int o = 0; usable && o < outputs; o++) usable = units->deviation[o] > 0.0f;
    if (usable) return OK;
    return error_set(
        error, ERROR_FILE,
        "%s: target_mean and target_deviation among its texts: expected %d numbers each, deviations above 0",
        path, outputs);
}

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
