/* The operators that become layers, as a table, and those of them that need few words. See onnx_layers.h. */
#include <math.h>
#include <string.h>

#include "onnx_layers.h"

/* --- element by element --- */

/* The activation of which the row in layers.def names this operator alone, and of which the file says all
 * attributes. */
static enum layer_kind activation_of(const onnx_op *op) {
    for (int kind = 0; kind < LAYER_KINDS; kind++) {
        const struct layer_row *row = &layer_rows[kind];
        bool known = row->takes == LAYER_IS_ACTIVATION && strcmp(row->onnx, op->op_type) == 0;
        for (const struct option *a = row->attributes; known && a->name; a++)
            known = strcmp(a->name, "alpha") == 0 || strcmp(a->name, "approximate") == 0;
        if (known) return (enum layer_kind)kind;
    }
    return LAYER_NONE;
}

static bool ends_at_zero(enum layer_kind kind) {
    return kind == LAYER_relu || kind == LAYER_relu6 || kind == LAYER_sigmoid || kind == LAYER_hard_sigmoid;
}

/* Whether an activation without attributes of its own may be said at the end of the layer before it. */
static bool may_follow(const struct onnx_reading *reading, const struct onnx_flow *flow,
                       const struct layer *alone) {
    struct layer_values usual;
    if (flow->layer < 0 || !flow->sole) return false;
    const struct layer *before = &reading->file->list.layers[flow->layer];
    option_defaults(layer_rows[alone->kind].attributes, &usual);
    for (const struct option *row = layer_rows[alone->kind].attributes; row->name; row++) {
        char own[100], default_value[100];
        option_text(row, &alone->values, own, sizeof own);
        option_text(row, &usual, default_value, sizeof default_value);
        if (strcmp(own, default_value) != 0) return false;
    }
    return before->activation == LAYER_NONE && layer_rows[before->kind].takes != LAYER_IS_ACTIVATION;
}

static int add_activation(struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *x,
                          enum layer_kind kind) {
    struct layer_list *list = &reading->file->list;
    struct onnx_flow flow = *x;
    struct layer *layer = onnx_add_layer(reading, op, kind, (const struct onnx_flow *const[]){x}, 1);
    if (!layer) return reading->graph.error->code;
    if (option_find(layer_rows[kind].attributes, "alpha"))
        layer->values.alpha = onnx_shortest(onnx_float_of(op, "alpha", (float)layer->values.alpha), 1.0f);
    layer->values.approximate = onnx_word_is(op, "approximate", "tanh");
    flow.at_least_zero = ends_at_zero(kind);
    if (!may_follow(reading, x, layer)) return onnx_end_layer(reading, op, &flow);
    list->count--;
    list->layers[x->layer].activation = kind;
    return onnx_pass(reading, op, &flow);
}

static int activation(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    return x ? add_activation(reading, op, x, activation_of(op)) : reading->graph.error->code;
}

/* Between 0 and 6, or from 0 on. */
static int clip(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    float least = -INFINITY, most = INFINITY;
    if (!x) return reading->graph.error->code;
    RETURN_IF(onnx_number(&reading->graph, op, "min", 1, -INFINITY, &least));
    RETURN_IF(onnx_number(&reading->graph, op, "max", 2, INFINITY, &most));
    if (fpclassify(least) == FP_ZERO && most > 1e30f) return add_activation(reading, op, x, LAYER_relu);
    if (fpclassify(least) == FP_ZERO && most >= 6.0f && most <= 6.0f)
        return add_activation(reading, op, x, LAYER_relu6);
    return onnx_wrong(&reading->graph, op, "found %g to %g, expected 0 to infinity, or 0 to 6", (double)least,
                      (double)most);
}

static int hard_sigmoid(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    if (!x) return reading->graph.error->code;
    if (onnx_is_hard_sigmoid(op)) return add_activation(reading, op, x, LAYER_hard_sigmoid);
    return onnx_wrong(&reading->graph, op, "found alpha %g, beta %g, expected 1/6 and 0.5",
                      (double)onnx_float_of(op, "alpha", 0.2f), (double)onnx_float_of(op, "beta", 0.5f));
}

static int hard_swish(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    return x ? add_activation(reading, op, x, LAYER_hard_swish) : reading->graph.error->code;
}

/* Over the last axis here: all numbers of a row, the channels of an image, or the last axis of what lies as
 * it does there. Before opset 13 it is over the last axes from one on, as if they were one. As the network's
 * result its logarithm is the same to the loss. */
