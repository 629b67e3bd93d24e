/* See keras.h: the weights of the layers. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "keras.h"

enum { PATH_MOST = 500 };

void keras_group_name(const char *class_name, int number, char name[KERAS_GROUP_BYTES]) {
    size_t at = 0;
    for (const char *c = class_name; *c && at + 20 < KERAS_GROUP_BYTES; c++) {
        const bool begins = isupper((unsigned char)*c) && c > class_name && islower((unsigned char)c[-1]);
        if (begins) name[at++] = '_';
        name[at++] = (char)tolower((unsigned char)*c);
    }
    name[at] = '\0';
    if (number > 0) snprintf(name + at, KERAS_GROUP_BYTES - at, "_%d", number);
}

static bool has(enum layer_kind kind, const char *attribute) {
    return option_find(layer_rows[kind].attributes, attribute) != NULL;
}

bool keras_has_weights(enum layer_kind kind) {
    return kind == LAYER_embedding || has(kind, "no_bias") || has(kind, "epsilon");
}

int keras_weights_of(const struct keras_network *network, const struct keras_weighted *weighted,
                     const char *names[KERAS_WEIGHTS_MOST], int *trained) {
    const struct layer *layer = &network->file->list.layers[weighted->layer];
    const bool is_norm = has(layer->kind, "epsilon");
    int count = 0;
    if (!is_norm) names[count++] = "kernel";
    if (has(layer->kind, "no_bias") && !layer->values.no_bias) names[count++] = "bias";
    if (is_norm && !weighted->no_scale) names[count++] = "scale";
    if (is_norm && !weighted->no_shift) names[count++] = "shift";
    *trained = count;
    if (layer->kind == LAYER_batch_norm) names[count++] = "mean", names[count++] = "variance";
    return count;
}

/* As far as the layer says it: a kernel's window and outputs, as many biases. */
static bool fits(const struct layer *layer, int weight, const struct shape *shape) {
    const bool has_window = has(layer->kind, "window");
    const struct option_sizes *window = &layer->values.window;
    const bool is_kernel = weight == 0 && !has(layer->kind, "epsilon");
    const int last = shape->rank > 0 ? shape->dims[shape->rank - 1] : 0, units = layer->values.units;
    if (shape->rank != (!is_kernel ? 1 : has_window ? 4 : 2)) return false;
    if (units > 0 && last != units) return false;
    for (int i = 0; is_kernel && has_window && i < 2; i++)
        if (shape->dims[i] != window->at[window->count > 1 ? i : 0]) return false;
    return true;
}

struct reading {
    const struct keras_network *network;
    struct hdf5_reader *from;
    size_t bytes; /* of all arrays so far */
    struct error *error;
};

static int read_array(struct reading *reading, const struct keras_weighted *weighted, int weight,
                      const char *name, const char *path) {
    const struct keras_network *network = reading->network;
    const struct layer *layer = &network->file->list.layers[weighted->layer];
    struct npy array;
    uint64_t object;
    char own[sizeof((struct file_array *)0)->name], shape[100], words[PATH_MOST];
    struct text label = text_into(words, sizeof words);
    RETURN_IF(hdf5_reader_find(reading->from, path, &object, reading->error));
    if (object == 0)
        return keras_wrong(network, weighted->named.name, reading->error, "found no array %.200s", path);
    RETURN_IF(hdf5_reader_array(reading->from, object, path, &array, reading->error));
    if (!fits(layer, weight, &array.shape))
        return keras_wrong(network, weighted->named.name, reading->error,
                           "found %s of shape %s, expected it as the layer says", name,
                           shape_text(&array.shape, shape, sizeof shape));
    reading->bytes += array.count * (size_t)array.item;
    if (reading->bytes > reading->from->length)
        return error_set(reading->error, ERROR_FILE, "%s: its arrays are longer than all of it",
                         network->path);
    snprintf(own, sizeof own, "%s/%s", layer->name, name);
    text_add(&label, "%s: %s", network->path, path);
    array.name = words; /* for a number that is not finite */
    struct file_array *out = network_file_array(network->file, own, &array.shape, reading->error);
    return out ? npy_floats(&array, 0, array.count, out->values, reading->error) : reading->error->code;
}

/* Of a normalisation that has a mean. */
static int add_array(struct reading *reading, const struct keras_weighted *weighted, const char *name,
                     float value) {
    struct network_file *file = reading->network->file;
    const char *layer = file->list.layers[weighted->layer].name;
    char own[sizeof((struct file_array *)0)->name];
    snprintf(own, sizeof own, "%s/mean", layer);
    const struct file_array *mean = network_file_find(file, own);
    if (!mean) return keras_wrong(reading->network, weighted->named.name, reading->error, "found no mean");
    const struct shape shape = mean->shape;
    snprintf(own, sizeof own, "%s/%s", layer, name);
    struct file_array *out = network_file_array(file, own, &shape, reading->error);
    if (!out) return reading->error->code;
    for (size_t i = 0; i < shape_count(&shape); i++) out->values[i] = value;
    return OK;
}

