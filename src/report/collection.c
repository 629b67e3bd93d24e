/* See collection.h. */
#include "collection.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "sentences.h"
#include "sweep.h"

enum { LIST_BYTES = 1 << 20, NAME_BYTES = 208, RUNS_MOST = 1000 };

void collection_free(struct collection *collection) {
    for (int i = 0; i < collection->count; i++) facts_free(&collection->runs[i]);
    memory_free(collection->runs);
    memory_free(collection->collected);
    cells_free(&collection->sweep);
    *collection = (struct collection){0};
}

/* What is no folder is found by whoever reads it. */
static int check_new(const struct collection *collection, const char *folder, struct collected *out,
                     struct error *error) {
    struct stat status;
    if (stat(folder, &status) != 0) return OK;
    out->device = status.st_dev;
    out->file = status.st_ino;
    for (int i = 0; i < collection->count; i++) {
        const struct collected *other = &collection->collected[i];
        if (other->device == out->device && other->file == out->file)
            return error_set(error, ERROR_USAGE, "report: %s is there twice: expected different runs",
                             folder);
    }
    return OK;
}

/* steps.csv is large: of a group only the first run has it read. */
static int add_run(struct collection *collection, const char *folder, bool first, struct error *error) {
    struct collected collected = {0};
    if (collection->count == RUNS_MOST)
        return error_set(error, ERROR_USAGE, "report: expected at most %d runs", RUNS_MOST);
    RETURN_IF(check_new(collection, folder, &collected, error));
    const int count = collection->count;
    RETURN_IF(memory_grow(&collection->collected, count, count + 1, "the runs", error));
    RETURN_IF(memory_grow(&collection->runs, count, count + 1, "the runs", error));
    snprintf(collected.origin, sizeof collected.origin, "%s", folder);
    collection->collected[count] = collected;
    struct facts *facts = &collection->runs[collection->count++];
    RETURN_IF(facts_read(facts, folder, first ? FACTS_ALL : FACTS_CURVES, error));
    collection->groups += first;
    facts->group = collection->groups;
    return OK;
}

/* --- comparisons --- */

/* The strategy as it was typed, where the name of the folder is made from it; else that of a baseline, in
 * which blanks and commas became dashes. */
static void name_contender(struct facts *facts, const char *folder) {
    const char *strategy = facts_setting(facts, "strategy");
    bool same = strategy != NULL && strlen(strategy) == strlen(folder);
    for (size_t i = 0; same && folder[i]; i++)
        same = strategy[i] == folder[i] || (folder[i] == '-' && !isalnum((unsigned char)strategy[i]));
    snprintf(facts->label, sizeof facts->label, "%s", same ? strategy : folder);
    for (char *c = facts->label; !same && *c; c++) {
        if (c[0] == '-' && c[1] == '-') *c = ',';
        if (*c == '-') *c = ' ';
    }
}

/* A line of the list, "sync 3": the runs sync/1 to sync/3, as far as they are there. */
static int add_contender(struct collection *collection, const char *folder, const char *line,
                         struct error *error) {
    char name[NAME_BYTES], run[PATH_BYTES], path[PATH_BYTES];
    int repeats = 0;
    bool first = true;
    if (sscanf(line, "%207s %d", name, &repeats) != 2 || strchr(name, '/') || name[0] == '.') return OK;
    for (int n = 1; n <= repeats && n <= RUNS_MOST; n++) {
        snprintf(run, sizeof run, "%s/%d", name, n);
        RETURN_IF(file_join(path, folder, run, error));
        if (!facts_there(path)) continue;
        RETURN_IF(add_run(collection, path, first, error));
        struct facts *facts = &collection->runs[collection->count - 1];
        char *origin = collection->collected[collection->count - 1].origin;
        name_contender(facts, name);
        facts->repeat = n;
        RETURN_IF(file_join(origin, folder, facts->label, error));
        first = false;
    }
    return OK;
}

