/* Opening and closing data sets, and where their files are looked for. The plug-ins in datasets/ do the
 * reading. */
#include "dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/file.h"
#include "../base/memory.h"
#include "../base/text.h"
#include "../base/utf8.h"
#include "sources.h"
#include "standardize.h"

enum { MAX_FOLDERS = 3, NAME_BYTES = 128 };

/* Fills folders[MAX_FOLDERS + 1] with the search folders in their order; `cache` holds the one that is put
 * together. */
static int search_folders(const char **folders, char cache[PATH_BYTES], const char *data_dir,
                          struct error *error) {
    int count = 0;
    const char *given = getenv("TRAINER_DATA"), *home = getenv("HOME");
    if (data_dir && *data_dir) folders[count++] = data_dir;
    if (given && *given) folders[count++] = given;
    if (home && *home) {
        RETURN_IF(file_join(cache, home, ".cache/trainer", error));
        folders[count++] = cache;
    }
    folders[count] = NULL;
    return OK;
}

int dataset_folder(char path[1024], const char *dataset, const char *data_dir, struct error *error) {
    const char *folders[MAX_FOLDERS + 1];
    char cache[PATH_BYTES];
    RETURN_IF(search_folders(folders, cache, data_dir, error));
    if (folders[0] == NULL)
        return error_set(error, ERROR_USAGE, "no place for data sets: expected --data-dir=DIR, or HOME set");
    return file_join(path, folders[0], dataset, error);
}

int dataset_open(struct dataset *dataset, const struct choice *choice, const char *data_dir,
                 struct error *error) {
    return dataset_open_for(dataset, choice, data_dir, NULL, error);
}

int dataset_open_for(struct dataset *dataset, const struct choice *choice, const char *data_dir,
                     const struct dataset_taker *taker, struct error *error) {
    *dataset = (struct dataset){.name = choice->plugin->name, .taker = taker};
    const struct dataset_plugin *plugin = dataset_of(choice);
    const struct dataset_common *common = choice_settings(choice);
    const char *folders[MAX_FOLDERS + 1];
    char cache[PATH_BYTES];
    int code = search_folders(folders, cache, data_dir, error);
    if (code == OK) code = plugin->open(dataset, choice->settings, folders, error);
    if (code == OK && common->take > dataset->train.count)
        code = error_set(error, ERROR_USAGE,
                         "%s: found take=%d, expected at most %d, the training examples there are",
                         dataset->name, common->take, dataset->train.count);
    if (code == OK && common->take > 0) dataset->train.count = common->take;
    if (code != OK) dataset_close(dataset);
    return code;
}

void dataset_close(struct dataset *dataset) {
    memory_free(dataset->mean);
    memory_free(dataset->deviation);
    memory_free(dataset->columns);
    memory_free(dataset->units.mean);
    memory_free(dataset->units.deviation);
    memory_free(dataset->class_names);
    memory_free(dataset->feature_names);
    for (size_t i = sizeof dataset->blocks / sizeof *dataset->blocks; i > 0; i--)
        memory_free(dataset->blocks[i - 1]);
    for (size_t i = sizeof dataset->files / sizeof *dataset->files; i > 0; i--)
        mapping_close(&dataset->files[i - 1]);
    *dataset = (struct dataset){0};
}

bool dataset_same(const struct choice *a, const struct choice *b) {
    if (a->plugin != b->plugin) return false;
    for (const struct option *row = a->plugin->options; row->name; row++) {
        char ours[sizeof a->text], theirs[sizeof b->text];
        if (row->flags & OPTION_ASIDE) continue;
        option_text(row, a->settings, ours, sizeof ours);
        option_text(row, b->settings, theirs, sizeof theirs);
        if (strcmp(ours, theirs) != 0) return false;
    }
    return true;
}

int dataset_expect(const struct dataset *dataset, const struct shape *shape, enum task task, int outputs,
                   struct error *error) {
    char have[64], want[64];
    if (shape_equal(&dataset->shape, shape) && dataset->task == task && dataset->classes == outputs)
        return OK;
    return error_set(error, ERROR_USAGE,
                     "%s: examples %s in %d %s, expected %s in %d %s, what the network was trained on",
                     dataset->name, shape_text(&dataset->shape, have, sizeof have), dataset->classes,
                     task_outputs(dataset->task, dataset->classes), shape_text(shape, want, sizeof want),
                     outputs, task_outputs(task, outputs));
}

