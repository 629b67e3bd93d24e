/* keras: a whole model in Keras' own format since Keras 3: a zip archive of its configuration and its
 * weights. */
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../formats/hdf5.h"
#include "../formats/zip_write.h"
#include "../imports/keras.h"
#include "../infer/export.h"
#include "../infer/keras.h"

#define HELP "a model for Keras 3, in its own format"

#if TRAINER_HDF5

/* The layer at that place of the order, as number so many of its class. */
static int write_layer(struct hdf5 *file, const struct exported *exported, const int *order, int at,
                       struct error *error) {
    struct keras_layer layer, before;
    char name[KERAS_GROUP_BYTES], group[2 * KERAS_GROUP_BYTES], path[3 * KERAS_GROUP_BYTES];
    int number = 0;
    RETURN_IF(keras_layer(&layer, exported->layers, order[at], error));
    for (int i = 0; i < at; i++) {
        RETURN_IF(keras_layer(&before, exported->layers, order[i], error));
        number += strcmp(before.class_name, layer.class_name) == 0;
    }
    keras_group_name(layer.class_name, number, name);
    snprintf(group, sizeof group, "layers/%s/vars", name);
    RETURN_IF(hdf5_group(file, group, error));
    for (int w = 0; w < layer.weights; w++) {
        const struct range *range = layer.weight[w];
        snprintf(path, sizeof path, "%s/%d", group, w);
        RETURN_IF(hdf5_array(file, path, &range->shape, exported->restored->weights + range->begin, error));
    }
    return OK;
}

/* Steps, learning rate, then the arrays of one variable after the other. */
static int write_optimizer(struct hdf5 *file, const struct exported *exported, const int *order,
                           struct error *error) {
    const struct keras_training *training = exported->training;
    const int slots = training->slots;
    const float rate = (float)training->rate;
    char path[80];
    int at = 2;
    RETURN_IF(hdf5_number(file, "optimizer/vars/0", training->updates, error));
    RETURN_IF(hdf5_array(file, "optimizer/vars/1", &(struct shape){0}, &rate, error));
    for (int i = 0; i <= exported->layers->count; i++) {
        struct keras_layer layer;
        RETURN_IF(keras_layer(&layer, exported->layers, order[i], error));
        for (int v = 0; v < layer.trained * slots; v++, at++) {
            const struct range *range = layer.weight[v / slots];
            snprintf(path, sizeof path, "optimizer/vars/%d", at);
            RETURN_IF(hdf5_array(file, path, &range->shape, training->slot[v % slots] + range->begin, error));
        }
    }
    return OK;
}

static int make_weights(const struct exported *exported, void **bytes, size_t *count, struct error *error) {
    struct hdf5 *file = NULL;
    int *order = NULL;
    int code = memory_array(&order, exported->layers->count + 1, "the order of layers", error);
    if (code == OK) code = keras_order(order, exported->layers, error);
    if (code == OK) code = hdf5_open(&file, error);
    if (code == OK) code = hdf5_group(file, "vars", error);
    for (int i = 0; code == OK && i <= exported->layers->count; i++)
        code = write_layer(file, exported, order, i, error);
    if (code == OK && exported->training->there) code = write_optimizer(file, exported, order, error);
    if (code == OK) code = hdf5_image(file, bytes, count, error);
    hdf5_close(file);
    memory_free(order);
    return code;
}

static int write_zip(FILE *file, const struct exported *exported, struct error *error) {
    static const char metadata[] = "{\"keras_version\": \"3.0.0\"}";
    struct zip_writing zip = {.file = file};
    struct zip_piece notes = {metadata, sizeof metadata - 1}, config = {0}, weights = {0};
    char *text = NULL;
    void *bytes = NULL;
    int code = keras_config_text(&text, exported->layers, exported->training, KERAS_THIRD, error);
    if (code == OK) code = make_weights(exported, &bytes, &weights.bytes, error);
    config = (struct zip_piece){text, text ? strlen(text) : 0};
    weights.at = bytes;
    if (code == OK) code = zip_add(&zip, "metadata.json", &notes, 1, error);
    if (code == OK) code = zip_add(&zip, "config.json", &config, 1, error);
    if (code == OK) code = zip_add(&zip, "model.weights.h5", &weights, 1, error);
    if (code == OK) code = zip_end(&zip, error);
    zip_close(&zip);
    memory_free(bytes);
    free(text);
    return code;
}

static int write(FILE *file, const struct exported *exported, struct error *error) {
    struct layers_of layers = {0};
    struct exported named = *exported;
    named.layers = &layers;
    int code = keras_layers_open(&layers, exported->layers, KERAS_THIRD, error);
    if (code == OK) code = write_zip(file, &named, error);
    layers_of_close(&layers);
    return code;
}

const struct format format_keras = {
    .plugin = {.name = "keras", .help = HELP}, .trains = KERAS_THIRD, .ready = hdf5_ready, .write = write};

#else

const struct format format_keras = {
    .plugin = {.name = "keras", .help = HELP},
    .needs = "libhdf5 (apt-get install libhdf5-dev, then make)",
};

#endif
