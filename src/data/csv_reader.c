/* A CSV file read into a table. The first row fixes the columns; memory is asked for once, bounded by the
 * size of the text: a row of c cells takes at least c bytes. */
#include "csv_reader.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "dataset.h"
#include "split.h"

static const char A_NUMBER[] = "a number", A_FINITE_NUMBER[] = "a finite number";

const char *csv_place(const struct csv_table *table, int line, int column, char *out, size_t bytes) {
    char shown[CSV_SHOWN_BYTES];
    struct text text = text_into(out, bytes);
    text_add(&text, "row %d, column %d", line, column + 1);
    if (table->names) text_add(&text, " \"%s\"", csv_shown(table->names[column], shown));
    return out;
}

/* Reads a number; NULL, or what was expected instead. Hexadecimal, which strtof would take, is not for data
 * files. */
static const char *read_number(const char *cell, float *value) {
    char *end;
    *value = strtof(cell, &end);
    if (end == cell || *end || strpbrk(cell, "xX")) return A_NUMBER;
    return isfinite(*value) ? NULL : A_FINITE_NUMBER;
}

static int wrong_cell(const struct csv_table *table, int column, const char *expected, struct error *error) {
    char place[128], shown[CSV_SHOWN_BYTES];
    const char *cell = table->source.cells[column];
    csv_place(table, table->source.row, column, place, sizeof place);
    if (!*cell)
        return error_set(error, ERROR_FILE, "%s: %s: found an empty cell, expected %s", table->source.name,
                         place, expected);
    return error_set(error, ERROR_FILE, "%s: %s: found \"%s\", expected %s", table->source.name, place,
                     csv_shown(cell, shown), expected);
}

static int check_name(const struct csv_table *table, int column, struct error *error) {
    const char *cell = table->source.cells[column];
    const char *expected = dataset_name_expected(cell);
    char shown[CSV_SHOWN_BYTES];
    if (!expected) return OK;
    return error_set(error, ERROR_FILE, "%s: row %d, column %d: found \"%s\", expected %s",
                     table->source.name, table->source.row, column + 1, csv_shown(cell, shown), expected);
}

/* Whether the row in hand is a header, judged by its features. */
static bool looks_like_header(const struct csv_table *table) {
    float value;
    for (int c = 0; c < table->columns; c++)
        if (c != table->label && read_number(table->source.cells[c], &value) != A_NUMBER) return false;
    return true;
}

/* Finds the label column that the format asks for, in the first row. */
static int find_label(struct csv_table *table, const struct csv_format *format, bool *by_name,
                      struct error *error) {
    const char *name = table->source.name, *label = format->label;
    *by_name = false;
    table->label = table->columns - 1;
    if (!*label) return OK;
    if (label[strspn(label, "0123456789")] == 0) {
        const long number = strtol(label, NULL, 10);
        if (number < 1 || number > table->columns)
            return error_set(error, ERROR_USAGE,
                             "%s: found label=%s, expected the number of a column, 1 to %d, or its name",
                             name, label, table->columns);
        table->label = (int)number - 1;
        return OK;
    }
    *by_name = true;
    for (table->label = 0; table->label < table->columns; table->label++)
        if (strcmp(table->source.cells[table->label], label) == 0 && format->header != CSV_HEADER_NO)
            return OK;
    return error_set(
        error, ERROR_USAGE,
        "%s: found no column \"%s\" in row %d, expected the name of one of its %d columns, or a number", name,
        label, table->source.row, table->columns);
}

/* The current row has the wrong number of cells; `like` (or NULL) is what it was compared with. */
static int wrong_count(const struct csv_table *table, int expected, const struct csv_table *like,
                       struct error *error) {
    const struct csv_rows *row = &table->source;
    char why[300] = "";
    if (like) snprintf(why, sizeof why, " as in %s", like->source.name);
    if (table->label < 0 && row->count == expected + 1)
        snprintf(why, sizeof why, " (the features, without a label)");
    return error_set(error, ERROR_FILE, "%s: row %d: found %d cell%s, expected %d%s", row->name, row->row,
                     row->count, row->count == 1 ? "" : "s", expected, why);
}

/* Decides from the first row what the columns are, and whether it is a header. */
static int read_columns(struct csv_table *table, const struct csv_format *format,
                        const struct csv_table *like, bool *header, struct error *error) {
    const struct csv_rows *row = &table->source;
    bool by_name = false;
    table->columns = row->count;
    table->label = -1;
    if (like) {
        table->label = like->label;
        if (row->count != like->columns) return wrong_count(table, like->columns, like, error);
    } else if (format->label) {
        if (row->count < 2)
            return error_set(error, ERROR_FILE,
                             "%s: row %d: found 1 cell, expected at least 2, separated by '%c'", row->name,
                             row->row, row->separator);
        RETURN_IF(find_label(table, format, &by_name, error));
    }
    table->features = table->columns - (table->label >= 0);
    *header = format->header == CSV_HEADER_YES || by_name ||
              (format->header == CSV_HEADER_AUTO && looks_like_header(table));
    return OK;
}

