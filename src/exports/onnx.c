/* onnx: the network for onnxruntime and others, opset 13. Its input "x" is what the network takes: rows,
 * columns, channels of each example, pixels as the training scaled them; its outputs are "probabilities" and
 * "logits". ONNX has channels before rows and columns: values are turned where the first convolution needs
 * it, and back where their places matter again. */
#include <stdint.h>
#include <string.h>

#include "../base/memory.h"
#include "../graph/window.h"
#include "../infer/export.h"

#define HELP "a graph for onnxruntime and others, with the weights"

#if TRAINER_PROTOBUF

#    include "onnx.pb-c.h"

enum { OPSET = 13, IR_VERSION = 7, FLOATS = 1, INTEGERS = 7, NAME_BYTES = 96, WIDEST = 2 * MAX_RANK };
enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_INTS = 7 };
enum turn { AS_IT_IS, TURNED }; /* channels last, as everywhere here; channels first */
static const int to_first[4] = {0, 3, 1, 2}, to_last[4] = {0, 2, 3, 1};

struct onnx {
    const struct exported *exported;
    const struct layers_of *of;
    Onnx__NodeProto **nodes;
    Onnx__TensorProto **tensors;
    int node_count, tensor_count;
    bool (*has)[2]; /* [layers] which turns of its value there are */
    void **blocks;  /* [block_count] all that was taken */
    int block_count;
    struct error *error;
};

/* --- memory --- */

static int take_of(struct onnx *onnx, void *out, size_t count, size_t bytes) {
    RETURN_IF(
        memory_grow(&onnx->blocks, onnx->block_count, onnx->block_count + 1, "an ONNX model", onnx->error));
    RETURN_IF(memory_zeroed(&onnx->blocks[onnx->block_count], count, bytes, "an ONNX model", onnx->error));
    memcpy(out, &onnx->blocks[onnx->block_count++], sizeof(void *));
    return OK;
}
#    define take(onnx, out, count) take_of((onnx), (out), (size_t)(count), sizeof **(out))

static int take_text(struct onnx *onnx, char **out, const char *text) {
    RETURN_IF(take(onnx, out, strlen(text) + 1));
    memcpy(*out, text, strlen(text));
    return OK;
}

/* --- pieces --- */

/* A node under way; its mistakes are kept until `end_node`. */
struct making {
    struct onnx *onnx;
    Onnx__NodeProto *made;
    int code;
};

static struct making begin_node(struct onnx *onnx, const char *operation) {
    struct making making = {.onnx = onnx};
    Onnx__NodeProto *made = NULL;
    making.code = take(onnx, &made, 1);
    if (making.code != OK) return making;
    onnx__node_proto__init(made);
    making.made = made;
    making.code = take(onnx, &made->input, MAX_INPUTS);
    if (making.code == OK) making.code = take(onnx, &made->output, 1);
    if (making.code == OK) making.code = take(onnx, &made->attribute, MAX_INPUTS);
    if (making.code == OK) making.code = take_text(onnx, &made->op_type, operation);
    return making;
}

static void add_input(struct making *making, const char *name) {
    if (making->code == OK)
        making->code = take_text(making->onnx, &making->made->input[making->made->n_input], name);
    if (making->code == OK) making->made->n_input++;
}

static Onnx__AttributeProto *add_attribute(struct making *making, const char *name, int type) {
    Onnx__AttributeProto *attribute = NULL;
    if (making->code == OK) making->code = take(making->onnx, &attribute, 1);
    if (making->code != OK) return NULL;
    onnx__attribute_proto__init(attribute);
    attribute->has_type = 1;
    attribute->type = type;
    making->made->attribute[making->made->n_attribute++] = attribute;
    making->code = take_text(making->onnx, &attribute->name, name);
    return attribute;
}

static void add_int(struct making *making, const char *name, int value) {
    Onnx__AttributeProto *attribute = add_attribute(making, name, ATTRIBUTE_INT);
    if (!attribute) return;
    attribute->has_i = 1;
    attribute->i = value;
}

static void add_float(struct making *making, const char *name, float value) {
    Onnx__AttributeProto *attribute = add_attribute(making, name, ATTRIBUTE_FLOAT);
    if (!attribute) return;
    attribute->has_f = 1;
    attribute->f = value;
}

