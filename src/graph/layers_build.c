/* From a list of layers to a graph: one function per row of layers.def. */
#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "layers.h"
#include "layers_text.h"
#include "rules.h"

/* What a layer is built from. */
struct site {
    struct graph *g;
    const struct layer *layer;
    const struct layer_values *values; /* the layer's */
    int classes;
    node x;               /* its first input */
    node all[MAX_INPUTS]; /* [layer->inputs] */
    int layer_norms;      /* numbers given to those before this one, without names of their own */
};

/* --- with weights --- */

/* Its name, or NULL: the graph numbers it. */
static const char *name_of(const struct site *site) {
    return site->layer->name[0] ? site->layer->name : NULL;
}

/* `in`: values that each output is computed from. */
static struct initial kernel_of(const struct layer_values *values, double in) {
    const float deviation = (float)values->deviation;
    switch ((enum layer_init)values->init) {
    case INIT_GLOROT:
        break;
    case INIT_HE: /* He, Zhang, Ren and Sun, "Delving deep into rectifiers", 2015 */
        return (struct initial){.kind = INITIAL_NORMAL, .value = (float)sqrt(2.0 / in)};
    case INIT_NORMAL:
        return (struct initial){.kind = INITIAL_NORMAL, .value = deviation};
    case INIT_TRUNCATED:
        return (struct initial){.kind = INITIAL_TRUNCATED_NORMAL, .value = deviation};
    case INIT_ZERO:
        return (struct initial){.kind = INITIAL_ZERO};
    }
    return (struct initial){.kind = INITIAL_GLOROT_UNIFORM};
}

static struct weights weights_of(const struct site *site, double in) {
    const struct layer_values *values = site->values;
    return (struct weights){.name = name_of(site),
                            .kernel = kernel_of(values, in),
                            .bias = {.kind = INITIAL_CONSTANT, .value = (float)values->bias},
                            .no_bias = values->no_bias,
                            .decay = (float)values->decay};
}

static node build_dense(const struct site *site) {
    const struct shape *x = expect_dims(site->g, "dense", site->x, 1, MAX_RANK);
    if (!x) return NONE;
    if (x->rank != 2) {
        graph_mistake(site->g, "found %s, expected [batch, numbers]: flatten it first", TEXT(x));
        return NONE;
    }
    const struct weights weights = weights_of(site, x->dims[1]);
    return graph_dense_of(site->g, site->x, site->values->units > 0 ? site->values->units : site->classes,
                          &weights);
}

/* Number i of one or two: rows, columns. */
static int size_at(const struct option_sizes *sizes, int i, int usual) {
    return sizes->count == 0 ? usual : sizes->at[sizes->count > 1 ? i : 0];
}

static struct pooling windows_of(const struct layer_values *values, bool usually_apart) {
    struct pooling windows = {.padding = (enum padding)values->padding};
    for (int i = 0; i < 2; i++) {
        windows.window[i] = size_at(&values->window, i, 1);
        windows.stride[i] = size_at(&values->stride, i, usually_apart ? windows.window[i] : 1);
    }
    return windows;
}

static node build_conv(const struct site *site) {
    const struct shape *x = expect_dims(site->g, "conv", site->x, 4, 4);
    if (!x) return NONE;
    const struct pooling windows = windows_of(site->values, false);
    const struct weights weights =
        weights_of(site, (double)windows.window[0] * windows.window[1] * x->dims[3]);
    return graph_conv_of(site->g, site->x, site->values->units, &windows, &weights);
}

static node build_depthwise(const struct site *site) {
    const struct pooling windows = windows_of(site->values, false);
    const struct weights weights = weights_of(site, (double)windows.window[0] * windows.window[1]);
    return graph_depthwise_of(site->g, site->x, site->values->multiplier, &windows, &weights);
}

static node build_embedding(const struct site *site) {
    const struct weights weights = weights_of(site, 1);
    return graph_embedding_of(site->g, site->x, site->values->vocabulary, site->values->units, &weights);
}

static node build_batch_norm(const struct site *site) {
    return graph_batch_norm_of(site->g, site->x, name_of(site), (float)site->values->momentum,
                               (float)site->values->epsilon);
}