static int softmax(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    const bool is_older = reading->graph.opset < 13;
    const int64_t axis = onnx_int_of(op, "axis", is_older ? 1 : -1);
    char words[100];
    if (!x) return reading->graph.error->code;
    struct onnx_flow flow = *x;
    const int rank = x->theirs.rank;
    const int64_t at = axis < 0 ? axis + rank : axis - 1;
    const bool all = at == 0 && (is_older || x->theirs.dims[0] == (int)shape_count(&x->theirs)),
               of_channels = at == 0 && !is_older && onnx_is_image(x),
               is_last = at == rank - 1 && x->image.rank == 0;
    const struct onnx_value *value = onnx_value(&reading->graph, op->output[0]);
    if (!all && !of_channels && !is_last)
        return onnx_wrong(
            &reading->graph, op,
            "found axis %lld of %s per example, expected all numbers, the channels of an image, "
            "or the last axis of another value",
            (long long)axis, shape_text(&x->theirs, words, sizeof words));
    if (strcmp(op->op_type, "LogSoftmax") == 0 && !(all && value && value->is_result && value->uses == 1))
        return onnx_wrong(&reading->graph, op, "found LogSoftmax, expected it at the end only");
    if (all)
        RETURN_IF(onnx_as_row(reading, op, &flow));
    else
        RETURN_IF(of_channels ? onnx_as_image(reading, op, &flow) : onnx_as_it_is(reading, op, &flow));
    struct layer *layer =
        onnx_add_layer(reading, op, LAYER_softmax, (const struct onnx_flow *const[]){&flow}, 1);
    if (!layer) return reading->graph.error->code;
    flow.at_least_zero = true;
    return onnx_end_layer(reading, op, &flow);
}

static int dropout(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    float rate = 0.5f;
    if (!x) return reading->graph.error->code;
    RETURN_IF(onnx_number(&reading->graph, op, "ratio", 1, 0.5f, &rate));
    if (fpclassify(rate) == FP_ZERO) return onnx_pass(reading, op, x);
    struct layer *layer = onnx_add_layer(reading, op, LAYER_dropout, (const struct onnx_flow *const[]){x}, 1);
    if (!layer) return reading->graph.error->code;
    layer->values.rate = onnx_shortest(rate, 1.0f);
    return onnx_end_layer(reading, op, x);
}

static int identity(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    return x ? onnx_pass(reading, op, x) : reading->graph.error->code;
}

/* Whether only lookups in tables use a value. */
static bool is_for_gather(const struct onnx_reading *reading, const char *name) {
    const Onnx__GraphProto *proto = reading->graph.proto;
    for (size_t n = 0; n < proto->n_node; n++)
        for (size_t i = 0; i < proto->node[n]->n_input; i++)
            if (strcmp(proto->node[n]->input[i], name) == 0 &&
                (!proto->node[n]->op_type || strcmp(proto->node[n]->op_type, "Gather") != 0))
                return false;
    return true;
}

/* Among floats nothing changes here. What a table is asked for are whole numbers, which an embedding makes
 * sure of. */
static int cast(struct onnx_reading *reading, const onnx_op *op) {
    enum { FLOAT = 1, INT32 = 6, INT64 = 7, FLOAT16 = 10, DOUBLE = 11 };
    const int64_t to = onnx_int_of(op, "to", FLOAT);
    const bool floats = to == FLOAT || to == FLOAT16 || to == DOUBLE;
    if (floats || ((to == INT32 || to == INT64) && op->n_output > 0 && is_for_gather(reading, op->output[0])))
        return identity(reading, op);
    return onnx_wrong(&reading->graph, op,
                      "found a Cast to type %lld of what the network computes, expected one to floats",
                      (long long)to);
}

/* --- images --- */

/* Each neighbour counts alpha / size there. */
static int lrn(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    const int64_t size = onnx_int_of(op, "size", 0);
    if (!from) return reading->graph.error->code;
    struct onnx_flow x = *from;
    RETURN_IF(onnx_as_image(reading, op, &x));
    if (size < 1 || size > 2 * MAX_LRN_RADIUS + 1 || size % 2 == 0)
        return onnx_wrong(&reading->graph, op, "size: found %lld, expected an odd number, 1 to %d",
                          (long long)size, 2 * MAX_LRN_RADIUS + 1);
    struct layer *layer = onnx_add_layer(reading, op, LAYER_lrn, (const struct onnx_flow *const[]){&x}, 1);
    if (!layer) return reading->graph.error->code;
    layer->values.radius = (int)size / 2;
    layer->values.alpha = onnx_shortest(onnx_float_of(op, "alpha", 1e-4f), (float)size);
    layer->values.beta = onnx_shortest(onnx_float_of(op, "beta", 0.75f), 1.0f);
    layer->values.bias = onnx_shortest(onnx_float_of(op, "bias", 1.0f), 1.0f);
    return onnx_end_layer(reading, op, &x);
}

/* One number per channel of x, an image in one of the two ways; rows and columns stay as 1 where `keep`. */
static int add_global_pool(struct onnx_reading *reading, const onnx_op *op, enum layer_kind kind,
                           const struct onnx_flow *x, bool is_image, bool keep) {
    const int channels = x->ours.dims[2];
    struct onnx_flow flow = {.ours = SHAPE(channels), .at_least_zero = x->at_least_zero};
    if (!onnx_add_layer(reading, op, kind, (const struct onnx_flow *const[]){x}, 1))
        return reading->graph.error->code;
    flow.theirs = !keep ? SHAPE(channels) : is_image ? SHAPE(channels, 1, 1) : SHAPE(1, 1, channels);
    return onnx_end_layer(reading, op, &flow);
}