/* The arrays of an .h5 file's group are those of one layer, or of all layers of a model: their names end with
 * the layer's and their own, as in block/conv1/kernel:0. */
static bool is_of(const struct keras_named *named, const char *stored) {
    const char *own = strrchr(stored, '/');
    const size_t length = strlen(named->name);
    if (named->within < 0) return true;
    if (!own || (size_t)(own - stored) < length || memcmp(own - length, named->name, length) != 0)
        return false;
    return own - length == stored || own[-(ptrdiff_t)length - 1] == '/';
}

static int find_stored(const struct reading *reading, const struct keras_weighted *weighted,
                       const struct hdf5_texts *stored, int count, int found[KERAS_WEIGHTS_MOST]) {
    int all = 0;
    for (int i = 0; i < stored->count; i++) {
        if (!is_of(&weighted->named, stored->texts[i])) continue;
        if (all < KERAS_WEIGHTS_MOST) found[all] = i;
        all++;
    }
    if (all == count) return OK;
    return keras_wrong(reading->network, weighted->named.name, reading->error,
                       "found %d weights, expected %d", all, count);
}

static int read_layer(struct reading *reading, const struct keras_weighted *weighted, const char *group,
                      const struct hdf5_texts *stored, enum keras_places places) {
    const char *names[KERAS_WEIGHTS_MOST] = {0};
    int trained;
    const int count = keras_weights_of(reading->network, weighted, names, &trained);
    int found[KERAS_WEIGHTS_MOST];
    if (places == KERAS_BY_NAME) RETURN_IF(find_stored(reading, weighted, stored, count, found));
    for (int w = 0; w < count; w++) {
        char path[PATH_MOST];
        struct text text = text_into(path, sizeof path);
        if (places == KERAS_BY_NAME)
            text_add(&text, "%s/%s", group, stored->texts[found[w]]);
        else
            text_add(&text, "%s/%d", group, w);
        if (text.cut)
            return keras_wrong(reading->network, weighted->named.name, reading->error,
                               "its name is too long");
        RETURN_IF(read_array(reading, weighted, w, names[w], path));
    }
    if (weighted->no_scale) RETURN_IF(add_array(reading, weighted, "scale", 1.0f));
    return weighted->no_shift ? add_array(reading, weighted, "shift", 0.0f) : OK;
}

/* "layers/functional/layers/conv2d_1". */
static void add_places(const struct keras_network *network, const struct keras_named *named,
                       struct text *text) {
    char own[KERAS_GROUP_BYTES];
    const struct keras_named *chain[KERAS_DEPTH_MOST + 1];
    int depth = 0;
    for (; named; named = named->within >= 0 ? &network->inner[named->within] : NULL) chain[depth++] = named;
    while (depth-- > 0) {
        keras_group_name(chain[depth]->class_name, chain[depth]->number, own);
        text_add(text, "layers/%s/", own);
    }
}

/* Where a layer's weights are: by class, or by the name of the outermost model or layer. */
static void add_group(const struct keras_network *network, const struct keras_named *named,
                      enum keras_places places, struct text *text) {
    if (places == KERAS_BY_CLASS) {
        add_places(network, named, text);
        text_add(text, "vars");
        return;
    }
    while (named->within >= 0) named = &network->inner[named->within];
    text_add(text, "model_weights/%.300s", named->name);
}

static int find_group(const struct reading *reading, const struct keras_weighted *weighted, const char *group,
                      bool is_cut, uint64_t *object) {
    const char *name = weighted->named.name;
    if (is_cut) return keras_wrong(reading->network, name, reading->error, "its name is too long");
    RETURN_IF(hdf5_reader_find(reading->from, group, object, reading->error));
    if (*object != 0) return OK;
    return keras_wrong(reading->network, name, reading->error, "found no weights in %.300s", group);
}

int keras_weights_read(const struct keras_network *network, struct hdf5_reader *from,
                       enum keras_places places, struct error *error) {
    struct reading reading = {.network = network, .from = from, .error = error};
    struct hdf5_texts stored = {0};
    uint64_t open = 0; /* whose names are in stored */
    int code = OK;
    for (int i = 0; i < network->weighted_count && code == OK; i++) {
        const struct keras_weighted *weighted = &network->weighted[i];
        char group[PATH_MOST];
        struct text text = text_into(group, sizeof group);
        uint64_t object;
        add_group(network, &weighted->named, places, &text);
        code = find_group(&reading, weighted, group, text.cut, &object);
        if (code == OK && places == KERAS_BY_NAME && object != open) {
            hdf5_texts_close(&stored);
            code = hdf5_reader_texts(from, object, "weight_names", &stored, error);
            open = object;
        }
        if (code == OK) code = read_layer(&reading, weighted, group, &stored, places);
    }
    hdf5_texts_close(&stored);
    return code;
}