static void add_ints(struct making *making, const char *name, const int *values, int count) {
    Onnx__AttributeProto *attribute = add_attribute(making, name, ATTRIBUTE_INTS);
    if (!attribute) return;
    making->code = take(making->onnx, &attribute->ints, count);
    for (int i = 0; making->code == OK && i < count; i++) attribute->ints[attribute->n_ints++] = values[i];
}

static int end_node(struct making *making, const char *output) {
    struct onnx *onnx = making->onnx;
    RETURN_IF(making->code);
    RETURN_IF(take_text(onnx, &making->made->name, output));
    RETURN_IF(take_text(onnx, &making->made->output[0], output));
    making->made->n_output = 1;
    RETURN_IF(
        memory_grow(&onnx->nodes, onnx->node_count, onnx->node_count + 1, "an ONNX model", onnx->error));
    onnx->nodes[onnx->node_count++] = making->made;
    return OK;
}

static int add_tensor(struct onnx *onnx, const char *name, int type, const struct shape *shape, void *values,
                      size_t bytes) {
    Onnx__TensorProto *tensor = NULL;
    RETURN_IF(take(onnx, &tensor, 1));
    onnx__tensor_proto__init(tensor);
    RETURN_IF(take_text(onnx, &tensor->name, name));
    RETURN_IF(take(onnx, &tensor->dims, MAX_RANK));
    tensor->has_data_type = tensor->has_raw_data = 1;
    tensor->data_type = type;
    tensor->raw_data = (ProtobufCBinaryData){.len = bytes, .data = values};
    for (int i = 0; i < shape->rank; i++) tensor->dims[tensor->n_dims++] = shape->dims[i];
    RETURN_IF(memory_grow(&onnx->tensors, onnx->tensor_count, onnx->tensor_count + 1, "an ONNX model",
                          onnx->error));
    onnx->tensors[onnx->tensor_count++] = tensor;
    return OK;
}

static int add_integers(struct onnx *onnx, const char *name, const int *values, int count) {
    int64_t *wide = NULL;
    RETURN_IF(take(onnx, &wide, count));
    for (int i = 0; i < count; i++) wide[i] = values[i] == INT32_MAX ? INT64_MAX : values[i];
    return add_tensor(onnx, name, INTEGERS, &SHAPE(count), wide, (size_t)count * sizeof *wide);
}

/* Its weights under its own name; of a convolution as OIHW. */
static int add_weights(struct onnx *onnx, const struct range *range, bool turn) {
    const float *weights = onnx->exported->restored->weights + range->begin;
    struct shape shape = range->shape;
    float *values = NULL;
    RETURN_IF(take(onnx, &values, range->floats));
    memcpy(values, weights, range->floats * sizeof *values);
    if (turn) {
        const int *dims = range->shape.dims, area = dims[0] * dims[1];
        shape = SHAPE(dims[3], dims[2], dims[0], dims[1]);
        for (int at = 0; at < area; at++)
            for (int i = 0; i < dims[2]; i++)
                for (int o = 0; o < dims[3]; o++)
                    values[((size_t)o * (size_t)dims[2] + (size_t)i) * (size_t)area + (size_t)at] =
                        weights[((size_t)at * (size_t)dims[2] + (size_t)i) * (size_t)dims[3] + (size_t)o];
    }
    return add_tensor(onnx, range->name, FLOATS, &shape, values, range->floats * sizeof *values);
}

/* --- values --- */

static const struct shape *shape_of_layer(const struct onnx *onnx, int place) {
    return &onnx->of->graph->nodes[onnx->of->layers[place].at].shape;
}

static void value_name(const struct onnx *onnx, int place, enum turn turn, char name[NAME_BYTES]) {
    snprintf(name, NAME_BYTES, "%s%s", place == 0 ? "x" : onnx->of->layers[place].name,
             turn == TURNED ? ":turned" : "");
}

/* Adds the value of a layer as an input, turned first if it is not there that way yet. */
static void add_value(struct making *making, int place, enum turn turn) {
    struct onnx *onnx = making->onnx;
    char name[NAME_BYTES], from[NAME_BYTES];
    value_name(onnx, place, turn, name);
    if (making->code == OK && !onnx->has[place][turn]) {
        value_name(onnx, place, !turn, from);
        struct making transpose = begin_node(onnx, "Transpose");
        add_input(&transpose, from);
        add_ints(&transpose, "perm", turn == TURNED ? to_first : to_last, 4);
        making->code = end_node(&transpose, name);
        onnx->has[place][turn] = true;
    }
    add_input(making, name);
}

