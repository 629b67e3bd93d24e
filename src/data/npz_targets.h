/* What arrays want said of their examples: one class, several labels, or numbers. */
#ifndef TRAINER_DATA_NPZ_TARGETS_H
#define TRAINER_DATA_NPZ_TARGETS_H

#include "npz_labels.h"

/* *task = what the array of the training part is: floats [N] are values; [N, K] of which each row has one 1
 * and else 0 are classes; of 0 and 1 otherwise, labels; of other floats, values. All else is left to
 * npz_labels, which says what is wrong with it. Errors: ERROR_FILE: more than NPZ_MAX_CLASSES columns. */
int npz_task(enum task *task, const struct npy *npy, struct error *error);

/* The rows of labels or values as floats: *train_targets, *test_targets (owned by the caller, set even on
 * error: memory_free), [rows][dataset->classes]; and their names, by number. Errors: ERROR_FILE: another
 * number of columns in the test part, a label that is neither 0 nor 1, a value that is not finite. */
int npz_targets(struct dataset *dataset, const struct npz_rows *train, const struct npz_rows *test,
                void **train_targets, void **test_targets, struct error *error);

#endif
