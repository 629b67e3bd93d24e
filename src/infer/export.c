/* See export.h. */
#include "export.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../record/progress.h"
#include "units.h"

static void all_suffixes(char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    for (int i = 0; exports[i]; i++) text_item(&text, ", ", ".%s", exports[i]->plugin.name);
}

int export_format(const struct format **format, const char *path, struct error *error) {
    struct error why = {0};
    char suffixes[200];
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    *format = NULL;
    for (int i = 0; dot && exports[i]; i++)
        if (strcmp(dot + 1, exports[i]->plugin.name) == 0) *format = exports[i];
    all_suffixes(suffixes, sizeof suffixes);
    if (!*format)
        return error_set(error, ERROR_USAGE, "%s: expected a name that ends with one of %s", path, suffixes);
    if ((*format)->needs)
        return error_set(error, ERROR_USAGE, "%s: .%s needs a build with %s", path, (*format)->plugin.name,
                         (*format)->needs);
    const int code = (*format)->ready ? (*format)->ready(&why) : OK;
    return code == OK ? OK : error_set(error, code, "%s: %s", path, why.words);
}

int export_check_free(const char *path, bool replace, struct error *error) {
    if (!path[0] || !file_exists(path)) return OK;
    if (file_is_folder(path)) return error_set(error, ERROR_FILE, "%.300s: a folder, expected a file", path);
    if (replace) return OK;
    return error_set(error, ERROR_FILE, "%.300s already exists: --replace replaces it", path);
}

int export_folder(const char *path, struct error *error) {
    const char *slash = strrchr(path, '/');
    char folder[PATH_BYTES];
    if (!slash || slash == path) return OK;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (file_is_folder(folder)) return OK;
    return error_set(error, ERROR_FILE, "--export=%.200s: there is no folder %.200s", path, folder);
}

static int write_file(const struct format *format, const char *path, const struct exported *exported,
                      struct error *error) {
    struct file_new file = {0};
    struct error why = {0};
    RETURN_IF(file_create(&file, path, error));
    int code = format->write(file.stream, exported, &why);
    if (code != OK) error_set(error, code, "%s: %s", path, why.words);
    if (code == OK) code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}

static int rehearse(FILE *nowhere, const char *path, const struct exported *exported,
                    const struct network *network, const struct units *units, float *weights,
                    struct error *error) {
    const struct format *format = NULL;
    struct error why = {0};
    RETURN_IF(export_format(&format, path, error));
    RETURN_IF(units_give(network, units, path, weights, error));
    const int code = format->write(nowhere, exported, &why);
    return code == OK ? OK : error_set(error, code, "%s: %s", path, why.words);
}

int export_rehearse(const char *path, const struct network *network, const struct units *units,
                    struct error *error) {
    struct restored untrained = {0};
    struct layers_of layers = {0};
    const struct keras_training none = {0};
    const struct exported exported = {.restored = &untrained, .layers = &layers, .training = &none};
    if (!path[0]) return OK;
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere) return OK; /* the end of the run will tell */
    int code = memory_array(&untrained.weights, network->graph.layout.floats, "the weights", error);
    if (code == OK) code = layers_of_open(&layers, network, error);
    if (code == OK) code = rehearse(nowhere, path, &exported, network, units, untrained.weights, error);
    layers_of_close(&layers);
    memory_free(untrained.weights);
    fclose(nowhere);
    return code;
}

/* Said once it is there. */
static void say_left_out(const char *path, const struct keras_training *training) {
    char words[sizeof training->words + 300];
    snprintf(words, sizeof words, "%.200s: left out: %s", path, training->words);
    if (training->words[0]) progress_warn_of(words);
}

/* Whoever gives it the numbers of a table as they are gets nonsense, and no error. A .safetensors is for
 * those who read its metadata. */
static void say_inputs(const struct format *format, const char *path, const struct restored *restored) {
    const char *name = format->plugin.name;
    char words[400];
    bool any = false;
    for (int f = 0; restored->deviation && f < restored->features; f++)
        any = any || fabsf(restored->mean[f]) > 0.0f || fabsf(restored->deviation[f] - 1.0f) > 0.0f;
    if (!any || strcmp(name, "safetensors") == 0) return;
    snprintf(words, sizeof words,
             "%.200s takes (x - mean) / deviation of each feature; both are in the metadata of %s", path,
             strcmp(name, "onnx") == 0 ? "the file" : "the run's model.safetensors");
    progress_warn_of(words);
}

int export_write(const char *checkpoint, const char *path, bool torch, bool replace, struct error *error) {
    const struct format *format = NULL;
    struct restored restored = {0};
    struct layers_of layers = {0};
    struct keras_training training = {0};
    RETURN_IF(export_format(&format, path, error));
    if (torch && !format->arrays)
        return error_set(error, ERROR_USAGE,
                         "--names=torch: .%s files have layouts of their own; expected .npz or .safetensors",
                         format->plugin.name);
    RETURN_IF(export_check_free(path, replace, error));
    int code = restored_open(&restored, checkpoint, true, error);
    const struct exported exported = {
        .restored = &restored, .layers = &layers, .training = &training, .torch = torch};
    if (code == OK && format->trains)
        code = keras_training_open(&training, &restored, checkpoint, format->trains, error);
    if (code == OK) code = layers_of_open(&layers, &restored.evaluator.pass[EVALUATE_WHOLE].network, error);
    if (code == OK)
        code = units_give(&restored.evaluator.pass[EVALUATE_WHOLE].network, &restored.units, path,
                          restored.weights, error);
    if (code == OK) code = write_file(format, path, &exported, error);
    if (code == OK) say_left_out(path, &training);
    if (code == OK) say_inputs(format, path, &restored);
    keras_training_close(&training);
    layers_of_close(&layers);
    restored_close(&restored);
    return code;
}
