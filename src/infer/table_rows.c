/* Rows of a table to predict. */
#include "table_rows.h"

#include <math.h>

#include "../base/csv.h"
#include "../base/memory.h"
#include "../data/csv_number.h"

enum { BATCH_BYTES = 1 << 24, ROWS_LEAST = 256, ROWS_MOST = 4096 };

/* --- what is carried along --- */

/* Whether the network does not take that cell. */
static bool is_carried(const struct csv_reader *reader, int cell) {
    const int column = reader->column_of[cell];
    return column < 0 || !column_is_feature(&reader->columns->at[column]);
}

/* `file`: what the column of the file's name has. */
static void carry_row(const struct table_rows *rows, const char *file, struct text *text) {
    const struct csv_reader *reader = &rows->reader;
    if (rows->named) csv_add(text, file);
    for (int cell = 0; cell < reader->cells; cell++)
        if (is_carried(reader, cell)) csv_add(text, reader->rows.cells[cell]);
    text_add_bytes(text, "", 1);
}

/* The names; of columns without, their numbers. */
static int carry_head(struct table_rows *rows, struct error *error) {
    const struct csv_reader *reader = &rows->reader;
    struct text text = text_growing(error);
    if (reader->header) {
        carry_row(rows, "file", &text);
    } else {
        if (rows->named) text_add(&text, "file,");
        for (int cell = 0; cell < reader->cells; cell++)
            if (is_carried(reader, cell)) text_add(&text, "%d,", cell + 1);
    }
    text_add_bytes(&text, "", 1);
    rows->head = text.bytes;
    return text_end(&text);
}

/* --- rows --- */

int table_rows_open(struct table_rows *rows, struct restored *restored, struct file_reader *file,
                    bool carries, bool named, struct error *error) {
    struct csv_rows text = {0};
    const size_t row_bytes = (size_t)restored_numbers(restored) * sizeof(float);
    *rows = (struct table_rows){.restored = restored, .carries = carries, .named = named};
    rows->most = (int)(BATCH_BYTES / row_bytes < ROWS_MOST ? BATCH_BYTES / row_bytes : ROWS_MOST);
    if (rows->most < ROWS_LEAST) rows->most = ROWS_LEAST;
    int code = csv_rows_open_file(&text, file, 0, error);
    const struct csv_format format = {.usual = restored->columns.decimal};
    if (code == OK)
        code = csv_reader_open(&rows->reader, &text, &format, &restored->columns, "training", true, error);
    csv_rows_close(&text);
    RETURN_IF(code);
    if (carries) RETURN_IF(carry_head(rows, error));
    RETURN_IF(memory_array(&rows->labels, rows->most, "labels", error));
    if (restored->task == TASK_VALUES)
        RETURN_IF(memory_array(&rows->targets, rows->most * restored->classes, "targets", error));
    return memory_array(&rows->cells, columns_cells(&restored->columns), "a row", error);
}

static bool is_labelled(const struct csv_reader *reader) {
    return reader->label >= 0 && !csv_missing(reader->rows.cells[reader->label]);
}

static void add_stranger(struct table_rows *rows, int *label) {
    *label = TABLE_LABEL_UNKNOWN;
    if (rows->unknown++ == 0) csv_shown(rows->reader.rows.cells[rows->reader.label], rows->stranger);
}

/* What is no number counts as none: it is to be predicted. */
static void read_targets(const struct table_rows *rows, float *targets) {
    const struct csv_reader *reader = &rows->reader;
    const struct columns *columns = reader->columns;
    for (int t = 0; t < rows->restored->classes; t++) targets[t] = NAN;
    for (int cell = 0; cell < reader->cells; cell++) {
        const int column = reader->column_of[cell];
        float value = 0.0f;
        if (column < 0 || columns->at[column].role != COLUMN_TARGET) continue;
        if (csv_number(reader->rows.cells[cell], reader->format.decimal, &value) == NULL)
            targets[reader->place_of[cell] - columns_cells(columns)] = value;
    }
}

static int read_rows(struct table_rows *rows, struct features *features, struct error *error) {
    const struct columns *columns = &rows->restored->columns;
    const size_t numbers = (size_t)restored_numbers(rows->restored);
    bool found = true;
    while (features->count < rows->most) {
        int *const label = &rows->labels[features->count];
        RETURN_IF(csv_reader_next(&rows->reader, rows->cells, label, &found, error));
        if (!found) break;
        columns_fill(columns, rows->cells);
        rows->unseen +=
            columns_expand(columns, rows->cells, features->floats + (size_t)features->count * numbers);
        if (*label < 0 && is_labelled(&rows->reader)) add_stranger(rows, label);
        if (rows->targets)
            read_targets(rows, rows->targets + (size_t)features->count * (size_t)rows->restored->classes);
        if (rows->carries) carry_row(rows, rows->reader.rows.name, &rows->carried);
        features->count++;
    }
    rows->ended = !found;
    return rows->carries ? text_end(&rows->carried) : OK;
}

static void look_at_numbers(struct table_rows *rows, const struct features *features) {
    const size_t numbers = (size_t)features->count * (size_t)restored_numbers(rows->restored);
    for (size_t i = 0; i < numbers; i++) {
        const float number = features->floats[i];
        if (number < rows->lowest) rows->lowest = number;
        if (number > rows->highest) rows->highest = number;
        rows->fractions = rows->fractions || number != truncf(number);
    }
}

/* A dark picture may have no number above 1, but pixels of a file are whole. */
bool table_rows_scaled(const struct table_rows *rows) {
    return rows->restored->scale < 1.0f && rows->fractions && rows->lowest >= 0.0f && rows->highest <= 1.0f;
}

int table_rows_next(struct table_rows *rows, struct features *features, struct error *error) {
    const size_t numbers = (size_t)restored_numbers(rows->restored);
    *features = (struct features){0};
    memory_free(rows->carried.bytes);
    rows->carried = text_growing(error);
    if (rows->ended) return OK;
    RETURN_IF(memory_array(&features->floats, (size_t)rows->most * numbers, "rows of a table", error));
    RETURN_IF(read_rows(rows, features, error));
    if (rows->restored->scale < 1.0f) look_at_numbers(rows, features);
    return features_prepare(features, rows->restored, rows->reader.rows.name, error);
}

void table_rows_close(struct table_rows *rows) {
    csv_reader_close(&rows->reader);
    memory_free(rows->carried.bytes);
    memory_free(rows->head);
    memory_free(rows->labels);
    memory_free(rows->targets);
    memory_free(rows->cells);
    *rows = (struct table_rows){0};
}
