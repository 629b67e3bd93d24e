/* See keras.h: a model, Sequential or Functional, as a list of layers. */
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "keras.h"

/* What a layer of the file gives: layers that change nothing give what they get. */
struct given {
    const char *name;
    int value; /* a place in the list, or LAYER_INPUT */
    int rank;  /* dimensions of an example; -1: not known */
};

struct reading {
    struct keras_network *network;
    struct given *given; /* [given_count] */
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
    if (shape) RETURN_IF(read_input_shape(reading, shape, name));
    reading->has_input = true;
    reading->given[reading->given_count++] =
        (struct given){.name = name, .value = LAYER_INPUT, .rank = shape ? shape->children - 1 : -1};
    return OK;
}

/* --- what a layer of a functional model gets --- */

static int add_input(const struct reading *reading, struct keras_part *part, const char *name,
                     const struct json_value *call) {
    const struct keras_network *network = reading->network;
    if (call && call->kind == JSON_NUMBER && call->number != 0.0)
        return keras_wrong(network, part->name, reading->error,
                           "found what layer %.60s gives when it is used again, expected layers used once",
                           name);
    if (part->inputs == MAX_INPUTS)
        return keras_wrong(network, part->name, reading->error, "found more than %d inputs", MAX_INPUTS);
    for (int i = 0; i < reading->given_count; i++) {
        if (strcmp(reading->given[i].name, name) != 0) continue;
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

static bool is_fixed(const struct reading *reading, const struct keras_part *part) {
    const struct json_value *trainable = member(reading, part->config, "trainable");
    return trainable && trainable->kind == JSON_BOOL && !(trainable->number > 0.0);
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
    network->weighted[network->weighted_count++] =
        (struct keras_weighted){first, part->name, part->class_name, number, is_fixed(reading, part)};
    if (is_fixed(reading, part)) note_fixed(reading, &list->layers[first]);
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
    RETURN_IF(keras_layer_add(network, &part, reading->error));
    note_weights(reading, &part, begin, number_of_class(reading, first, layer));
    reading->given[reading->given_count++] = (struct given){part.name, part.value, part.value_rank};
    return OK;
}

/* The last layer gives what the model gives; what others refer to has a name. */
static int finish(struct reading *reading, const struct json_value *config) {
    struct keras_network *network = reading->network;
    struct layer_list *list = &network->file->list;
    const struct json_value *outputs = member(reading, config, "output_layers");
    struct keras_part end = {.name = "output", .rank = -1};
    if (outputs) {
        RETURN_IF(read_tensors(reading, &end, outputs));
        if (end.inputs != 1 || end.input[0] != list->count - 1)
            return error_set(reading->error, ERROR_FILE,
                             "%s: found %d outputs, expected one, of the last layer", network->path,
                             end.inputs);
    }
    for (int i = 0; i < list->count; i++)
        for (int k = 0; k < list->layers[i].inputs; k++) {
            const int input = list->layers[i].input[k];
            if (input != LAYER_INPUT && input != i - 1 && !list->layers[input].name[0])
                network_file_name(list, &list->layers[input], network->names[input]);
        }
    network->file->classes = network_file_classes(network->file);
    network->file->ends_there = true;
    return layers_check(list, network->path, ERROR_FILE, reading->error);
}

/* {"class_name": "Sequential", "config": {"layers": [...]}}; the first Keras 2 had the list as config. */
static int read_model(struct reading *reading) {
    struct keras_network *network = reading->network;
    const struct json_value *root = &network->json.values[0];
    const char *class_name = text_of(reading, root, "class_name");
    const struct json_value *config = member(reading, root, "config"), *layers = config;
    char words[KERAS_CLASS_BYTES];
    if (config && config->kind == JSON_OBJECT) layers = member(reading, config, "layers");
    if (!class_name || !layers || layers->kind != JSON_ARRAY)
        return wrong(reading, "found no model of Keras, expected class_name, and config with layers");
    const bool is_sequential = strcmp(class_name, "Sequential") == 0;
    if (!is_sequential && strcmp(class_name, "Functional") != 0 && strcmp(class_name, "Model") != 0)
        return error_set(reading->error, ERROR_FILE,
                         "%s: found a model of class %.60s, expected Sequential or Functional", network->path,
                         class_name);
    if (!keras_is_own(&network->json, root))
        return error_set(reading->error, ERROR_FILE,
                         "%s: found a model of class %s, expected Sequential or Functional of Keras itself",
                         network->path, keras_class_text(&network->json, root, words));
    if (layers->children > LAYERS_MOST)
        return error_set(reading->error, ERROR_FILE, "%s: found %d layers, expected at most %d",
                         network->path, layers->children, LAYERS_MOST);
    RETURN_IF(memory_array(&reading->given, layers->children + 1, "layers", reading->error));
    RETURN_IF(memory_array(&network->weighted, layers->children + 1, "layers", reading->error));
    RETURN_IF(memory_array(&network->names, LAYERS_MOST, "layers", reading->error));
    const struct json_value *first = child(reading, layers);
    for (const struct json_value *layer = first; layer; layer = next(reading, layer))
        RETURN_IF(read_layer(reading, first, layer, is_sequential));
    return finish(reading, config);
}

int keras_network_open(struct keras_network *network, struct network_file *file, const char *path,
                       const char *version, const char *text, size_t bytes, struct error *error) {
    struct reading reading = {.network = network, .error = error};
    *network = (struct keras_network){.path = path, .file = file};
    struct error why = {0};
    if (json_parse(&network->json, text, bytes, &why) != OK)
        return error_set(error, why.code, "%s: %s", path, why.words);
    if (!version) version = text_of(&reading, &network->json.values[0], "keras_version");
    network->is_second = version && strncmp(version, "2.", 2) == 0;
    const int code = read_model(&reading);
    memory_free(reading.given);
    return code;
}

void keras_network_close(struct keras_network *network) {
    memory_free(network->weighted);
    memory_free((void *)network->names);
    json_free(&network->json);
    *network = (struct keras_network){0};
}
