/* onnx: the network for onnxruntime and others, opset 13, or 17 with a layer normalisation. Its input "x" is
 * what the network takes: rows, columns, channels of each example, pixels as the training scaled them; its
 * outputs are "probabilities" and "logits". ONNX has channels before rows and columns: values are turned
 * where the first convolution needs it, and back where their places matter again. */
#include <stdio.h>

#include "../base/memory.h"
#include "../graph/window.h"
#include "../infer/export.h"

#define HELP "a graph for onnxruntime and others, with the weights"

#if TRAINER_PROTOBUF

#    include "../formats/onnx_file.h"
#    include "../infer/arrays.h"
#    include "../infer/onnx_names.h"

enum turn { AS_IT_IS, TURNED }; /* channels last, as everywhere here; channels first */
static const int to_first[4] = {0, 3, 1, 2},
                 to_last[4] = {0, 2, 3, 1}; /* the latter: where an axis goes, too */

struct onnx {
    struct onnx_file *file;
    const struct exported *exported;
    const struct layers_of *of;
    bool (*has)[2]; /* [layers] which turns of its value there are */
    struct onnx_names names;
    struct error *error;
};

static const char *name_of_weight(const struct onnx *onnx, const struct range *range) {
    return onnx->names.weights[range - onnx->of->graph->layout.ranges].text;
}

/* Its weights under its own name; of a convolution, whose kernel they are, as OIHW. */
static int write_weights(struct onnx *onnx, const struct range *range, const struct shape *kernel) {
    const float *weights = onnx->exported->restored->weights + range->begin;
    const char *name = name_of_weight(onnx, range);
    float *turned = NULL;
    if (!kernel) return onnx_floats(onnx->file, name, &range->shape, weights);
    const int *dims = kernel->dims;
    RETURN_IF(onnx_take_floats(onnx->file, &turned, range->floats));
    arrays_turn(turned, weights, dims[0] * dims[1], dims[2], dims[3]);
    return onnx_floats(onnx->file, name, &SHAPE(dims[3], dims[2], dims[0], dims[1]), turned);
}

/* --- values --- */

static const struct shape *shape_of_layer(const struct onnx *onnx, int place) {
    return &onnx->of->graph->nodes[onnx->of->layers[place].at].shape;
}

static const struct attributes *attributes_of(const struct onnx *onnx, const struct layer_of *layer) {
    return &onnx->of->graph->nodes[layer->computes].attributes;
}

static struct onnx_name value_name(const struct onnx *onnx, int place, enum turn turn) {
    struct onnx_name name = onnx->names.values[place];
    if (turn == TURNED) snprintf(name.text, sizeof name.text, "%.80s:turned", onnx->names.values[place].text);
    return name;
}

/* A node that is no layer's, or not its last one, is called after its result. */
static int end_part(struct onnx *onnx, struct onnx_node *made, const char *output) {
    struct onnx_name name;
    snprintf(name.text, sizeof name.text, "%s", output);
    RETURN_IF(names_take(&onnx->names.nodes, name.text, sizeof name.text, onnx->error));
    return onnx_end(made, name.text, output);
}

/* Adds the value of a layer as an input, turned first if it is not there that way yet. */
static void add_value(struct onnx *onnx, struct onnx_node *made, int place, enum turn turn) {
    const struct onnx_name name = value_name(onnx, place, turn);
    if (made->code == OK && !onnx->has[place][turn]) {
        struct onnx_node transpose = onnx_begin(onnx->file, "Transpose");
        onnx_input(&transpose, value_name(onnx, place, !turn).text);
        onnx_ints(&transpose, "perm", turn == TURNED ? to_first : to_last, 4);
        made->code = end_part(onnx, &transpose, name.text);
        onnx->has[place][turn] = true;
    }
    onnx_input(made, name.text);
}

/* Whether all operands of a layer are there turned: then it need not turn them back. */
static enum turn turn_of(const struct onnx *onnx, const struct layer_of *layer) {
    for (int i = 0; i < layer->inputs; i++)
        if (!onnx->has[layer->input[i]][TURNED] || shape_of_layer(onnx, layer->input[i])->rank != 4)
            return AS_IT_IS;
    return layer->inputs > 0 ? TURNED : AS_IT_IS;
}

