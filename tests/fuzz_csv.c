/* Fuzzing of CSV: clang -fsanitize=fuzzer,address over this file and the library. The first two bytes of the
 * input choose the format. Starts from valid tables of each, with and without a header, quotes, labels, texts
 * and missing cells. What a table's columns are kept as is read back, and rows are then read as predict does;
 * that text is also taken from the input. */
#include <math.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/data/csv_examples.h"
#include "fuzz.h"

enum { TABLES, SETS, PREDICTIONS, COLUMNS };
static const char *const names[] = {"tables", "data sets", "prediction files", "columns", NULL};

/* Codes are behind the numbers. */
static void check_codes(const float *features, const struct codes *codes) {
    for (int c = codes->numbers; c < codes->numbers + codes->columns; c++)
        fuzz_require(features[c] >= 0 && features[c] < (float)codes->vocabulary);
}

static void check_set(const struct examples *examples, int classes, const struct codes *codes) {
    for (int i = 0; i < examples->count; i++)
        check_codes(examples->floats + (size_t)i * (size_t)examples->features, codes);
    for (int i = 0; i < examples->count; i++)
        fuzz_require(examples->labels[i] >= 0 && examples->labels[i] < classes);
    for (size_t i = 0; i < (size_t)examples->count * (size_t)examples->features; i++)
        fuzz_require(!isnan(examples->floats[i]));
}

/* Rows as predict reads them, of the same text or any other. */
static void fuzz_rows(const char *text, size_t bytes, struct columns *columns) {
    struct csv_rows rows;
    struct csv_reader reader = {0};
    struct error error = {0};
    const struct csv_format format = {.usual = '.'};
    float *cells = NULL, *features = NULL;
    const struct codes codes = columns_codes(columns);
    bool found = true;
    int label, count = 0;
    int code = csv_rows_open(&rows, "p", text, bytes, 0, &error);
    if (code == OK) code = csv_reader_open(&reader, &rows, &format, columns, "training", true, &error);
    if (code == OK) code = memory_array(&cells, columns_cells(columns), "cells", &error);
    if (code == OK) code = memory_array(&features, columns_features(columns), "features", &error);
    while (code == OK && found) {
        code = csv_reader_next(&reader, cells, &label, &found, &error);
        if (code != OK || !found) continue;
        columns_fill(columns, cells);
        fuzz_require(columns_expand(columns, cells, features) >= 0 && label >= -1);
        for (int f = 0; f < columns_features(columns); f++) fuzz_require(isfinite(features[f]));
        check_codes(features, &codes);
        count++;
    }
    fuzz_require(code == OK || *error.words);
    fuzz.accepted[PREDICTIONS] += code == OK && count > 0;
    csv_reader_close(&reader);
    csv_rows_close(&rows);
    memory_free(cells);
    memory_free(features);
}

/* The columns as a checkpoint keeps them, and back. */
static void fuzz_columns(const struct columns *columns, const char *text, size_t bytes) {
    struct error error = {0};
    struct text kept = text_growing(&error);
    struct columns back;
    columns_write(columns, &kept);
    fuzz_require(columns_read(&back, kept.bytes, &error));
    fuzz_require(columns_features(&back) == columns_features(columns));
    fuzz_rows(text, bytes, &back);
    columns_close(&back);
    memory_free(kept.bytes);
}

static void fuzz_set(struct csv_table *table, int choice, const char *text, size_t bytes) {
    struct dataset set = {0};
    struct error error = {0};
    if (table->rows < 2 || csv_shuffle(table, choice, &error) != OK) return;
    const int rows = table->rows / 2;
    const struct csv_part train = {.table = table, .rows = table->rows - rows},
                          test = {.table = table, .first = table->rows - rows, .rows = rows};
    if (csv_examples(&set, &train, &test, choice % 2 == 0, &error) == OK) {
        fuzz.accepted[SETS]++;
        check_set(&set.train, set.classes, &set.codes);
        check_set(&set.test, set.classes, &set.codes);
        fuzz_columns(table->columns, text, bytes);
    } else {
        fuzz_require(*error.words);
    }
    dataset_close(&set);
}

