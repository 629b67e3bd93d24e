/* --weights: the first weights of a run, from a file: a run's folder or checkpoint, a .safetensors file, or
 * what a reader of other programs' files reads. Matched by name and shape, layer by layer: one of which
 * anything is missing or of another shape has fresh weights, and is named. */
#include <stdio.h>
#include <string.h>

#include "../base/finite.h"
#include "../base/memory.h"
#include "../base/text.h"
#include "../graph/network_file.h"
#include "../infer/units.h"
#include "open.h"

/* The file, in one of two forms. */
struct source {
    const char *path;
    struct safetensors content;
    struct network_file network;
};

struct source_array {
    struct shape shape;
    const float *values; /* NULL: not there */
};

/* A file by its content, whatever its name; what is wrong with one of the right name is said as it is. */
static int open_tensors(struct source *source, struct error *error) {
    static const char suffix[] = ".safetensors";
    const size_t length = strlen(source->path), ending = strlen(suffix);
    const bool named = length > ending && strcmp(source->path + length - ending, suffix) == 0;
    struct error why = {0};
    const int code = safetensors_read(source->path, &source->content, &why);
    if (code == OK) return OK;
    if (code != ERROR_FILE || named) return error_set(error, code, "%s", why.words);
    return error_set(error, code,
                     "%.300s: %s, expected a run's folder, or a file that ends with .safetensors, .h5, "
                     ".keras or .onnx",
                     source->path, file_exists(source->path) ? "found another kind of file" : "no such file");
}

static int open_source(struct source *source, struct error *error) {
    if (file_is_folder(source->path)) return checkpoint_read(source->path, &source->content, error);
    if (!network_file_has_reader(source->path)) return open_tensors(source, error);
    RETURN_IF(network_file_open(&source->network, source->path, error));
    if (source->network.count > 0) return OK;
    return error_set(error, ERROR_FILE, "%s: found a network without weights, expected some", source->path);
}

static void close_source(struct source *source) {
    network_file_close(&source->network);
    safetensors_free(&source->content);
}

/* Of a checkpoint the weights that were tested: the moving average, where there is one. */
static struct source_array find(const struct source *source, const char *name) {
    char average[100];
    for (int i = 0; i < source->network.count; i++)
        if (strcmp(source->network.arrays[i].name, name) == 0)
            return (struct source_array){source->network.arrays[i].shape, source->network.arrays[i].values};
    snprintf(average, sizeof average, "average:%s", name);
    const struct tensor_entry *tensor = safetensors_tensor(&source->content, average);
    if (!tensor) tensor = safetensors_tensor(&source->content, name);
    return tensor ? (struct source_array){tensor->shape, tensor->values} : (struct source_array){0};
}

/* "conv1" of "conv1/kernel": its length. */
static size_t layer_length(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? (size_t)(slash - name) : strlen(name);
}

static bool same_layer(const struct range *a, const struct range *b) {
    const size_t length = layer_length(a->name);
    return layer_length(b->name) == length && strncmp(a->name, b->name, length) == 0;
}

/* The first weight of the layer that the file has not, or in another shape; or NULL. */
static const struct range *missing_of(const struct source *source, const struct layout *layout,
                                      const struct range *of) {
    for (int i = 0; i < layout->count; i++) {
        const struct range *range = &layout->ranges[i];
        if (!same_layer(range, of)) continue;
        const struct source_array array = find(source, range->name);
        if (!array.values || !shape_equal(&array.shape, &range->shape)) return range;
    }
    return NULL;
}

/* "dense2: kernel is [20, 10] there, [20, 3] here" */
static void say_fresh(const struct source *source, const struct range *missing, struct text *text) {
    const struct source_array array = find(source, missing->name);
    const size_t length = layer_length(missing->name);
    char here[100], there[100];
    shape_text(&missing->shape, here, sizeof here);
    const char *weight = missing->name[length] ? missing->name + length + 1 : missing->name;
    if (array.values)
        text_item(text, "; ", "%.*s: fresh, its %s is %s there, %s here", (int)length, missing->name, weight,
                  shape_text(&array.shape, there, sizeof there), here);
    else
        text_item(text, "; ", "%.*s: fresh, no %s of %s there", (int)length, missing->name, weight, here);
}

/* The names and shapes of what a file has, as far as they fit. */
static void say_found(const struct source *source, struct text *text) {
    char shape[100];
    for (int i = 0; i < source->network.count; i++)
        if (!strchr(source->network.arrays[i].name, ':'))
            text_item(text, ", ", "%s %s", source->network.arrays[i].name,
                      shape_text(&source->network.arrays[i].shape, shape, sizeof shape));
    for (int i = 0; i < source->content.tensor_count; i++)
        if (!strchr(source->content.tensors[i].name, ':'))
            text_item(text, ", ", "%s %s", source->content.tensors[i].name,
                      shape_text(&source->content.tensors[i].shape, shape, sizeof shape));
}

static int nothing_fits(const struct source *source, const struct layout *layout, struct error *error) {
    char found[160], expected[160], shape[100];
    struct text there = text_into(found, sizeof found), here = text_into(expected, sizeof expected);
    say_found(source, &there);
    for (int i = 0; i < layout->count; i++)
        text_item(&here, ", ", "%s %s", layout->ranges[i].name,
                  shape_text(&layout->ranges[i].shape, shape, sizeof shape));
    return error_set(error, ERROR_FILE, "%s: no layer fits: found %s%s, expected %s%s", source->path,
                     *found ? found : "no weights", there.cut ? "..." : "", expected, here.cut ? "..." : "");
}

