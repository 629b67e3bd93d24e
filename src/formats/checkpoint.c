/* Checkpoints: one safetensors file, so that one rename replaces the old state. A checkpoint without a
 * checksum is refused, because a damaged name of the checksum would look the same. */
#include "checkpoint.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/file.h"
#include "../base/finite.h"
#include "../base/memory.h"
#include "../data/dataset.h"

enum { NAME_BYTES = 160, SHAPE_BYTES = 128, LIST_BYTES = 1 << 20 };

/* The file under a temporary name, then under its own. */
static int write_file(const char *path, const struct safetensors *content, struct error *error) {
    struct file_new file = {0};
    RETURN_IF(file_create(&file, path, error));
    int code = safetensors_write(file.stream, content, true, error);
    if (code != OK)
        error_prefix(error, "%s: ", path);
    else
        code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}

/* What is not finite cannot be gone on from, and must never replace what can. */
static int check_finite(const char *path, const struct layout *layout, const struct state *state,
                        struct error *error) {
    for (int v = 0; v < state->count; v++)
        for (int i = 0; i < layout->count; i++) {
            const struct range *range = &layout->ranges[i];
            const char *vector = state->vector[v].name;
            if (all_finite(state->vector[v].at + range->begin, range->floats)) continue;
            return error_set(error, ERROR_DIVERGED, "%s is not written: %s%s%s is not finite", path, vector,
                             *vector ? ":" : "", range->name);
        }
    return OK;
}

/* A tensor a range, windows of `values`; names lie in names[layout->count][NAME_BYTES]. */
static int name_tensors(const struct layout *layout, const char *prefix, const float *values,
                        struct tensor_entry *tensors, char (*names)[NAME_BYTES], struct error *error) {
    for (int i = 0; i < layout->count; i++) {
        const struct range *range = &layout->ranges[i];
        const int bytes = snprintf(names[i], NAME_BYTES, "%s%s%s", prefix, *prefix ? ":" : "", range->name);
        if (bytes < 0 || bytes >= NAME_BYTES)
            return error_set(error, ERROR_INTERNAL,
                             "the tensor's name %.60s... has %d bytes, expected less than %d", names[i],
                             bytes, NAME_BYTES);
        tensors[i] =
            (struct tensor_entry){.name = names[i], .shape = range->shape, .values = values + range->begin};
    }
    return OK;
}

static int write_snapshot(const char *path, const struct layout *layout, const struct snapshot *snapshot,
                          struct error *error) {
    const struct state *state = snapshot->state;
    const size_t ranges = (size_t)layout->count, vectors = (size_t)state->count;
    char(*names)[NAME_BYTES] = NULL;
    struct tensor_entry *tensors = NULL;
    int code = check_finite(path, layout, state, error);
    if (code == OK) code = memory_array(&names, ranges * vectors, "the names of a checkpoint", error);
    if (code == OK) code = memory_array(&tensors, ranges * vectors, "the tensors of a checkpoint", error);
    for (size_t i = 0; i < vectors && code == OK; i++)
        code = name_tensors(layout, state->vector[i].name, state->vector[i].at, tensors + i * ranges,
                            names + i * ranges, error);
    /* The texts are only read; content holds what it reads through the same struct as what it owns. */
    const struct safetensors content = {.tensors = tensors,
                                        .tensor_count = (int)(ranges * vectors),
                                        .texts = (struct text_entry *)snapshot->texts,
                                        .text_count = snapshot->text_count};
    if (code == OK) code = write_file(path, &content, error);
    memory_free(tensors);
    memory_free(names);
    return code;
}