static int global_pool(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    const bool is_mean = strcmp(op->op_type, "GlobalAveragePool") == 0;
    if (!from) return reading->graph.error->code;
    struct onnx_flow x = *from;
    RETURN_IF(onnx_as_image(reading, op, &x));
    return add_global_pool(reading, op, is_mean ? LAYER_global_avgpool : LAYER_global_maxpool, &x, true,
                           true);
}

static int reduce_mean(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    int64_t axes[2] = {0, 0};
    int count = 0;
    if (!from) return reading->graph.error->code;
    struct onnx_flow x = *from;
    if (x.theirs.rank != 3) return onnx_as_image(reading, op, &x);
    const bool is_image = onnx_is_image(&x);
    RETURN_IF(is_image ? onnx_as_image(reading, op, &x) : onnx_as_it_is(reading, op, &x));
    RETURN_IF(onnx_list(&reading->graph, op, "axes", 1, axes, 2, &count));
    for (int i = 0; i < 2; i++) axes[i] += axes[i] < 0 ? 4 : 0;
    const int64_t rows = is_image ? 2 : 1;
    if (count != 2 || axes[0] + axes[1] != 2 * rows + 1 || (axes[0] != rows && axes[1] != rows))
        return onnx_wrong(&reading->graph, op,
                          "expected the mean over rows and columns of an image, axes %lld and %lld",
                          (long long)rows, (long long)rows + 1);
    return add_global_pool(reading, op, LAYER_global_avgpool, &x, is_image,
                           onnx_int_of(op, "keepdims", 1) != 0);
}

/* --- the table --- */

/* Beside those of activations, which layers.def names. */
static const struct {
    const char *operation;
    onnx_layer *translate;
} operators[] = {{"Conv", onnx_conv},
                 {"Gemm", onnx_gemm},
                 {"MatMul", onnx_matmul},
                 {"Gather", onnx_gather},
                 {"BatchNormalization", onnx_batch_norm},
                 {"LayerNormalization", onnx_layer_norm},
                 {"LRN", lrn},
                 {"MaxPool", onnx_maxpool},
                 {"AveragePool", onnx_avgpool},
                 {"GlobalAveragePool", global_pool},
                 {"GlobalMaxPool", global_pool},
                 {"ReduceMean", reduce_mean},
                 {"Flatten", onnx_flatten},
                 {"Reshape", onnx_reshape_node},
                 {"Squeeze", onnx_squeeze},
                 {"Unsqueeze", onnx_unsqueeze},
                 {"Transpose", onnx_transpose},
                 {"Pad", onnx_pad},
                 {"Add", onnx_add},
                 {"Sum", onnx_add},
                 {"Mul", onnx_mul},
                 {"Concat", onnx_concat},
                 {"Dropout", dropout},
                 {"Identity", identity},
                 {"Cast", cast},
                 {"Clip", clip},
                 {"HardSigmoid", hard_sigmoid},
                 {"HardSwish", hard_swish},
                 {"Softmax", softmax},
                 {"LogSoftmax", softmax}};

static int unknown_operator(const struct onnx_reading *reading, const onnx_op *op) {
    char all[400];
    struct text text = text_into(all, sizeof all);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        text_item(&text, ", ", "%s", operators[i].operation);
    for (int kind = 0; kind < LAYER_KINDS; kind++)
        if (layer_rows[kind].takes == LAYER_IS_ACTIVATION && !strstr(all, layer_rows[kind].onnx))
            text_item(&text, ", ", "%s", layer_rows[kind].onnx);
    return onnx_wrong(&reading->graph, op, "found %.40s, expected one of %s", op->op_type, all);
}

int onnx_translate(struct onnx_reading *reading, const onnx_op *op) {
    const char *domain = op->domain ? op->domain : "";
    if (*domain && strcmp(domain, "ai.onnx") != 0)
        return onnx_wrong(&reading->graph, op, "found %.40s of %.60s, expected an operator of ONNX itself",
                          op->op_type, domain);
    if (strcmp(op->op_type, "Div") == 0 || strcmp(op->op_type, "Erf") == 0)
        return onnx_wrong(&reading->graph, op,
                          "found %s by itself, expected it within gelu, silu or a layer normalisation",
                          op->op_type);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].operation, op->op_type) == 0) return operators[i].translate(reading, op);
    if (activation_of(op) != LAYER_NONE) return activation(reading, op);
    return unknown_operator(reading, op);
}

int onnx_translate_pattern(struct onnx_reading *reading, const onnx_op *op,
                           const struct onnx_pattern *pattern) {
    if (pattern->kind == LAYER_layer_norm) return onnx_layer_norm_of(reading, op, pattern);
    const struct onnx_flow *x = onnx_flow(reading, pattern->first, pattern->x);
    return x ? add_activation(reading, op, x, pattern->kind) : reading->graph.error->code;
}