static int take(const struct source *source, const struct range *range, float *weights, struct error *error) {
    const struct source_array array = find(source, range->name);
    if (!all_finite(array.values, range->floats))
        return error_set(error, ERROR_FILE, "%s: %s has numbers that are not finite: its training diverged",
                         source->path, range->name);
    memcpy(weights + range->begin, array.values, range->floats * sizeof(float));
    return OK;
}

static int take_all(struct run *run, const struct source *source, float *weights, struct error *error) {
    const struct layout *layout = &run->setup.network.graph.layout;
    struct text fresh = text_into(run->fresh, sizeof run->fresh);
    const struct range *said = NULL;
    int taken = 0;
    for (int i = 0; i < layout->count; i++) {
        const struct range *range = &layout->ranges[i], *missing = missing_of(source, layout, range);
        if (missing && (!said || !same_layer(said, range))) say_fresh(source, missing, &fresh);
        if (missing)
            said = range;
        else
            RETURN_IF(take(source, range, weights, error));
        taken += !missing;
    }
    return taken > 0 ? OK : nothing_fits(source, layout, error);
}

/* A network says values in its own units: a checkpoint's are among its texts, other programs have them as
 * they are. A last layer that is fresh says nothing yet. *same: they are the same here. */
static int take_units(const struct run *run, const struct source *source, float *weights, bool *same,
                      struct error *error) {
    const struct network *network = &run->setup.network;
    const struct dataset *dataset = &run->setup.dataset;
    const struct range *bias = units_layer(network).bias;
    struct units there = {0};
    *same = true;
    if (dataset->task != TASK_VALUES || (bias && missing_of(source, &network->graph.layout, bias))) return OK;
    int code = units_read(&there, &source->content, source->path, dataset->classes, error);
    if (code == OK && !units_equal(&there, &dataset->units, dataset->classes)) {
        *same = false;
        code = units_give(network, &there, source->path, weights, error);
        if (code == OK) code = units_take(network, &dataset->units, source->path, weights, error);
    }
    memory_free(there.mean);
    memory_free(there.deviation);
    return code;
}

/* Of an import: the state of the optimizer, where the file has it, and with it the number of updates. */
static int take_state(struct run *run, const struct source *source, bool same_units, struct error *error) {
    const struct layout *layout = &run->setup.network.graph.layout;
    const struct file_optimizer *optimizer = &source->network.optimizer;
    const struct state *state = &run->store.host;
    progress_warn_of(optimizer->words);
    if (!optimizer->text[0]) return OK;
    if (!same_units) {
        progress_warn(&run->progress,
                      "%.200s: its optimizer is left out: values have other units here (standardize=0 "
                      "leaves them as they are)",
                      source->path);
        return OK;
    }
    for (int v = 1; v <= optimizer_of(&run->setup.choices.optimizer)->moments; v++)
        for (int i = 0; i < layout->count; i++) {
            char name[sizeof source->network.arrays->name + sizeof layout->ranges->name];
            const struct range *range = &layout->ranges[i];
            snprintf(name, sizeof name, "%s:%s", state->vector[v].name, range->name);
            const struct file_array *array = network_file_find(&source->network, name);
            if (!array) continue; /* of what is not trained there */
            if (!shape_equal(&array->shape, &range->shape))
                return error_set(error, ERROR_INTERNAL, "%s: %s has another shape", source->path, name);
            memcpy(state->vector[v].at + range->begin, array->values, range->floats * sizeof(float));
        }
    store_set_version(&run->store, optimizer->updates);
    return OK;
}

int run_check_weights(const char *path, struct error *error) {
    struct source source = {.path = path};
    const int code = open_source(&source, error);
    close_source(&source);
    return code;
}

/* Weights of features that stand in another order here, or of other classes, may be wanted. */
static void warn_of_names(struct run *run, const struct source *source) {
    struct error why = {0};
    if (dataset_expect_names(&run->setup.dataset, safetensors_text(&source->content, "class_names"),
                             safetensors_text(&source->content, "feature_names"), &why) != OK)
        progress_warn(&run->progress, "%.200s: %s", source->path, why.words);
}

/* Here the loss has the softmax or sigmoid behind the last layer, and what is exported has it, too. */
static void say_end(struct run *run, const struct source *source) {
    const struct layer_list *list = &source->network.list;
    const enum task task = run->setup.dataset.task;
    const enum layer_kind end = task == TASK_CLASSES  ? LAYER_softmax
                                : task == TASK_LABELS ? LAYER_sigmoid
                                                      : LAYER_NONE;
    if (!run->imports || !source->network.ends_there || end == LAYER_NONE) return;
    const struct layer *last = &list->layers[list->count - 1];
    if (last->kind == end || last->activation == end) return;
    progress_warn(&run->progress,
                  "%.200s: it does not end with a %s; here one follows, also in what is exported",
                  source->path, layer_rows[end].name);
}

int run_take_weights(struct run *run, float *weights, struct error *error) {
    struct source source = {.path = run->setup.config.weights};
    bool same = true;
    int code = open_source(&source, error);
    if (code == OK && strcmp(run->setup.config.freeze, "none") == 0) progress_warn_of(source.network.notice);
    if (code == OK) progress_warn_of(source.network.left_out);
    if (code == OK) say_end(run, &source);
    if (code == OK && safetensors_text(&source.content, "class_names")) warn_of_names(run, &source);
    if (code == OK) code = take_all(run, &source, weights, error);
    if (code == OK) code = take_units(run, &source, weights, &same, error);
    if (code == OK && run->imports) code = take_state(run, &source, same, error);
    close_source(&source);
    return code;
}
