/* See split.h. */
#include "split.h"

#include <math.h>
#include "../base/rng.h"

static const uint64_t SHUFFLE_PURPOSE = 0x637376; /* "csv": unrelated to other uses of the seed */

int split_row(long seed, int rows, int to) {
    const uint64_t key = rng_mix((uint64_t)seed, SHUFFLE_PURPOSE);
    return (int)rng_permute(key, (uint32_t)rows, (uint32_t)to);
}

int split_test_rows(const struct split *split, const char *name, int rows, int *test, struct error *error) {
    if (rows < 2)
        return error_set(error, ERROR_FILE, "%s: found 1 row, expected at least 2, to train and to test on",
                         name);
    *test = (int)lround(split->share * rows);
    if (*test < 1) *test = 1;
    if (*test > rows - 1) *test = rows - 1;
    return OK;
}
