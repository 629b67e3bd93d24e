/* Fuzzing of CSV: clang -fsanitize=fuzzer,address over this file and the library. The first byte of the input
 * chooses the format. Starts from valid tables of each, with and without a header, quotes and labels. */
#include <math.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/data/csv_examples.h"
#include "fuzz.h"

enum { TABLES, SETS, PREDICTIONS };
static const char *const names[] = {"tables", "data sets", "prediction files", NULL};

static void check_set(const struct examples *examples, int classes) {
    for (int i = 0; i < examples->count; i++)
        fuzz_require(examples->labels[i] >= 0 && examples->labels[i] < classes);
}

static void fuzz_set(struct csv_table *table, int choice) {
    struct dataset set = {0};
    struct error error = {0};
    if (table->rows < 2 || csv_shuffle(table, choice, &error) != OK) return;
    const int rows = table->rows / 2;
    const struct csv_part train = {.table = table, .rows = table->rows - rows},
                          test = {.table = table, .first = table->rows - rows, .rows = rows};
    if (csv_examples(&set, &train, &test, choice % 2 == 0, &error) == OK) {
        fuzz.accepted[SETS]++;
        check_set(&set.train, set.classes);
        check_set(&set.test, set.classes);
    } else {
        fuzz_require(*error.words);
    }
    dataset_close(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_count(names);
    if (bytes < 1) return 0;
    const int choice = data[0];
    const char *text = (const char *)data + 1;
    const char *const labels[] = {"", "1", "kind", "2"};
    const struct csv_format format = {.separator = ",;\t "[choice >> 4 & 3],
                                      .header = (enum csv_header)((choice >> 2 & 3) % 3),
                                      .label = labels[choice & 3]};
    struct csv_table table;
    struct error error = {0};
    if (csv_parse(&table, "f", text, bytes - 1, &format, NULL, &error) == OK) {
        fuzz.accepted[TABLES]++;
        fuzz_require(table.rows >= 1 && table.features >= 1);
        for (size_t i = 0; i < (size_t)table.rows * (size_t)table.features; i++)
            fuzz_require(isfinite(table.floats[i]));
        fuzz_set(&table, choice);
    } else {
        fuzz_require(*error.words);
    }
    csv_close(&table);
    float *floats = NULL;
    int rows = 0;
    error = (struct error){0};
    if (csv_parse_features("f", text, bytes - 1, 1 + (choice & 7), NULL, &floats, &rows, &error) == OK)
        fuzz.accepted[PREDICTIONS]++;
    memory_free(floats);
    return 0;
}

/* What a spreadsheet would write: `seed` chooses separator, header, rows, and where a cell has quotes. */
static size_t make_sample(uint8_t *data, size_t most, unsigned seed) {
    const unsigned choice = seed % 64, separator = choice >> 4 & 3, columns = 2 + seed / 64 % 3;
    char text[1024];
    size_t used = 0;
    if ((choice >> 2 & 3) % 3 == CSV_HEADER_YES || (choice & 3) == 2)
        for (unsigned c = 0; c < columns; c++)
            used += (size_t)sprintf(text + used, "%s%c",
                                    c == 1   ? "kind"
                                    : c == 0 ? "\"a\""
                                             : "b",
                                    c + 1 < columns ? ",;\t "[separator] : '\n');
    for (unsigned row = 0; row < 2 + seed / 256 % 6; row++)
        for (unsigned c = 0; c < columns; c++)
            used += (size_t)sprintf(text + used, c == seed % columns ? "\"%u\"%c" : "%u.5e-1%c",
                                    row * (c + 1) % 3, c + 1 < columns ? ",;\t "[separator] : '\n');
    if (used + 1 > most) return 0;
    data[0] = (uint8_t)choice;
    memcpy(data + 1, text, used);
    return used + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0) {
        const size_t made = make_sample(data, most, seed / 16);
        if (made > 0) bytes = made;
        if (seed / 16 % 4 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
