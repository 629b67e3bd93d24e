/* See keras.h. What Keras wants is described in its documentation of `get_config` and of whole-model saving.
 */
#include "keras.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/json.h"
#include "../base/memory.h"
#include "../base/names.h"

/* The layer that makes of the last values what the network says. */
static const struct {
    const char *name, *activation;
} ends[TASKS] = {[TASK_CLASSES] = {"probabilities", "softmax"},
                 [TASK_LABELS] = {"probabilities", "sigmoid"},
                 [TASK_VALUES] = {"outputs", "linear"}};

/* Operations that are a layer there: a class of their own, or an activation by name. */
static const struct {
    enum op op;
    const char *class_name, *activation;
} classes[] = {{OP_relu, "Activation", "relu"},
               {OP_sigmoid, "Activation", "sigmoid"},
               {OP_tanh, "Activation", "tanh"},
               {OP_softmax, "Activation", "softmax"},
               {OP_exp, "Activation", "exponential"},
               {OP_maxpool, "MaxPooling2D", NULL},
               {OP_add, "Add", NULL},
               {OP_mul, "Multiply", NULL},
               {OP_avgpool, "AveragePooling2D", NULL},
               {OP_gelu, "Activation", "gelu"},
               {OP_silu, "Activation", "silu"},
               {OP_relu6, "ReLU", NULL},
               {OP_hard_sigmoid, "Activation", "hard_sigmoid"},
               {OP_hard_swish, "Activation", "hard_silu"},
               {OP_leaky_relu, "LeakyReLU", NULL},
               {OP_elu, "ELU", NULL},
               {OP_pad, "ZeroPadding2D", NULL},
               {OP_slice, "Cropping1D", NULL},
               {OP_concat, "Concatenate", NULL}};

static int place_of_operation(enum op op) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i].op == op) return (int)i;
    return -1;
}

static const struct shape *value_shape(const struct layers_of *of, int place) {
    return &of->graph->nodes[of->layers[place].at].shape;
}

static bool is_flatten(const struct layers_of *of, const struct layer_of *layer) {
    return of->graph->nodes[layer->at].shape.rank == 2;
}

/* Its rows and columns only. */
static bool pads_an_image(const struct layers_of *of, const struct layer_of *layer) {
    const struct shape *x = value_shape(of, layer->input[0]), *y = &of->graph->nodes[layer->at].shape;
    return x->rank == 4 && x->dims[0] == y->dims[0] && x->dims[3] == y->dims[3];
}

/* Its rows only, which have channels. */
static bool crops_rows(const struct layers_of *of, const struct layer_of *layer) {
    const struct shape *x = value_shape(of, layer->input[0]), *y = &of->graph->nodes[layer->at].shape;
    return x->rank == 3 && x->dims[0] == y->dims[0] && x->dims[2] == y->dims[2];
}

/* Operands have one shape; those of a product may have sizes of 1 instead, but as many of them. */
static bool fit_together(const struct layers_of *of, const struct layer_of *layer, int i) {
    const struct shape *a = value_shape(of, layer->input[0]), *b = value_shape(of, layer->input[i]);
    if (layer->op == OP_mul) return a->rank == b->rank && a->dims[0] == b->dims[0] && a->rank > 0;
    return layer->op == OP_concat || shape_equal(a, b);
}

/* Its batch stays, and activations are of whole values. */
static const char *class_of(const struct layers_of *of, const struct layer_of *layer) {
    const int row = layer->kind == FOUND_OPERATION ? place_of_operation(layer->op) : -1;
    switch (layer->kind) {
    case FOUND_INPUT:
        return "InputLayer";
    case FOUND_CONV:
        return "Conv2D";
    case FOUND_DEPTHWISE:
        return "DepthwiseConv2D";
    case FOUND_DENSE:
        return "Dense";
    case FOUND_EMBEDDING:
        return "Embedding";
    case FOUND_BATCH_NORM:
        return "BatchNormalization";
    case FOUND_LAYER_NORM:
        return "LayerNormalization";
    case FOUND_GLOBAL_AVERAGE:
        return "GlobalAveragePooling2D";
    case FOUND_GLOBAL_MAX:
        return "GlobalMaxPooling2D";
    case FOUND_RESHAPE:
        if (value_shape(of, layer->input[0])->dims[0] != of->batch ||
            of->graph->nodes[layer->at].shape.dims[0] != of->batch)
            return NULL;
        return is_flatten(of, layer) ? "Flatten" : "Reshape";
    case FOUND_OPERATION:
        break;
    }
    if (layer->op == OP_pad && !pads_an_image(of, layer)) return NULL;
    if (layer->op == OP_slice && !crops_rows(of, layer)) return NULL;
    if ((layer->op == OP_leaky_relu || layer->op == OP_elu) && layer->inputs != 1) return NULL;
    for (int i = 1; i < layer->inputs; i++)
        if (!fit_together(of, layer, i)) return NULL;
    return row < 0 ? NULL : classes[row].class_name;
}

