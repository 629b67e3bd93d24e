/* Fuzzing of Keras' files: clang -fsanitize=fuzzer,address over this file and the library. The first byte of
 * the input chooses the form: JSON, .h5, .keras. Starts from whole models of several layers, as the exporters
 * write them where libhdf5 is there. What is accepted is a network that can be written as text and read
 * again, with arrays that belong to its layers. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/formats/zip_write.h"
#include "../src/graph/layers_text.h"
#include "../src/imports/keras.h"
#include "../src/store/optimizer.h"
#include "fuzz.h"

#if TRAINER_HDF5
#    include "../src/formats/hdf5.h"
static const char *const names[] = {"configurations", ".h5 files", ".keras files", "with an optimizer", NULL};
#else
static const char *const names[] = {"configurations", NULL};
#endif
enum { FORMS = 3, SAMPLE_MOST = 1 << 16 };

/* One that --optimizer takes. */
static void check_optimizer(const struct file_optimizer *optimizer) {
    struct choice choice;
    struct error error = {0};
    fuzz.accepted[FORMS]++;
    fuzz_require(plugin_choose(&choice, &optimizer_kind, optimizer->text, &error) == OK);
    fuzz_require(optimizer->updates > 0);
}

static void check(const struct network_file *file, enum keras_form form) {
    struct error error = {0};
    struct layer_list again;
    struct text text = text_growing(&error);
    fuzz.accepted[form]++;
    layers_write(&file->list, "\n", &text);
    fuzz_require(text_end(&text) == OK);
    fuzz_require(layers_parse(&again, "again", text.bytes, text.used, ERROR_INTERNAL, &error) == OK);
    fuzz_require(again.count == file->list.count);
    layers_close(&again);
    memory_free(text.bytes);
    if (form != KERAS_JSON && file->optimizer.text[0]) check_optimizer(&file->optimizer);
    for (int i = 0; i < file->count; i++) {
        const struct file_array *array = &file->arrays[i];
        const size_t floats = shape_count(&array->shape);
        fuzz_require(floats > 0 && strchr(array->name, '/') != NULL && isfinite(array->values[floats - 1]));
    }
}

/* --- samples --- */

static const char before[] = "{\"class_name\": \"Functional\", \"config\": {\"name\": \"n\", \"layers\": [";
static const char input[] =
    "{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"in\", \"batch_shape\": [null, 4, 4, 1]}, "
    "\"inbound_nodes\": []}";
static const char behind[] = "], \"input_layers\": [[\"in\", 0, 0]], \"output_layers\": [[\"out\", 0, 0]]}";

/* Optimizers that a model may have been compiled with, and how many arrays each of its variables has. */
static const struct {
    const char *settings;
    int slots;
} optimizers_there[] = {
    {"\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01, \"beta_1\": 0.9, \"weight_decay\": "
     "0.1}",
     2},
    {"\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.5, \"momentum\": 0.9, \"nesterov\": true}",
     1},
    {"\"class_name\": \"Adagrad\", \"config\": {\"learning_rate\": 0.1, \"epsilon\": 0.001}", 1}};
enum { OPTIMIZERS = (int)(sizeof optimizers_there / sizeof *optimizers_there) };

/* Layers between the input and the end: each takes `%s`, in one of the two ways. */
static const char *const layers[][2] = {
    {"Conv2D", "\"filters\": 2, \"kernel_size\": [1, 1], \"activation\": \"relu\""},
    {"BatchNormalization", "\"axis\": [3], \"momentum\": 0.9, \"epsilon\": 0.001, \"center\": true"},
    {"MaxPooling2D", "\"pool_size\": [2, 2], \"padding\": \"same\", \"strides\": [1, 1]"},
    {"ZeroPadding2D", "\"padding\": [[1, 0], [0, 1]]"},
    {"LeakyReLU", "\"negative_slope\": 0.3"},
    {"Activation", "\"activation\": \"swish\""},
    {"Dropout", "\"rate\": 0.25, \"noise_shape\": null"},
    {"GlobalAveragePooling2D", "\"keepdims\": true"},
    {"Flatten", "\"data_format\": \"channels_last\""},
    {"Concatenate", "\"axis\": -1"}};
enum { LAYERS = (int)(sizeof layers / sizeof *layers) };

