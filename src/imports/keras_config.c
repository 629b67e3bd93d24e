/* See keras.h: a model, Sequential or Functional, as a list of layers; where one of them is a model itself,
 * its layers stand in its place. */
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "keras.h"

/* What a layer of the file gives: layers that change nothing give what they get. */
struct given {
    const char *name;
    int value;  /* a place in the list, or LAYER_INPUT */
    int rank;   /* dimensions of an example; -1: not known */
    int number; /* of the call that gives it, where another one is refused */
};

/* One model: the whole one, or one that is a layer of another. */
struct reading {
    struct keras_network *network;
    const struct keras_part *as; /* the layer that it is; NULL: the whole model */
    int within;                  /* its place among network->inner; -1: the whole model */
    int depth;                   /* of models around it */
    struct given *given;         /* [given_count] */
    int given_count;
    bool has_input;
    struct error *error;
};

static const struct json_value *member(const struct reading *reading, const struct json_value *object,
                                       const char *name) {
    return object && object->kind == JSON_OBJECT ? json_member(&reading->network->json, object, name) : NULL;
}

static const struct json_value *child(const struct reading *reading, const struct json_value *value) {
    return value && value->first >= 0 ? &reading->network->json.values[value->first] : NULL;
}

static const struct json_value *next(const struct reading *reading, const struct json_value *value) {
    return value->next >= 0 ? &reading->network->json.values[value->next] : NULL;
}

static const char *text_of(const struct reading *reading, const struct json_value *object, const char *name) {
    const struct json_value *value = member(reading, object, name);
    return value && value->kind == JSON_TEXT ? value->text : NULL;
}

static int wrong(const struct reading *reading, const char *words) {
    if (reading->as) return keras_wrong(reading->network, reading->as->name, reading->error, "%s", words);
    return error_set(reading->error, ERROR_FILE, "%s: %s", reading->network->path, words);
}

/* --- the input --- */

/* [null, 28, 28, 1]. A size that is left open leaves the shape unsaid. */
static int read_input_shape(struct reading *reading, const struct json_value *shape, const char *name) {
    struct network_file *file = reading->network->file;
    struct shape input = {0};
    enum { SIZE_MOST = 1000000 };
    bool is_open = false;
    if (shape->kind != JSON_ARRAY || shape->children < 2 || shape->children > MAX_RANK)
        return keras_wrong(reading->network, name, reading->error,
                           "found no shape of its input, expected [null, sizes...]");
    for (const struct json_value *size = next(reading, child(reading, shape)); size;
         size = next(reading, size)) {
        is_open = is_open || size->kind == JSON_NULL;
        if (size->kind != JSON_NULL &&
            (size->kind != JSON_NUMBER || size->number < 1 || size->number > SIZE_MOST))
            return keras_wrong(reading->network, name, reading->error,
                               "found a size of its input that is none from 1 to %d", SIZE_MOST);
        input.dims[input.rank++] = (int)size->number;
    }
    reading->has_input = true;
    if (is_open) return OK;
    file->input = input;
    file->list.input.count = input.rank;
    for (int i = 0; i < input.rank; i++) file->list.input.at[i] = input.dims[i];
    return OK;
}

static const struct json_value *input_shape(const struct reading *reading, const struct json_value *config) {
    const struct json_value *shape = member(reading, config, "batch_shape");
    return shape ? shape : member(reading, config, "batch_input_shape");
}

static int read_input(struct reading *reading, const struct json_value *config, const char *name) {
    const struct json_value *shape = input_shape(reading, config);
    if (reading->has_input)
        return keras_wrong(reading->network, name, reading->error,
                           "found another input, expected one in all");
    if (shape && !reading->as) RETURN_IF(read_input_shape(reading, shape, name));
    reading->has_input = true;
    const int value = reading->as ? reading->as->input[0] : LAYER_INPUT;
    const int rank = shape ? shape->children - 1 : reading->as ? reading->as->rank : -1;
    reading->given[reading->given_count++] = (struct given){.name = name, .value = value, .rank = rank};
    return OK;
}

/* --- what a layer of a functional model gets --- */

