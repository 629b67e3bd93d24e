/* See network_file.h. */
#include "network_file.h"

#include <stdio.h>
#include <string.h>

#include "../base/memory.h"

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

int network_file_open(struct network_file *file, const char *path, struct error *error) {
    const struct reader *reader = reader_of(path);
    char all[200];
    struct text suffixes = text_into(all, sizeof all);
    *file = (struct network_file){0};
    for (int r = 0; readers[r]; r++)
        for (const char *const *suffix = readers[r]->suffixes; *suffix; suffix++)
            text_item(&suffixes, ", ", "%s", *suffix);
    if (!reader)
        return error_set(error, ERROR_USAGE, "%s: expected a name that ends with one of %s", path, all);
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
    snprintf(own, sizeof own, "%s", *name ? name : "layer");
    for (char *c = own; *c; c++)
        if (!strchr(may_hold, *c)) *c = '_';
    memcpy(wanted, own, sizeof own);
    for (int number = 0; !layer_name_fits(wanted) || is_taken(list, layer, wanted); number++) {
        struct text numbered = text_into(wanted, sizeof wanted);
        text_add(&numbered, "%.*s_%d", NUMBERED_BYTES - 1, own, number);
    }
    memcpy(layer->name, wanted, sizeof wanted);
}