/* Whether all operands of a layer are there turned: then it need not turn them back. */
static enum turn turn_of(const struct onnx *onnx, const struct layer_of *layer) {
    for (int i = 0; i < layer->inputs; i++)
        if (!onnx->has[layer->input[i]][TURNED] || shape_of_layer(onnx, layer->input[i])->rank != 4)
            return AS_IT_IS;
    return layer->inputs > 0 ? TURNED : AS_IT_IS;
}

static struct making begin_layer(struct onnx *onnx, const struct layer_of *layer, const char *operation,
                                 enum turn turn) {
    struct making making = begin_node(onnx, operation);
    for (int i = 0; i < layer->inputs; i++) add_value(&making, layer->input[i], turn);
    return making;
}

static int end_layer(struct making *making, const struct layer_of *layer, enum turn turn) {
    struct onnx *onnx = making->onnx;
    const int place = (int)(layer - onnx->of->layers);
    char name[NAME_BYTES];
    value_name(onnx, place, turn, name);
    onnx->has[place][turn] = true;
    return end_node(making, name);
}

/* --- layers --- */

static int refuse(const struct onnx *onnx, const struct layer_of *layer) {
    return error_set(onnx->error, ERROR_FILE,
                     "onnx: %s: found %s, which ONNX files of this program cannot say", layer->name,
                     op_name(layer->op));
}

static void add_weight(struct making *making, const struct range *range, bool turn) {
    if (making->code == OK) making->code = add_weights(making->onnx, range, turn);
    add_input(making, range->name);
}

/* Rows and columns before, rows and columns behind. */
static void add_windows(struct making *making, const struct layer_of *layer, const int window[2]) {
    const struct node_info *info = &making->onnx->of->graph->nodes[layer->computes];
    const struct attributes *attributes = &info->attributes;
    const struct shape *x = shape_of_layer(making->onnx, layer->input[0]);
    int pads[4];
    for (int axis = 0; axis < 2; axis++) {
        const struct window along =
            window_along(x->dims[axis + 1], window[axis], attributes->stride[axis], attributes->padding);
        pads[axis] = along.before;
        pads[axis + 2] = along.after;
    }
    add_ints(making, "kernel_shape", window, 2);
    add_ints(making, "strides", attributes->stride, 2);
    add_ints(making, "pads", pads, 4);
}

static int write_conv(struct onnx *onnx, const struct layer_of *layer) {
    struct making making = begin_layer(onnx, layer, "Conv", TURNED);
    add_weight(&making, layer->weights[WEIGHT_KERNEL], true);
    if (layer->weights[WEIGHT_BIAS]) add_weight(&making, layer->weights[WEIGHT_BIAS], false);
    add_windows(&making, layer, layer->weights[WEIGHT_KERNEL]->shape.dims);
    return end_layer(&making, layer, TURNED);
}

static int write_dense(struct onnx *onnx, const struct layer_of *layer) {
    const bool has_bias = layer->weights[WEIGHT_BIAS] != NULL;
    struct making making = begin_layer(onnx, layer, has_bias ? "Gemm" : "MatMul", AS_IT_IS);
    add_weight(&making, layer->weights[WEIGHT_KERNEL], false);
    if (has_bias) add_weight(&making, layer->weights[WEIGHT_BIAS], false);
    return end_layer(&making, layer, AS_IT_IS);
}

static int write_norm(struct onnx *onnx, const struct layer_of *layer) {
    const int rank = shape_of_layer(onnx, layer->input[0])->rank;
    if (rank != 2 && rank != 4) return refuse(onnx, layer);
    const enum turn turn = rank == 4 ? TURNED : AS_IT_IS;
    struct making making = begin_layer(onnx, layer, "BatchNormalization", turn);
    for (int w = WEIGHT_SCALE; w <= WEIGHT_VARIANCE; w++) add_weight(&making, layer->weights[w], false);
    add_float(&making, "epsilon", onnx->of->graph->nodes[layer->computes].attributes.epsilon);
    return end_layer(&making, layer, turn);
}

