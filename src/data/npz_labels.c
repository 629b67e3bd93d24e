/* See npz_labels.h. */
#include "npz_labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "../base/memory.h"
#include "split.h"

int npz_row(const struct npz_rows *rows, int i) {
    return rows->shuffled ? split_row(rows->seed, rows->npy->shape.dims[0], rows->first + i)
                          : rows->first + i;
}

/* Columns of rows with a 1; 0: integers. */
static int columns_of(int *columns, const struct npy *npy, struct error *error) {
    char text[100];
    const int rank = npy->shape.rank, width = rank > 1 ? npy->shape.dims[1] : 1;
    *columns = rank == 2 && width > 1 ? width : 0;
    if (rank > 2 || (width == 1 && npy->kind == 'f'))
        return error_set(
            error, ERROR_FILE,
            "%s: found %s, expected integers (astype('int64')), or one row of 0 and 1 per example", npy->name,
            npy_text(npy, text, sizeof text));
    if (*columns > NPZ_MAX_CLASSES)
        return error_set(error, ERROR_FILE, "%s: found %d columns, expected at most %d, one per class",
                         npy->name, width, NPZ_MAX_CLASSES);
    return OK;
}

/* The column with the 1. */
static int read_one(const struct npy *npy, int row, int columns, int64_t *number, struct error *error) {
    int ones = 0;
    for (int c = 0; c < columns; c++) {
        const float value = npy_float(npy, (size_t)row * (size_t)columns + (size_t)c);
        if (value == 1.0f) *number = c;
        if (value == 1.0f) ones++;
        if (value != 1.0f && value != 0.0f)
            return error_set(error, ERROR_FILE, "%s: row %d, column %d (from 1): found %g, expected 0 or 1",
                             npy->name, row + 1, c + 1, (double)value);
    }
    if (ones == 1) return OK;
    return error_set(error, ERROR_FILE, "%s: row %d (from 1): found %d columns with a 1, expected one",
                     npy->name, row + 1, ones);
}

/* *numbers = what the array says of each row, owned by the caller, set even on error. */
static int read_numbers(int64_t **numbers, const struct npz_rows *rows, int columns, struct error *error) {
    *numbers = NULL;
    RETURN_IF(memory_array(numbers, rows->count, "classes", error));
    for (int i = 0; i < rows->count; i++) {
        const int row = npz_row(rows, i);
        if (columns > 0)
            RETURN_IF(read_one(rows->npy, row, columns, &(*numbers)[i], error));
        else if (!npy_integer(rows->npy, (size_t)row, &(*numbers)[i]))
            return error_set(error, ERROR_FILE, "%s: row %d (from 1): found a class above %" PRId64,
                             rows->npy->name, row + 1, INT64_MAX);
    }
    return OK;
}

static int compare(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* *sorted[*count] = the different ones, owned by the caller, set even on error. */
static int collect(int64_t **sorted, int *count, const int64_t *numbers, const struct npz_rows *rows,
                   struct error *error) {
    *sorted = NULL;
    *count = 0;
    RETURN_IF(memory_array(sorted, rows->count, "classes", error));
    for (int i = 0; i < rows->count; i++) (*sorted)[i] = numbers[i];
    qsort(*sorted, (size_t)rows->count, sizeof **sorted, compare);
    for (int i = 0; i < rows->count; i++)
        if (i == 0 || (*sorted)[i] != (*sorted)[i - 1]) (*sorted)[(*count)++] = (*sorted)[i];
    if (*count > NPZ_MAX_CLASSES)
        return error_set(error, ERROR_FILE, "%s: found %d classes, expected at most %d", rows->npy->name,
                         *count, NPZ_MAX_CLASSES);
    if (*count < 2)
        return error_set(error, ERROR_FILE,
                         "%s: found one class, %" PRId64 ", in %s%d training row%s, expected at least two",
                         rows->npy->name, **sorted, rows->count == 1 ? "" : "all ", rows->count,
                         rows->count == 1 ? "" : "s");
    return OK;
}

static int name_classes(struct dataset *dataset, const int64_t *sorted, int count, struct error *error) {
    enum { DIGITS = 24 };
    char(*texts)[DIGITS] = NULL;
    const char **names = NULL;
    int code = memory_array(&texts, count, "class names", error);
    if (code == OK) code = memory_array(&names, count, "class names", error);
    for (int i = 0; code == OK && i < count; i++) {
        snprintf(texts[i], DIGITS, "%" PRId64, sorted[i]);
        names[i] = texts[i];
    }
    if (code == OK) code = dataset_class_names(dataset, names, count, error);
    memory_free(names);
    memory_free(texts);
    return code;
}

/* sorted NULL: the numbers are the labels. */
static int number_labels(void **labels, const int64_t *numbers, const struct npz_rows *rows,
                         const int64_t *sorted, int count, struct error *error) {
    RETURN_IF(memory_zeroed(labels, (size_t)rows->count, sizeof(int), "labels", error));
    for (int i = 0; i < rows->count; i++) {
        const int64_t *found =
            sorted ? bsearch(&numbers[i], sorted, (size_t)count, sizeof *sorted, compare) : NULL;
        if (sorted && !found)
            return error_set(
                error, ERROR_FILE,
                "%s: row %d (from 1): found class %" PRId64 ", expected one of the %d of the training part%s",
                rows->npy->name, npz_row(rows, i) + 1, numbers[i], count,
                rows->shuffled ? "; another split_seed= splits otherwise, x_test= and y_test= name rows "
                                 "to test"
                               : "");
        ((int *)*labels)[i] = sorted ? (int)(found - sorted) : (int)numbers[i];
    }
    return OK;
}

int npz_labels(struct dataset *dataset, const struct npz_rows *train, const struct npz_rows *test,
               void **train_labels, void **test_labels, struct error *error) {
    int columns, test_columns, classes = 0;
    int64_t *numbers[2] = {0}, *sorted = NULL;
    RETURN_IF(columns_of(&columns, train->npy, error));
    RETURN_IF(columns_of(&test_columns, test->npy, error));
    if (columns != test_columns)
        return error_set(error, ERROR_FILE, "%s: found %d columns, expected %d as in %s", test->npy->name,
                         test_columns ? test_columns : 1, columns ? columns : 1, train->npy->name);
    int code = read_numbers(&numbers[0], train, columns, error);
    if (code == OK) code = read_numbers(&numbers[1], test, columns, error);
    if (code == OK && columns == 0) code = collect(&sorted, &classes, numbers[0], train, error);
    if (code == OK && columns == 0) code = name_classes(dataset, sorted, classes, error);
    if (code == OK && columns > 0) code = dataset_class_names(dataset, NULL, columns, error);
    if (code == OK) code = number_labels(train_labels, numbers[0], train, sorted, classes, error);
    if (code == OK) code = number_labels(test_labels, numbers[1], test, sorted, classes, error);
    memory_free(sorted);
    memory_free(numbers[1]);
    memory_free(numbers[0]);
    return code;
}
