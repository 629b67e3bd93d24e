/* The rows of a NumPy array as a network's input: a .npy file, or the array in a .npz file, with an example
 * in each row, as the data set that the network learnt has them. */
#ifndef TRAINER_INFER_ARRAY_ROWS_H
#define TRAINER_INFER_ARRAY_ROWS_H

#include "../data/npz.h"
#include "features.h"

struct array_rows {
    const struct restored *restored; /* borrowed */
    char *bytes;                     /* of the file, owned */
    struct zip zip;
    struct npz_array array; /* [count] examples */
    int count, next;
    bool fractions;        /* some of the numbers so far are between two whole ones */
    float lowest, highest; /* of them */
};

/* Whether a file that begins with front[bytes] is one. */
bool array_rows_is(const char *path, const char *front, size_t bytes);
/* Reads the file, of which nothing has been read but its front. Errors: ERROR_FILE: it is none, has several
 * arrays and none is called x, or its rows are no examples of the network. */
int array_rows_open(struct array_rows *rows, const struct restored *restored, struct file_reader *file,
                    struct error *error);
/* The next rows into `features`, which is closed by the caller; count 0: there are no more. Errors:
 * ERROR_FILE: a number that is not finite. */
int array_rows_next(struct array_rows *rows, struct features *features, struct error *error);
/* As table_rows_scaled. */
bool array_rows_scaled(const struct array_rows *rows);
void array_rows_close(struct array_rows *rows); /* safe on a zeroed or half-open one */

#endif