int checkpoint_write(const char *folder, enum checkpoint_which which, const struct layout *layout,
                     const struct snapshot *snapshot, struct error *error) {
    static const char *const places[] = {
        [CHECKPOINT_LAST] = "checkpoint", [CHECKPOINT_BEST] = "checkpoint/best"};
    char inner[PATH_BYTES], path[PATH_BYTES];
    RETURN_IF(file_join(inner, folder, places[which], error));
    RETURN_IF(file_join(path, inner, "state.safetensors", error));
    RETURN_IF(file_make_folder(inner, error));
    return write_snapshot(path, layout, snapshot, error);
}

int model_write(const char *path, const struct layout *layout, const float *weights,
                const struct text_entry *texts, int text_count, struct error *error) {
    /* The weights are only read. */
    const struct state state = {.count = 1, .vector = {{.name = "", .at = (float *)weights}}};
    const struct snapshot snapshot = {.state = &state, .texts = texts, .text_count = text_count};
    return write_snapshot(path, layout, &snapshot, error);
}

/* Takes the last part off a path when it is that one. */
static void take_off(char *path, const char *part) {
    const size_t bytes = strlen(path), tail = strlen(part);
    if (bytes < tail || strcmp(path + bytes - tail, part) != 0) return;
    if (bytes == tail)
        memcpy(path, ".", sizeof ".");
    else if (path[bytes - tail - 1] == '/')
        path[bytes - tail - (bytes - tail > 1)] = '\0';
}

void checkpoint_run(const char *path, char out[PATH_BYTES]) {
    char inner[PATH_BYTES];
    struct error ignored = {0};
    snprintf(out, PATH_BYTES, "%s", path);
    for (size_t bytes = strlen(out); bytes > 1 && out[bytes - 1] == '/'; bytes--) out[bytes - 1] = '\0';
    take_off(out, "state.safetensors");
    /* A run's own folder may have any name. */
    if (file_join(inner, out, "checkpoint", &ignored) == OK && !file_is_folder(inner))
        take_off(out, "checkpoint");
}

bool checkpoint_is_best(const char *path) {
    static const char best[] = "checkpoint/best";
    const size_t bytes = strlen(path), tail = sizeof best - 1;
    if (bytes < tail || strcmp(path + bytes - tail, best) != 0) return false;
    return bytes == tail || path[bytes - tail - 1] == '/';
}

/* An earlier program augmented no images unless it was asked to. Its checkpoints have no "augment" among
 * their texts; what they say of the data set is made to mean what it meant there. */
static int read_dataset(struct safetensors *content, struct error *error) {
    struct choice choice;
    struct error ignored = {0};
    struct text_entry *entry = NULL;
    for (int i = 0; i < content->text_count; i++)
        if (strcmp(content->texts[i].name, "dataset") == 0) entry = &content->texts[i];
    if (!entry || safetensors_text(content, "augment") || strstr(entry->text, "augment=") ||
        plugin_choose(&choice, &dataset_kind, entry->text, &ignored) != OK)
        return OK;
    const struct option *row = option_find(choice.plugin->options, "augment");
    if (!row || strcmp(row->fallback, "none") == 0) return OK;
    void **block = &content->blocks[sizeof content->blocks / sizeof *content->blocks - 1];
    const size_t bytes = strlen(entry->text) + sizeof ":augment=none";
    RETURN_IF(memory_zeroed(block, bytes, 1, "a checkpoint's data set", error));
    snprintf(*block, bytes, "%s%caugment=none", entry->text, strchr(entry->text, ':') ? ',' : ':');
    entry->text = *block;
    return OK;
}

/* The first run of a comparison; its list of them has lines "FOLDER REPEATS". */
static int check_comparison(const char *folder, struct error *error) {
    char path[PATH_BYTES];
    char *list = NULL;
    size_t bytes = 0;
    RETURN_IF(file_join(path, folder, ".runs", error));
    if (!file_exists(path)) return OK;
    RETURN_IF(file_read_plain(path, LIST_BYTES, &list, &bytes, error));
    const int code = error_set(error, ERROR_FILE,
                               "%.200s has the runs of trainer bench, expected one of them, such as "
                               "%.200s/%.*s/1",
                               folder, folder, (int)strcspn(list, " \n"), list);
    memory_free(list);
    return code;
}

