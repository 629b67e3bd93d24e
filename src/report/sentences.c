/* See sentences.h. Cells of bench.csv may be in quotes, with quotes in them doubled. */
#include "sentences.h"

#include <string.h>
#include "../base/memory.h"
#include "cells.h"

enum { TABLE_BYTES = 4 << 20 };
/* Columns of runs.csv: the first ones. */
enum { RUNS_STRATEGY, RUNS_REPEAT, RUNS_SEED, RUNS_CODE, RUNS_ERROR, RUNS_COLUMNS };

/* The first and the last cell of a row. false: there is no other row. */
static bool next_row(char **at, const char **first, const char **last) {
    bool ends = false;
    if (!**at) return false;
    *first = *last = cells_next(at, &ends);
    while (!ends) *last = cells_next(at, &ends);
    return true;
}

static int give(struct facts *runs, int count, const char *name, const char *sentence, struct error *error) {
    for (int i = 0; i < count; i++)
        if (!runs[i].sentence && strcmp(runs[i].label, name) == 0)
            RETURN_IF(memory_text(&runs[i].sentence, sentence, error));
    return OK;
}

int sentences_parse(struct facts *runs, int count, char *text, struct error *error) {
    const char *name, *sentence;
    if (!next_row(&text, &name, &sentence) || strcmp(name, "strategy") != 0 ||
        strcmp(sentence, "sentence") != 0)
        return OK;
    while (next_row(&text, &name, &sentence)) RETURN_IF(give(runs, count, name, sentence, error));
    return OK;
}

int sentences_read(struct facts *runs, int count, const char *path, struct error *error) {
    char *text = NULL;
    size_t bytes = 0;
    struct error why = {0};
    if (!file_exists(path)) return OK;
    if (file_read_plain(path, TABLE_BYTES, &text, &bytes, &why) != OK)
        return why.code == ERROR_DEVICE ? error_set(error, ERROR_DEVICE, "%s", why.words) : OK;
    const int code = sentences_parse(runs, count, text, error);
    memory_free(text);
    return code;
}

/* --- runs that failed --- */

static bool has_errors(const struct cells *table) {
    return table->columns >= RUNS_COLUMNS && cells_column(table, "strategy") == RUNS_STRATEGY &&
           cells_column(table, "repeat") == RUNS_REPEAT && cells_column(table, "error") == RUNS_ERROR;
}

static int give_failure(struct facts *runs, int count, const struct cells *table, int row,
                        struct error *error) {
    const char *words = cells_at(table, row, RUNS_ERROR);
    for (int i = 0; i < count && words[0]; i++)
        if (!runs[i].failure && runs[i].repeat == cells_count(table, row, RUNS_REPEAT) &&
            strcmp(runs[i].label, cells_at(table, row, RUNS_STRATEGY)) == 0)
            RETURN_IF(memory_text(&runs[i].failure, words, error));
    return OK;
}

int failures_read(struct facts *runs, int count, const char *path, struct error *error) {
    struct cells table = {0};
    struct error why = {0};
    int code = OK;
    if (!file_exists(path)) return OK;
    if (cells_read(&table, path, &why) != OK)
        return why.code == ERROR_DEVICE ? error_set(error, ERROR_DEVICE, "%s", why.words) : OK;
    for (int row = 1; code == OK && row < table.rows && has_errors(&table); row++)
        code = give_failure(runs, count, &table, row, error);
    cells_free(&table);
    return code;
}
