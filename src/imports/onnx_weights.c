/* Layers with weights: what they are called, and how their numbers lie here. Convolutions are OIHW there and
 * HWIO here; what follows an image that became a row is turned from channels, rows, columns to rows, columns,
 * channels. See onnx_layers.h. */
#include <stdio.h>
#include <string.h>

#include "../base/finite.h"
#include "onnx_layers.h"

/* --- names --- */

/* What the names of weights end with; the rest is the layer's. */
static const char *const endings[] = {
    "weight", "kernel",       "W",           "w",     "bias", "scale",    "gamma",
    "beta",   "running_mean", "running_var", "shift", "mean", "variance", "var"};

/* The name of the layer in that of its weights, "features.0" of "features.0.weight": out[bytes]. False: the
 * name says nothing. */
static bool name_in(const char *weights, char *out, size_t bytes) {
    const size_t length = strlen(weights);
    if (strstr(weights, "::") || length >= bytes) return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t end = strlen(endings[i]);
        if (length < end + 2 || strcmp(weights + length - end, endings[i]) != 0) continue;
        if (!strchr("./_", weights[length - end - 1])) continue;
        snprintf(out, bytes, "%.*s", (int)(length - end - 1), weights);
        return true;
    }
    return false;
}

/* "layer1.0.conv1" of a node "/layer1/layer1.0/conv1/Conv", as PyTorch names it: a part that the next one
 * begins with says nothing new. */
static bool name_of_node(const onnx_op *op, char *out, size_t bytes) {
    const char *name = op->name ? op->name : "", *last = strrchr(name, '/');
    struct text text = text_into(out, bytes);
    out[0] = '\0';
    if (name[0] != '/' || last == name || strcmp(last + 1, op->op_type) != 0) return false;
    for (const char *part = name + 1; part < last; part += strcspn(part, "/") + 1) {
        const size_t length = strcspn(part, "/");
        if (part + length < last && strncmp(part, part + length + 1, length) == 0 &&
            part[2 * length + 1] == '.')
            continue;
        text_item(&text, ".", "%.*s", (int)length, part);
    }
    return !text.cut && text.used > 0;
}

/* Names a layer after the weights that are its alone, or else after its node, or its kind. */
static void name_layer(struct onnx_reading *reading, const onnx_op *op, struct layer *layer) {
    const struct layer_list *list = &reading->file->list;
    char name[200] = "", with_kind[240];
    bool found = false;
    int number = 0;
    for (size_t i = 0; i < op->n_input && !found; i++) {
        const struct onnx_value *value = onnx_value(&reading->graph, op->input[i]);
        found = value && value->tensor && value->uses == 1 && name_in(value->name, name, sizeof name);
    }
    if (!found) found = name_of_node(op, name, sizeof name);
    for (int i = 0; i < list->count; i++) number += list->layers[i].kind == layer->kind;
    if (!found) snprintf(name, sizeof name, "%s%d", layer_rows[layer->kind].name, number);
    const bool needs_kind = strchr("0123456789.-/", name[0]) != NULL;
    snprintf(with_kind, sizeof with_kind, "%s%s%s", needs_kind ? layer_rows[layer->kind].name : "",
             needs_kind ? "_" : "", name);
    network_file_name(list, layer, with_kind);
}

/* --- arrays --- */

/* A constant may be the weights of several layers, but of no more than files of its size have. */
static int count_array(struct onnx_reading *reading, const struct shape *shape) {
    enum { TIMES = 2, FREE = 64 << 20 };
    size_t bytes = reading->length + reading->graph.computed;
    for (int i = 0; i < reading->graph.data_count; i++) bytes += reading->graph.data[i].mapping.length;
    reading->taken += shape_count(shape) * sizeof(float);
    if (reading->taken <= TIMES * bytes + FREE) return OK;
    return error_set(reading->graph.error, ERROR_FILE,
                     "%s: found weights of %zu MB in files of %zu MB, expected fewer", reading->graph.path,
                     reading->taken >> 20, bytes >> 20);
}