static int write_global_average(struct onnx *onnx, const struct layer_of *layer) {
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s:pixel", layer->name);
    struct making average = begin_layer(onnx, layer, "GlobalAveragePool", TURNED);
    RETURN_IF(end_node(&average, name));
    struct making flatten = begin_node(onnx, "Flatten");
    add_input(&flatten, name);
    return end_layer(&flatten, layer, AS_IT_IS);
}

/* A shape of our graph has its batch in it, which is any number there. */
static int add_shape(struct making *making, const struct layer_of *layer, const struct shape *shape,
                     int batch) {
    char name[NAME_BYTES];
    int dims[MAX_RANK];
    for (int i = 0; i < shape->rank; i++)
        dims[i] = i == 0 && shape->dims[0] == making->onnx->of->batch ? batch : shape->dims[i];
    snprintf(name, sizeof name, "%s:shape", layer->name);
    if (making->code == OK) making->code = add_integers(making->onnx, name, dims, shape->rank);
    add_input(making, name);
    return making->code;
}

static int write_reshape(struct onnx *onnx, const struct layer_of *layer) {
    struct making making = begin_layer(onnx, layer, "Reshape", AS_IT_IS);
    const bool keeps = shape_of_layer(onnx, layer->input[0])->dims[0] == onnx->of->batch;
    RETURN_IF(add_shape(&making, layer, &onnx->of->graph->nodes[layer->at].shape, keeps ? 0 : -1));
    return end_layer(&making, layer, AS_IT_IS);
}

static int write_maxpool(struct onnx *onnx, const struct layer_of *layer) {
    struct making making = begin_layer(onnx, layer, "MaxPool", TURNED);
    add_windows(&making, layer, onnx->of->graph->nodes[layer->computes].attributes.window);
    return end_layer(&making, layer, TURNED);
}

static int write_avgpool(struct onnx *onnx, const struct layer_of *layer) {
    struct making making = begin_layer(onnx, layer, "AveragePool", TURNED);
    add_windows(&making, layer, onnx->of->graph->nodes[layer->computes].attributes.window);
    add_int(&making, "count_include_pad", 0);
    return end_layer(&making, layer, TURNED);
}

static int write_pad(struct onnx *onnx, const struct layer_of *layer) {
    const struct node_info *info = &onnx->of->graph->nodes[layer->computes];
    const struct shape *x = shape_of_layer(onnx, layer->input[0]);
    int pads[2 * MAX_RANK];
    char name[NAME_BYTES];
    struct making making = begin_layer(onnx, layer, "Pad", AS_IT_IS);
    for (int i = 0; i < x->rank; i++) {
        pads[i] = info->attributes.begin[i];
        pads[x->rank + i] = info->shape.dims[i] - x->dims[i] - pads[i];
    }
    snprintf(name, sizeof name, "%s:pads", layer->name);
    if (making.code == OK) making.code = add_integers(onnx, name, pads, 2 * x->rank);
    add_input(&making, name);
    return end_layer(&making, layer, AS_IT_IS);
}

/* A number that a layer needs there; its name. */
static void add_number(struct making *making, const struct layer_of *layer, const char *what, float number) {
    float *value = NULL;
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%s:%s by", layer->name, what);
    if (making->code == OK) making->code = take(making->onnx, &value, 1);
    if (making->code != OK) return;
    *value = number;
    making->code = add_tensor(making->onnx, name, FLOATS, &SCALAR, value, sizeof *value);
    add_input(making, name);
}

/* One node of several that make a layer: of the layer's operand, and of what the one before gave. */
static int write_part(struct onnx *onnx, const struct layer_of *layer, const char *operation,
                      const char *before, const float *number, const char *output) {
    char name[NAME_BYTES], from[NAME_BYTES];
    struct making making = begin_node(onnx, operation);
    if (before) {
        snprintf(from, sizeof from, "%s:%s", layer->name, before);
        add_input(&making, from);
    } else {
        add_value(&making, layer->input[0], turn_of(onnx, layer));
    }
    if (number) add_number(&making, layer, output, *number);
    snprintf(name, sizeof name, "%s:%s", layer->name, output);
    return end_node(&making, name);
}