static void add_weight(struct keras_layer *layer, const char *name, const struct range *range) {
    if (!range) return;
    layer->weight_name[layer->weights] = name;
    layer->weight[layer->weights++] = range;
}

int keras_layer(struct keras_layer *layer, const struct layers_of *of, int place, struct error *error) {
    if (place == of->count) {
        *layer = (struct keras_layer){.class_name = "Activation", .name = of->layers[place].name};
        return OK;
    }
    const struct layer_of *from = &of->layers[place];
    *layer = (struct keras_layer){.class_name = class_of(of, from), .name = from->name};
    if (!layer->class_name)
        return error_set(error, ERROR_FILE, "%s: found %s, which Keras has no layer for", from->name,
                         op_name(from->op));
    add_weight(layer, "kernel", from->weights[WEIGHT_KERNEL]);
    add_weight(layer, "bias", from->weights[WEIGHT_BIAS]);
    add_weight(layer, "gamma", from->weights[WEIGHT_SCALE]);
    add_weight(layer, "beta", from->weights[WEIGHT_SHIFT]);
    layer->trained = layer->weights;
    add_weight(layer, "moving_mean", from->weights[WEIGHT_MEAN]);
    add_weight(layer, "moving_variance", from->weights[WEIGHT_VARIANCE]);
    return OK;
}

bool keras_is_third(const struct layers_of *of) {
    for (int i = 0; i < of->count; i++)
        if (of->layers[i].op == OP_hard_sigmoid || of->layers[i].op == OP_hard_swish) return true;
    return false;
}

/* --- their names --- */