static struct onnx_node begin_layer(struct onnx *onnx, const struct layer_of *layer, const char *operation,
                                    enum turn turn) {
    struct onnx_node made = onnx_begin(onnx->file, operation);
    for (int i = 0; i < layer->inputs; i++) add_value(onnx, &made, layer->input[i], turn);
    return made;
}

static int end_layer(struct onnx *onnx, struct onnx_node *made, const struct layer_of *layer,
                     enum turn turn) {
    const int place = (int)(layer - onnx->of->layers);
    onnx->has[place][turn] = true;
    return onnx_end(made, layer->name, value_name(onnx, place, turn).text);
}

/* --- layers --- */

static int refuse(const struct onnx *onnx, const struct layer_of *layer) {
    return error_set(onnx->error, ERROR_FILE,
                     "onnx: %s: found %s, which ONNX files of this program cannot say", layer->name,
                     op_name(layer->op));
}

static void add_weight(struct onnx *onnx, struct onnx_node *made, const struct range *range,
                       const struct shape *kernel) {
    if (made->code == OK) made->code = write_weights(onnx, range, kernel);
    onnx_input(made, name_of_weight(onnx, range));
}

/* Rows and columns before, rows and columns behind. */
static void add_windows(struct onnx *onnx, struct onnx_node *made, const struct layer_of *layer,
                        const int window[2]) {
    const struct attributes *attributes = attributes_of(onnx, layer);
    const struct shape *x = shape_of_layer(onnx, layer->input[0]);
    int pads[4];
    for (int axis = 0; axis < 2; axis++) {
        const struct window along =
            window_along(x->dims[axis + 1], window[axis], attributes->stride[axis], attributes->padding);
        pads[axis] = along.before;
        pads[axis + 2] = along.after;
    }
    onnx_ints(made, "kernel_shape", window, 2);
    onnx_ints(made, "strides", attributes->stride, 2);
    onnx_ints(made, "pads", pads, 4);
}

static int write_conv(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct shape *kernel = layers_of_kernel(onnx->of, layer);
    const int groups = convolution_groups(shape_of_layer(onnx, layer->input[0]), kernel);
    struct onnx_node made = begin_layer(onnx, layer, operation, TURNED);
    add_weight(onnx, &made, layer->weights[WEIGHT_KERNEL], kernel);
    if (layer->weights[WEIGHT_BIAS]) add_weight(onnx, &made, layer->weights[WEIGHT_BIAS], NULL);
    add_windows(onnx, &made, layer, kernel->dims);
    if (groups > 1) onnx_int(&made, "group", groups);
    return end_layer(onnx, &made, layer, TURNED);
}

static int write_dense(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const bool has_bias = layer->weights[WEIGHT_BIAS] != NULL;
    struct onnx_node made = begin_layer(onnx, layer, has_bias ? operation : "MatMul", AS_IT_IS);
    add_weight(onnx, &made, layer->weights[WEIGHT_KERNEL], NULL);
    if (has_bias) add_weight(onnx, &made, layer->weights[WEIGHT_BIAS], NULL);
    return end_layer(onnx, &made, layer, AS_IT_IS);
}

/* Its operand as whole numbers, and the rows of these. */
static int write_embedding(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    enum { INTEGERS = 7 };
    const struct onnx_name name = onnx_part(layer, "whole");
    struct onnx_node cast = begin_layer(onnx, layer, "Cast", AS_IT_IS);
    onnx_int(&cast, "to", INTEGERS);
    RETURN_IF(end_part(onnx, &cast, name.text));
    struct onnx_node made = onnx_begin(onnx->file, operation);
    add_weight(onnx, &made, layer->weights[WEIGHT_KERNEL], NULL);
    onnx_input(&made, name.text);
    return end_layer(onnx, &made, layer, AS_IT_IS);
}

static int write_norm(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const int rank = shape_of_layer(onnx, layer->input[0])->rank;
    if (rank != 2 && rank != 4) return refuse(onnx, layer);
    const enum turn turn = rank == 4 ? TURNED : AS_IT_IS;
    struct onnx_node made = begin_layer(onnx, layer, operation, turn);
    for (int w = WEIGHT_SCALE; w <= WEIGHT_VARIANCE; w++) add_weight(onnx, &made, layer->weights[w], NULL);
    onnx_float(&made, "epsilon", attributes_of(onnx, layer)->epsilon);
    return end_layer(onnx, &made, layer, turn);
}