/* The last of them: x times what the one before gave. */
static int write_times(struct onnx *onnx, const struct layer_of *layer, const char *before) {
    const enum turn turn = turn_of(onnx, layer);
    char name[NAME_BYTES];
    struct making making = begin_layer(onnx, layer, "Mul", turn);
    snprintf(name, sizeof name, "%s:%s", layer->name, before);
    add_input(&making, name);
    return end_layer(&making, layer, turn);
}

/* x sigmoid(x); and x (0.5 + 0.5 erf(x / sqrt 2)), as opset 13 has no Gelu. */
static int write_silu(struct onnx *onnx, const struct layer_of *layer) {
    RETURN_IF(write_part(onnx, layer, "Sigmoid", NULL, NULL, "sigmoid"));
    return write_times(onnx, layer, "sigmoid");
}

static int write_gelu(struct onnx *onnx, const struct layer_of *layer) {
    const float root = 0.70710678f, half = 0.5f;
    RETURN_IF(write_part(onnx, layer, "Mul", NULL, &root, "scaled"));
    RETURN_IF(write_part(onnx, layer, "Erf", "scaled", NULL, "erf"));
    RETURN_IF(write_part(onnx, layer, "Mul", "erf", &half, "halved"));
    RETURN_IF(write_part(onnx, layer, "Add", "halved", &half, "share"));
    return write_times(onnx, layer, "share");
}

static int write_with_alpha(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const enum turn turn = turn_of(onnx, layer);
    if (layer->inputs != 1) return refuse(onnx, layer);
    struct making making = begin_layer(onnx, layer, operation, turn);
    add_float(&making, "alpha", layer->alpha);
    return end_layer(&making, layer, turn);
}

static int write_lrn(struct onnx *onnx, const struct layer_of *layer) {
    const struct lrn *lrn = &onnx->of->graph->nodes[layer->computes].attributes.lrn;
    const int size = 2 * lrn->radius + 1;
    if (shape_of_layer(onnx, layer->input[0])->rank != 4) return refuse(onnx, layer);
    struct making making = begin_layer(onnx, layer, "LRN", TURNED);
    add_int(&making, "size", size);
    add_float(&making, "alpha", lrn->alpha * (float)size);
    add_float(&making, "beta", lrn->beta);
    add_float(&making, "bias", lrn->bias);
    return end_layer(&making, layer, TURNED);
}

static int write_concat(struct onnx *onnx, const struct layer_of *layer) {
    static const int turned[4] = {0, 2, 3, 1};
    const enum turn turn = turn_of(onnx, layer);
    const int axis = onnx->of->graph->nodes[layer->computes].attributes.axis;
    struct making making = begin_layer(onnx, layer, "Concat", turn);
    add_int(&making, "axis", turn == TURNED ? turned[axis] : axis);
    return end_layer(&making, layer, turn);
}

static int write_reduce(struct onnx *onnx, const struct layer_of *layer, const char *operation) {
    const struct attributes *attributes = &onnx->of->graph->nodes[layer->computes].attributes;
    if (attributes->axis == ALL_AXES) return refuse(onnx, layer);
    struct making making = begin_layer(onnx, layer, operation, AS_IT_IS);
    add_ints(&making, "axes", &attributes->axis, 1);
    add_int(&making, "keepdims", attributes->keep);
    return end_layer(&making, layer, AS_IT_IS);
}

static int write_constant(struct onnx *onnx, const struct layer_of *layer) {
    const struct node_info *info = &onnx->of->graph->nodes[layer->at];
    const size_t bytes = shape_count(&info->shape) * sizeof(float);
    char *values = NULL;
    if (info->type != TYPE_FLOAT) return refuse(onnx, layer);
    RETURN_IF(take(onnx, &values, bytes));
    memcpy(values, info->constant, bytes);
    onnx->has[layer - onnx->of->layers][AS_IT_IS] = true;
    return add_tensor(onnx, layer->name, FLOATS, &info->shape, values, bytes);
}

/* Operations that are the same there, with the same operands and without attributes; on values that broadcast
 * their places matter, so they are turned only together. */
static const struct {
    enum op op;
    const char *name;
} same[] = {{OP_relu, "Relu"}, {OP_sigmoid, "Sigmoid"}, {OP_tanh, "Tanh"},     {OP_exp, "Exp"},
            {OP_log, "Log"},   {OP_add, "Add"},         {OP_sub, "Sub"},       {OP_mul, "Mul"},
            {OP_div, "Div"},   {OP_pow, "Pow"},         {OP_matmul, "MatMul"}, {OP_softmax, "Softmax"}};