/* Ba, Kiros and Hinton, "Layer normalization", 2016. */
static node build_layer_norm(const struct site *site) {
    struct graph *g = site->g;
    const struct shape *shape = expect_dims(g, "layer_norm", site->x, 2, MAX_RANK);
    if (!shape) return NONE;
    const struct shape channels = SHAPE(shape->dims[shape->rank - 1]);
    const struct layer_names names = {name_of(site), "layer_norm", site->layer_norms + 1};
    const struct initial one = {.kind = INITIAL_CONSTANT, .value = 1.0f}, zero = {.kind = INITIAL_ZERO};
    const node scale = layer_variable(g, &names, "scale", channels, one);
    const node shift = layer_variable(g, &names, "shift", channels, zero);
    const node from_mean = graph_sub(g, site->x, graph_reduce_mean(g, site->x, -1, true));
    const node variance = graph_reduce_mean(g, graph_mul(g, from_mean, from_mean), -1, true);
    const node inverse = graph_pow(g, graph_add(g, variance, graph_scalar(g, (float)site->values->epsilon)),
                                   graph_scalar(g, -0.5f));
    return graph_add(g, graph_mul(g, graph_mul(g, from_mean, inverse), scale), shift);
}

/* --- without --- */

static node build_maxpool(const struct site *site) {
    const struct pooling windows = windows_of(site->values, true);
    return graph_maxpool_of(site->g, site->x, &windows);
}

static node build_avgpool(const struct site *site) {
    const struct pooling windows = windows_of(site->values, true);
    return graph_avgpool(site->g, site->x, &windows);
}

static node build_global_avgpool(const struct site *site) {
    return graph_global_average(site->g, site->x);
}

static node build_global_maxpool(const struct site *site) {
    return graph_global_max(site->g, site->x);
}

static node build_lrn(const struct site *site) {
    const struct layer_values *values = site->values;
    return graph_lrn(site->g, site->x,
                     (struct lrn){.radius = values->radius,
                                  .bias = (float)values->bias,
                                  .alpha = (float)values->alpha,
                                  .beta = (float)values->beta});
}

static node build_dropout(const struct site *site) {
    return graph_dropout(site->g, site->x, (float)site->values->rate);
}

static node build_flatten(const struct site *site) {
    return graph_flatten(site->g, site->x);
}

static node build_reshape(const struct site *site) {
    const struct option_sizes *sizes = &site->values->shape;
    const struct shape *x = expect_dims(site->g, "reshape", site->x, 1, MAX_RANK);
    if (!x) return NONE;
    struct shape shape = {.rank = sizes->count + 1, .dims = {x->dims[0]}};
    for (int i = 0; i < sizes->count; i++) shape.dims[i + 1] = sizes->at[i];
    return graph_reshape(site->g, site->x, shape);
}

/* One number: on all sides; two: above and below, left and right; four: each. */
static node build_pad(const struct site *site) {
    const struct option_sizes *around = &site->values->around;
    int before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    if (around->count == 3) {
        graph_mistake(site->g, "found 3 sizes, expected 1, 2 or 4");
        return NONE;
    }
    for (int axis = 0; axis < 2; axis++) {
        before[axis + 1] = around->count == 4 ? around->at[2 * axis] : size_at(around, axis, 0);
        after[axis + 1] = around->count == 4 ? around->at[2 * axis + 1] : size_at(around, axis, 0);
    }
    if (!expect_dims(site->g, "pad", site->x, 4, 4)) return NONE;
    return graph_pad(site->g, site->x, before, after);
}

static node build_add(const struct site *site) {
    node sum = site->x;
    for (int i = 1; i < site->layer->inputs; i++) {
        const node other = site->all[i];
        if (site->g->error.code == OK &&
            !shape_equal(&site->g->nodes[sum].shape, &site->g->nodes[other].shape)) {
            graph_mistake(site->g, "%s and %s, expected inputs of one shape",
                          TEXT(&site->g->nodes[sum].shape), TEXT(&site->g->nodes[other].shape));
            return NONE;
        }
        sum = graph_add(site->g, sum, other);
    }
    return sum;
}

static node build_multiply(const struct site *site) {
    const struct node_info *nodes = site->g->nodes;
    node product = site->x;
    for (int i = 1; i < site->layer->inputs && site->g->error.code == OK; i++) {
        const struct shape *x = &nodes[product].shape, *other = &nodes[site->all[i]].shape;
        if (x->rank != other->rank) {
            graph_mistake(site->g, "%s and %s, expected inputs of as many dimensions", TEXT(x), TEXT(other));
            return NONE;
        }
        product = graph_mul(site->g, product, site->all[i]);
        nodes = site->g->nodes;
    }
    return product;
}