static int write_layer_norm(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    enum { SINCE = 17 };
    struct onnx_node made = begin_layer(onnx, layer, operation, AS_IT_IS);
    onnx_needs(onnx->file, SINCE);
    add_weight(onnx, &made, layer->weights[WEIGHT_SCALE], NULL);
    add_weight(onnx, &made, layer->weights[WEIGHT_SHIFT], NULL);
    onnx_int(&made, "axis", -1);
    onnx_float(&made, "epsilon", layer->epsilon);
    return end_layer(onnx, &made, layer, AS_IT_IS);
}

static int write_global_pool(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct onnx_name name = onnx_part(layer, "pixel");
    struct onnx_node pool = begin_layer(onnx, layer, operation, TURNED);
    RETURN_IF(end_part(onnx, &pool, name.text));
    struct onnx_node flatten = onnx_begin(onnx->file, "Flatten");
    onnx_input(&flatten, name.text);
    return end_layer(onnx, &flatten, layer, AS_IT_IS);
}

/* Whole numbers that a layer has there as an input. */
static void add_integers(struct onnx_node *made, const struct layer_of *layer, const char *what,
                         const int *values, int count) {
    const struct onnx_name name = onnx_part(layer, what);
    if (made->code == OK) made->code = onnx_integers(made->file, name.text, values, count);
    onnx_input(made, name.text);
}

/* A shape of our graph has its batch in it, which is any number there: that of the operand (0), or what is
 * left over (-1). */
static int write_reshape(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    struct shape there = onnx->of->graph->nodes[layer->at].shape;
    const bool keeps = shape_of_layer(onnx, layer->input[0])->dims[0] == onnx->of->batch;
    struct onnx_node made = begin_layer(onnx, layer, operation, AS_IT_IS);
    if (there.dims[0] == onnx->of->batch) there.dims[0] = keeps ? 0 : -1;
    add_integers(&made, layer, "shape", there.dims, there.rank);
    return end_layer(onnx, &made, layer, AS_IT_IS);
}

static int write_pool(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    struct onnx_node made = begin_layer(onnx, layer, operation, TURNED);
    add_windows(onnx, &made, layer, attributes_of(onnx, layer)->window);
    if (layer->op == OP_avgpool) onnx_int(&made, "count_include_pad", 0);
    return end_layer(onnx, &made, layer, TURNED);
}

static int write_pad(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct node_info *info = &onnx->of->graph->nodes[layer->computes];
    const struct shape *x = shape_of_layer(onnx, layer->input[0]);
    int pads[2 * MAX_RANK];
    struct onnx_node made = begin_layer(onnx, layer, operation, AS_IT_IS);
    for (int i = 0; i < x->rank; i++) {
        pads[i] = info->attributes.begin[i];
        pads[x->rank + i] = info->shape.dims[i] - x->dims[i] - pads[i];
    }
    add_integers(&made, layer, "pads", pads, 2 * x->rank);
    return end_layer(onnx, &made, layer, AS_IT_IS);
}

/* From where to where, of all axes but the batch. */
static int write_slice(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct node_info *info = &onnx->of->graph->nodes[layer->computes];
    const int rank = info->shape.rank;
    int starts[MAX_RANK], ends[MAX_RANK], axes[MAX_RANK];
    if (rank == 0 || shape_of_layer(onnx, layer->input[0])->dims[0] != info->shape.dims[0])
        return refuse(onnx, layer);
    struct onnx_node made = begin_layer(onnx, layer, operation, AS_IT_IS);
    for (int i = 0; i < rank - 1; i++) {
        axes[i] = i + 1;
        starts[i] = info->attributes.begin[i + 1];
        ends[i] = starts[i] + info->shape.dims[i + 1];
    }
    add_integers(&made, layer, "starts", starts, rank - 1);
    add_integers(&made, layer, "ends", ends, rank - 1);
    add_integers(&made, layer, "axes", axes, rank - 1);
    return end_layer(onnx, &made, layer, AS_IT_IS);
}

/* A number that a layer has there as an input; it lives as long as the file. */
static void add_number(struct onnx *onnx, struct onnx_node *made, const struct layer_of *layer,
                       const char *what, const float *number) {
    const struct onnx_name name = onnx_part(layer, what);
    if (made->code == OK) made->code = onnx_floats(onnx->file, name.text, &SCALAR, number);
    onnx_input(made, name.text);
}