/* An array of the layer's weights, zeroed; NULL: the error is said. */
static float *add_array(struct onnx_reading *reading, const struct layer *layer, const char *what,
                        const struct shape *shape) {
    char name[LAYER_NAME_BYTES + 20];
    if (count_array(reading, shape) != OK) return NULL;
    snprintf(name, sizeof name, "%s/%s", layer->name, what);
    struct file_array *array = network_file_array(reading->file, name, shape, reading->graph.error);
    return array ? array->values : NULL;
}

static int check_finite(const struct onnx_reading *reading, const onnx_op *op,
                        const struct onnx_constant *from) {
    if (all_finite(from->floats, from->count)) return OK;
    return onnx_wrong(&reading->graph, op, "found weights that are not finite, expected numbers");
}

/* Numbers of a row, one for each element of x: as they lie here. */
static int add_row(struct onnx_reading *reading, const onnx_op *op, const struct layer *layer,
                   const char *what, const struct onnx_constant *from, const struct onnx_flow *x) {
    float *values = add_array(reading, layer, what, &SHAPE((int)from->count));
    if (!values) return reading->graph.error->code;
    RETURN_IF(check_finite(reading, op, from));
    for (size_t i = 0; i < from->count; i++) values[x ? onnx_place(x, i) : i] = from->floats[i];
    return OK;
}

/* Input i: `count` floats, of any shape; *out NULL where it is not given. */
static int read_row(struct onnx_reading *reading, const onnx_op *op, size_t i, size_t count,
                    const struct onnx_constant **out) {
    *out = NULL;
    if (!*onnx_input_name(op, i)) return OK;
    RETURN_IF(onnx_float_input(&reading->graph, op, i, out));
    if ((*out)->count == count) return OK;
    return onnx_wrong(&reading->graph, op, "its input %.60s has %zu numbers, expected %zu",
                      onnx_input_name(op, i), (*out)->count, count);
}

/* --- convolution --- */

/* *multiplier = how many channels each channel becomes by itself; 0: each comes from all. */
static int read_kernel(struct onnx_reading *reading, const onnx_op *op, int channels,
                       const struct onnx_constant **kernel, int *multiplier) {
    const int64_t group = onnx_int_of(op, "group", 1);
    char words[100];
    RETURN_IF(onnx_float_input(&reading->graph, op, 1, kernel));
    const struct shape *shape = &(*kernel)->shape;
    if (group != 1 && group != channels)
        return onnx_wrong(&reading->graph, op, "found group %lld, expected 1, or %d as it has channels",
                          (long long)group, channels);
    const bool alone = group > 1;
    *multiplier = alone ? shape->dims[0] / channels : 0;
    if (shape->rank == 4 && shape->dims[1] == (alone ? 1 : channels) && (*kernel)->count > 0 &&
        (!alone || shape->dims[0] % channels == 0))
        return OK;
    return onnx_wrong(&reading->graph, op, "found weights of %s, expected [filters, %d, rows, columns]",
                      shape_text(shape, words, sizeof words), alone ? 1 : channels);
}

/* Of a convolution of each channel by itself the filters are channels times multiplier here. */
static int add_kernel(struct onnx_reading *reading, const onnx_op *op, const struct layer *layer,
                      const struct onnx_constant *kernel, int multiplier) {
    const int *dims = kernel->shape.dims;
    const size_t filters = (size_t)dims[0], channels = (size_t)dims[1],
                 area = (size_t)dims[2] * (size_t)dims[3];
    const struct shape shape = multiplier > 0 ? SHAPE(dims[2], dims[3], dims[0] / multiplier, multiplier)
                                              : SHAPE(dims[2], dims[3], dims[1], dims[0]);
    float *values = add_array(reading, layer, "kernel", &shape);
    if (!values) return reading->graph.error->code;
    RETURN_IF(check_finite(reading, op, kernel));
    for (size_t at = 0; at < area; at++)
        for (size_t c = 0; c < channels; c++)
            for (size_t f = 0; f < filters; f++)
                values[(at * channels + c) * filters + f] = kernel->floats[(f * channels + c) * area + at];
    return OK;
}