static int write_same(struct onnx *onnx, const struct layer_of *layer) {
    const struct attributes *attributes = &onnx->of->graph->nodes[layer->computes].attributes;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (same[i].op != layer->op || attributes->transpose_a || attributes->transpose_b) continue;
        const bool places = layer->op == OP_softmax || layer->op == OP_matmul;
        const enum turn turn = places ? AS_IT_IS : turn_of(onnx, layer);
        struct making making = begin_layer(onnx, layer, same[i].name, turn);
        return end_layer(&making, layer, turn);
    }
    return refuse(onnx, layer);
}

static int write_operation(struct onnx *onnx, const struct layer_of *layer) {
    switch (layer->op) {
    case OP_maxpool:
        return write_maxpool(onnx, layer);
    case OP_lrn:
        return write_lrn(onnx, layer);
    case OP_avgpool:
        return write_avgpool(onnx, layer);
    case OP_pad:
        return write_pad(onnx, layer);
    case OP_gelu:
        return write_gelu(onnx, layer);
    case OP_silu:
        return write_silu(onnx, layer);
    case OP_leaky_relu:
        return write_with_alpha(onnx, layer, "LeakyRelu");
    case OP_elu:
        return write_with_alpha(onnx, layer, "Elu");
    case OP_concat:
        return write_concat(onnx, layer);
    case OP_constant:
        return write_constant(onnx, layer);
    case OP_variable:
        onnx->has[layer - onnx->of->layers][AS_IT_IS] = true;
        return add_weights(onnx, layer->weights[WEIGHT_KERNEL], false);
    case OP_reduce_mean:
        return write_reduce(onnx, layer, "ReduceMean");
    case OP_reduce_max:
        return write_reduce(onnx, layer, "ReduceMax");
    default:
        return write_same(onnx, layer);
    }
}

static int write_layer(struct onnx *onnx, const struct layer_of *layer) {
    switch (layer->kind) {
    case FOUND_INPUT:
        onnx->has[layer - onnx->of->layers][AS_IT_IS] = true;
        return OK;
    case FOUND_CONV:
        return write_conv(onnx, layer);
    case FOUND_DENSE:
        return write_dense(onnx, layer);
    case FOUND_BATCH_NORM:
        return write_norm(onnx, layer);
    case FOUND_GLOBAL_AVERAGE:
        return write_global_average(onnx, layer);
    case FOUND_RESHAPE:
        return write_reshape(onnx, layer);
    case FOUND_OPERATION:
        break;
    }
    return write_operation(onnx, layer);
}

/* "logits", and "probabilities" made from them. */
static int write_outputs(struct onnx *onnx) {
    struct making logits = begin_node(onnx, "Identity");
    add_value(&logits, onnx->of->count - 1, AS_IT_IS);
    RETURN_IF(end_node(&logits, "logits"));
    struct making softmax = begin_node(onnx, "Softmax");
    add_input(&softmax, "logits");
    return end_node(&softmax, "probabilities");
}

/* --- the model --- */

static int make_value(struct onnx *onnx, Onnx__ValueInfoProto **out, const char *name,
                      const struct shape *shape) {
    Onnx__ValueInfoProto *value = NULL;
    Onnx__TypeProto__Tensor *tensor = NULL;
    Onnx__TensorShapeProto__Dimension *dimensions = NULL;
    RETURN_IF(take(onnx, &value, 1));
    onnx__value_info_proto__init(value);
    RETURN_IF(take_text(onnx, &value->name, name));
    RETURN_IF(take(onnx, &value->type, 1));
    onnx__type_proto__init(value->type);
    RETURN_IF(take(onnx, &tensor, 1));
    onnx__type_proto__tensor__init(tensor);
    value->type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = FLOATS;
    RETURN_IF(take(onnx, &tensor->shape, 1));
    onnx__tensor_shape_proto__init(tensor->shape);
    RETURN_IF(take(onnx, &tensor->shape->dim, shape->rank));
    RETURN_IF(take(onnx, &dimensions, shape->rank));
    for (int i = 0; i < shape->rank; i++) {
        onnx__tensor_shape_proto__dimension__init(&dimensions[i]);
        if (i == 0) RETURN_IF(take_text(onnx, &dimensions[i].dim_param, "N"));
        dimensions[i].has_dim_value = i > 0;
        dimensions[i].dim_value = shape->dims[i];
        tensor->shape->dim[tensor->shape->n_dim++] = &dimensions[i];
    }
    *out = value;
    return OK;
}

