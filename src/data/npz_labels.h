/* The classes of arrays: integers, one per example, or rows with a 1 in the column of the class. */
#ifndef TRAINER_DATA_NPZ_LABELS_H
#define TRAINER_DATA_NPZ_LABELS_H

#include "dataset.h"
#include "npy.h"

enum { NPZ_MAX_CLASSES = 10000 };

/* Rows of an array: place i has row i, or, shuffled, row split_row(seed, rows, i). */
struct npz_rows {
    const struct npy *npy;
    bool shuffled;
    long seed;
    int first, count; /* places */
};

int npz_row(const struct npz_rows *rows, int i); /* the row of place first + i */

/* Classes and their names: with integers those of the training part, in ascending order, with columns all of
 * them, by number. *train_labels, *test_labels = the class of each row (owned by the caller, set even on
 * error: memory_free). Errors: ERROR_FILE: no classes, fewer than two, more than NPZ_MAX_CLASSES; a class in
 * the test part that the training part does not have. */
int npz_labels(struct dataset *dataset, const struct npz_rows *train, const struct npz_rows *test,
               void **train_labels, void **test_labels, struct error *error);

#endif