int onnx_conv(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    const struct onnx_constant *kernel = NULL, *bias = NULL;
    struct onnx_windows windows;
    int multiplier = 0;
    if (!from) return reading->graph.error->code;
    struct onnx_flow x = *from, flow = {0};
    RETURN_IF(onnx_as_image(reading, op, &x));
    RETURN_IF(read_kernel(reading, op, x.ours.dims[2], &kernel, &multiplier));
    RETURN_IF(read_row(reading, op, 2, (size_t)kernel->shape.dims[0], &bias));
    RETURN_IF(onnx_read_windows(reading, op, kernel->shape.dims + 2, &x, &windows));
    if (!onnx_pads_are_usual(&windows, &x)) RETURN_IF(onnx_add_zeros(reading, op, &windows, &x));
    struct layer *layer = onnx_add_layer(reading, op, multiplier > 0 ? LAYER_depthwise : LAYER_conv,
                                         (const struct onnx_flow *const[]){&x}, 1);
    if (!layer) return reading->graph.error->code;
    name_layer(reading, op, layer);
    if (multiplier > 0) layer->values.multiplier = multiplier;
    if (multiplier == 0) layer->values.units = kernel->shape.dims[0];
    layer->values.no_bias = bias == NULL;
    onnx_set_windows(&windows, &x, kernel->shape.dims[0], layer, &flow);
    RETURN_IF(add_kernel(reading, op, layer, kernel, multiplier));
    if (bias) RETURN_IF(add_row(reading, op, layer, "bias", bias, NULL));
    return onnx_end_layer(reading, op, &flow);
}

/* --- products --- */

/* A product of a row with a matrix [in, out], or [out, in] where `transposed`. */
static int add_dense(struct onnx_reading *reading, const onnx_op *op, bool transposed, bool has_bias) {
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    const struct onnx_constant *kernel = NULL, *bias = NULL;
    char words[2][100];
    if (!from) return reading->graph.error->code;
    RETURN_IF(onnx_float_input(&reading->graph, op, 1, &kernel));
    const struct shape *shape = &kernel->shape;
    const int in = transposed ? shape->dims[1] : shape->dims[0],
              out = transposed ? shape->dims[0] : shape->dims[1];
    if (from->theirs.rank != 1 || shape->rank != 2 || from->theirs.dims[0] != in || out < 1)
        return onnx_wrong(
            &reading->graph, op,
            "found %s per example and weights of %s, expected a row of numbers and a weight from each",
            shape_text(&from->theirs, words[0], sizeof words[0]),
            shape_text(shape, words[1], sizeof words[1]));
    if (has_bias) RETURN_IF(read_row(reading, op, 2, (size_t)out, &bias));
    struct onnx_flow x = *from, flow = {.theirs = SHAPE(out), .ours = SHAPE(out)};
    RETURN_IF(onnx_as_row(reading, op, &x));
    struct layer *layer = onnx_add_layer(reading, op, LAYER_dense, (const struct onnx_flow *const[]){&x}, 1);
    if (!layer) return reading->graph.error->code;
    name_layer(reading, op, layer);
    layer->values.units = out;
    layer->values.no_bias = bias == NULL;
    float *values = add_array(reading, layer, "kernel", &SHAPE(in, out));
    if (!values) return reading->graph.error->code;
    RETURN_IF(check_finite(reading, op, kernel));
    const size_t rows = (size_t)in, columns = (size_t)out;
    for (size_t i = 0; i < rows; i++)
        for (size_t o = 0; o < columns; o++)
            values[onnx_place(&x, i) * columns + o] =
                kernel->floats[transposed ? o * rows + i : i * columns + o];
    if (bias) RETURN_IF(add_row(reading, op, layer, "bias", bias, NULL));
    return onnx_end_layer(reading, op, &flow);
}

int onnx_gemm(struct onnx_reading *reading, const onnx_op *op) {
    const float alpha = onnx_float_of(op, "alpha", 1.0f), beta = onnx_float_of(op, "beta", 1.0f);
    const bool one = alpha >= 1.0f && alpha <= 1.0f && beta >= 1.0f && beta <= 1.0f;
    if (onnx_int_of(op, "transA", 0) != 0 || !one)
        return onnx_wrong(&reading->graph, op, "found transA %d, alpha %g, beta %g, expected 0, 1, 1",
                          onnx_int_of(op, "transA", 0) != 0, (double)alpha, (double)beta);
    return add_dense(reading, op, onnx_int_of(op, "transB", 0) != 0, true);
}

int onnx_matmul(struct onnx_reading *reading, const onnx_op *op) {
    return add_dense(reading, op, false, false);
}