static void add_layer(struct text *text, const char *class_name, const char *name, const char *settings,
                      const char *from, bool twice, unsigned seed) {
    text_add(text, ", {\"class_name\": \"%s\", \"config\": {\"name\": \"%s\", %s}, \"inbound_nodes\": [",
             class_name, name, settings);
    if (seed & 1) {
        const char *open = twice ? "[" : "", *close = twice ? "]" : "";
        text_add(text, "{\"args\": [%s", open);
        for (int i = 0; i < 1 + twice; i++)
            text_add(
                text,
                "%s{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": [null], \"keras_history\": "
                "[\"%s\", 0, 0]}}",
                i ? ", " : "", from);
        text_add(text, "%s], \"kwargs\": {}}", close);
    } else {
        text_add(text, "[[\"%s\", 0, 0, {}]", from);
        text_add(text, twice ? ", [\"%s\", 0, 0, {}]]" : "]", from);
    }
    text_add(text, "]}");
}

/* Some models are the only layer of another one. */
static bool is_within(unsigned seed) {
    return seed & 0x40;
}

static void make_config(struct text *text, unsigned seed) {
    char name[3] = "in";
    if (is_within(seed))
        text_add(text, "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": [");
    text_add(text, "%s%s", before, input);
    for (int i = 0; i < LAYERS; i++) {
        char next[3] = {'l', (char)('0' + i), '\0'};
        const bool twice = strcmp(layers[i][0], "Concatenate") == 0;
        const bool always = i <= 1 || strcmp(layers[i][0], "Flatten") == 0; /* a Dense takes rows */
        if (!always && !(seed >> i & 2)) continue;
        add_layer(text, layers[i][0], next, layers[i][1], name, twice, seed);
        memcpy(name, next, sizeof name);
    }
    add_layer(text, "Dense", "out", "\"units\": 2, \"use_bias\": false", name, false, seed);
    text_add(text, "%s", behind);
    if (is_within(seed)) text_add(text, "}]}");
    text_add(text, ", \"compile_config\": {\"optimizer\": {%s}}}",
             optimizers_there[seed % OPTIMIZERS].settings);
}

#if TRAINER_HDF5
/* What the weights of all layers are called in the group of the model around them. */
struct names_within {
    char texts[8][40];
    const char *list[8];
    int count;
};

/* The arrays of a layer: so many, of that shape; the others are vectors. */
static void add_arrays(struct hdf5 *file, const char *layer, const char *class_name,
                       const struct shape *shape, int count, bool by_class, struct names_within *within,
                       struct error *error) {
    static const float values[16] = {1, 2, 3};
    char group[100], path[150], array[4][40];
    const char *list[4];
    if (by_class)
        snprintf(group, sizeof group, "%slayers/%s/vars", within ? "layers/functional/" : "", class_name);
    else
        snprintf(group, sizeof group, "model_weights/%s", within ? "n" : layer);
    for (int i = 0; i < count; i++) {
        const struct shape vector = SHAPE(2);
        if (by_class)
            snprintf(array[i], sizeof array[i], "%d", i);
        else
            snprintf(array[i], sizeof array[i], within ? "%s/w%d:0" : "%.0sw%d:0", layer, i);
        snprintf(path, sizeof path, "%s/%s", group, array[i]);
        list[i] = array[i];
        hdf5_array(file, path, i == 0 ? shape : &vector, values, error);
        if (!within) continue;
        memcpy(within->texts[within->count], array[i], sizeof array[i]);
        within->list[within->count] = within->texts[within->count];
        within->count++;
    }
    if (!by_class && !within) hdf5_texts(file, group, "weight_names", list, count, error);
}

/* Steps, learning rate, and the arrays of the five variables, one after the other. */
static void add_optimizer(struct hdf5 *file, unsigned seed, bool by_class, struct error *error) {
    static const float values[16] = {1, 2, 3};
    const struct shape shapes[] = {SHAPE(1, 1, 1, 2), SHAPE(2), SHAPE(2), SHAPE(2), SHAPE(4, 2)};
    const int slots = optimizers_there[seed % OPTIMIZERS].slots, count = 2 + slots * 5;
    char path[60], places[2 + 2 * 5][8], training[300];
    const char *list[2 + 2 * 5];
    for (int i = 0; i < count; i++) {
        snprintf(places[i], sizeof places[i], "%d", i);
        snprintf(path, sizeof path, by_class ? "optimizer/vars/%d" : "optimizer_weights/%d", i);
        list[i] = places[i];
        if (i == 0)
            hdf5_number(file, path, 7, error);
        else
            hdf5_array(file, path, i == 1 ? &(struct shape){0} : &shapes[(i - 2) / slots], values, error);
    }
    if (by_class) return;
    snprintf(training, sizeof training, "{\"optimizer_config\": {%s}}",
             optimizers_there[seed % OPTIMIZERS].settings);
    hdf5_text(file, "", "training_config", training, error);
    hdf5_texts(file, "optimizer_weights", "weight_names", list, count, error);
}

static void make_hdf5(const char *config, unsigned seed, bool by_class, void **bytes, size_t *count) {
    struct error error = {0};
    struct hdf5 *file = NULL;
    fuzz_require(hdf5_open(&file, &error) == OK);
    struct names_within all = {.count = 0}, *within = is_within(seed) ? &all : NULL;
    if (!by_class) hdf5_text(file, "", "model_config", config, &error);
    add_arrays(file, "l0", "conv2d", &SHAPE(1, 1, 1, 2), 2, by_class, within, &error);
    add_arrays(file, "l1", "batch_normalization", &SHAPE(2), 4, by_class, within, &error);
    add_arrays(file, "out", "dense", &SHAPE(4, 2), 1, by_class, within, &error);
    if (within && !by_class) hdf5_texts(file, "model_weights/n", "weight_names", all.list, all.count, &error);
    add_optimizer(file, seed, by_class, &error);
    fuzz_require(hdf5_image(file, bytes, count, &error) == OK && error.code == OK);
    hdf5_close(file);
}

static size_t make_archive(const char *config, unsigned seed, uint8_t *out) {
    struct error error = {0};
    void *weights = NULL;
    char *archive = NULL;
    size_t count = 0, bytes = 0;
    make_hdf5(config, seed, true, &weights, &count);
    FILE *stream = open_memstream(&archive, &bytes);
    struct zip_writing zip = {.file = stream};
    static const char metadata[] = "{\"keras_version\": \"3.0.0\"}";
    const struct zip_piece pieces[] = {
        {config, strlen(config)}, {weights, count}, {metadata, sizeof metadata - 1}};
    fuzz_require(zip_add(&zip, "metadata.json", &pieces[2], 1, &error) == OK);
    fuzz_require(zip_add(&zip, "config.json", &pieces[0], 1, &error) == OK);
    fuzz_require(zip_add(&zip, "model.weights.h5", &pieces[1], 1, &error) == OK);
    fuzz_require(zip_end(&zip, &error) == OK);
    zip_close(&zip);
    fclose(stream);
    fuzz_require(bytes < SAMPLE_MOST);
    memcpy(out, archive, bytes);
    memory_free(weights);
    free(archive);
    return bytes;
}
#endif

#if TRAINER_HDF5
/* A whole file of that form: into out[SAMPLE_MOST]. */
static size_t make_sample(uint8_t *out, enum keras_form form, unsigned seed) {
    char config[8000];
    struct text text = text_into(config, sizeof config);
    void *bytes = NULL;
    size_t count = 0;
    make_config(&text, seed);
    if (form == KERAS_ARCHIVE) return make_archive(config, seed, out);
    make_hdf5(config, seed, false, &bytes, &count);
    fuzz_require(count < SAMPLE_MOST);
    memcpy(out, bytes, count);
    memory_free(bytes);
    return count;
}

/* The file that the input chooses, with its changes; each is made once. */
static size_t changed(uint8_t *out, enum keras_form form, const uint8_t *data, size_t bytes) {
    enum { SEEDS = 8, PLACE = 3 };
    static uint8_t samples[FORMS][SEEDS][SAMPLE_MOST];
    static size_t counts[FORMS][SEEDS];
    const unsigned seed = data[0] % SEEDS;
    size_t *count = &counts[form][seed];
    if (*count == 0) *count = make_sample(samples[form][seed], form, seed * 37);
    memcpy(out, samples[form][seed], *count);
    for (size_t i = 1; i + PLACE <= bytes; i += PLACE)
        out[(size_t)(data[i] | data[i + 1] << 8) % *count] = data[i + 2];
    return *count;
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct network_file file = {0};
    struct error error = {0};
    const uint8_t *at = data + 1;
    size_t count = bytes - 1;
    fuzz_count(names);
    if (bytes < 2) return 0;
    enum keras_form form = (enum keras_form)(data[0] % FORMS);
#if TRAINER_HDF5
    static uint8_t sample[SAMPLE_MOST];
    if (form != KERAS_JSON) {
        count = changed(sample, form, at, count);
        at = sample;
    }
#else
    form = KERAS_JSON;
#endif
    if (keras_file_read(&file, "f", form, at, count, &error) == OK)
        check(&file, form);
    else
        fuzz_require(error.code == ERROR_FILE && strncmp(error.words, "f: ", 3) == 0);
    network_file_close(&file);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0 && most > 4) {
        data[0] = (uint8_t)(seed / 16 % FORMS);
        data[1] = (uint8_t)(seed / 48);
        bytes = 2;
        if (data[0] == KERAS_JSON) {
            struct text text = text_into((char *)data + 1, most - 1);
            make_config(&text, seed / 48);
            bytes = text.used + 1;
        }
        if (seed / 48 % 4 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
