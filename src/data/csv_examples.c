/* Tables become a data set's examples, in the memory that they were read into: column by column first, where
 * a category is still one cell; then the rows are widened, from the last one on, so that none is overwritten
 * before it is read. */
#include "csv_examples.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "csv_number.h"
#include "standardize.h"

enum { TRAIN, TEST, PARTS };

struct parts {
    struct csv_part of[PARTS];
    struct columns *columns;
    long unseen;  /* cells of the test part whose value the training part does not have */
    int counting; /* a column of numbers that only counts the rows, as an index that was written along; or -1
                   */
};

static float *row_of(const struct csv_part *part, int row) {
    return csv_cells(part->table) + (size_t)(part->first + row) * (size_t)part->table->cells;
}

static int *labels_of(const struct csv_part *part) {
    return csv_labels(part->table) + part->first;
}

/* --- labels --- */

static int label_column(const struct columns *columns) {
    int column = 0;
    while (columns->at[column].role != COLUMN_LABEL) column++;
    return column;
}

/* Whether the file itself says which classes there are, and in which order. */
static bool are_given(const struct parts *parts) {
    return parts->of[TRAIN].table->format.header == CSV_HEADER_COUNTS;
}

/* kept[values] = whether the training part has it. Errors: the test part has another one, which nobody named.
 */
static int check_labels(const struct parts *parts, bool *kept, struct error *error) {
    const struct csv_part *train = &parts->of[TRAIN], *test = &parts->of[TEST];
    const int column = label_column(parts->columns);
    const struct categories *values = &parts->columns->at[column].values;
    char place[CSV_PLACE_BYTES], shown[CSV_SHOWN_BYTES];
    int classes = 0;
    for (int row = 0; row < train->rows; row++) kept[labels_of(train)[row]] = true;
    for (int v = 0; v < values->count; v++) classes += kept[v];
    if (classes < 2)
        return error_set(error, ERROR_FILE,
                         "%s: found one class, \"%s\", in %s%d training row%s, expected at least two",
                         train->table->name, csv_shown(values->at[labels_of(train)[0]].text, shown),
                         train->rows == 1 ? "" : "all ", train->rows, train->rows == 1 ? "" : "s");
    for (int row = 0; row < test->rows; row++) {
        const struct category *value = &values->at[labels_of(test)[row]];
        if (kept[labels_of(test)[row]] || are_given(parts)) continue;
        csv_place(test->table->name, value->line, column, parts->columns, column, place);
        char number[CSV_COLUMN_BYTES + 60] = "", name[CSV_COLUMN_BYTES];
        float ignored;
        if (!csv_number(value->text, '.', &ignored))
            snprintf(number, sizeof number, "; target=%s predicts it as a number",
                     csv_column(parts->columns, column, name));
        return error_set(error, ERROR_FILE,
                         "%s: found \"%s\", expected one of the %d labels of the training part%s", place,
                         csv_shown(value->text, shown), classes, number);
    }
    return OK;
}

static int name_classes(struct dataset *dataset, const struct categories *values, struct error *error) {
    const char **names;
    RETURN_IF(memory_array(&names, values->count, "class names", error));
    for (int v = 0; v < values->count; v++) names[v] = values->at[v].text;
    const int code = dataset_class_names(dataset, names, values->count, error);
    memory_free(names);
    return code;
}

static int number_labels(struct dataset *dataset, struct parts *parts, struct error *error) {
    struct categories *values = &parts->columns->at[label_column(parts->columns)].values;
    bool *kept = NULL;
    int *place = NULL;
    int code = memory_array(&kept, values->count, "labels", error);
    if (code == OK) code = memory_array(&place, values->count, "labels", error);
    if (code == OK) code = check_labels(parts, kept, error);
    const bool sorts = !are_given(parts);
    if (code == OK && sorts) code = categories_sort(values, kept, place, error);
    for (int p = 0; code == OK && sorts && p < PARTS; p++)
        for (int row = 0; row < parts->of[p].rows; row++)
            labels_of(&parts->of[p])[row] = place[labels_of(&parts->of[p])[row]];
    if (code == OK) code = name_classes(dataset, values, error);
    memory_free(kept);
    memory_free(place);
    return code;
}

/* --- targets --- */

/* *block = the targets of all rows; the table's rows are then as long as their features. */
static int take_targets(void **block, struct csv_table *table, int targets, struct error *error) {
    const size_t all = (size_t)table->cells, kept = all - (size_t)targets, width = (size_t)targets;
    RETURN_IF(
        memory_zeroed(block, (size_t)table->rows * width, sizeof(float), "the targets of a table", error));
    float *out = *block, *cells = csv_cells(table);
    for (size_t row = 0; row < (size_t)table->rows; row++) {
        memcpy(out + row * width, cells + row * all + kept, width * sizeof *out);
        memmove(cells + row * kept, cells + row * all, kept * sizeof *cells);
    }
    table->cells = (int)kept;
    return OK;
}