static int keep_names(struct csv_table *table, const struct csv_table *like, struct error *error) {
    const char **names;
    for (int c = 0; c < table->columns; c++) RETURN_IF(check_name(table, c, error));
    RETURN_IF(memory_array(&names, table->columns, "column names", error));
    memcpy(names, table->source.cells, (size_t)table->columns * sizeof(char *));
    table->names = names;
    for (int c = 0; like && like->names && c < table->columns; c++) {
        char found[CSV_SHOWN_BYTES], expected[CSV_SHOWN_BYTES];
        if (strcmp(table->names[c], like->names[c]) != 0)
            return error_set(error, ERROR_FILE,
                             "%s: row %d, column %d: found \"%s\", expected \"%s\" as in %s",
                             table->source.name, table->source.row, c + 1, csv_shown(table->names[c], found),
                             csv_shown(like->names[c], expected), like->source.name);
    }
    return OK;
}

/* Makes room for the current row and as many more as the rest of the text can hold. */
static int make_room(struct csv_table *table, struct error *error) {
    size_t lines = 2; /* this one, and a last one that is not ended */
    for (const char *at = table->source.at; (at = memchr(at, '\n', (size_t)(table->source.end - at))); at++)
        lines++;
    const size_t most = (size_t)(table->source.end - table->source.text + 1) / (size_t)table->columns;
    const size_t rows = lines < most ? lines : most;
    RETURN_IF(
        memory_array(&table->floats, rows * (size_t)table->features, "the numbers of a CSV file", error));
    if (table->label >= 0) RETURN_IF(memory_array(&table->labels, rows, "the labels of a CSV file", error));
    return memory_array(&table->lines, rows, "the lines of a CSV file", error);
}

/* The row in hand becomes the table's next. */
static int add_row(struct csv_table *table, struct error *error) {
    const struct csv_rows *row = &table->source;
    float *out = table->floats + (size_t)table->rows * (size_t)table->features;
    if (row->count != table->columns) return wrong_count(table, table->columns, NULL, error);
    for (int c = 0; c < table->columns; c++) {
        if (c == table->label) {
            if (!*row->cells[c]) return wrong_cell(table, c, "a label", error);
            RETURN_IF(check_name(table, c, error));
            table->labels[table->rows] = row->cells[c];
        } else {
            const char *expected = read_number(row->cells[c], out++);
            if (expected) return wrong_cell(table, c, expected, error);
        }
    }
    table->lines[table->rows++] = row->row;
    return OK;
}

int csv_parse(struct csv_table *table, const char *name, const char *text, size_t bytes,
              const struct csv_format *format, const struct csv_table *like, struct error *error) {
    bool found, header = false;
    *table = (struct csv_table){.label = -1};
    RETURN_IF(csv_rows_open(&table->source, name, text, bytes, format->separator, error));
    RETURN_IF(csv_rows_next(&table->source, &found, error));
    if (!found)
        return error_set(error, ERROR_FILE, "%s: found an empty file, expected rows of numbers", name);
    RETURN_IF(read_columns(table, format, like, &header, error));
    if (header) {
        RETURN_IF(keep_names(table, like, error));
        RETURN_IF(csv_rows_next(&table->source, &found, error));
        if (!found)
            return error_set(error, ERROR_FILE, "%s: found only a header, expected rows of numbers after it",
                             name);
    }
    RETURN_IF(make_room(table, error));
    while (found) {
        RETURN_IF(add_row(table, error));
        RETURN_IF(csv_rows_next(&table->source, &found, error));
    }
    return OK;
}

void csv_close(struct csv_table *table) {
    memory_free((void *)table->names);
    memory_free(table->floats);
    memory_free(table->labels);
    memory_free(table->lines);
    csv_rows_close(&table->source);
    *table = (struct csv_table){0};
}

int csv_shuffle(struct csv_table *table, long seed, struct error *error) {
    const struct csv_table before = *table;
    const size_t width = (size_t)table->features, rows = (size_t)table->rows;
    table->labels = NULL;
    table->lines = NULL;
    int code = memory_array(&table->floats, rows * width, "shuffled numbers", error);
    if (code == OK && before.labels) code = memory_array(&table->labels, rows, "shuffled labels", error);
    if (code == OK) code = memory_array(&table->lines, rows, "shuffled lines", error);
    for (size_t to = 0; code == OK && to < rows; to++) {
        const size_t from = (size_t)split_row(seed, table->rows, (int)to);
        memcpy(table->floats + to * width, before.floats + from * width, width * sizeof(float));
        if (before.labels) table->labels[to] = before.labels[from];
        table->lines[to] = before.lines[from];
    }
    memory_free(before.floats);
    memory_free(before.labels);
    memory_free(before.lines);
    return code;
}

int csv_parse_features(const char *name, const char *text, size_t bytes, int features,
                       const char *const *feature_names, float **floats, int *rows, struct error *error) {
    const struct csv_format format = {.separator = ','};
    const struct csv_table model = {.source = {.name = "the model"},
                                    .columns = features,
                                    .features = features,
                                    .label = -1,
                                    .names = feature_names};
    struct csv_table table;
    const int code = csv_parse(&table, name, text, bytes, &format, &model, error);
    if (code == OK) {
        *floats = table.floats;
        *rows = table.rows;
        table.floats = NULL;
    }
    csv_close(&table);
    return code;
}