static node build_concat(const struct site *site) {
    const struct shape *x = expect_dims(site->g, "concat", site->x, 2, MAX_RANK);
    const int axis = site->values->axis;
    if (!x) return NONE;
    if (axis == 0 || axis == -x->rank) {
        graph_mistake(site->g, "axis %d is the batch, expected another", axis);
        return NONE;
    }
    return graph_concat(site->g, site->all, site->layer->inputs, axis);
}

/* --- activations --- */

#define ACTIVATION(name)                                                                                     \
    static node build_##name(const struct site *site) {                                                      \
        return graph_##name(site->g, site->x);                                                               \
    }
ACTIVATION(relu)
ACTIVATION(relu6)
ACTIVATION(sigmoid)
ACTIVATION(tanh)
ACTIVATION(silu)
ACTIVATION(hard_sigmoid)
ACTIVATION(hard_swish)
ACTIVATION(softmax)

static node build_gelu(const struct site *site) {
    return site->values->approximate ? graph_gelu_tanh(site->g, site->x) : graph_gelu(site->g, site->x);
}

static node build_leaky_relu(const struct site *site) {
    return graph_leaky_relu(site->g, site->x, graph_scalar(site->g, (float)site->values->alpha));
}

static node build_elu(const struct site *site) {
    return graph_elu(site->g, site->x, graph_scalar(site->g, (float)site->values->alpha));
}

/* --- names --- */

/* Which weights a layer has; of two layers that have the same, one is called otherwise. */
enum family { NO_WEIGHTS, KERNELS, SCALES };

static enum family family_of(enum layer_kind kind) {
    if (kind == LAYER_batch_norm || kind == LAYER_layer_norm) return SCALES;
    return kind == LAYER_conv || kind == LAYER_depthwise || kind == LAYER_dense || kind == LAYER_embedding
               ? KERNELS
               : NO_WEIGHTS;
}

/* The last number that was given to a layer with weights of that kind. */
static int *number_of(struct site *site, enum layer_kind kind) {
    return kind == LAYER_conv         ? &site->g->convolutions
           : kind == LAYER_depthwise  ? &site->g->depthwises
           : kind == LAYER_dense      ? &site->g->layers
           : kind == LAYER_embedding  ? &site->g->embeddings
           : kind == LAYER_batch_norm ? &site->g->norms
                                      : &site->layer_norms;
}

static bool is_given(const struct layer_list *list, enum family family, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (family_of(list->layers[i].kind) == family && strcmp(list->layers[i].name, name) == 0) return true;
    return false;
}

/* A layer without a name is called by its kind and the next number: one that no layer of the list has, before
 * it or after it. */
static void pass_given(struct site *site, const struct layer_list *list) {
    const enum layer_kind kind = site->layer->kind;
    const enum family family = family_of(kind);
    const char *usual = kind == LAYER_batch_norm ? "norm" : layer_rows[kind].name;
    char name[LAYER_NAME_BYTES];
    if (site->layer->name[0] || family == NO_WEIGHTS) return;
    for (int *number = number_of(site, kind);; ++*number) {
        snprintf(name, sizeof name, "%s%d", usual, *number + 1);
        if (!is_given(list, family, name)) return;
    }
}

/* --- all of it --- */

static node (*const builders[LAYER_KINDS])(const struct site *site) = {
#define LAYER(name, ...) [LAYER_##name] = build_##name,
#include "layers.def"
};

/* What the network is given, as a layer takes it: images may be given as rows of pixels, and rows as images.
 */
static node take_input(struct graph *g, node x, enum layer_kind kind) {
    switch (layer_rows[kind].takes) {
    case LAYER_TAKES_IMAGE:
        return graph_image(g, x);
    case LAYER_TAKES_ROW:
        return graph_flatten(g, x);
    case LAYER_TAKES_ANY:
    case LAYER_IS_ACTIVATION:
        break;
    }
    return x;
}

static double numbers_of(const struct shape *shape) {
    double numbers = 1.0;
    for (int i = 0; i < shape->rank; i++) numbers *= shape->dims[i];
    return numbers;
}