static int name_targets(struct dataset *dataset, const struct columns *columns, int targets,
                        struct error *error) {
    char(*names)[CSV_COLUMN_BYTES] = NULL;
    const char **list = NULL;
    int code = memory_array(&names, targets, "names of targets", error), count = 0;
    if (code == OK) code = memory_array(&list, targets, "names of targets", error);
    for (int c = 0; code == OK && c < columns->count; c++) {
        if (columns->at[c].role != COLUMN_TARGET) continue;
        list[count] = columns->named ? columns->at[c].name : csv_column(columns, c, names[count]);
        count++;
    }
    if (code == OK) code = dataset_class_names(dataset, list, targets, error);
    memory_free(list);
    memory_free(names);
    return code;
}

/* The data set's blocks are the targets of both tables. */
static int number_targets(struct dataset *dataset, const struct parts *parts, struct error *error) {
    const int targets = columns_of(parts->columns, COLUMN_TARGET);
    struct csv_table *train = parts->of[TRAIN].table, *test = parts->of[TEST].table;
    dataset->task = TASK_VALUES;
    RETURN_IF(take_targets(&dataset->blocks[TRAIN], train, targets, error));
    if (test != train) RETURN_IF(take_targets(&dataset->blocks[TEST], test, targets, error));
    return name_targets(dataset, parts->columns, targets, error);
}

/* --- features, cell by cell --- */

/* A missing number becomes the mean of the training part. */
static int fill_numbers(struct parts *parts, int column, int cell, struct error *error) {
    struct column *number = &parts->columns->at[column];
    const struct csv_part *train = &parts->of[TRAIN];
    double sum = 0;
    int there = 0;
    for (int row = 0; row < train->rows; row++) {
        const float value = row_of(train, row)[cell];
        if (isnan(value)) continue;
        sum += (double)value;
        there++;
    }
    if (there == 0) {
        char name[CSV_COLUMN_BYTES];
        return error_set(error, ERROR_FILE,
                         "%s: column %d: found no value in the training part; ignore=%s leaves it out",
                         train->table->name, column + 1, csv_column(parts->columns, column, name));
    }
    number->fills = true;
    number->fill = (float)(sum / there);
    for (int p = 0; p < PARTS; p++)
        for (int row = 0; row < parts->of[p].rows; row++) {
            float *const value = &row_of(&parts->of[p], row)[cell];
            if (isnan(*value)) *value = number->fill;
        }
    return OK;
}

/* The values of the training part, sorted; then each cell is a place among them, or -1. */
static int number_values(struct parts *parts, int column, int cell, bool *kept, int *place,
                         struct error *error) {
    struct categories *values = &parts->columns->at[column].values;
    const struct csv_part *train = &parts->of[TRAIN];
    const int missing = categories_find(values, "");
    for (int row = 0; row < train->rows; row++) {
        const float value = row_of(train, row)[cell];
        kept[isnan(value) ? missing : (int)value] = true;
    }
    RETURN_IF(categories_sort(values, kept, place, error));
    for (int p = 0; p < PARTS; p++)
        for (int row = 0; row < parts->of[p].rows; row++) {
            float *const value = &row_of(&parts->of[p], row)[cell];
            *value = (float)place[isnan(*value) ? missing : (int)*value];
            parts->unseen += *value < 0;
        }
    return OK;
}

static int number_category(struct parts *parts, int column, int cell, struct error *error) {
    struct column *category = &parts->columns->at[column];
    bool *kept = NULL;
    int *place = NULL, number, code = OK;
    if (parts->of[TRAIN].table->format.missing == CSV_MISSING_MEAN) {
        category->fills = true;
        code = categories_add(&category->values, "", 0, &number, error);
    }
    if (code == OK) code = memory_array(&kept, category->values.count, "the values of a column", error);
    if (code == OK) code = memory_array(&place, category->values.count, "the values of a column", error);
    if (code == OK) code = number_values(parts, column, cell, kept, place, error);
    memory_free(kept);
    memory_free(place);
    return code;
}

static int prepare_columns(struct parts *parts, struct error *error) {
    const bool fills = parts->of[TRAIN].table->format.missing == CSV_MISSING_MEAN;
    for (int column = 0, cell = 0; column < parts->columns->count; column++) {
        const enum column_role role = parts->columns->at[column].role;
        if (role == COLUMN_NUMBER && fills) RETURN_IF(fill_numbers(parts, column, cell, error));
        if (role == COLUMN_CATEGORY) RETURN_IF(number_category(parts, column, cell, error));
        cell += column_is_feature(&parts->columns->at[column]);
    }
    return OK;
}