static int add_comparison(struct collection *collection, const char *folder, const char *list,
                          struct error *error) {
    char *text = NULL, path[PATH_BYTES];
    size_t bytes = 0;
    const int before = collection->count;
    int code = file_read_plain(list, LIST_BYTES, &text, &bytes, error);
    char *rest = text;
    for (char *line; code == OK && (line = strsep(&rest, "\n")) != NULL;)
        code = add_contender(collection, folder, line, error);
    memory_free(text);
    if (code == OK && collection->count == before)
        return error_set(error, ERROR_FILE, "%s: a comparison without a run", folder);
    if (code == OK) code = file_join(path, folder, "bench.csv", error);
    if (code == OK) code = sentences_read(collection->runs + before, collection->count - before, path, error);
    if (code == OK) code = file_join(path, folder, "runs.csv", error);
    if (code == OK) code = failures_read(collection->runs + before, collection->count - before, path, error);
    return code;
}

/* --- sweeps --- */

/* "batch=32, optimizer.rate=0.1" */
static void name_settings(struct facts *facts, const struct cells *sweep, int row) {
    struct text text = text_into(facts->label, sizeof facts->label);
    for (int c = SWEEP_FIGURES; c < sweep->columns; c++)
        text_item(&text, ", ", "%s=%s", cells_at(sweep, 0, c), cells_at(sweep, row, c));
}

static int add_sweep(struct collection *collection, const char *folder, const char *table,
                     struct error *error) {
    struct cells *sweep = &collection->sweep;
    char path[PATH_BYTES];
    int *order = NULL;
    if (sweep->rows > 0)
        return error_set(error, ERROR_USAGE, "report: expected one sweep, found %s beside another", folder);
    RETURN_IF(cells_read(sweep, table, error));
    RETURN_IF(sweep_check(sweep, table, error));
    RETURN_IF(memory_array(&order, sweep->rows, "an order", error));
    sweep_order(sweep, order);
    int code = OK;
    for (int i = 0; i < sweep->rows - 1 && code == OK; i++) {
        code = file_join(path, folder, cells_at(sweep, order[i], SWEEP_RUN), error);
        if (code != OK || !facts_there(path)) continue;
        code = add_run(collection, path, true, error);
        if (code != OK) continue;
        struct facts *facts = &collection->runs[collection->count - 1];
        name_settings(facts, sweep, order[i]);
        if (cells_at(sweep, order[i], SWEEP_REASON)[0])
            code = memory_text(&facts->failure, cells_at(sweep, order[i], SWEEP_REASON), error);
    }
    memory_free(order);
    if (code != OK || collection->count > 0) return code;
    return error_set(error, ERROR_FILE, "%s: a sweep without a run", folder);
}

/* --- labels --- */

/* Its last parts, so many, of which the first is a name; else all of it. */
static const char *last_parts(const char *path, int parts) {
    const char *at = path + strlen(path);
    while (at > path && parts > 0)
        if (*--at == '/') parts--;
    return parts == 0 && at[1] && at[1] != '.' ? at + 1 : path;
}

int collection_add(struct collection *collection, const char *folder, struct error *error) {
    char list[PATH_BYTES];
    RETURN_IF(file_join(list, folder, collection->list, error));
    if (file_exists(list)) return add_comparison(collection, folder, list, error);
    RETURN_IF(file_join(list, folder, "sweep.csv", error));
    if (file_exists(list)) return add_sweep(collection, folder, list, error);
    RETURN_IF(add_run(collection, folder, true, error));
    struct facts *facts = &collection->runs[collection->count - 1];
    snprintf(facts->label, sizeof facts->label, "%s", last_parts(folder, 1));
    return OK;
}

/* How many parts tell a run apart from all others that have the same last one. */
static int parts_needed(const struct collection *collection, int run) {
    enum { PARTS_MOST = 64 };
    const char *origin = collection->collected[run].origin;
    int needed = 1;
    for (int i = 0; i < collection->count; i++) {
        const char *other = collection->collected[i].origin;
        if (collection->runs[i].group == collection->runs[run].group ||
            strcmp(last_parts(origin, 1), last_parts(other, 1)) != 0)
            continue;
        while (needed < PARTS_MOST && strcmp(last_parts(origin, needed), last_parts(other, needed)) == 0)
            needed++;
    }
    return needed;
}

void collection_part_labels(struct collection *collection) {
    for (int i = 0; i < collection->count; i++) {
        const int needed = parts_needed(collection, i);
        if (needed == 1) continue;
        snprintf(collection->runs[i].label, sizeof collection->runs[i].label, "%s",
                 last_parts(collection->collected[i].origin, needed));
    }
}
