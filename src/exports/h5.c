/* h5: a whole model for Keras 2 and 3, in HDF5: keras.models.load_model opens it. */
#include "../formats/hdf5.h"

#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../infer/export.h"
#include "../infer/keras.h"

#define HELP "a model for Keras, 2 and 3 (load_model)"

#if TRAINER_HDF5

enum { NAME_BYTES = 200 };

struct h5 {
    const struct exported *exported;
    struct hdf5 *file;
    struct error *error;
};

/* "conv1/kernel:0" of group model_weights/conv1 is the array model_weights/conv1/conv1/kernel:0. */
static int write_layer(const struct h5 *h5, const struct keras_layer *layer) {
    char group[NAME_BYTES], names[KERAS_WEIGHTS][NAME_BYTES], path[3 * NAME_BYTES];
    const char *list[KERAS_WEIGHTS];
    snprintf(group, sizeof group, "model_weights/%s", layer->name);
    RETURN_IF(hdf5_group(h5->file, group, h5->error));
    for (int w = 0; w < layer->weights; w++) {
        snprintf(names[w], sizeof names[w], "%.90s/%s:0", layer->name, layer->weight_name[w]);
        snprintf(path, sizeof path, "%.199s/%.199s", group, names[w]);
        RETURN_IF(hdf5_array(h5->file, path, &layer->weight[w]->shape,
                             h5->exported->restored->weights + layer->weight[w]->begin, h5->error));
        list[w] = names[w];
    }
    return hdf5_texts(h5->file, group, "weight_names", list, layer->weights, h5->error);
}

static int write_weights(const struct h5 *h5) {
    const struct layers_of *of = h5->exported->layers;
    const char **names = NULL;
    int *order = NULL;
    int code = memory_array(&names, of->count + 1, "names of layers", h5->error);
    if (code == OK) code = memory_array(&order, of->count + 1, "names of layers", h5->error);
    if (code == OK) code = keras_order(order, of, h5->error);
    if (code == OK) code = hdf5_group(h5->file, "model_weights", h5->error);
    for (int i = 0; code == OK && i <= of->count; i++) {
        struct keras_layer layer;
        code = keras_layer(&layer, of, order[i], h5->error);
        names[i] = layer.name;
        if (code == OK) code = write_layer(h5, &layer);
    }
    if (code == OK)
        code = hdf5_texts(h5->file, "model_weights", "layer_names", names, of->count + 1, h5->error);
    memory_free(order);
    memory_free(names);
    return code;
}

/* The arrays of that kind: names[at...] in optimizer_weights. */
static int write_slot(const struct h5 *h5, const int *order, int slot, char (*names)[NAME_BYTES], int *at) {
    const struct keras_training *training = h5->exported->training;
    for (int i = 0; i <= h5->exported->layers->count; i++) {
        struct keras_layer layer;
        RETURN_IF(keras_layer(&layer, h5->exported->layers, order[i], h5->error));
        for (int w = 0; w < layer.trained; w++, ++*at) {
            const struct range *range = layer.weight[w];
            char path[2 * NAME_BYTES];
            snprintf(names[*at], NAME_BYTES, "%s/%.90s/%s/%s:0", training->class_name, layer.name,
                     layer.weight_name[w], training->slot_name[slot]);
            snprintf(path, sizeof path, "optimizer_weights/%.199s", names[*at]);
            RETURN_IF(
                hdf5_array(h5->file, path, &range->shape, training->slot[slot] + range->begin, h5->error));
        }
    }
    return OK;
}

/* Steps, then all arrays of one kind, then all of the other. */
static int write_state(const struct h5 *h5) {
    const struct layers_of *of = h5->exported->layers;
    const int most = 1 + (of->count + 1) * KERAS_WEIGHTS * KERAS_SLOTS;
    char(*names)[NAME_BYTES] = NULL;
    char path[2 * NAME_BYTES];
    const char **list = NULL;
    int *order = NULL, at = 0;
    int code = memory_array(&names, most, "names of arrays", h5->error);
    if (code == OK) code = memory_array(&list, most, "names of arrays", h5->error);
    if (code == OK) code = memory_array(&order, of->count + 1, "the order of layers", h5->error);
    if (code == OK) code = keras_order(order, of, h5->error);
    if (code == OK) {
        snprintf(names[at], NAME_BYTES, "%s/iter:0", h5->exported->training->class_name);
        snprintf(path, sizeof path, "optimizer_weights/%.199s", names[at++]);
        code = hdf5_number(h5->file, path, h5->exported->training->updates, h5->error);
    }
    for (int slot = 0; code == OK && slot < h5->exported->training->slots; slot++)
        code = write_slot(h5, order, slot, names, &at);
    for (int i = 0; code == OK && i < at; i++) list[i] = names[i];
    if (code == OK) code = hdf5_texts(h5->file, "optimizer_weights", "weight_names", list, at, h5->error);
    memory_free(names);
    memory_free(list);
    memory_free(order);
    return code;
}

/* What Keras 2 goes on from. */
static int write_training(const struct h5 *h5) {
    char *text = NULL;
    int code = keras_training_text(&text, h5->exported->training, h5->error);
    if (code == OK) code = hdf5_text(h5->file, "", "training_config", text, h5->error);
    if (code == OK) code = write_state(h5);
    free(text);
    return code;
}

static int write_model(const struct h5 *h5) {
    /* Both read what Keras 2 wrote last. */
    const char *version = keras_is_third(h5->exported->layers) ? "3.0.0" : "2.15.0";
    char *config = NULL;
    int code =
        keras_config_text(&config, h5->exported->layers, h5->exported->training, KERAS_SECOND, h5->error);
    if (code == OK) code = write_weights(h5);
    if (code == OK) code = hdf5_text(h5->file, "", "model_config", config, h5->error);
    for (int i = 0; code == OK && i < 2; i++) {
        code = hdf5_text(h5->file, i ? "model_weights" : "", "keras_version", version, h5->error);
        if (code == OK)
            code = hdf5_text(h5->file, i ? "model_weights" : "", "backend", "tensorflow", h5->error);
    }
    /* Keras 3 takes the optimizer's state from .keras alone, also of its own files. */
    if (code == OK && h5->exported->training->there && !keras_is_third(h5->exported->layers))
        code = write_training(h5);
    free(config);
    return code;
}

static int write(FILE *file, const struct exported *exported, struct error *error) {
    struct layers_of layers = {0};
    struct exported named = *exported;
    struct h5 h5 = {.exported = &named, .error = error};
    void *bytes = NULL;
    size_t count = 0;
    named.layers = &layers;
    int code = keras_layers_open(&layers, exported->layers, KERAS_SECOND, error);
    if (code == OK) code = hdf5_open(&h5.file, error);
    if (code == OK) code = write_model(&h5);
    if (code == OK) code = hdf5_image(h5.file, &bytes, &count, error);
    if (code == OK && fwrite(bytes, 1, count, file) != count)
        code = error_set(error, ERROR_FILE, "cannot be written");
    memory_free(bytes);
    hdf5_close(h5.file);
    layers_of_close(&layers);
    return code;
}

const struct format format_h5 = {
    .plugin = {.name = "h5", .help = HELP}, .trains = KERAS_SECOND, .ready = hdf5_ready, .write = write};

#else

const struct format format_h5 = {
    .plugin = {.name = "h5", .help = HELP},
    .needs = "libhdf5 (apt-get install libhdf5-dev, then make)",
};

#endif
