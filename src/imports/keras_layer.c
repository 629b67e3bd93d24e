/* See keras.h: one layer. Which class is which row of layers.def stands there; what a configuration may say
 * is in two tables here: what becomes an attribute, and what must have one value. The rest (initializers,
 * regularizers, names of types) says nothing of what is computed from trained weights. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "keras.h"

enum { VALUE_BYTES = 120 };

int keras_wrong(const struct keras_network *network, const char *name, struct error *error,
                const char *format, ...) {
    char words[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    return error_set(error, ERROR_FILE, "%s: layer %.60s: %s", network->path, name, words);
}

/* --- values --- */

/* As an option has it: "3", "0.5", "3x3", "same". Lists of lists are one list. */
static void add_value(const struct json *json, const struct json_value *value, struct text *text) {
    switch (value->kind) {
    case JSON_TEXT:
        text_add(text, "%s", value->text);
        break;
    case JSON_NUMBER:
        text_add(text, "%.17g", value->number);
        break;
    case JSON_BOOL:
        text_add(text, "%s", value->number > 0.0 ? "true" : "false");
        break;
    case JSON_ARRAY:
        for (int i = value->first; i >= 0; i = json->values[i].next) {
            if (i != value->first) text_add(text, "x");
            add_value(json, &json->values[i], text);
        }
        break;
    case JSON_NULL:
    case JSON_OBJECT:
        text_add(text, value->kind == JSON_NULL ? "null" : "{...}");
    }
}

static const char *value_text(const struct json *json, const struct json_value *value,
                              char out[VALUE_BYTES]) {
    struct text text = text_into(out, VALUE_BYTES);
    add_value(json, value, &text);
    return out;
}

/* --- classes --- */

static const char *text_of(const struct json *json, const struct json_value *object, const char *name) {
    const struct json_value *value = json_member(json, object, name);
    return value && value->kind == JSON_TEXT ? value->text : NULL;
}

bool keras_is_own(const struct json *json, const struct json_value *object) {
    static const char *const packages[] = {"keras", "tf_keras", "keras_core"};
    const char *module = text_of(json, object, "module");
    if (!module) return text_of(json, object, "registered_name") == NULL;
    const size_t length = strcspn(module, ".");
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (strlen(packages[i]) == length && memcmp(packages[i], module, length) == 0) return true;
    return false;
}

const char *keras_class_text(const struct json *json, const struct json_value *object,
                             char words[KERAS_CLASS_BYTES]) {
    const char *class_name = text_of(json, object, "class_name"), *module = text_of(json, object, "module"),
               *registered = text_of(json, object, "registered_name");
    struct text text = text_into(words, KERAS_CLASS_BYTES);
    if (registered && strchr(registered, '>'))
        text_add(&text, "%.60s", registered);
    else
        text_add(&text, "%.50s", class_name ? class_name : "a class");
    if (module) text_add(&text, " of %.50s", module);
    return words;
}

static bool is_class(const struct keras_part *part, const char *class_name) {
    return strcmp(part->class_name, class_name) == 0;
}

static int unknown_class(const struct keras_network *network, const struct keras_part *part,
                         struct error *error) {
    char all[300];
    struct text text = text_into(all, sizeof all);
    for (int kind = 0; kind < LAYER_KINDS; kind++) {
        const char *name = layer_rows[kind].keras;
        if (*name && (kind == 0 || strcmp(layer_rows[kind - 1].keras, name) != 0))
            text_item(&text, ", ", "%s", name);
    }
    return keras_wrong(network, part->name, error, "found %.60s, expected one of %s", part->class_name, all);
}

/* The activation that Keras calls so; LAYER_NONE: none that is here. */
static enum layer_kind activation_named(const char *name) {
    static const struct {
        const char *keras, *here;
    } others[] = {{"swish", "silu"}, {"hard_silu", "hard_swish"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i].keras) == 0) name = others[i].here;
    const enum layer_kind kind = layer_named(name);
    return kind != LAYER_NONE && layer_rows[kind].takes == LAYER_IS_ACTIVATION ? kind : LAYER_NONE;
}