static int add_input(const struct reading *reading, struct keras_part *part, const char *name,
                     const struct json_value *call) {
    const struct keras_network *network = reading->network;
    if (part->inputs == MAX_INPUTS)
        return keras_wrong(network, part->name, reading->error, "found more than %d inputs", MAX_INPUTS);
    for (int i = 0; i < reading->given_count; i++) {
        if (strcmp(reading->given[i].name, name) != 0) continue;
        if (call && call->kind == JSON_NUMBER && call->number != reading->given[i].number)
            return keras_wrong(
                network, part->name, reading->error,
                "found what layer %.60s gives when it is used again, expected layers used once", name);
        if (part->inputs == 0) part->rank = reading->given[i].rank;
        part->input[part->inputs++] = reading->given[i].value;
        return OK;
    }
    return keras_wrong(network, part->name, reading->error,
                       "found the input %.60s, expected an earlier layer", name);
}

/* Keras 2: ["name", call, 0, {...}]; Keras 3: {"class_name": "__keras_tensor__", "config": {"keras_history":
 * ["name", call, 0]}}; or lists of them. */
static int read_tensors(const struct reading *reading, struct keras_part *part,
                        const struct json_value *value) {
    const struct json_value *first = child(reading, value);
    if (value->kind == JSON_OBJECT) {
        const struct json_value *history = member(reading, member(reading, value, "config"), "keras_history");
        if (history) return read_tensors(reading, part, history);
        return keras_wrong(reading->network, part->name, reading->error,
                           "found an argument that is not a layer's, expected layers alone");
    }
    if (value->kind != JSON_ARRAY)
        return keras_wrong(reading->network, part->name, reading->error, "found no name of an input");
    if (first && first->kind == JSON_TEXT) return add_input(reading, part, first->text, next(reading, first));
    for (; first; first = next(reading, first)) RETURN_IF(read_tensors(reading, part, first));
    return OK;
}

static int read_inputs(const struct reading *reading, struct keras_part *part,
                       const struct json_value *layer) {
    const struct json_value *calls = member(reading, layer, "inbound_nodes");
    if (!calls || calls->kind != JSON_ARRAY || calls->children != 1)
        return keras_wrong(reading->network, part->name, reading->error, "it is used %d times, expected once",
                           calls ? calls->children : 0);
    const struct json_value *call = child(reading, calls);
    const struct json_value *arguments = call->kind == JSON_OBJECT ? member(reading, call, "args") : call;
    if (!arguments) return keras_wrong(reading->network, part->name, reading->error, "found no input");
    return read_tensors(reading, part, arguments);
}

/* --- layers --- */

static int number_of_class(const struct reading *reading, const struct json_value *first,
                           const struct json_value *layer) {
    int number = 0;
    const char *class_name = text_of(reading, layer, "class_name");
    for (; first != layer; first = next(reading, first)) {
        const char *other = text_of(reading, first, "class_name");
        number += other && strcmp(other, class_name) == 0;
    }
    return number;
}

static bool is_false(const struct reading *reading, const struct keras_part *part, const char *key) {
    const struct json_value *value = member(reading, part->config, key);
    return value && value->kind == JSON_BOOL && !(value->number > 0.0);
}

static void note_fixed(struct reading *reading, const struct layer *layer) {
    struct keras_network *network = reading->network;
    char *notice = network->file->notice;
    const size_t room = sizeof network->file->notice;
    if (network->fixed++ == 0)
        snprintf(notice, room, "%.60s: layer %s is not trainable there; here it is, unless --freeze names it",
                 network->path, layer->name);
    else
        snprintf(notice, room,
                 "%.60s: %d layers are not trainable there, the last one %s; here they are, unless --freeze "
                 "names them",
                 network->path, network->fixed, layer->name);
}

/* Its layers' names in the list are those of the file, or like them. */
static void note_weights(struct reading *reading, const struct keras_part *part, int first, int number) {
    struct keras_network *network = reading->network;
    struct layer_list *list = &network->file->list;
    if (first == list->count) return;
    if (!keras_has_weights(list->layers[first].kind)) return;
    network_file_name(list, &list->layers[first], part->name);
    const struct keras_weighted weighted = {.layer = first,
                                            .named = {reading->within, part->name, part->class_name, number},
                                            .is_fixed = is_false(reading, part, "trainable"),
                                            .no_scale = is_false(reading, part, "scale"),
                                            .no_shift = is_false(reading, part, "center")};
    network->weighted[network->weighted_count++] = weighted;
    if (weighted.is_fixed) note_fixed(reading, &list->layers[first]);
}

static int read_model(struct reading *reading, const struct json_value *object, struct keras_part *end);

static bool is_model(const char *class_name) {
    static const char *const classes[] = {"Sequential", "Functional", "Model"};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(class_name, classes[i]) == 0) return true;
    return false;
}