/* Examples as the network says that they are: with as many numbers in another shape they become that. */
static node fit_input(struct graph *g, const struct layer_list *list, node x) {
    const struct option_sizes *input = &list->input;
    if (x == NONE || input->count == 0) return x;
    const struct shape *given = &g->nodes[x].shape;
    struct shape wanted = {.rank = input->count + 1, .dims = {given->dims[0]}},
                 takes = {.rank = input->count}, has = {.rank = given->rank - 1};
    for (int i = 0; i < takes.rank; i++) wanted.dims[i + 1] = takes.dims[i] = input->at[i];
    for (int i = 0; i < has.rank; i++) has.dims[i] = given->dims[i + 1];
    if (shape_equal(given, &wanted)) return x;
    if (numbers_of(&takes) == numbers_of(&has)) return graph_reshape(g, x, wanted);
    graph_mistake(g, "the network takes examples of %s, the data set has %s", TEXT(&takes), TEXT(&has));
    return NONE;
}

static node activate(struct site site, enum layer_kind activation) {
    struct layer alone = {.kind = activation, .inputs = 1};
    option_defaults(layer_rows[activation].attributes, &alone.values);
    site.layer = &alone;
    site.values = &alone.values;
    return builders[activation](&site);
}

/* Input i of the layer in hand. *image: x as an image, once somebody wanted it, so that all share it. */
static node input_of(const struct site *site, int i, node x, const node *built, node *image) {
    const enum layer_kind kind = site->layer->kind;
    const int input = site->layer->input[i];
    if (input != LAYER_INPUT) return built[input];
    if (layer_rows[kind].takes != LAYER_TAKES_IMAGE) return take_input(site->g, x, kind);
    if (*image == NONE) *image = take_input(site->g, x, kind);
    return *image;
}

/* Its inputs are there. */
static node build_layer(struct site *site) {
    const struct layer *layer = site->layer;
    site->x = site->all[0];
    if (site->g->error.code != OK) return NONE;
    const node y = builders[layer->kind](site);
    if (layer->kind == LAYER_layer_norm && !layer->name[0]) site->layer_norms++;
    site->x = y;
    return layer->activation == LAYER_NONE || y == NONE ? y : activate(*site, layer->activation);
}

/* The node of the logits; a mistake when the list does not end in them. */
static node end_of(struct graph *g, node y, int classes) {
    if (y == NONE) return NONE;
    const struct shape *shape = &g->nodes[y].shape;
    if (shape->rank == 2 && shape->dims[1] != classes) {
        graph_mistake(g,
                      "the network has %d output%s, expected %d, one per class or value of the data set: end "
                      "with dense, or take a file's network with head=fit",
                      shape->dims[1], shape->dims[1] == 1 ? "" : "s", classes);
        return NONE;
    }
    if (shape->rank != 2) {
        graph_mistake(g, "it gives %s, expected [batch, %d], a number per class: end with dense", TEXT(shape),
                      classes);
        return NONE;
    }
    return g->nodes[y].op == OP_softmax ? g->nodes[y].input[0] : y;
}

/* "layer 2 (maxpool 200): " in front, instead of the operation that the layer is made of. */
static void say_where(const struct layer_list *list, int i, struct error *error) {
    char words[120];
    struct text text = text_into(words, sizeof words);
    const size_t operation = strspn(error->words, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (strncmp(error->words + operation, ": ", 2) == 0)
        memmove(error->words, error->words + operation + 2, strlen(error->words + operation + 2) + 1);
    layers_write_one(list, i, &text);
    error_prefix(error, "layer %d (%s): ", i + 1, words);
}

node layers_build(struct graph *g, const struct layer_list *list, node x, int classes) {
    struct site site = {.g = g, .classes = classes};
    node *built = NULL, image = NONE, logits = NONE;
    int last = 0;
    if (g->error.code != OK || layers_check(list, "network", ERROR_USAGE, &g->error) != OK) return NONE;
    x = fit_input(g, list, x);
    if (x == NONE || memory_array(&built, list->count, "layers", &g->error) != OK) return NONE;
    for (int i = 0; i < list->count && g->error.code == OK; i++) {
        site.layer = &list->layers[i];
        site.values = &site.layer->values;
        for (int k = 0; k < site.layer->inputs; k++) site.all[k] = input_of(&site, k, x, built, &image);
        pass_given(&site, list);
        built[i] = build_layer(&site);
        last = i;
    }
    if (g->error.code == OK) logits = end_of(g, built[last], classes);
    if (g->error.code != OK) say_where(list, last, &g->error);
    memory_free(built);
    return logits;
}
