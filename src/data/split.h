/* Rows without a test part are cut in two: put into a random order by a seed of their own, so that the split
 * does not change with the seed of the run, and the last ones are the test part. */
#ifndef TRAINER_DATA_SPLIT_H
#define TRAINER_DATA_SPLIT_H

#include "../base/option.h"

struct split {
    double share; /* of the rows, to test on */
    long seed;
};

/* The rows of its settings; `field` is the struct split in `settings`, `without` what else could be given. */
#define SPLIT_ROWS(settings, field, without)                                                                 \
    OPTION_ROW(REAL, "test", settings, field.share, .fallback = "0.2", .least = 0.001, .most = 0.999,        \
               .help = "share to test on if there is no " without),                                          \
        OPTION_ROW(LONG, "split_seed", settings, field.seed, .fallback = "1",                                \
                   .help = "seed of the split into training and test rows")

/* The place, from 0, of the row that comes to place `to` of `rows`. */
int split_row(long seed, int rows, int to);

/* *test = how many of the rows are the test part: at least one, and not all. Errors: ERROR_FILE: there are
 * fewer than two; `name` is theirs, for the words. */
int split_test_rows(const struct split *split, const char *name, int rows, int *test, struct error *error);

#endif