/* A model that is a layer. */
static int read_inner(const struct reading *outer, struct keras_part *part, const struct json_value *layer,
                      int number) {
    struct keras_network *network = outer->network;
    struct reading inner = {.network = network,
                            .as = part,
                            .within = network->inner_count,
                            .depth = outer->depth + 1,
                            .error = outer->error};
    struct keras_part end;
    if (part->inputs != 1)
        return keras_wrong(network, part->name, outer->error, "found %d inputs, expected 1", part->inputs);
    if (inner.depth > KERAS_DEPTH_MOST || network->inner_count == LAYERS_MOST)
        return keras_wrong(network, part->name, outer->error,
                           "found more than %d models in all or %d within each other", LAYERS_MOST,
                           KERAS_DEPTH_MOST);
    network->inner[network->inner_count++] =
        (struct keras_named){outer->within, part->name, part->class_name, number};
    const int code = read_model(&inner, layer, &end);
    memory_free(inner.given);
    RETURN_IF(code);
    if (end.inputs != 1)
        return keras_wrong(network, part->name, outer->error, "found %d outputs, expected 1", end.inputs);
    part->value = end.input[0];
    part->value_rank = end.rank;
    return OK;
}

/* Of Keras 2, a model that has an InputLayer has been called once before anything else calls it. */
static int number_of_call(const struct reading *reading, const struct keras_part *part) {
    const struct json_value *layers = member(reading, part->config, "layers");
    const struct json_value *first = layers && layers->kind == JSON_ARRAY ? child(reading, layers) : NULL;
    const char *class_name = first ? text_of(reading, first, "class_name") : NULL;
    return reading->network->is_second && is_model(part->class_name) && class_name &&
           strcmp(class_name, "InputLayer") == 0;
}

static int read_layer(struct reading *reading, const struct json_value *first, const struct json_value *layer,
                      bool is_sequential) {
    struct keras_network *network = reading->network;
    struct keras_part part = {.name = text_of(reading, member(reading, layer, "config"), "name"),
                              .class_name = text_of(reading, layer, "class_name"),
                              .config = member(reading, layer, "config"),
                              .rank = -1};
    const int begin = network->file->list.count;
    char words[KERAS_CLASS_BYTES];
    if (!part.name || !part.class_name) return wrong(reading, "found a layer without class_name or name");
    const int number = number_of_class(reading, first, layer);
    if (!keras_is_own(&network->json, layer))
        return keras_wrong(network, part.name, reading->error, "found %s, expected a class of Keras itself",
                           keras_class_text(&network->json, layer, words));
    for (int i = 0; i < reading->given_count; i++)
        if (strcmp(reading->given[i].name, part.name) == 0 && !is_sequential)
            return keras_wrong(network, part.name, reading->error, "found another layer of that name");
    if (strcmp(part.class_name, "InputLayer") == 0) return read_input(reading, part.config, part.name);
    if (is_sequential && !reading->has_input) RETURN_IF(read_input(reading, part.config, ""));
    if (is_sequential) {
        const struct given *before = &reading->given[reading->given_count - 1];
        part.inputs = 1;
        part.input[0] = before->value;
        part.rank = before->rank;
    } else {
        RETURN_IF(read_inputs(reading, &part, layer));
    }
    if (is_model(part.class_name)) {
        RETURN_IF(read_inner(reading, &part, layer, number));
    } else {
        RETURN_IF(keras_layer_add(network, &part, reading->error));
        note_weights(reading, &part, begin, number);
    }
    reading->given[reading->given_count++] =
        (struct given){part.name, part.value, part.value_rank, number_of_call(reading, &part)};
    return OK;
}

/* {"class_name": "Sequential", "config": {"layers": [...]}}; the first Keras 2 had the list as config. */
static const struct json_value *layers_of(const struct reading *reading, const struct json_value *object) {
    const struct json_value *config = member(reading, object, "config"), *layers = config;
    if (config && config->kind == JSON_OBJECT) layers = member(reading, config, "layers");
    return layers && layers->kind == JSON_ARRAY ? layers : NULL;
}