/* What `activation` says. */
struct ending {
    enum layer_kind kind;           /* LAYER_NONE: linear, or a layer */
    const struct json_value *layer; /* a whole layer; else NULL */
};

static int refuse_activation(const struct keras_network *network, const struct keras_part *part,
                             const char *found, struct error *error) {
    char all[200];
    struct text text = text_into(all, sizeof all);
    for (int i = 0; i < LAYER_KINDS; i++)
        if (layer_rows[i].takes == LAYER_IS_ACTIVATION) text_item(&text, ", ", "%s", layer_rows[i].name);
    return keras_wrong(network, part->name, error, "found the activation %s, expected linear or one of %s",
                       found, all);
}

static int read_activation_name(const struct keras_network *network, const struct keras_part *part,
                                const char *name, enum layer_kind *kind, struct error *error) {
    if (strcmp(name, "linear") == 0) return OK;
    *kind = activation_named(name);
    if (*kind == LAYER_NONE) return refuse_activation(network, part, name, error);
    if (*kind == LAYER_hard_sigmoid && network->is_second)
        return keras_wrong(
            network, part->name, error,
            "found hard_sigmoid of Keras 2, min(max(0.2 x + 0.5, 0), 1), expected that of Keras "
            "3, min(max(x / 6 + 0.5, 0), 1)");
    return OK;
}

/* A name; a function, of which `config` is the name; a layer, which has a configuration; or the code of an
 * anonymous function, {"value": [...]}, maybe within {"class_name": "__lambda__"}. */
static int read_activation(const struct keras_network *network, const struct keras_part *part,
                           struct ending *ending, struct error *error) {
    const struct json *json = &network->json;
    const struct json_value *said = json_member(json, part->config, "activation");
    char found[VALUE_BYTES];
    *ending = (struct ending){.kind = LAYER_NONE};
    if (!said || said->kind == JSON_NULL) return OK;
    const bool is_object = said->kind == JSON_OBJECT;
    const char *class_name = is_object ? text_of(json, said, "class_name") : NULL,
               *name = is_object ? text_of(json, said, "config") : said->text;
    if (name) return read_activation_name(network, part, name, &ending->kind, error);
    if (!is_object) return refuse_activation(network, part, value_text(json, said, found), error);
    if (!class_name || strcmp(class_name, "__lambda__") == 0)
        return refuse_activation(network, part, "of an anonymous function", error);
    ending->layer = said;
    return OK;
}

/* A number that is there and not 0. */
static bool has_number(const struct keras_network *network, const struct keras_part *part, const char *key,
                       double *number) {
    const struct json_value *value = json_member(&network->json, part->config, key);
    if (!value || value->kind != JSON_NUMBER || value->number == 0.0) return false;
    *number = value->number;
    return true;
}

/* Of a ReLU, by what it says: with a slope below 0, or that ends at 6. */
static enum layer_kind relu_kind(const struct keras_network *network, const struct keras_part *part) {
    double slope = 0.0, most = 0.0;
    if (has_number(network, part, "negative_slope", &slope)) return LAYER_leaky_relu;
    return has_number(network, part, "max_value", &most) && most == 6.0 ? LAYER_relu6 : LAYER_relu;
}

static enum layer_kind kind_of(const struct keras_network *network, const struct keras_part *part) {
    if (is_class(part, "ReLU")) return relu_kind(network, part);
    for (int kind = 0; kind < LAYER_KINDS; kind++)
        if (*layer_rows[kind].keras && is_class(part, layer_rows[kind].keras)) return (enum layer_kind)kind;
    return LAYER_NONE;
}

/* --- what a configuration says --- */