enum { NAME_SHOWN = 60 };

static bool is_number(const char *name, size_t bytes, int number) {
    char text[16];
    const int count = snprintf(text, sizeof text, "%d", number);
    return (size_t)count == bytes && memcmp(name, text, bytes) == 0;
}

/* Where in the text, names with a tab between two, the first is that another has here: names[*place]. NULL:
 * there is none, or there are not as many. numbered: what is called by its number may be called anything. */
static const char *find_other(char *const *names, int count, const char *text, bool numbered, int *place) {
    int named = 1;
    for (const char *at = text; *at; at++) named += *at == '\t';
    if (named != count) return NULL;
    for (*place = 0; *place < count; (*place)++) {
        const size_t bytes = strcspn(text, "\t"), own = strlen(names[*place]);
        const bool unnamed =
            numbered && (is_number(text, bytes, *place) || is_number(names[*place], own, *place));
        if (!unnamed && (own != bytes || memcmp(names[*place], text, bytes) != 0)) return text;
        text += bytes + (text[bytes] == '\t');
    }
    return NULL;
}

static int shown(const char *name) {
    const size_t bytes = strcspn(name, "\t");
    return bytes < NAME_SHOWN ? (int)bytes : NAME_SHOWN;
}

int dataset_expect_names(const struct dataset *dataset, const char *classes, const char *features,
                         struct error *error) {
    const char *other = NULL;
    int at = 0;
    if (classes && dataset->class_names)
        other = find_other(dataset->class_names, dataset->classes, classes, true, &at);
    if (other)
        return error_set(
            error, ERROR_USAGE,
            "%s: found \"%.60s\" among the %s, expected \"%.*s\" in its place, as in what the network "
            "was trained on",
            dataset->name, dataset->class_names[at], task_outputs(dataset->task, 2), shown(other), other);
    if (features && dataset->feature_names)
        other = find_other(dataset->feature_names, dataset->train.features, features, false, &at);
    if (!other) return OK;
    return error_set(
        error, ERROR_USAGE,
        "%s: feature %d is \"%.60s\", expected \"%.*s\": other columns, or in another order, than those "
        "that the network was trained on",
        dataset->name, at + 1, dataset->feature_names[at], shown(other), other);
}

/* path = folder/name or folder/name.gz, whichever is there. */
static int find_in(char path[PATH_BYTES], const char *folder, const char *name, bool *found,
                   struct error *error) {
    RETURN_IF(file_join(path, folder, name, error));
    *found = access(path, F_OK) == 0;
    const size_t length = strlen(path);
    if (*found || length + sizeof ".gz" > PATH_BYTES) return OK;
    memcpy(path + length, ".gz", sizeof ".gz");
    *found = access(path, F_OK) == 0;
    return OK;
}

/* path = the file, in any of the folders or what the archive unpacks to in or beside it. */
static int find_anywhere(char path[PATH_BYTES], const char *dataset, const char *archive, const char *name,
                         const char *const *folders, bool *found, struct error *error) {
    char folder[PATH_BYTES], inner[PATH_BYTES];
    *found = false;
    for (int i = 0; folders[i] && !*found; i++) {
        RETURN_IF(file_join(folder, folders[i], dataset, error));
        RETURN_IF(find_in(path, folder, name, found, error));
        for (int beside = 0; archive && !*found && beside < 2; beside++) {
            RETURN_IF(file_join(inner, beside ? folders[i] : folder, archive, error));
            RETURN_IF(find_in(path, inner, name, found, error));
        }
    }
    return OK;
}

/* Whether any file of the data set is there; true also of one whose files are not known. */
static int has_some(const char *dataset, const char *archive, const char *const *folders, bool *some,
                    struct error *error) {
    const struct source *source = source_find(dataset);
    char name[NAME_BYTES], path[PATH_BYTES];
    *some = source == NULL;
    for (const struct source_file *file = source ? source->files : NULL; file && file->name && !*some;
         file++) {
        const size_t length = strlen(file->name);
        const bool gz = length > 3 && strcmp(file->name + length - 3, ".gz") == 0;
        snprintf(name, sizeof name, "%.*s", (int)(gz ? length - 3 : length), file->name);
        RETURN_IF(find_anywhere(path, dataset, archive, name, folders, some, error));
    }
    return OK;
}