/* A constant that is added to a product or convolution without a bias, on either side. */
int onnx_add_bias(struct onnx_reading *reading, const onnx_op *op, bool *done) {
    const struct onnx_value *values[2] = {onnx_operand(&reading->graph, op, 0),
                                          onnx_operand(&reading->graph, op, 1)};
    const struct onnx_constant *bias = NULL;
    char words[100];
    if (!values[0] || !values[1]) return reading->graph.error->code;
    const int x = values[0]->state == ONNX_FLOW ? 0 : 1;
    *done = values[x]->state == ONNX_FLOW && values[1 - x]->state != ONNX_FLOW;
    if (!*done) return OK;
    const struct onnx_flow *flow = &values[x]->flow;
    struct layer *layer = flow->layer >= 0 ? &reading->file->list.layers[flow->layer] : NULL;
    RETURN_IF(onnx_float_input(&reading->graph, op, (size_t)(1 - x), &bias));
    const bool has_kernel =
        layer && (layer->kind == LAYER_dense || layer->kind == LAYER_conv || layer->kind == LAYER_depthwise);
    const int channels = flow->ours.dims[flow->ours.rank - 1];
    const bool fits = has_kernel && layer->values.no_bias && layer->activation == LAYER_NONE && flow->sole &&
                      bias->count == (size_t)channels;
    /* Along the channels: all other sizes are 1. */
    const int axis = bias->shape.rank - flow->theirs.rank;
    const bool along = fits && axis >= 0 && axis < bias->shape.rank && bias->shape.dims[axis] == channels;
    if (!along && !(fits && bias->count == 1))
        return onnx_wrong(&reading->graph, op,
                          "found a constant of %s added, expected one of what the network computes, or the "
                          "bias of the convolution or product before it",
                          shape_text(&bias->shape, words, sizeof words));
    layer->values.no_bias = false;
    RETURN_IF(add_row(reading, op, layer, "bias", bias, NULL));
    return onnx_pass(reading, op, flow);
}

/* Rows of a table, by numbers that the network is given or computes. */
int onnx_gather(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *from = onnx_flow(reading, op, 1);
    const struct onnx_constant *table = NULL;
    char words[2][100];
    if (!from) return reading->graph.error->code;
    RETURN_IF(onnx_float_input(&reading->graph, op, 0, &table));
    const int *dims = table->shape.dims;
    if (from->theirs.rank != 1 || table->shape.rank != 2 || table->count == 0 ||
        onnx_int_of(op, "axis", 0) != 0)
        return onnx_wrong(&reading->graph, op,
                          "found %s per example and a table of %s, expected a row of numbers and axis 0 of "
                          "[vocabulary, units]",
                          shape_text(&from->theirs, words[0], sizeof words[0]),
                          shape_text(&table->shape, words[1], sizeof words[1]));
    struct onnx_flow x = *from, flow = {.theirs = SHAPE(from->theirs.dims[0], dims[1])};
    RETURN_IF(onnx_as_row(reading, op, &x));
    if (x.image.rank == 3) return onnx_as_it_is(reading, op, &x);
    struct layer *layer =
        onnx_add_layer(reading, op, LAYER_embedding, (const struct onnx_flow *const[]){&x}, 1);
    if (!layer) return reading->graph.error->code;
    name_layer(reading, op, layer);
    layer->values.vocabulary = dims[0];
    layer->values.units = dims[1];
    float *values = add_array(reading, layer, "kernel", &table->shape);
    if (!values) return reading->graph.error->code;
    RETURN_IF(check_finite(reading, op, table));
    memcpy(values, table->floats, table->count * sizeof *values);
    flow.ours = flow.theirs;
    return onnx_end_layer(reading, op, &flow);
}

/* --- normalisation --- */