/* The folder of a contender, or of any other runs that are numbered. */
static int check_runs(const char *folder, struct error *error) {
    char first[PATH_BYTES];
    RETURN_IF(file_join(first, folder, "1/checkpoint", error));
    if (!file_is_folder(first)) return OK;
    return error_set(error, ERROR_FILE, "%.200s has several runs, expected one of them, such as %.200s/1",
                     folder, folder);
}

/* A folder of several runs is none of one. */
static int check_several(const char *folder, struct error *error) {
    static const char *const verbs[] = {"sweep", "ensemble"};
    for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++) {
        char name[20], path[PATH_BYTES];
        snprintf(name, sizeof name, "%s.csv", verbs[v]);
        RETURN_IF(file_join(path, folder, name, error));
        if (file_exists(path))
            return error_set(
                error, ERROR_FILE,
                "%.200s has the runs of trainer %s, expected one of them, such as %.200s/1; trainer %s "
                "--resume=%.200s goes on with all",
                folder, verbs[v], folder, verbs[v], folder);
    }
    RETURN_IF(check_comparison(folder, error));
    return check_runs(folder, error);
}

int checkpoint_read(const char *path, struct safetensors *content, struct error *error) {
    *content = (struct safetensors){0};
    char inner[PATH_BYTES], file[PATH_BYTES];
    const char *found = path;
    if (file_is_folder(path)) {
        RETURN_IF(file_join(inner, path, "checkpoint", error));
        RETURN_IF(file_join(file, file_is_folder(inner) ? inner : path, "state.safetensors", error));
        if (!file_exists(file)) {
            RETURN_IF(check_several(path, error));
            RETURN_IF(file_join(file, inner, "state.safetensors", error));
            return error_set(error, ERROR_FILE,
                             "%s: no checkpoint in it, expected %s (a run writes it every --checkpoint-every "
                             "seconds, when it is interrupted, and at its end)",
                             path, file);
        }
        found = file;
    } else if (!file_exists(path)) {
        return error_set(
            error, ERROR_FILE,
            "%s: No such file or folder, expected a run's folder or a .safetensors file that a run wrote",
            path);
    }
    RETURN_IF(safetensors_read(found, content, error));
    if (safetensors_text(content, "checksum")) return read_dataset(content, error);
    safetensors_free(content);
    return error_set(error, ERROR_FILE, "%s: no checksum in it, expected one in a checkpoint", found);
}

/* The tensor of a range: there, and of its shape. */
static int find_tensor(const char *path, const struct safetensors *content, const char *prefix,
                       const struct range *range, const struct tensor_entry **found, struct error *error) {
    char name[NAME_BYTES], here[SHAPE_BYTES], there[SHAPE_BYTES];
    snprintf(name, sizeof name, "%s%s", prefix, range->name);
    *found = safetensors_tensor(content, name);
    shape_text(&range->shape, here, sizeof here);
    if (!*found)
        return error_set(error, ERROR_FILE, "%s: %s is missing here, %s in the model", path, name, here);
    if (shape_equal(&(*found)->shape, &range->shape)) return OK;
    return error_set(error, ERROR_FILE, "%s: %s is %s here, %s in the model", path, name,
                     shape_text(&(*found)->shape, there, sizeof there), here);
}

/* A tensor with the prefix (without a prefix: one without a colon) that is no range's. */
static int find_extra(const char *path, const struct safetensors *content, const char *prefix,
                      const struct layout *layout, struct error *error) {
    const size_t prefix_bytes = strlen(prefix);
    for (int i = 0; i < content->tensor_count; i++) {
        const struct tensor_entry *tensor = &content->tensors[i];
        const bool concerned =
            *prefix ? strncmp(tensor->name, prefix, prefix_bytes) == 0 : strchr(tensor->name, ':') == NULL;
        if (!concerned || layout_find(layout, tensor->name + prefix_bytes)) continue;
        char shape[SHAPE_BYTES];
        return error_set(error, ERROR_FILE, "%s: %.80s is %s here, not in the model", path, tensor->name,
                         shape_text(&tensor->shape, shape, sizeof shape));
    }
    return OK;
}

