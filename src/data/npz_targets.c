/* See npz_targets.h. */
#include "npz_targets.h"

#include "../base/memory.h"

static int columns_of(const struct npy *npy) {
    return npy->shape.rank > 1 ? npy->shape.dims[1] : 1;
}

/* Whether all items are 0 or 1, and whether each row has exactly one 1. */
static void look(const struct npy *npy, bool *truths, bool *single) {
    const size_t columns = (size_t)columns_of(npy);
    *truths = *single = true;
    for (size_t row = 0; row < npy->count / columns && *truths; row++) {
        size_t ones = 0;
        for (size_t c = 0; c < columns; c++) {
            const float value = npy_float(npy, row * columns + c);
            ones += value == 1.0f;
            *truths = *truths && (value == 0.0f || value == 1.0f);
        }
        *single = *single && ones == 1;
    }
}

int npz_task(enum task *task, const struct npy *npy, struct error *error) {
    bool truths, single;
    *task = TASK_CLASSES;
    if (npy->shape.rank > 2) return OK;
    if (columns_of(npy) > NPZ_MAX_CLASSES)
        return error_set(error, ERROR_FILE, "%s: found %d columns, expected at most %d", npy->name,
                         columns_of(npy), NPZ_MAX_CLASSES);
    look(npy, &truths, &single);
    if (columns_of(npy) > 1 && truths && !single)
        *task = TASK_LABELS;
    else if (npy->kind == 'f' && (columns_of(npy) == 1 || !truths))
        *task = TASK_VALUES;
    return OK;
}

static int read_rows(void **block, const struct npz_rows *rows, int columns, struct error *error) {
    const size_t width = (size_t)columns;
    RETURN_IF(memory_zeroed(block, (size_t)rows->count * width, sizeof(float), rows->npy->name, error));
    float *out = *block;
    for (int i = 0; i < rows->count; i++, out += width)
        RETURN_IF(npy_floats(rows->npy, (size_t)npz_row(rows, i) * width, width, out, error));
    return OK;
}

static int check_truths(const struct npz_rows *rows, const float *labels, int columns, struct error *error) {
    for (int i = 0; i < rows->count; i++)
        for (int c = 0; c < columns; c++, labels++)
            if (*labels != 0.0f && *labels != 1.0f)
                return error_set(error, ERROR_FILE,
                                 "%s: row %d, column %d (from 1): found %g, expected 0 or 1", rows->npy->name,
                                 npz_row(rows, i) + 1, c + 1, (double)*labels);
    return OK;
}

int npz_targets(struct dataset *dataset, const struct npz_rows *train, const struct npz_rows *test,
                void **train_targets, void **test_targets, struct error *error) {
    const int columns = columns_of(train->npy);
    if (test->npy->shape.rank > 2 || columns_of(test->npy) != columns)
        return error_set(error, ERROR_FILE, "%s: found %d columns, expected %d as in %s", test->npy->name,
                         columns_of(test->npy), columns, train->npy->name);
    RETURN_IF(read_rows(train_targets, train, columns, error));
    RETURN_IF(read_rows(test_targets, test, columns, error));
    if (dataset->task == TASK_LABELS) {
        RETURN_IF(check_truths(train, *train_targets, columns, error));
        RETURN_IF(check_truths(test, *test_targets, columns, error));
    }
    return dataset_class_names(dataset, NULL, columns, error);
}