/* By cell; those of categories stay as they are. mean and deviation: [cells]. */
static void standardize_cells(const struct parts *parts, float *mean, float *deviation) {
    const struct csv_part *train = &parts->of[TRAIN], *test = &parts->of[TEST];
    const int cells = train->table->cells;
    standardize_measure(row_of(train, 0), train->rows, cells, mean, deviation);
    for (int column = 0, cell = 0; column < parts->columns->count; column++) {
        const struct column *at = &parts->columns->at[column];
        if (at->role == COLUMN_CATEGORY) {
            mean[cell] = 0;
            deviation[cell] = 1;
        }
        cell += column_is_feature(at);
    }
    standardize_apply(row_of(train, 0), train->rows, cells, mean, deviation);
    standardize_apply(row_of(test, 0), test->rows, cells, mean, deviation);
}

/* Whether it has as many whole numbers as there are rows, each once: 0 or 1 and on, in any order, but for
 * rows that were left out. seen: [rows and those left out + 1] */
static bool counts_rows(const struct csv_table *table, int cell, bool *seen) {
    const float last = (float)(table->rows + table->dropped);
    memset(seen, 0, (size_t)(table->rows + table->dropped + 1) * sizeof *seen);
    for (int row = 0; row < table->rows; row++) {
        const float value = csv_cells(table)[(size_t)row * (size_t)table->cells + (size_t)cell];
        if (!(value >= 0.0f && value <= last) || value != truncf(value) || seen[(size_t)value]) return false;
        seen[(size_t)value] = true;
    }
    return true;
}

/* Of columns that nobody has chosen, and that are not all there is to learn from; of few rows it may be
 * chance. */
static int find_counting(struct parts *parts, struct error *error) {
    enum { LEAST_ROWS = 20 };
    const struct csv_table *table = parts->of[TRAIN].table;
    bool *seen;
    parts->counting = -1;
    if (table->rows < LEAST_ROWS || table->cells < 2 || (table->format.columns && *table->format.columns))
        return OK;
    RETURN_IF(memory_array(&seen, (size_t)(table->rows + table->dropped + 1), "counted rows", error));
    for (int c = 0, cell = 0; c < parts->columns->count && parts->counting < 0; c++) {
        const struct column *column = &parts->columns->at[c];
        if (column->role == COLUMN_NUMBER && counts_rows(table, cell, seen)) parts->counting = c;
        cell += column_is_feature(column);
    }
    memory_free(seen);
    return OK;
}

/* features[] = what the cells have, for each feature of a category `usual`. */
static void spread(const struct columns *columns, const float *cells, float usual, float *features) {
    for (int c = 0; c < columns->count; c++) {
        const struct column *column = &columns->at[c];
        const bool is_wide = column->role == COLUMN_CATEGORY && columns->units == 0;
        if (column->role == COLUMN_NUMBER) *features++ = *cells;
        for (int v = 0; is_wide && v < column->values.count; v++) *features++ = usual;
        cells += column_is_feature(column);
    }
    for (int c = columns_codes(columns).columns; c > 0; c--) *features++ = usual;
}

static int standardize_parts(struct dataset *dataset, const struct parts *parts, struct error *error) {
    const int cells = parts->of[TRAIN].table->cells, features = columns_features(parts->columns);
    float *measured; /* mean and deviation of the cells */
    RETURN_IF(memory_array(&dataset->mean, features, "means", error));
    RETURN_IF(memory_array(&dataset->deviation, features, "deviations", error));
    RETURN_IF(memory_array(&measured, 2 * (size_t)cells, "means", error));
    standardize_cells(parts, measured, measured + cells);
    spread(parts->columns, measured, 0, dataset->mean);
    spread(parts->columns, measured + cells, 1, dataset->deviation);
    memory_free(measured);
    return OK;
}

/* --- rows --- */

static int check_size(const struct csv_table *table, int features, struct error *error) {
    const double bytes = (double)table->rows * features * sizeof(float), most = (double)memory_at_most();
    if (bytes <= most) return OK;
    return error_set(
        error, ERROR_DEVICE,
        "%s: %d rows of %d features take %.1f GB of memory, expected at most the %.1f GB there "
        "are; ignore= leaves columns out, and embedding=8 makes one feature of a column of texts",
        table->name, table->rows, features, bytes * 1e-9, most * 1e-9);
}

