/* See network_file.h. */
#include "network_file.h"

#include <stdio.h>
#include <string.h>

#include "../base/file.h"
#include "../base/memory.h"
#include "layers_text.h"

static const struct reader *reader_of(const char *path) {
    const size_t length = strlen(path);
    for (int r = 0; readers[r]; r++)
        for (const char *const *suffix = readers[r]->suffixes; *suffix; suffix++)
            if (length > strlen(*suffix) && strcmp(path + length - strlen(*suffix), *suffix) == 0)
                return readers[r];
    return NULL;
}

bool network_file_has_reader(const char *path) {
    return reader_of(path) != NULL;
}

/* plugin: the reader that was asked for; NULL: any. */
static int refuse_name(const char *path, const struct plugin *plugin, struct error *error) {
    char all[200];
    struct text suffixes = text_into(all, sizeof all);
    for (int r = 0; readers[r]; r++)
        for (const char *const *suffix = readers[r]->suffixes; *suffix; suffix++)
            if (!plugin || plugin == &readers[r]->plugin) text_item(&suffixes, ", ", "%s", *suffix);
    return error_set(error, ERROR_USAGE, "%s: expected a name that ends with %s%s", path,
                     strchr(all, ',') ? "one of " : "", all);
}

int network_file_open(struct network_file *file, const char *path, struct error *error) {
    const struct reader *reader = reader_of(path);
    *file = (struct network_file){0};
    if (!reader) return refuse_name(path, NULL, error);
    if (reader->needs)
        return error_set(error, ERROR_USAGE, "%s: reading it needs a build with %s", path, reader->needs);
    return reader->read(file, path, error);
}

void network_file_close(struct network_file *file) {
    for (int i = 0; i < file->count; i++) memory_free(file->arrays[i].values);
    memory_free(file->arrays);
    layers_close(&file->list);
    *file = (struct network_file){0};
}

/* --- arrays --- */

/* Elements of a shape, or -1: more than any network has. */
static long long count_of(const struct shape *shape) {
    enum { FLOATS_MOST = 1 << 30 };
    long long count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 1 || shape->dims[i] > FLOATS_MOST / count) return -1;
        count *= shape->dims[i];
    }
    return count;
}

struct file_array *network_file_array(struct network_file *file, const char *name, const struct shape *shape,
                                      struct error *error) {
    enum { FIRST_ROOM = 32 };
    char words[100];
    const long long floats = count_of(shape);
    if (floats < 0) {
        error_set(error, ERROR_FILE,
                  "%.80s: found the shape %s, expected sizes of at least 1, and at most 2^30 floats", name,
                  shape_text(shape, words, sizeof words));
        return NULL;
    }
    if (file->count == file->room) {
        const int room = file->room > 0 ? 2 * file->room : FIRST_ROOM;
        if (memory_grow(&file->arrays, file->room, room, "arrays of a file", error) != OK) return NULL;
        file->room = room;
    }
    struct file_array *array = &file->arrays[file->count];
    *array = (struct file_array){.shape = *shape};
    if (snprintf(array->name, sizeof array->name, "%s", name) >= (int)sizeof array->name) {
        error_set(error, ERROR_FILE, "%.80s...: expected a name of at most %zu characters", name,
                  sizeof array->name - 1);
        return NULL;
    }
    if (memory_array(&array->values, floats, "an array of a file", error) != OK) return NULL;
    file->count++;
    return array;
}

const struct file_array *network_file_find(const struct network_file *file, const char *name) {
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->arrays[i].name, name) == 0) return &file->arrays[i];
    return NULL;
}

/* --- names --- */

static bool is_taken(const struct layer_list *list, const struct layer *layer, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (&list->layers[i] != layer && strcmp(list->layers[i].name, name) == 0) return true;
    return false;
}