static int write_relu6(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    static const float least = 0.0f, most = 6.0f;
    const enum turn turn = turn_of(onnx, layer);
    struct onnx_node made = begin_layer(onnx, layer, operation, turn);
    add_number(onnx, &made, layer, "least", &least);
    add_number(onnx, &made, layer, "most", &most);
    return end_layer(onnx, &made, layer, turn);
}

static struct onnx_node begin_hard_sigmoid(struct onnx *onnx, const struct layer_of *layer) {
    struct onnx_node made = begin_layer(onnx, layer, "HardSigmoid", turn_of(onnx, layer));
    onnx_float(&made, "alpha", 1.0f / 6.0f);
    onnx_float(&made, "beta", 0.5f);
    return made;
}

static int write_hard_sigmoid(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const enum turn turn = turn_of(onnx, layer);
    struct onnx_node made = begin_hard_sigmoid(onnx, layer);
    (void)operation;
    return end_layer(onnx, &made, layer, turn);
}

/* One node of several that make a layer: of the layer's operand or of what the one before gave, and of a
 * number. */
static int write_part(struct onnx *onnx, const struct layer_of *layer, const char *operation,
                      const char *before, const float *number, const char *output) {
    char by[24];
    struct onnx_node made = onnx_begin(onnx->file, operation);
    if (before)
        onnx_input(&made, onnx_part(layer, before).text);
    else
        add_value(onnx, &made, layer->input[0], turn_of(onnx, layer));
    snprintf(by, sizeof by, "%s by", output);
    if (number) add_number(onnx, &made, layer, by, number);
    return end_part(onnx, &made, onnx_part(layer, output).text);
}

/* The last of them: x times what the one before gave. */
static int write_times(struct onnx *onnx, const struct layer_of *layer, const char *operation,
                       const char *before) {
    const enum turn turn = turn_of(onnx, layer);
    struct onnx_node made = begin_layer(onnx, layer, operation, turn);
    onnx_input(&made, onnx_part(layer, before).text);
    return end_layer(onnx, &made, layer, turn);
}

/* x sigmoid(x); and x (0.5 + 0.5 erf(x / sqrt 2)), as opset 13 has no Gelu. */
static int write_silu(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    RETURN_IF(write_part(onnx, layer, "Sigmoid", NULL, NULL, "sigmoid"));
    return write_times(onnx, layer, operation, "sigmoid");
}

static int write_gelu(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    static const float root = 0.70710678f, half = 0.5f;
    RETURN_IF(write_part(onnx, layer, "Mul", NULL, &root, "scaled"));
    RETURN_IF(write_part(onnx, layer, "Erf", "scaled", NULL, "erf"));
    RETURN_IF(write_part(onnx, layer, "Mul", "erf", &half, "halved"));
    RETURN_IF(write_part(onnx, layer, "Add", "halved", &half, "share"));
    return write_times(onnx, layer, operation, "share");
}

/* Opset 13 has no HardSwish. */
static int write_hard_swish(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    struct onnx_node made = begin_hard_sigmoid(onnx, layer);
    RETURN_IF(end_part(onnx, &made, onnx_part(layer, "sigmoid").text));
    return write_times(onnx, layer, operation, "sigmoid");
}

static int write_with_alpha(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const enum turn turn = turn_of(onnx, layer);
    if (layer->inputs != 1) return refuse(onnx, layer);
    struct onnx_node made = begin_layer(onnx, layer, operation, turn);
    onnx_float(&made, "alpha", layer->alpha);
    return end_layer(onnx, &made, layer, turn);
}

static int write_lrn(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct lrn *lrn = &attributes_of(onnx, layer)->lrn;
    const int size = 2 * lrn->radius + 1;
    if (shape_of_layer(onnx, layer->input[0])->rank != 4) return refuse(onnx, layer);
    struct onnx_node made = begin_layer(onnx, layer, operation, TURNED);
    onnx_int(&made, "size", size);
    onnx_float(&made, "alpha", lrn->alpha * (float)size);
    onnx_float(&made, "beta", lrn->beta);
    onnx_float(&made, "bias", lrn->bias);
    return end_layer(onnx, &made, layer, TURNED);
}

