/* Arrays become a data set's examples: x [examples, ...] and y, what is to be said of them. */
#ifndef TRAINER_DATA_NPZ_EXAMPLES_H
#define TRAINER_DATA_NPZ_EXAMPLES_H

#include "dataset.h"
#include "npz.h"
#include "split.h"

/* x and y of one part. */
struct npz_pair {
    struct npz_array x, y;
};

/* Fills the data set. x [N] or [N, F] is a table of numbers; with `standardize` each column is brought to
 * mean 0 and deviation 1 over the training part. x of more dimensions are images: bytes are scaled by 1/255,
 * other numbers stay as they are. test NULL: the training pair is split. What can be used where it lies stays
 * there: blocks of the arrays move to dataset->blocks 0 and 1, what is in a file's bytes has to outlive the
 * data set. Values (npz_targets.h) are brought to mean 0 and
 * deviation 1, too, whatever x is. Labels are in blocks 2 and 3. Errors: ERROR_FILE. */
int npz_examples(struct dataset *dataset, struct npz_pair *train, struct npz_pair *test,
                 const struct split *split, bool standardize, struct error *error);

#endif