void network_file_name(const struct layer_list *list, struct layer *layer, const char *name) {
    enum { NUMBERED_BYTES = LAYER_NAME_BYTES - 5 }; /* leaves room for "_1000" */
    static const char may_hold[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-/";
    char own[LAYER_NAME_BYTES], wanted[LAYER_NAME_BYTES];
    name += strspn(name, "/.-0123456789");
    const bool begins_well = *name && strchr(may_hold, *name);
    snprintf(own, sizeof own, "%s%s", begins_well ? "" : "layer", name);
    for (char *c = own; *c; c++)
        if (!strchr(may_hold, *c)) *c = '_';
    memcpy(wanted, own, sizeof own);
    for (int number = 0; !layer_name_fits(wanted) || is_taken(list, layer, wanted); number++) {
        struct text numbered = text_into(wanted, sizeof wanted);
        text_add(&numbered, "%.*s_%d", NUMBERED_BYTES - 1, own, number);
    }
    memcpy(layer->name, wanted, sizeof wanted);
}

/* --- as a model --- */

const struct option network_file_options[] = {
    OPTION_ROW(TEXT, "file", struct network_file_settings, file, .value = "FILE", .help = "the file"),
    OPTION_ROW(CHOICE, "weights", struct network_file_settings, weights, .fallback = "auto",
               .choices = "auto|same|fresh",
               .help =
                   "start with the weights in the file, or with fresh ones; auto: with those in the file, "
                   "where it has some"),
    OPTION_ROW(CHOICE, "head", struct network_file_settings, head, .fallback = "same", .choices = "same|fit",
               .help = "fit: the last dense layer gets as many outputs as the data set has classes"),
    {0},
};

/* The layer that says how many outputs there are, or LAYER_INPUT. */
static int head_of(const struct layer_list *list) {
    int at = list->count - 1;
    while (at >= 0) {
        const struct layer *layer = &list->layers[at];
        const bool passes = layer_rows[layer->kind].takes == LAYER_IS_ACTIVATION ||
                            layer->kind == LAYER_dropout || layer->kind == LAYER_global_avgpool ||
                            layer->kind == LAYER_global_maxpool;
        if (!passes || layer->inputs != 1) break;
        at = layer->input[0];
    }
    return at;
}

int network_file_classes(const struct network_file *file) {
    const int head = head_of(&file->list);
    return head == LAYER_INPUT ? 0 : file->list.layers[head].values.units;
}

static int fit_head(struct network_file *file, const char *path, struct error *error) {
    const int head = head_of(&file->list);
    if (head == LAYER_INPUT || file->list.layers[head].kind != LAYER_dense)
        return error_set(error, ERROR_FILE,
                         "%s: head=fit: found another layer at its end, expected a dense one", path);
    struct layer *layer = &file->list.layers[head];
    layer->values.units = 0;
    if (layer->activation == LAYER_sigmoid) layer->activation = LAYER_NONE; /* the loss has what fits */
    return OK;
}

static int write_text(const struct network_file *file, const char *path, char *text, size_t bytes,
                      struct error *error) {
    static const char model[] = "layers:";
    struct text words = text_growing(error);
    text_add(&words, model);
    layers_write(&file->list, "; ", &words);
    int code = text_end(&words);
    if (code == OK && words.used >= bytes)
        code = error_set(error, ERROR_FILE,
                         "%s: its network has %zu characters as a text of layers, expected fewer than %zu",
                         path, words.used, bytes);
    if (code == OK) memcpy(text, words.bytes, words.used + 1);
    memory_free(words.bytes);
    return code;
}

int network_file_text(const char *path, enum file_head head, char *text, size_t bytes, bool *has_weights,
                      struct file_optimizer *optimizer, struct error *error) {
    struct network_file file;
    int code = network_file_open(&file, path, error);
    if (code == OK && head == FILE_HEAD_FIT) code = fit_head(&file, path, error);
    if (code == OK) code = write_text(&file, path, text, bytes, error);
    *has_weights = file.count > 0;
    if (optimizer) *optimizer = file.optimizer;
    network_file_close(&file);
    return code;
}

bool network_file_is_named(const char *text) {
    return plugin_named(&reader_kind, text) != NULL;
}

int network_file_typed(char *text, size_t bytes, char *weights, struct error *error) {
    struct choice choice;
    RETURN_IF(plugin_choose(&choice, &reader_kind, text, error));
    const struct network_file_settings *settings = choice_settings(&choice);
    const char *path = settings->file, *name = choice.plugin->name;
    const struct reader *reader = reader_of(path);
    bool has_weights = false;
    if (!path[0])
        return error_set(error, ERROR_USAGE, "%s: found no file, expected %s:file=FILE", name, name);
    if (!reader) return refuse_name(path, choice.plugin, error);
    if (&reader->plugin != choice.plugin)
        return error_set(error, ERROR_USAGE, "%s: found the file %s, which %s:file=%s reads", name, path,
                         reader->plugin.name, path);
    RETURN_IF(
        network_file_text(path, (enum file_head)settings->head, text, bytes, &has_weights, NULL, error));
    if (!has_weights && settings->weights == FILE_WEIGHTS_SAME)
        return error_set(error, ERROR_FILE, "%s: found no weights, expected some for weights=same", path);
    snprintf(weights, PATH_BYTES, "%s",
             has_weights && settings->weights != FILE_WEIGHTS_FRESH ? settings->file : "");
    return OK;
}