/* The input as the text of a checkpoint, up to its first 0; the rest are rows. */
static void fuzz_text(const char *text, size_t bytes) {
    struct error error = {0};
    struct columns columns;
    char *copy;
    if (memory_zeroed((void **)&copy, bytes + 1, 1, "a text", &error) != OK) return;
    memcpy(copy, text, bytes);
    const size_t length = strlen(copy);
    if (columns_read(&columns, copy, &error)) {
        fuzz.accepted[COLUMNS]++;
        if (length < bytes) fuzz_rows(text + length + 1, bytes - length - 1, &columns);
    }
    columns_close(&columns);
    memory_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_count(names);
    if (bytes < 2) return 0;
    const int choice = data[0], more = data[1];
    const char *text = (const char *)data + 2;
    const char *const labels[] = {"", "1", "kind", "2"}, *const lists[] = {"", "1", "b,1", "kind"};
    if (choice >> 7) {
        fuzz_text(text, bytes - 2);
        return 0;
    }
    const struct csv_format format = {.separator = "\0,;\t|  \0"[more & 7],
                                      .decimal = "\0.,\0"[choice >> 5 & 3],
                                      .header = (enum csv_header)((choice >> 2 & 3) % 3),
                                      .missing = (enum csv_missing_rule)((more >> 3 & 3) % 3),
                                      .units = (more >> 3 & 3) == 3 ? 2 : 0,
                                      .categories = lists[more >> 5 & 3],
                                      .ignore = choice >> 4 & 1 ? lists[more >> 6 & 3] : NULL,
                                      .label = labels[choice & 3]};
    struct csv_table table;
    struct error error = {0};
    if (csv_parse(&table, "f", text, bytes - 2, &format, NULL, &error) == OK) {
        fuzz.accepted[TABLES]++;
        fuzz_require(table.rows >= 1 && table.cells >= 1);
        fuzz_set(&table, choice, text, bytes - 2);
    } else {
        fuzz_require(*error.words);
    }
    csv_close(&table);
    return 0;
}

/* What a spreadsheet would write: `seed` chooses separator, header, rows, and where a cell has quotes, is a
 * text or is missing. */
static size_t make_table(char *text, uint8_t *data, unsigned seed) {
    static const char separators[] = ",,;\t|   ";
    const unsigned choice = seed % 128, more = seed / 128 % 256, columns = 2 + seed / 32768 % 3;
    const char separator = separators[more & 7];
    size_t used = 0;
    if ((choice >> 2 & 3) % 3 == CSV_HEADER_YES || (choice & 3) == 2)
        for (unsigned c = 0; c < columns; c++)
            used += (size_t)sprintf(text + used, "%s%c",
                                    c == 1   ? "kind"
                                    : c == 0 ? "\"a\""
                                             : "b",
                                    c + 1 < columns ? separator : '\n');
    for (unsigned row = 0; row < 2 + seed / 256 % 6; row++)
        for (unsigned c = 0; c < columns; c++) {
            const char *form = c == seed % columns ? "\"%u\"%c" : "%u.5e-1%c";
            if (c == seed / 8 % 4) form = "t%u%c";
            if (row == 1 && c == seed / 64 % 8) form = "%.0uNA%c";
            used += (size_t)sprintf(text + used, form, row * (c + 1) % 3, c + 1 < columns ? separator : '\n');
        }
    data[0] = (uint8_t)choice;
    data[1] = (uint8_t)more;
    return used;
}

/* What a checkpoint has of such a table, and rows for it. */
static size_t make_columns(char *text, uint8_t *data, unsigned seed) {
    static const char kept[] =
        "header\t.%s\tnumber\ta\t%.0u\tcategory\tb\t%u\t2\t\tx\tlabel\tkind%ca,b\n1,x\n,%s\n";
    data[0] = 128;
    data[1] = 0;
    return (size_t)sprintf(text, kept, seed & 4 ? "\tembedding\t2" : "", seed % 3, seed & 1, 0,
                           seed & 2 ? "y" : "x");
}

static size_t make_sample(uint8_t *data, size_t most, unsigned seed) {
    char text[1024];
    if (most < 2) return 0;
    const size_t used = seed % 8 == 0 ? make_columns(text, data, seed / 8) : make_table(text, data, seed / 8);
    if (used + 2 > most) return 0;
    memcpy(data + 2, text, used);
    return used + 2;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0) {
        const size_t made = make_sample(data, most, seed / 16);
        if (made > 0) bytes = made;
        if (seed / 16 % 4 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