int checkpoint_fits(const char *path, const struct safetensors *content, const char *prefix,
                    const struct layout *layout, bool exact, struct error *error) {
    const struct tensor_entry *tensor = NULL;
    for (int i = 0; i < layout->count; i++)
        RETURN_IF(find_tensor(path, content, prefix, &layout->ranges[i], &tensor, error));
    return exact ? find_extra(path, content, prefix, layout, error) : OK;
}

int checkpoint_load(const char *path, const struct safetensors *content, const char *prefix,
                    const struct layout *layout, bool exact, float *values, struct error *error) {
    const struct tensor_entry *tensor = NULL;
    RETURN_IF(checkpoint_fits(path, content, prefix, layout, exact, error));
    memset(values, 0, layout->floats * sizeof *values);
    for (int i = 0; i < layout->count; i++) {
        const struct range *range = &layout->ranges[i];
        RETURN_IF(find_tensor(path, content, prefix, range, &tensor, error));
        memcpy(values + range->begin, tensor->values, range->floats * sizeof *values);
        if (all_finite(values + range->begin, range->floats)) continue;
        return error_set(error, ERROR_FILE, "%s: %s%s has numbers that are not finite: its training diverged",
                         path, prefix, range->name);
    }
    return OK;
}

/* strtoll and strtod skip what stands in front of a number, stop at what stands behind it, and know words. */
static bool has_only(const char *text, const char *allowed) {
    return text && text[0] != '\0' && text[strspn(text, allowed)] == '\0';
}

long long checkpoint_number(const struct safetensors *checkpoint, const char *name, long long usual) {
    const char *text = safetensors_text(checkpoint, name);
    char *end = NULL;
    if (!has_only(text, "0123456789-")) return usual;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0 ? number : usual;
}

double checkpoint_real(const struct safetensors *checkpoint, const char *name, double usual) {
    const char *text = safetensors_text(checkpoint, name);
    char *end = NULL;
    if (!has_only(text, "0123456789+-.eE")) return usual;
    const double number = strtod(text, &end);
    return *end == '\0' && isfinite(number) ? number : usual;
}

bool checkpoint_has(const struct safetensors *checkpoint, const char *vector, const struct layout *layout) {
    char name[160];
    if (layout->count == 0) return false;
    snprintf(name, sizeof name, "%s:%s", vector, layout->ranges[0].name);
    return safetensors_tensor(checkpoint, name) != NULL;
}

bool checkpoint_shape(const struct safetensors *checkpoint, struct shape *shape) {
    enum { DIM_MOST = 1000000, VALUES_MOST = 100000000 };
    const char *text = safetensors_text(checkpoint, "shape");
    long values = 1;
    *shape = (struct shape){0};
    while (text && *text) {
        char *end = NULL;
        const long dim = strtol(text, &end, 10);
        if (end == text || dim < 1 || dim > DIM_MOST || shape->rank >= MAX_RANK - 1 ||
            values * dim > VALUES_MOST)
            return false;
        shape->dims[shape->rank++] = (int)dim;
        values *= dim;
        text = *end == ',' ? end + 1 : end;
    }
    return shape->rank > 0;
}

bool checkpoint_reals(const char *text, float *values, int count) {
    for (int i = 0; i < count; i++) {
        char *end = NULL;
        values[i] = strtof(text, &end);
        if (end == text || *end != (i + 1 < count ? ',' : '\0') || !isfinite(values[i])) return false;
        text = end + 1;
    }
    return true;
}
