/* csv: examples from CSV files: one row per example, one column the label, all others numbers. Without a test
 * file the rows are split (../src/data/split.h). */
#include <stddef.h>
#include "../src/base/file.h"
#include "../src/base/memory.h"
#include "../src/data/csv_examples.h"
#include "../src/data/split.h"

struct csv_settings {
    struct dataset_common common;
    char file[512], test_file[512], label[128];
    struct split split;
    int header;    /* enum csv_header */
    int separator; /* place in SEPARATORS */
    bool standardize;
};

static const char SEPARATORS[] = {',', ';', '\t', ' ', '|'};

static const struct option options[] = {
    DATASET_COMMON_ROWS,
    OPTION_ROW(TEXT, "file", struct csv_settings, file, .value = "FILE",
               .help = "file to train on, plain or .gz; must be given"),
    OPTION_ROW(TEXT, "test_file", struct csv_settings, test_file, .value = "FILE", .help = "file to test on"),
    OPTION_ROW(TEXT, "label", struct csv_settings, label, .value = "COLUMN",
               .help = "column of the label, by name or by number from 1 (default the last)"),
    SPLIT_ROWS(struct csv_settings, split, "test_file"),
    OPTION_ROW(CHOICE, "header", struct csv_settings, header, .fallback = "auto", .choices = "auto|yes|no",
               .help = "whether the first row names the columns"),
    OPTION_ROW(CHOICE, "separator", struct csv_settings, separator, .fallback = "comma",
               .choices = "comma|semicolon|tab|space|bar", .help = "character between two cells"),
    OPTION_ROW(FLAG, "standardize", struct csv_settings, standardize, .fallback = "1",
               .help = "bring each feature to mean 0 and deviation 1 over the training examples"),
    {0}};

static int read_table(struct csv_table *table, const char *path, const struct csv_format *format,
                      const struct csv_table *like, struct error *error) {
    char *text = NULL;
    size_t bytes;
    RETURN_IF(file_read(path, CSV_MAX_BYTES, &text, &bytes, error));
    const int code = csv_parse(table, path, text, bytes, format, like, error);
    memory_free(text);
    return code;
}

/* Shuffles the table and cuts it in two. */
static int split(struct csv_table *table, const struct csv_settings *csv, struct csv_part *train,
                 struct csv_part *test, struct error *error) {
    int rows;
    RETURN_IF(split_test_rows(&csv->split, csv->file, table->rows, &rows, error));
    RETURN_IF(csv_shuffle(table, csv->split.seed, error));
    *train = (struct csv_part){.table = table, .rows = table->rows - rows};
    *test = (struct csv_part){.table = table, .first = table->rows - rows, .rows = rows};
    return OK;
}

static int csv_open(struct dataset *dataset, const void *settings, const char *const *folders,
                    struct error *error) {
    (void)folders;
    const struct csv_settings *csv = settings;
    const struct csv_format format = {
        .separator = SEPARATORS[csv->separator], .header = (enum csv_header)csv->header, .label = csv->label};
    struct csv_table tables[2] = {0};
    struct csv_part train = {0}, test = {0};
    if (!*csv->file) return error_set(error, ERROR_USAGE, "csv: found no file, expected csv:file=FILE");
    int code = read_table(&tables[0], csv->file, &format, NULL, error);
    if (code == OK && *csv->test_file) {
        code = read_table(&tables[1], csv->test_file, &format, &tables[0], error);
        train = (struct csv_part){.table = &tables[0], .rows = tables[0].rows};
        test = (struct csv_part){.table = &tables[1], .rows = tables[1].rows};
    } else if (code == OK) {
        code = split(&tables[0], csv, &train, &test, error);
    }
    if (code == OK) code = csv_examples(dataset, &train, &test, csv->standardize, error);
    csv_close(&tables[1]);
    csv_close(&tables[0]);
    return code;
}

const struct dataset_plugin dataset_csv = {
    .plugin = {.name = "csv",
               .help = "your own table: numbers and a label in each row of a CSV file",
               .options = options,
               .settings_bytes = sizeof(struct csv_settings)},
    .open = csv_open,
};