/* What the training knew of its examples, as the checkpoint has it. */
static int add_notes(struct onnx *onnx, Onnx__ModelProto *model) {
    static const char *const names[] = {"model", "dataset", "class_names", "feature_names",
                                        "scale", "mean",    "deviation",   "image"};
    enum { NAMES = sizeof names / sizeof *names };
    RETURN_IF(take(onnx, &model->metadata_props, NAMES));
    for (int i = 0; i < NAMES; i++) {
        const char *text = safetensors_text(&onnx->exported->restored->content, names[i]);
        Onnx__StringStringEntryProto *entry = NULL;
        if (!text) continue;
        RETURN_IF(take(onnx, &entry, 1));
        onnx__string_string_entry_proto__init(entry);
        RETURN_IF(take_text(onnx, &entry->key, names[i]));
        RETURN_IF(take_text(onnx, &entry->value, text));
        model->metadata_props[model->n_metadata_props++] = entry;
    }
    return OK;
}

static int write_model(struct onnx *onnx, FILE *file) {
    static char producer[] = "trainer", version[] = TRAINER_VERSION, graph_name[] = "network", domain[] = "";
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    Onnx__ValueInfoProto *inputs[1], *outputs[2];
    const struct shape *logits = shape_of_layer(onnx, onnx->of->count - 1);
    uint8_t *bytes = NULL;
    RETURN_IF(make_value(onnx, &inputs[0], "x", shape_of_layer(onnx, 0)));
    RETURN_IF(make_value(onnx, &outputs[0], "probabilities", logits));
    RETURN_IF(make_value(onnx, &outputs[1], "logits", logits));
    RETURN_IF(add_notes(onnx, &model));
    graph = (Onnx__GraphProto){.base = graph.base,
                               .n_node = (size_t)onnx->node_count,
                               .node = onnx->nodes,
                               .name = graph_name,
                               .n_initializer = (size_t)onnx->tensor_count,
                               .initializer = onnx->tensors,
                               .n_input = 1,
                               .input = inputs,
                               .n_output = 2,
                               .output = outputs};
    opset.domain = domain;
    opset.has_version = 1;
    opset.version = OPSET;
    model.has_ir_version = 1;
    model.ir_version = IR_VERSION;
    model.producer_name = producer;
    model.producer_version = version;
    model.graph = &graph;
    model.n_opset_import = 1;
    model.opset_import = opsets;
    const size_t size = onnx__model_proto__get_packed_size(&model);
    if (size > INT32_MAX)
        return error_set(onnx->error, ERROR_FILE, "onnx: found %zu bytes, expected at most 2 GiB", size);
    RETURN_IF(take(onnx, &bytes, size));
    onnx__model_proto__pack(&model, bytes);
    if (fwrite(bytes, 1, size, file) == size) return OK;
    return error_set(onnx->error, ERROR_FILE, "onnx: cannot be written");
}

static int write_onnx(FILE *file, const struct exported *exported, struct error *error) {
    struct onnx onnx = {.exported = exported, .of = exported->layers, .error = error};
    int code = memory_array(&onnx.has, exported->layers->count, "an ONNX model", error);
    for (int i = 0; code == OK && i < exported->layers->count; i++)
        code = write_layer(&onnx, &exported->layers->layers[i]);
    if (code == OK) code = write_outputs(&onnx);
    if (code == OK) code = write_model(&onnx, file);
    for (int i = 0; i < onnx.block_count; i++) memory_free(onnx.blocks[i]);
    memory_free(onnx.blocks);
    memory_free(onnx.nodes);
    memory_free(onnx.tensors);
    memory_free(onnx.has);
    return code;
}

const struct format format_onnx = {.plugin = {.name = "onnx", .help = HELP}, .write = write_onnx};

#else

const struct format format_onnx = {
    .plugin = {.name = "onnx", .help = HELP},
    .needs = "protobuf-c (apt-get install libprotobuf-c-dev protobuf-c-compiler, then make)",
};

#endif