static int write_concat(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const enum turn turn = turn_of(onnx, layer);
    const int axis = attributes_of(onnx, layer)->axis;
    struct onnx_node made = begin_layer(onnx, layer, operation, turn);
    onnx_int(&made, "axis", turn == TURNED ? to_last[axis] : axis);
    return end_layer(onnx, &made, layer, turn);
}

static int write_reduce(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct attributes *attributes = attributes_of(onnx, layer);
    if (attributes->axis == ALL_AXES) return refuse(onnx, layer);
    struct onnx_node made = begin_layer(onnx, layer, operation, AS_IT_IS);
    onnx_ints(&made, "axes", &attributes->axis, 1);
    onnx_int(&made, "keepdims", attributes->keep);
    return end_layer(onnx, &made, layer, AS_IT_IS);
}

/* The same there, with the same operands and without attributes. On values that broadcast their places
 * matter, so they are turned only together. */
static int write_same(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct attributes *attributes = attributes_of(onnx, layer);
    const bool places = layer->op == OP_softmax || layer->op == OP_matmul;
    const enum turn turn = places ? AS_IT_IS : turn_of(onnx, layer);
    if (attributes->transpose_a || attributes->transpose_b) return refuse(onnx, layer);
    struct onnx_node made = begin_layer(onnx, layer, operation, turn);
    return end_layer(onnx, &made, layer, turn);
}

/* A value without operands, which is there as it is: the input; a weight or a constant. */
static int write_value(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct node_info *info = &onnx->of->graph->nodes[layer->at];
    (void)operation;
    onnx->has[layer - onnx->of->layers][AS_IT_IS] = true;
    if (layer->kind == FOUND_INPUT) return OK;
    if (layer->op == OP_variable) return write_weights(onnx, layer->weights[WEIGHT_KERNEL], NULL);
    if (info->type != TYPE_FLOAT) return refuse(onnx, layer);
    return onnx_floats(onnx->file, value_name(onnx, (int)(layer - onnx->of->layers), AS_IT_IS).text,
                       &info->shape, info->constant);
}

static const struct {
    enum found_kind kind;
    enum op op;
    const char *name; /* as ONNX has it; of several nodes the one that the others lead up to */
    int (*write)(struct onnx *onnx, const struct layer_of *layer, const char *operation);
} rows[] = {
    {FOUND_INPUT, OP_placeholder, "", write_value},
    {FOUND_CONV, OP_conv2d, "Conv", write_conv},
    {FOUND_DEPTHWISE, OP_conv2d, "Conv", write_conv},
    {FOUND_DENSE, OP_matmul, "Gemm", write_dense},
    {FOUND_EMBEDDING, OP_embedding, "Gather", write_embedding},
    {FOUND_BATCH_NORM, OP_batch_norm, "BatchNormalization", write_norm},
    {FOUND_LAYER_NORM, OP_add, "LayerNormalization", write_layer_norm},
    {FOUND_GLOBAL_AVERAGE, OP_reduce_mean, "GlobalAveragePool", write_global_pool},
    {FOUND_GLOBAL_MAX, OP_reduce_max, "GlobalMaxPool", write_global_pool},
    {FOUND_RESHAPE, OP_reshape, "Reshape", write_reshape},
    {FOUND_OPERATION, OP_variable, "", write_value},
    {FOUND_OPERATION, OP_constant, "", write_value},
    {FOUND_OPERATION, OP_relu, "Relu", write_same},
    {FOUND_OPERATION, OP_relu6, "Clip", write_relu6},
    {FOUND_OPERATION, OP_hard_sigmoid, "HardSigmoid", write_hard_sigmoid},
    {FOUND_OPERATION, OP_hard_swish, "Mul", write_hard_swish},
    {FOUND_OPERATION, OP_sigmoid, "Sigmoid", write_same},
    {FOUND_OPERATION, OP_tanh, "Tanh", write_same},
    {FOUND_OPERATION, OP_exp, "Exp", write_same},
    {FOUND_OPERATION, OP_log, "Log", write_same},
    {FOUND_OPERATION, OP_add, "Add", write_same},
    {FOUND_OPERATION, OP_sub, "Sub", write_same},
    {FOUND_OPERATION, OP_mul, "Mul", write_same},
    {FOUND_OPERATION, OP_div, "Div", write_same},
    {FOUND_OPERATION, OP_pow, "Pow", write_same},
    {FOUND_OPERATION, OP_matmul, "MatMul", write_same},
    {FOUND_OPERATION, OP_softmax, "Softmax", write_same},
    {FOUND_OPERATION, OP_leaky_relu, "LeakyRelu", write_with_alpha},
    {FOUND_OPERATION, OP_elu, "Elu", write_with_alpha},
    {FOUND_OPERATION, OP_gelu, "Mul", write_gelu},
    {FOUND_OPERATION, OP_silu, "Mul", write_silu},
    {FOUND_OPERATION, OP_maxpool, "MaxPool", write_pool},
    {FOUND_OPERATION, OP_avgpool, "AveragePool", write_pool},
    {FOUND_OPERATION, OP_lrn, "LRN", write_lrn},
    {FOUND_OPERATION, OP_pad, "Pad", write_pad},
    {FOUND_OPERATION, OP_slice, "Slice", write_slice},
    {FOUND_OPERATION, OP_concat, "Concat", write_concat},
    {FOUND_OPERATION, OP_reduce_mean, "ReduceMean", write_reduce},
    {FOUND_OPERATION, OP_reduce_max, "ReduceMax", write_reduce},
};

