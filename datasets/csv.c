/* csv: examples from CSV files: one row per example, one column the label, the others numbers or categories.
 * Without a test file the rows are split (../src/data/split.h). */
#include <stddef.h>
#include "../src/base/memory.h"
#include "../src/data/csv_examples.h"
#include "../src/data/split.h"

enum { LIST_BYTES = 512 };

struct csv_settings {
    struct dataset_common common;
    char file[512], test_file[512], label[128];
    char columns[LIST_BYTES], ignore[LIST_BYTES], categories[LIST_BYTES], target[LIST_BYTES / 2];
    struct split split;
    int header;    /* enum csv_header */
    int missing;   /* enum csv_missing_rule */
    int separator; /* place in SEPARATORS */
    int decimal;   /* place in DECIMALS */
    int embedding; /* learnt numbers for a category; 0: a feature for each value */
    bool standardize;
};

static const char SEPARATORS[] = {0, ',', ';', '\t', ' ', '|'}, DECIMALS[] = {0, '.', ','};

static const struct option options[] = {
    DATASET_COMMON_ROWS,
    OPTION_ROW(TEXT, "file", struct csv_settings, file, .value = "FILE",
               .help = "file to train on, plain or .gz; must be given"),
    OPTION_ROW(TEXT, "test_file", struct csv_settings, test_file, .value = "FILE", .help = "file to test on"),
    OPTION_ROW(TEXT, "label", struct csv_settings, label, .value = "COLUMN",
               .help = "column of the label, by name or by number from 1 (default the last)"),
    OPTION_ROW(TEXT, "target", struct csv_settings, target, .value = "LIST", .flags = OPTION_LIST,
               .help = "columns of numbers to predict, instead of a label: target=price"),
    OPTION_ROW(TEXT, "columns", struct csv_settings, columns, .value = "LIST", .flags = OPTION_LIST,
               .help = "columns to learn from, by name or number: columns=age,city (default: all)"),
    OPTION_ROW(TEXT, "ignore", struct csv_settings, ignore, .value = "LIST", .flags = OPTION_LIST,
               .help = "columns to leave out: ignore=id,name"),
    OPTION_ROW(TEXT, "categories", struct csv_settings, categories, .value = "LIST", .flags = OPTION_LIST,
               .help = "columns whose numbers are names, as of months or postcodes"),
    OPTION_ROW(INT, "embedding", struct csv_settings, embedding, .fallback = "0", .least = 0,
               .most = COLUMNS_UNITS_MOST, .value = "N",
               .help =
                   "let the network learn N numbers for each value of a category (0: one feature for each "
                   "value, 1 where it is)"),
    OPTION_ROW(CHOICE, "missing", struct csv_settings, missing, .fallback = "error",
               .choices = "error|mean|drop",
               .help = "empty cells, NA, NaN, null and ?: refuse them, take the mean (of categories: one of "
                       "their own), or leave their rows out"),
    SPLIT_ROWS(struct csv_settings, split, "test_file"),
    OPTION_ROW(CHOICE, "header", struct csv_settings, header, .fallback = "auto", .choices = "auto|yes|no",
               .help = "whether the first row names the columns"),
    OPTION_ROW(CHOICE, "separator", struct csv_settings, separator, .fallback = "auto",
               .choices = "auto|comma|semicolon|tab|space|bar", .letters = SEPARATORS,
               .help = "character between two cells, by its name or itself: separator=';'"),
    OPTION_ROW(CHOICE, "decimal", struct csv_settings, decimal, .fallback = "auto",
               .choices = "auto|point|comma", .help = "character before the decimals of a number"),
    OPTION_ROW(FLAG, "standardize", struct csv_settings, standardize, .fallback = "1",
               .help = "bring each number to mean 0 and deviation 1 over the training examples"),
    {0}};

/* Shuffles the table and cuts it in two; the training part has all classes, where there are rows enough. */
static int split(struct csv_table *table, const struct csv_settings *csv, struct csv_part *train,
                 struct csv_part *test, struct error *error) {
    int rows;
    RETURN_IF(split_test_rows(&csv->split, csv->file, table->rows, &rows, error));
    RETURN_IF(csv_shuffle(table, csv->split.seed, error));
    RETURN_IF(csv_keep_classes(table, table->rows - rows, error));
    *train = (struct csv_part){.table = table, .rows = table->rows - rows};
    *test = (struct csv_part){.table = table, .first = table->rows - rows, .rows = rows};
    return OK;
}

static int read_tables(struct csv_table tables[2], const struct csv_settings *csv, struct csv_part *train,
                       struct csv_part *test, struct error *error) {
    const struct csv_format format = {.separator = SEPARATORS[csv->separator],
                                      .decimal = DECIMALS[csv->decimal],
                                      .header = (enum csv_header)csv->header,
                                      .label = *csv->target ? NULL : csv->label,
                                      .target = csv->target,
                                      .columns = csv->columns,
                                      .ignore = csv->ignore,
                                      .categories = csv->categories,
                                      .missing = (enum csv_missing_rule)csv->missing,
                                      .units = csv->embedding};
    RETURN_IF(csv_read(&tables[0], csv->file, &format, NULL, error));
    if (!*csv->test_file) return split(&tables[0], csv, train, test, error);
    RETURN_IF(csv_read(&tables[1], csv->test_file, &format, &tables[0], error));
    *train = (struct csv_part){.table = &tables[0], .rows = tables[0].rows};
    *test = (struct csv_part){.table = &tables[1], .rows = tables[1].rows};
    return OK;
}

/* What predict is to know of the columns. */
static int keep_columns(struct dataset *dataset, const struct csv_table *table, struct error *error) {
    struct text text = text_growing(error);
    columns_write(table->columns, &text);
    dataset->columns = text.bytes;
    csv_describe(table, dataset->table, sizeof dataset->table);
    return text_end(&text);
}

static int csv_open(struct dataset *dataset, const void *settings, const char *const *folders,
                    struct error *error) {
    (void)folders;
    const struct csv_settings *csv = settings;
    struct csv_table tables[2] = {0};
    struct csv_part train = {0}, test = {0};
    if (!*csv->file) return error_set(error, ERROR_USAGE, "csv: found no file, expected csv:file=FILE");
    if (*csv->label && *csv->target)
        return error_set(error, ERROR_USAGE, "csv: found label= and target=, expected one of them");
    int code = read_tables(tables, csv, &train, &test, error);
    if (code == OK) code = csv_examples(dataset, &train, &test, csv->standardize, error);
    if (code == OK) code = keep_columns(dataset, &tables[0], error);
    csv_close(&tables[1]);
    csv_close(&tables[0]);
    return code;
}

const struct dataset_plugin dataset_csv = {
    .plugin = {.name = "csv",
               .help = "your own table: numbers, categories, and a label or numbers to predict in each row "
                       "of a CSV file",
               .options = options,
               .settings_bytes = sizeof(struct csv_settings)},
    .open = csv_open,
};