int onnx_batch_norm(struct onnx_reading *reading, const onnx_op *op) {
    static const char *const names[] = {"scale", "shift", "mean", "variance"};
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    const struct onnx_constant *rows[4];
    if (!from) return reading->graph.error->code;
    struct onnx_flow x = *from;
    if (x.theirs.rank != 1) RETURN_IF(onnx_as_image(reading, op, &x));
    const bool is_row = x.theirs.rank == 1;
    if (onnx_int_of(op, "spatial", 1) != 1 && !is_row)
        return onnx_wrong(&reading->graph, op, "found spatial 0, expected 1");
    if (is_row) RETURN_IF(onnx_as_row(reading, op, &x));
    for (size_t w = 0; w < 4; w++) {
        RETURN_IF(read_row(reading, op, w + 1, (size_t)x.ours.dims[x.ours.rank - 1], &rows[w]));
        if (!rows[w]) return onnx_wrong(&reading->graph, op, "found no %s, expected a constant", names[w]);
    }
    struct layer *layer =
        onnx_add_layer(reading, op, LAYER_batch_norm, (const struct onnx_flow *const[]){&x}, 1);
    if (!layer) return reading->graph.error->code;
    name_layer(reading, op, layer);
    layer->values.epsilon = onnx_shortest(onnx_float_of(op, "epsilon", 1e-5f), 1.0f);
    layer->values.momentum = onnx_shortest(onnx_float_of(op, "momentum", 0.9f), 1.0f);
    for (size_t w = 0; w < 4; w++)
        RETURN_IF(add_row(reading, op, layer, names[w], rows[w], is_row ? &x : NULL));
    for (size_t i = 0; i < rows[3]->count; i++)
        if (rows[3]->floats[i] < 0.0f)
            return onnx_wrong(&reading->graph, op, "found a variance of %g, expected 0 or more",
                              (double)rows[3]->floats[i]);
    x.at_least_zero = false;
    return onnx_end_layer(reading, op, &x);
}

/* Over the last axis; without a shift it is 0. */
static int add_layer_norm(struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *from,
                          int64_t axis, const struct onnx_constant *scale, const struct onnx_constant *shift,
                          float epsilon) {
    struct onnx_flow x = *from;
    const bool is_row = x.theirs.rank == 1;
    if (axis != -1 && axis != x.theirs.rank)
        return onnx_wrong(&reading->graph, op, "found axis %lld, expected the last one", (long long)axis);
    RETURN_IF(is_row ? onnx_as_row(reading, op, &x) : onnx_as_it_is(reading, op, &x));
    const size_t numbers = (size_t)x.ours.dims[x.ours.rank - 1];
    if (scale->count != numbers || (shift && shift->count != numbers))
        return onnx_wrong(&reading->graph, op, "found %zu weights, expected %zu, of the last axis",
                          scale->count, numbers);
    struct layer *layer =
        onnx_add_layer(reading, op, LAYER_layer_norm, (const struct onnx_flow *const[]){&x}, 1);
    if (!layer) return reading->graph.error->code;
    name_layer(reading, op, layer);
    layer->values.epsilon = onnx_shortest(epsilon, 1.0f);
    RETURN_IF(add_row(reading, op, layer, "scale", scale, &x));
    if (shift) RETURN_IF(add_row(reading, op, layer, "shift", shift, &x));
    if (!shift && !add_array(reading, layer, "shift", &SHAPE((int)numbers)))
        return reading->graph.error->code;
    x.at_least_zero = false;
    return onnx_end_layer(reading, op, &x);
}

int onnx_layer_norm(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    const struct onnx_constant *scale = NULL, *shift = NULL;
    if (!x) return reading->graph.error->code;
    RETURN_IF(onnx_float_input(&reading->graph, op, 1, &scale));
    if (*onnx_input_name(op, 2)) RETURN_IF(onnx_float_input(&reading->graph, op, 2, &shift));
    return add_layer_norm(reading, op, x, onnx_int_of(op, "axis", -1), scale, shift,
                          onnx_float_of(op, "epsilon", 1e-5f));
}

int onnx_layer_norm_of(struct onnx_reading *reading, const onnx_op *op, const struct onnx_pattern *pattern) {
    const struct onnx_flow *x = onnx_flow(reading, pattern->first, pattern->x);
    const struct onnx_constant *scale = NULL, *shift = NULL;
    if (!x) return reading->graph.error->code;
    RETURN_IF(onnx_float_input(&reading->graph, pattern->scale_node, pattern->scale, &scale));
    RETURN_IF(onnx_float_input(&reading->graph, op, pattern->shift, &shift));
    return add_layer_norm(reading, op, x, pattern->axis, scale, shift, pattern->epsilon);
}