/* What Keras 2 and 3 take; with PyTorch behind it, Keras 3 takes no dot. */
static const char may_hold[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

static bool begins_well(const char *name) {
    return name[0] != '_' && name[0] != '-';
}

static bool fits(const char *name) {
    return begins_well(name) && name[strspn(name, may_hold)] == '\0';
}

static void fit_name(char *name, size_t bytes) {
    static const char before[] = "layer";
    const size_t length = strlen(before);
    for (char *c = name; *c; c++)
        if (!strchr(may_hold, *c)) *c = '_';
    if (begins_well(name)) return;
    memmove(name + length, name, bytes - length);
    memcpy(name, before, length);
    name[bytes - 1] = '\0';
}

/* Those that Keras takes as they are, then the others, then the added one's. */
static int take_names(struct layers_of *named, const struct layers_of *of, struct names *names,
                      struct error *error) {
    enum { STAYS, CHANGED, ADDED, TURNS };
    for (int turn = STAYS; turn < TURNS; turn++)
        for (int i = 0; i <= of->count; i++) {
            char *name = named->layers[i].name;
            const int its = i == of->count ? ADDED : fits(of->layers[i].name) ? STAYS : CHANGED;
            if (its == turn) RETURN_IF(names_take(names, name, sizeof named->layers[i].name, error));
        }
    return OK;
}

int keras_layers_open(struct layers_of *named, const struct layers_of *of, enum keras_reader reader,
                      struct error *error) {
    char not_a_layer[] = "top_level_model_weights"; /* beside the layers in an .h5 file */
    struct names names = {0};
    struct keras_layer layer;
    *named = *of;
    named->layers = NULL;
    int code = memory_array(&named->layers, of->count + 1, "the layers", error);
    for (int i = 0; code == OK && i < of->count; i++) {
        named->layers[i] = of->layers[i];
        code = keras_layer(&layer, of, i, error);
        fit_name(named->layers[i].name, sizeof named->layers[i].name);
    }
    if (code == OK)
        snprintf(named->layers[of->count].name, sizeof named->layers->name, "%s", ends[of->task].name);
    if (code == OK && reader == KERAS_SECOND)
        code = names_take(&names, not_a_layer, sizeof not_a_layer, error);
    if (code == OK) code = take_names(named, of, &names, error);
    names_close(&names);
    return code;
}

/* --- their order --- */

struct ordering {
    const struct layers_of *of;
    int *met, *far; /* [count] when it was met, from 0, or -1; steps to the result */
    int count;      /* that have been met */
    int *waiting;   /* [waiting_count] to be met; inputs of one layer in their order */
};

/* Depth first from the logits, without recursion: the inputs of a layer lie on the pile in reverse. */
static void meet_all(struct ordering *ordering) {
    int waiting = 0;
    ordering->waiting[waiting++] = ordering->of->count - 1;
    while (waiting > 0) {
        const int place = ordering->waiting[--waiting];
        const struct layer_of *layer = &ordering->of->layers[place];
        if (ordering->met[place] >= 0) continue;
        ordering->met[place] = ordering->count++;
        for (int i = layer->inputs - 1; i >= 0; i--) ordering->waiting[waiting++] = layer->input[i];
    }
}

static void measure_all(struct ordering *ordering) {
    for (int place = ordering->of->count - 1; place >= 0; place--) {
        const struct layer_of *layer = &ordering->of->layers[place];
        for (int i = 0; i < layer->inputs; i++)
            if (ordering->far[layer->input[i]] < ordering->far[place] + 1)
                ordering->far[layer->input[i]] = ordering->far[place] + 1;
    }
}

static bool comes_before(const struct ordering *ordering, int a, int b) {
    if (ordering->far[a] != ordering->far[b]) return ordering->far[a] > ordering->far[b];
    return ordering->met[a] < ordering->met[b];
}

int keras_order(int *order, const struct layers_of *of, struct error *error) {
    struct ordering ordering = {.of = of};
    int code = memory_array(&ordering.met, of->count, "the order of layers", error);
    if (code == OK) code = memory_array(&ordering.far, of->count, "the order of layers", error);
    if (code == OK)
        code =
            memory_array(&ordering.waiting, (size_t)of->count * MAX_INPUTS + 1, "the order of layers", error);
    for (int i = 0; code == OK && i < of->count; i++) ordering.met[i] = -1;
    if (code == OK) meet_all(&ordering);
    if (code == OK) measure_all(&ordering);
    for (int i = 0; code == OK && i < of->count; i++) {
        int at = i;
        for (; at > 0 && comes_before(&ordering, i, order[at - 1]); at--) order[at] = order[at - 1];
        order[at] = i;
    }
    order[of->count] = of->count;
    memory_free(ordering.met);
    memory_free(ordering.far);
    memory_free(ordering.waiting);
    return code;
}

/* --- configurations --- */

static void put_dims(struct json_writer *json, const char *name, const int *dims, int count) {
    json_open(json, name, '[');
    for (int i = 0; i < count; i++) json_int(json, NULL, dims[i]);
    json_close(json, ']');
}

/* Without the batch; for an input with the null that stands for it. */
static void put_shape(struct json_writer *json, const char *name, const struct shape *shape,
                      bool with_batch) {
    json_open(json, name, '[');
    if (with_batch) json_real(json, NULL, (double)NAN);
    for (int i = 1; i < shape->rank; i++) json_int(json, NULL, shape->dims[i]);
    json_close(json, ']');
}

static void put_windows(struct json_writer *json, const char *name, const int *window,
                        const struct attributes *attributes) {
    put_dims(json, name, window, 2);
    put_dims(json, "strides", attributes->stride, 2);
    json_text(json, "padding", attributes->padding == PADDING_SAME ? "same" : "valid");
    json_text(json, "data_format", "channels_last");
}

/* [[top, bottom], [left, right]] */
static void put_padding(struct json_writer *json, const struct layers_of *of, const struct layer_of *layer) {
    const struct shape *x = value_shape(of, layer->input[0]), *y = &of->graph->nodes[layer->at].shape;
    const int *begin = of->graph->nodes[layer->at].attributes.begin;
    json_open(json, "padding", '[');
    for (int axis = 1; axis < 3; axis++)
        put_dims(json, NULL, (int[]){begin[axis], y->dims[axis] - x->dims[axis] - begin[axis]}, 2);
    json_close(json, ']');
    json_text(json, "data_format", "channels_last");
}

/* [before, after] */
static void put_cropping(struct json_writer *json, const struct layers_of *of, const struct layer_of *layer) {
    const int rows = value_shape(of, layer->input[0])->dims[1];
    const struct node_info *info = &of->graph->nodes[layer->at];
    const int before = info->attributes.begin[1];
    put_dims(json, "cropping", (int[]){before, rows - before - info->shape.dims[1]}, 2);
}

static void put_operation(struct json_writer *json, const struct layers_of *of, const struct layer_of *layer,
                          const struct node_info *info) {
    const char *activation = classes[place_of_operation(layer->op)].activation;
    if (activation) json_text(json, "activation", activation);
    if (layer->op == OP_leaky_relu || layer->op == OP_elu) json_real(json, "alpha", (double)layer->alpha);
    if (layer->op == OP_relu6) json_real(json, "max_value", 6.0);
    if (layer->op == OP_pad) put_padding(json, of, layer);
    if (layer->op == OP_slice) put_cropping(json, of, layer);
    if (layer->op == OP_maxpool || layer->op == OP_avgpool)
        put_windows(json, "pool_size", info->attributes.window, &info->attributes);
    if (layer->op == OP_concat) json_int(json, "axis", info->attributes.axis);
}

static void put_settings(struct json_writer *json, const struct layers_of *of, const struct layer_of *layer) {
    const struct node_info *info = &of->graph->nodes[layer->computes];
    const struct range *kernel = layer->weights[WEIGHT_KERNEL];
    switch (layer->kind) {
    case FOUND_INPUT:
        put_shape(json, "batch_input_shape", &info->shape, true);
        json_bool(json, "sparse", false);
        break;
    case FOUND_CONV:
        json_int(json, "filters", kernel->shape.dims[3]);
        put_windows(json, "kernel_size", kernel->shape.dims, &info->attributes);
        break;
    case FOUND_DEPTHWISE:
        json_int(json, "depth_multiplier", kernel->shape.dims[3]);
        put_windows(json, "kernel_size", kernel->shape.dims, &info->attributes);
        break;
    case FOUND_DENSE:
        json_int(json, "units", kernel->shape.dims[1]);
        break;
    case FOUND_EMBEDDING:
        json_int(json, "input_dim", kernel->shape.dims[0]);
        json_int(json, "output_dim", kernel->shape.dims[1]);
        return;
    case FOUND_BATCH_NORM:
        json_int(json, "axis", info->shape.rank - 1);
        json_real(json, "momentum", (double)info->attributes.momentum);
        json_real(json, "epsilon", (double)info->attributes.epsilon);
        break;
    case FOUND_LAYER_NORM:
        json_int(json, "axis", -1);
        json_real(json, "epsilon", (double)layer->epsilon);
        break;
    case FOUND_GLOBAL_AVERAGE:
    case FOUND_GLOBAL_MAX:
        json_text(json, "data_format", "channels_last");
        break;
    case FOUND_RESHAPE:
        if (is_flatten(of, layer))
            json_text(json, "data_format", "channels_last");
        else
            put_shape(json, "target_shape", &of->graph->nodes[layer->at].shape, false);
        break;
    case FOUND_OPERATION:
        put_operation(json, of, layer, info);
    }
    if (kernel) json_text(json, "activation", "linear");
    if (kernel) json_bool(json, "use_bias", layer->weights[WEIGHT_BIAS] != NULL);
}

/* --- the model --- */

static bool is_sequential(const struct layers_of *of) {
    for (int i = 1; i < of->count; i++)
        if (of->layers[i].inputs != 1 || of->layers[i].input[0] != i - 1) return false;
    return true;
}

static void put_tensor(struct json_writer *json, const char *layer, bool with_arguments) {
    json_open(json, NULL, '[');
    json_text(json, NULL, layer);
    json_int(json, NULL, 0);
    json_int(json, NULL, 0);
    if (with_arguments) json_open(json, NULL, '{');
    if (with_arguments) json_close(json, '}');
    json_close(json, ']');
}

/* One call of the layer, on these. */
static void put_inbound(struct json_writer *json, const struct layers_of *of, int place) {
    json_open(json, "inbound_nodes", '[');
    const int inputs = place == of->count ? 1 : of->layers[place].inputs;
    if (inputs > 0) json_open(json, NULL, '[');
    for (int i = 0; i < inputs; i++)
        put_tensor(json, of->layers[place == of->count ? place - 1 : of->layers[place].input[i]].name, true);
    if (inputs > 0) json_close(json, ']');
    json_close(json, ']');
}

static void put_class(struct json_writer *json, const char *class_name, const char *module) {
    if (module) json_text(json, "module", module);
    json_text(json, "class_name", class_name);
    if (module) json_real(json, "registered_name", (double)NAN);
}

static int put_layer(struct json_writer *json, const struct layers_of *of, int place, bool modules,
                     struct error *error) {
    struct keras_layer layer;
    RETURN_IF(keras_layer(&layer, of, place, error));
    json_open(json, NULL, '{');
    put_class(json, layer.class_name, modules ? "keras.layers" : NULL);
    json_open(json, "config", '{');
    json_text(json, "name", layer.name);
    json_text(json, "dtype", "float32");
    if (place == of->count)
        json_text(json, "activation", ends[of->task].activation);
    else
        put_settings(json, of, &of->layers[place]);
    json_close(json, '}');
    if (!is_sequential(of)) {
        json_text(json, "name", layer.name);
        put_inbound(json, of, place);
    }
    json_close(json, '}');
    return OK;
}

static int write_config(FILE *file, const struct layers_of *of, const int *order,
                        const struct keras_training *training, bool modules, struct error *error) {
    struct json_writer json = {.file = file};
    const bool sequential = is_sequential(of);
    json_open(&json, NULL, '{');
    put_class(&json, sequential ? "Sequential" : "Functional",
              !modules     ? NULL
              : sequential ? "keras"
                           : "keras.src.models.functional");
    json_open(&json, "config", '{');
    json_text(&json, "name", "network");
    json_open(&json, "layers", '[');
    for (int i = 0; i <= of->count; i++) RETURN_IF(put_layer(&json, of, order[i], modules, error));
    json_close(&json, ']');
    for (int end = 0; end < 2 && !sequential; end++) {
        json_open(&json, end == 0 ? "input_layers" : "output_layers", '[');
        put_tensor(&json, of->layers[end == 0 ? 0 : of->count].name, false);
        json_close(&json, ']');
    }
    json_close(&json, '}');
    if (modules && training->there) {
        json_open(&json, "compile_config", '{');
        keras_training_put(&json, training, KERAS_THIRD);
        json_close(&json, '}');
    }
    json_close(&json, '}');
    return OK;
}

int keras_config_text(char **text, const struct layers_of *of, const struct keras_training *training,
                      enum keras_reader reader, struct error *error) {
    size_t bytes = 0;
    int *order = NULL;
    *text = NULL;
    RETURN_IF(memory_array(&order, of->count + 1, "the order of layers", error));
    FILE *stream = open_memstream(text, &bytes);
    int code = stream ? keras_order(order, of, error) : OK;
    if (stream && code == OK) code = write_config(stream, of, order, training, reader == KERAS_THIRD, error);
    memory_free(order);
    if (stream && (fclose(stream) == 0 || code != OK)) return code;
    return error_set(error, ERROR_DEVICE, "no memory for a model's configuration");
}

int keras_training_text(char **text, const struct keras_training *training, struct error *error) {
    size_t bytes = 0;
    *text = NULL;
    FILE *stream = open_memstream(text, &bytes);
    struct json_writer json = {.file = stream};
    if (stream) {
        json_open(&json, NULL, '{');
        keras_training_put(&json, training, KERAS_SECOND);
        json_close(&json, '}');
    }
    if (stream && fclose(stream) == 0) return OK;
    return error_set(error, ERROR_DEVICE, "no memory for a model's configuration");
}