/* Where categories have several values, a row becomes longer; where they are embedded, its order changes. */
static int widen(struct csv_table *table, int features, struct error *error) {
    const size_t width = (size_t)features, cells = (size_t)table->cells;
    float *row;
    if (columns_of(table->columns, COLUMN_CATEGORY) == 0) return OK;
    RETURN_IF(check_size(table, features, error));
    RETURN_IF(mapping_grow(&table->numbers, (size_t)table->rows * width * sizeof(float),
                           "the examples of a CSV file", error));
    RETURN_IF(memory_array(&row, cells, "a row", error));
    for (size_t i = (size_t)table->rows; i-- > 0;) {
        memcpy(row, csv_cells(table) + i * cells, cells * sizeof *row);
        columns_expand(table->columns, row, csv_cells(table) + i * width);
    }
    memory_free(row);
    return OK;
}

static int name_features(struct dataset *dataset, const struct columns *columns, int features,
                         struct error *error) {
    struct text text = text_growing(error);
    const char **names = NULL;
    if (!columns->named && columns_of(columns, COLUMN_CATEGORY) == 0) return OK;
    columns_name_features(columns, &text);
    int code = text_end(&text);
    if (code == OK) code = memory_array(&names, features, "feature names", error);
    const char *at = text.bytes;
    for (int f = 0; code == OK && f < features; f++, at += strlen(at) + 1) names[f] = at;
    if (code == OK) code = dataset_feature_names(dataset, names, features, error);
    memory_free(names);
    memory_free(text.bytes);
    return code;
}

/* targets: of the part's table, or NULL. */
static struct examples part_examples(const struct dataset *dataset, const struct csv_part *part, int features,
                                     const float *targets) {
    struct examples examples = {.count = part->rows,
                                .features = features,
                                .floats = csv_cells(part->table) + (size_t)part->first * (size_t)features,
                                .scale = 1};
    const void *const labels = dataset->task == TASK_CLASSES
                                   ? (const void *)labels_of(part)
                                   : targets + (size_t)part->first * (size_t)dataset->classes;
    dataset_label(dataset, &examples, labels);
    return examples;
}

/* The data set owns the memory now. */
static void move(struct dataset *dataset, struct csv_table *table, int file) {
    dataset->files[file] = table->numbers;
    dataset->files[file + 1] = table->labels;
    table->numbers = table->labels = (struct mapping){0};
}

static void write_notice(struct dataset *dataset, const struct parts *parts) {
    const struct csv_table *train = parts->of[TRAIN].table;
    struct text text = text_into(dataset->notice, sizeof dataset->notice);
    const long dropped =
        train->dropped + (parts->of[TEST].table != train ? parts->of[TEST].table->dropped : 0);
    if (dropped > 0)
        text_add(&text, "%s: rows left out, as something is missing in them: %ld", train->name, dropped);
    if (parts->unseen > 0)
        text_item(&text, "; ", "%s: values of the test part that no training example has: %ld cell%s",
                  parts->of[TEST].table->name, parts->unseen, parts->unseen == 1 ? "" : "s");
    if (parts->counting < 0) return;
    char name[CSV_COLUMN_BYTES];
    csv_column(parts->columns, parts->counting, name);
    text_item(&text, "; ", "%s: column %s counts the rows, and is learnt from; ignore=%s leaves it out",
              train->name, name, name);
}

int csv_examples(struct dataset *dataset, const struct csv_part *train, const struct csv_part *test,
                 bool standardize, struct error *error) {
    struct parts parts = {.of = {*train, *test}, .columns = train->table->columns};
    const bool targets = columns_of(parts.columns, COLUMN_TARGET) > 0;
    RETURN_IF(targets ? number_targets(dataset, &parts, error) : number_labels(dataset, &parts, error));
    RETURN_IF(prepare_columns(&parts, error));
    const int features = columns_features(parts.columns);
    RETURN_IF(name_features(dataset, parts.columns, features, error));
    RETURN_IF(find_counting(&parts, error));
    if (standardize) RETURN_IF(standardize_parts(dataset, &parts, error));
    RETURN_IF(widen(train->table, features, error));
    if (test->table != train->table) RETURN_IF(widen(test->table, features, error));
    write_notice(dataset, &parts);
    dataset->shape = SHAPE(features);
    dataset->codes = columns_codes(parts.columns);
    dataset->measured = dataset->codes.columns > 0;
    const void *const *blocks = (const void *const *)dataset->blocks;
    dataset->train = part_examples(dataset, train, features, blocks[TRAIN]);
    dataset->test =
        part_examples(dataset, test, features, blocks[test->table == train->table ? TRAIN : TEST]);
    if (targets && standardize) RETURN_IF(dataset_standardize_targets(dataset, error));
    move(dataset, train->table, 0);
    if (test->table != train->table) move(dataset, test->table, 2);
    return OK;
}