int dataset_find_file(char path[1024], const char *dataset, const char *archive, const char *name,
                      const char *const *folders, struct error *error) {
    char folder[PATH_BYTES], places[300], inside[100] = "", advice[200];
    struct text text = text_into(places, sizeof places);
    bool found, some;
    RETURN_IF(find_anywhere(path, dataset, archive, name, folders, &found, error));
    if (found) return OK;
    if (!folders[0])
        return error_set(error, ERROR_FILE,
                         "%s: no folder to look in, expected --data-dir=DIR, or TRAINER_DATA or HOME set",
                         dataset);
    RETURN_IF(has_some(dataset, archive, folders, &some, error));
    for (int i = 0; folders[i]; i++) {
        RETURN_IF(file_join(folder, folders[i], dataset, error));
        text_item(&text, ", ", "%s", folder);
    }
    if (archive) snprintf(inside, sizeof inside, ", and in %s in or beside it", archive);
    source_advice(dataset, name, advice, sizeof advice);
    if (some)
        return error_set(
            error, ERROR_FILE,
            "%s: found no %s (nor %s.gz)%s%s; looked in %s%s (--data-dir=DIR or TRAINER_DATA adds a place)",
            dataset, name, name, advice[0] ? ", " : "", advice, places, inside);
    return error_set(error, ERROR_FILE,
                     "%s is not in %s: trainer fetch %s %s (--data-dir=DIR or TRAINER_DATA adds a place)",
                     dataset, places, dataset,
                     TRAINER_CURL ? "downloads it" : "says where to download it, and where to put it");
}

/* *list = a copy of names[count] in one block, pointers first, texts after them. */
static int copy_names(char ***list, const char *const *names, int count, struct error *error) {
    size_t bytes = (size_t)count * sizeof(char *);
    for (int i = 0; i < count; i++) bytes += strlen(names[i]) + 1;
    void *block;
    RETURN_IF(memory_zeroed(&block, bytes, 1, "names", error));
    memory_free(*list);
    *list = block;
    char *text = (char *)(*list + count);
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(names[i]) + 1;
        (*list)[i] = memcpy(text, names[i], length);
        text += length;
    }
    return OK;
}

int dataset_class_names(struct dataset *dataset, const char *const *names, int classes, struct error *error) {
    dataset->classes = classes;
    if (names) return copy_names(&dataset->class_names, names, classes, error);
    enum { DIGITS = 12 };
    char(*texts)[DIGITS] = NULL;
    const char **list = NULL;
    int code = memory_array(&texts, classes, "class names", error);
    if (code == OK) code = memory_array(&list, classes, "class names", error);
    for (int i = 0; code == OK && i < classes; i++) {
        snprintf(texts[i], DIGITS, "%d", i);
        list[i] = texts[i];
    }
    if (code == OK) code = copy_names(&dataset->class_names, list, classes, error);
    memory_free(list);
    memory_free(texts);
    return code;
}

void dataset_label(const struct dataset *dataset, struct examples *examples, const void *labels) {
    if (dataset->task == TASK_CLASSES) {
        examples->labels = labels;
        return;
    }
    examples->targets = labels;
    examples->outputs = dataset->classes;
}

int dataset_standardize_targets(struct dataset *dataset, struct error *error) {
    struct units *units = &dataset->units;
    const struct examples *const parts[] = {&dataset->train, &dataset->test};
    RETURN_IF(memory_array(&units->mean, dataset->classes, "means", error));
    RETURN_IF(memory_array(&units->deviation, dataset->classes, "deviations", error));
    standardize_measure(parts[0]->targets, parts[0]->count, dataset->classes, units->mean, units->deviation);
    for (int p = 0; p < 2; p++)
        standardize_apply((float *)parts[p]->targets, parts[p]->count, dataset->classes, units->mean,
                          units->deviation);
    return OK;
}

static bool is_utf8(const char *text) {
    for (size_t length; *text != 0; text += length)
        if ((length = utf8_length(text)) == 0) return false;
    return true;
}

const char *dataset_name_expected(const char *name) {
    if (strchr(name, '\t')) return "a name without a tab";
    return is_utf8(name) ? NULL : "a name in UTF-8 (iconv converts)";
}

int dataset_feature_names(struct dataset *dataset, const char *const *names, int features,
                          struct error *error) {
    return copy_names(&dataset->feature_names, names, features, error);
}