/* Attributes, by their names here. */
static const struct {
    const char *keras, *here;
} attributes[] = {{"units", "units"},
                  {"filters", "filters"},
                  {"kernel_size", "window"},
                  {"pool_size", "window"},
                  {"strides", "stride"},
                  {"depth_multiplier", "multiplier"},
                  {"input_dim", "vocabulary"},
                  {"output_dim", "units"},
                  {"padding", "padding"},
                  {"padding", "around"},
                  {"momentum", "momentum"},
                  {"epsilon", "epsilon"},
                  {"rate", "rate"},
                  {"target_shape", "shape"},
                  {"axis", "axis"},
                  {"alpha", "alpha"},
                  {"negative_slope", "alpha"}};

/* What has to be so, where it is said. */
static const struct {
    const char *class_name; /* of these alone; NULL: of all */
    const char *key, *value;
} demands[] = {{NULL, "data_format", "channels_last"},
               {NULL, "dilation_rate", "1x1"},
               {NULL, "groups", "1"},
               {"LayerNormalization", "center", "true"},
               {"LayerNormalization", "scale", "true"},
               {NULL, "rms_scaling", "false"},
               {NULL, "renorm", "false"},
               {NULL, "mask_zero", "false"},
               {NULL, "noise_shape", "null"},
               {NULL, "threshold", "0"},
               {"ReLU", "max_value", "null"}};

static int check_demands(const struct keras_network *network, const struct keras_part *part,
                         enum layer_kind kind, struct error *error) {
    for (size_t i = 0; i < sizeof demands / sizeof *demands; i++) {
        char found[VALUE_BYTES];
        const struct json_value *value = json_member(&network->json, part->config, demands[i].key);
        if (!value || (demands[i].class_name && !is_class(part, demands[i].class_name))) continue;
        if (kind == LAYER_relu6 && strcmp(demands[i].key, "max_value") == 0) continue;
        if (strcmp(value_text(&network->json, value, found), demands[i].value) == 0) continue;
        if (value->kind == JSON_NULL && strcmp(demands[i].key, "data_format") == 0)
            continue; /* the usual one */
        const char *also = kind == LAYER_relu && strcmp(demands[i].key, "max_value") == 0 ? " or 6" : "";
        return keras_wrong(network, part->name, error, "found %s %s, expected %s%s", demands[i].key, found,
                           demands[i].value, also);
    }
    return OK;
}

/* Normalisations and softmax are along the last axis: -1, or its number. */
static int check_axis(const struct keras_network *network, const struct keras_part *part,
                      struct error *error) {
    const struct json_value *axis = json_member(&network->json, part->config, "axis");
    char found[VALUE_BYTES];
    if (axis && axis->kind == JSON_ARRAY && axis->children == 1) axis = &network->json.values[axis->first];
    if (!axis || (axis->kind == JSON_NUMBER && (axis->number == -1.0 || axis->number == part->rank)))
        return OK;
    return keras_wrong(network, part->name, error, "found axis %s, expected the last one",
                       value_text(&network->json, axis, found));
}

static int set_attributes(const struct keras_network *network, const struct keras_part *part,
                          struct layer *layer, struct error *error) {
    const struct option *rows = layer_rows[layer->kind].attributes;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        char text[VALUE_BYTES];
        struct error why = {0};
        const struct json_value *value = json_member(&network->json, part->config, attributes[i].keras);
        if (!value || value->kind == JSON_NULL || !option_find(rows, attributes[i].here)) continue;
        value_text(&network->json, value, text);
        if (option_set(rows, &layer->values, part->class_name, attributes[i].here, text, &why) != OK)
            return keras_wrong(network, part->name, error, "%s", why.words);
    }
    for (const struct option *row = rows; row->name; row++)
        if (row->flags & ATTRIBUTE_NEEDED) {
            char text[VALUE_BYTES];
            option_text(row, &layer->values, text, sizeof text);
            if (text[0] == '\0' || strcmp(text, "0") == 0)
                return keras_wrong(network, part->name, error, "found no %s, expected %s", row->name,
                                   row->help);
        }
    const struct json_value *bias = json_member(&network->json, part->config, "use_bias");
    if (option_find(rows, "no_bias"))
        layer->values.no_bias = bias && bias->kind == JSON_BOOL && bias->number < 1.0;
    return OK;
}