static int write_layer(struct onnx *onnx, const struct layer_of *layer) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == layer->kind && rows[i].op == layer->op)
            return rows[i].write(onnx, layer, rows[i].name);
    return refuse(onnx, layer);
}

/* "logits", and "probabilities" made from them; of values "outputs" alone. */
static int write_outputs(struct onnx *onnx) {
    const enum task task = onnx->of->task;
    struct onnx_node logits = onnx_begin(onnx->file, "Identity");
    add_value(onnx, &logits, onnx->of->count - 1, AS_IT_IS);
    RETURN_IF(end_part(onnx, &logits, task == TASK_VALUES ? "outputs" : "logits"));
    if (task == TASK_VALUES) return OK;
    struct onnx_node said = onnx_begin(onnx->file, task == TASK_LABELS ? "Sigmoid" : "Softmax");
    onnx_input(&said, "logits");
    return end_part(onnx, &said, "probabilities");
}

/* With what the training knew of its examples, as the checkpoint has it. */
static int write_model(struct onnx *onnx, FILE *stream) {
    struct onnx_note notes[] = {{"model", NULL},         {"dataset", NULL}, {"class_names", NULL},
                                {"feature_names", NULL}, {"scale", NULL},   {"mean", NULL},
                                {"deviation", NULL},     {"image", NULL}};
    enum { NOTES = sizeof notes / sizeof *notes };
    const struct shape *logits = shape_of_layer(onnx, onnx->of->count - 1);
    for (int i = 0; i < NOTES; i++)
        notes[i].text = safetensors_text(&onnx->exported->restored->content, notes[i].name);
    struct onnx_ends ends = {.input = {"x", shape_of_layer(onnx, 0)},
                             .outputs = {{"probabilities", logits}, {"logits", logits}}};
    if (onnx->of->task == TASK_VALUES)
        ends = (struct onnx_ends){.input = ends.input, .outputs = {{"outputs", logits}}};
    return onnx_write(onnx->file, &ends, notes, NOTES, stream);
}

static int write_onnx(FILE *stream, const struct exported *exported, struct error *error) {
    struct onnx onnx = {.exported = exported, .of = exported->layers, .error = error};
    int code = onnx_open(&onnx.file, error);
    if (code == OK) code = onnx_names_open(&onnx.names, onnx.of, error);
    if (code == OK) code = memory_array(&onnx.has, onnx.of->count, "an ONNX model", error);
    for (int i = 0; code == OK && i < onnx.of->count; i++) code = write_layer(&onnx, &onnx.of->layers[i]);
    if (code == OK) code = write_outputs(&onnx);
    if (code == OK) code = write_model(&onnx, stream);
    memory_free(onnx.has);
    onnx_names_close(&onnx.names);
    onnx_close(onnx.file);
    return code;
}

const struct format format_onnx = {.plugin = {.name = "onnx", .help = HELP}, .write = write_onnx};

#else

const struct format format_onnx = {
    .plugin = {.name = "onnx", .help = HELP},
    .needs = "protobuf-c (apt-get install libprotobuf-c-dev protobuf-c-compiler, then make)",
};

#endif
