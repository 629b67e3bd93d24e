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

int keras_weights_of(const struct layer *layer, const char *names[KERAS_WEIGHTS_MOST]) {
    static const char *const statistics[KERAS_WEIGHTS_MOST] = {"scale", "shift", "mean", "variance"};
    static const char *const products[] = {"kernel", "bias"};
    const bool is_norm = has(layer->kind, "epsilon");
    const bool has_bias = has(layer->kind, "no_bias") && !layer->values.no_bias;
    const int count = layer->kind == LAYER_batch_norm ? 4 : is_norm || has_bias ? 2 : 1;
    for (int w = 0; w < count; w++) names[w] = is_norm ? statistics[w] : products[w];
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
        return keras_wrong(network, weighted->name, reading->error, "found no array %.200s", path);
    RETURN_IF(hdf5_reader_array(reading->from, object, path, &array, reading->error));
    if (!fits(layer, weight, &array.shape))
        return keras_wrong(network, weighted->name, reading->error,
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

static int read_layer(struct reading *reading, const struct keras_weighted *weighted, const char *group,
                      const struct hdf5_texts *stored, enum keras_places places) {
    const char *names[KERAS_WEIGHTS_MOST] = {0};
    const int count = keras_weights_of(&reading->network->file->list.layers[weighted->layer], names);
    if (places == KERAS_BY_NAME && stored->count != count)
        return keras_wrong(reading->network, weighted->name, reading->error, "found %d weights, expected %d",
                           stored->count, count);
    for (int w = 0; w < count; w++) {
        char path[PATH_MOST];
        struct text text = text_into(path, sizeof path);
        if (places == KERAS_BY_NAME)
            text_add(&text, "%s/%s", group, stored->texts[w]);
        else
            text_add(&text, "%s/%d", group, w);
        if (text.cut)
            return keras_wrong(reading->network, weighted->name, reading->error, "its name is too long");
        RETURN_IF(read_array(reading, weighted, w, names[w], path));
    }
    return OK;
}

int keras_weights_read(const struct keras_network *network, struct hdf5_reader *from,
                       enum keras_places places, struct error *error) {
    struct reading reading = {.network = network, .from = from, .error = error};
    for (int i = 0; i < network->weighted_count; i++) {
        const struct keras_weighted *weighted = &network->weighted[i];
        struct hdf5_texts stored = {0};
        char group[PATH_MOST], class_group[KERAS_GROUP_BYTES];
        uint64_t object;
        keras_group_name(weighted->class_name, weighted->number, class_group);
        if (places == KERAS_BY_NAME)
            snprintf(group, sizeof group, "model_weights/%.300s", weighted->name);
        else
            snprintf(group, sizeof group, "layers/%s/vars", class_group);
        RETURN_IF(hdf5_reader_find(from, group, &object, error));
        if (object == 0)
            return keras_wrong(network, weighted->name, error, "found no weights in %.300s", group);
        if (places == KERAS_BY_NAME)
            RETURN_IF(hdf5_reader_texts(from, object, "weight_names", &stored, error));
        const int code = read_layer(&reading, weighted, group, &stored, places);
        hdf5_texts_close(&stored);
        RETURN_IF(code);
    }
    return OK;
}
