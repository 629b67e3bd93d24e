/* Fuzzing of CSV: clang -fsanitize=fuzzer,address over this file and the library. The first byte of the input
 * chooses the format. Says at the end how many inputs were accepted: a fuzzer that never gets past the first
 * check tests nothing. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "../src/base/memory.h"
#include "../src/data/csv_examples.h"

static long tables, sets, predictions, inputs;

static void report(void) {
    fprintf(stderr, "accepted: %ld tables, %ld data sets, %ld prediction files of %ld inputs\n", tables, sets,
            predictions, inputs);
}

static void require(int condition) {
    if (!condition) abort();
}

static void check_set(const struct examples *examples, int classes) {
    for (int i = 0; i < examples->count; i++)
        require(examples->labels[i] >= 0 && examples->labels[i] < classes);
}

static void fuzz_set(struct csv_table *table, int choice) {
    struct dataset set = {0};
    struct error error = {0};
    if (table->rows < 2 || csv_shuffle(table, choice, &error) != OK) return;
    const int rows = table->rows / 2;
    const struct csv_part train = {.table = table, .rows = table->rows - rows},
                          test = {.table = table, .first = table->rows - rows, .rows = rows};
    if (csv_examples(&set, &train, &test, choice % 2 == 0, &error) == OK) {
        sets++;
        check_set(&set.train, set.classes);
        check_set(&set.test, set.classes);
    } else {
        require(*error.words);
    }
    dataset_close(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    if (inputs++ == 0) atexit(report);
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
        tables++;
        require(table.rows >= 1 && table.features >= 1);
        for (size_t i = 0; i < (size_t)table.rows * (size_t)table.features; i++)
            require(isfinite(table.floats[i]));
        fuzz_set(&table, choice);
    } else {
        require(*error.words);
    }
    csv_close(&table);
    float *floats = NULL;
    int rows = 0;
    error = (struct error){0};
    if (csv_parse_features("f", text, bytes - 1, 1 + (choice & 7), NULL, &floats, &rows, &error) == OK)
        predictions++;
    memory_free(floats);
    return 0;
}