/* The layers of a model. *end: what it gives, as its inputs. */
static int read_model(struct reading *reading, const struct json_value *object, struct keras_part *end) {
    const struct json_value *layers = layers_of(reading, object),
                            *outputs = member(reading, member(reading, object, "config"), "output_layers");
    const char *class_name = text_of(reading, object, "class_name");
    char words[100];
    *end = (struct keras_part){.name = reading->as ? reading->as->name : "output", .rank = -1};
    if (!class_name || !layers)
        return wrong(reading, "found no model of Keras, expected class_name, and config with layers");
    const bool is_sequential = strcmp(class_name, "Sequential") == 0;
    if (layers->children > LAYERS_MOST) {
        snprintf(words, sizeof words, "found %d layers, expected at most %d", layers->children, LAYERS_MOST);
        return wrong(reading, words);
    }
    RETURN_IF(memory_array(&reading->given, layers->children + 1, "layers", reading->error));
    const struct json_value *first = child(reading, layers);
    for (const struct json_value *layer = first; layer; layer = next(reading, layer))
        RETURN_IF(read_layer(reading, first, layer, is_sequential));
    if (outputs) return read_tensors(reading, end, outputs);
    if (reading->given_count == 0) return wrong(reading, "found no layers");
    const struct given *last = &reading->given[reading->given_count - 1];
    end->inputs = 1;
    end->input[0] = last->value;
    end->rank = last->rank;
    return OK;
}

/* --- the whole model --- */

static int check_class(const struct reading *reading, const struct json_value *root) {
    const struct keras_network *network = reading->network;
    const char *class_name = text_of(reading, root, "class_name");
    char words[KERAS_CLASS_BYTES];
    if (!class_name || is_model(class_name)) {
        if (keras_is_own(&network->json, root)) return OK;
        return error_set(reading->error, ERROR_FILE,
                         "%s: found a model of class %s, expected Sequential or Functional of Keras itself",
                         network->path, keras_class_text(&network->json, root, words));
    }
    return error_set(reading->error, ERROR_FILE,
                     "%s: found a model of class %.60s, expected Sequential or Functional", network->path,
                     class_name);
}

static void say_left_out(const struct keras_network *network) {
    struct text text = text_into(network->file->left_out, sizeof network->file->left_out);
    const char *training = network->in_training, *input = network->of_input;
    if (!training[0] && !input[0]) return;
    text_add(&text, "%.60s: left out: ", network->path);
    if (training[0]) text_add(&text, "%s (in training alone)", training);
    if (input[0]) text_add(&text, "%s%s (pixels are from 0 to 1 here)", training[0] ? ", " : "", input);
}

/* The last layer gives what the model gives; what others refer to has a name. */
static int read_whole(struct reading *reading) {
    struct keras_network *network = reading->network;
    struct layer_list *list = &network->file->list;
    const struct json_value *root = &network->json.values[0];
    struct keras_part end;
    RETURN_IF(check_class(reading, root));
    RETURN_IF(memory_array(&network->weighted, LAYERS_MOST, "layers", reading->error));
    RETURN_IF(memory_array(&network->names, LAYERS_MOST, "layers", reading->error));
    RETURN_IF(memory_array(&network->inner, LAYERS_MOST, "models", reading->error));
    RETURN_IF(read_model(reading, root, &end));
    if (end.inputs != 1 || end.input[0] != list->count - 1)
        return error_set(reading->error, ERROR_FILE, "%s: found %d outputs, expected one, of the last layer",
                         network->path, end.inputs);
    for (int i = 0; i < list->count; i++)
        for (int k = 0; k < list->layers[i].inputs; k++) {
            const int input = list->layers[i].input[k];
            if (input != LAYER_INPUT && input != i - 1 && !list->layers[input].name[0])
                network_file_name(list, &list->layers[input], network->names[input]);
        }
    say_left_out(network);
    network->file->classes = network_file_classes(network->file);
    network->file->ends_there = true;
    return layers_check(list, network->path, ERROR_FILE, reading->error);
}

int keras_network_open(struct keras_network *network, struct network_file *file, const char *path,
                       const char *version, const char *text, size_t bytes, struct error *error) {
    struct reading reading = {.network = network, .within = -1, .error = error};
    *network = (struct keras_network){.path = path, .file = file};
    struct error why = {0};
    if (json_parse(&network->json, text, bytes, &why) != OK)
        return error_set(error, why.code, "%s: %s", path, why.words);
    if (!version) version = text_of(&reading, &network->json.values[0], "keras_version");
    network->is_second = version && strncmp(version, "2.", 2) == 0;
    const int code = read_whole(&reading);
    memory_free(reading.given);
    return code;
}

void keras_network_close(struct keras_network *network) {
    memory_free(network->weighted);
    memory_free((void *)network->names);
    memory_free(network->inner);
    json_free(&network->json);
    *network = (struct keras_network){0};
}