/* --- layers that are left out --- */

/* In training they change examples at random, and else nothing. */
static bool is_in_training(const struct keras_part *part) {
    static const char *const classes[] = {"RandomFlip",        "RandomRotation", "RandomZoom",
                                          "RandomTranslation", "RandomContrast", "RandomBrightness",
                                          "GaussianNoise",     "GaussianDropout"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (is_class(part, classes[i])) return true;
    return false;
}

static void add_name(char *names, size_t bytes, const char *name) {
    const size_t used = strlen(names);
    struct text text = text_into(names + used, bytes - used);
    text_add(&text, "%s%.40s", used > 0 ? ", " : "", name);
}

/* Pixels from 0 to 255 become what they are here: from 0 to 1. */
static int leave_scale(struct keras_network *network, struct keras_part *part, struct error *error) {
    const struct json_value *offset = json_member(&network->json, part->config, "offset");
    char by[VALUE_BYTES] = "nothing", and[VALUE_BYTES] = "0";
    double scale = 0.0;
    const bool scales = has_number(network, part, "scale", &scale) && fabs(255.0 * scale - 1.0) <= 1e-6;
    const struct json_value *said = json_member(&network->json, part->config, "scale");
    if (said) value_text(&network->json, said, by);
    if (offset) value_text(&network->json, offset, and);
    if (part->input[0] != LAYER_INPUT || network->of_input[0] || !scales || strcmp(and, "0") != 0)
        return keras_wrong(
            network, part->name, error,
            "found Rescaling by %.40s and %.40s, expected 1/255 and 0, once, of the input: pixels "
            "are from 0 to 1 here",
            by, and);
    add_name(network->of_input, sizeof network->of_input, part->name);
    return OK;
}

/* *leaves: it is one of them. */
static int leave_out(struct keras_network *network, struct keras_part *part, bool *leaves,
                     struct error *error) {
    *leaves = is_in_training(part) || is_class(part, "Rescaling");
    if (!*leaves) return OK;
    if (part->inputs != 1)
        return keras_wrong(network, part->name, error, "found %d inputs, expected 1", part->inputs);
    if (is_class(part, "Rescaling")) RETURN_IF(leave_scale(network, part, error));
    if (is_in_training(part)) add_name(network->in_training, sizeof network->in_training, part->name);
    part->value = part->input[0];
    part->value_rank = part->rank;
    return OK;
}

/* --- layers --- */

static struct layer *add_layer(struct keras_network *network, const struct keras_part *part,
                               enum layer_kind kind, struct error *error) {
    struct layer_list *list = &network->file->list;
    struct error why = {0};
    struct layer *layer = layers_add(list, kind, ERROR_FILE, &why);
    if (layer)
        network->names[list->count - 1] = part->name;
    else
        error_set(error, why.code, "%s: %s", network->path, why.words);
    return layer;
}

/* Behind what the part gives so far. */
static int add_behind(struct keras_network *network, struct keras_part *part, enum layer_kind kind,
                      const char *attribute, const char *value, struct error *error) {
    struct layer *layer = add_layer(network, part, kind, error);
    if (!layer) return error->code;
    layer->input[0] = part->value;
    part->value = network->file->list.count - 1;
    if (!attribute) return OK;
    return option_set(layer_rows[kind].attributes, &layer->values, part->class_name, attribute, value, error);
}

static int rank_of(const struct layer *layer, int rank) {
    const char *name = layer_rows[layer->kind].name;
    if (layer->kind == LAYER_embedding) return rank < 0 ? rank : rank + 1;
    if (layer->kind == LAYER_flatten || strncmp(name, "global_", 7) == 0) return 1;
    if (layer->kind == LAYER_reshape) return layer->values.shape.count;
    return layer_rows[layer->kind].takes == LAYER_TAKES_IMAGE ? 3 : rank;
}

/* As many as the layer takes; and a Dense takes rows here, where Keras has it along the last axis of whatever
 * it gets. */
static int check_inputs(const struct keras_network *network, const struct keras_part *part,
                        enum layer_kind kind, struct error *error) {
    const bool joins = layer_rows[kind].joins;
    if (joins ? part->inputs < 2 : part->inputs != 1)
        return keras_wrong(network, part->name, error, "found %d inputs, expected %s", part->inputs,
                           joins ? "2 or more" : "1");
    if (kind == LAYER_dense && part->rank > 1)
        return keras_wrong(network, part->name, error,
                           "found Dense along the last of %d axes of an example, expected examples of one "
                           "axis, as behind Flatten",
                           part->rank);
    return OK;
}

/* Any class but those that are activations by name. */
static int add_of_class(struct keras_network *network, struct keras_part *part, enum layer_kind kind,
                        struct error *error) {
    RETURN_IF(check_demands(network, part, kind, error));
    const struct option *rows = layer_rows[kind].attributes;
    if (!option_find(rows, "axis")) RETURN_IF(check_axis(network, part, error));
    struct layer *layer = add_layer(network, part, kind, error);
    if (!layer) return error->code;
    RETURN_IF(set_attributes(network, part, layer, error));
    layer->inputs = part->inputs;
    memcpy(layer->input, part->input, sizeof part->input);
    part->value = network->file->list.count - 1;
    part->value_rank = rank_of(layer, part->rank);
    const struct json_value *keeps = json_member(&network->json, part->config, "keepdims");
    if (keeps && keeps->number > 0.0) {
        part->value_rank = 3;
        RETURN_IF(add_behind(network, part, LAYER_reshape, "shape", "1x1x-1", error));
    }
    return OK;
}

/* Its leaky ReLU has another slope than a leaky_relu that is a word behind a layer. */
static int add_activation(struct keras_network *network, struct keras_part *part, enum layer_kind kind,
                          struct error *error) {
    if (kind == LAYER_NONE) return OK;
    if (kind == LAYER_leaky_relu) return add_behind(network, part, kind, "alpha", "0.2", error);
    if (is_class(part, "Activation")) return add_behind(network, part, kind, NULL, NULL, error);
    network->file->list.layers[part->value].activation = kind;
    return OK;
}

/* A layer that another one has as its activation: behind it. */
static int add_activation_layer(struct keras_network *network, struct keras_part *part,
                                const struct json_value *layer, struct error *error) {
    const struct json *json = &network->json;
    struct keras_part own = {.name = part->name,
                             .class_name = text_of(json, layer, "class_name"),
                             .config = json_member(json, layer, "config"),
                             .inputs = 1,
                             .input = {part->value},
                             .rank = part->value_rank};
    char words[KERAS_CLASS_BYTES];
    const enum layer_kind kind = kind_of(network, &own);
    const bool known = kind != LAYER_NONE && layer_rows[kind].takes == LAYER_IS_ACTIVATION;
    if (!keras_is_own(json, layer))
        return refuse_activation(network, part, keras_class_text(json, layer, words), error);
    if (!known || !own.config || own.config->kind != JSON_OBJECT)
        return refuse_activation(network, part, own.class_name, error);
    RETURN_IF(keras_layer_add(network, &own, error));
    part->value = own.value;
    part->value_rank = own.value_rank;
    return OK;
}

int keras_layer_add(struct keras_network *network, struct keras_part *part, struct error *error) {
    struct ending ending;
    const bool is_activation = is_class(part, "Activation");
    bool leaves;
    RETURN_IF(leave_out(network, part, &leaves, error));
    if (leaves) return OK;
    const enum layer_kind kind = is_activation ? LAYER_relu : kind_of(network, part);
    if (kind == LAYER_NONE) return unknown_class(network, part, error);
    RETURN_IF(check_inputs(network, part, kind, error));
    RETURN_IF(read_activation(network, part, &ending, error));
    part->value = part->input[0];
    part->value_rank = part->rank;
    if (!is_activation) RETURN_IF(add_of_class(network, part, kind, error));
    if (ending.layer) return add_activation_layer(network, part, ending.layer, error);
    return add_activation(network, part, ending.kind, error);
}
