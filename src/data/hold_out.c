/* The validation part: examples of the training part that are never trained on; and slices of it, of which a
 * run may have one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/rng.h"
#include "../device/gather.h"
#include "dataset.h"

/* Which examples are held out depends on nothing but how many there are, so that runs with other seeds are
 * judged by the same ones. */
enum { HOLD_OUT_SEED = 1 };
static const uint64_t PURPOSE = 0x686f6c646f7574ULL;   /* "holdout" */
static const uint64_t SLICE_PURPOSE = 0x736c696365ULL; /* "slice" */

static void swap_bytes(uint8_t *one, uint8_t *other, size_t bytes) {
    uint8_t kept[4096];
    for (size_t at = 0, part; at < bytes; at += part) {
        part = bytes - at < sizeof kept ? bytes - at : sizeof kept;
        memcpy(kept, one + at, part);
        memcpy(one + at, other + at, part);
        memcpy(other + at, kept, part);
    }
}

/* Copies what the data set has borrowed, so that examples can change their places; those of a file do so in
 * copies of its pages. */
static int own(struct dataset *dataset, struct error *error) {
    struct examples *train = &dataset->train;
    const size_t count = (size_t)train->count, bytes = examples_row_bytes(train),
                 label_bytes = examples_label_bytes(train);
    for (size_t i = 0; i < sizeof dataset->files / sizeof *dataset->files; i++)
        dataset->files[i].changed = true;
    if (!dataset->borrowed) return OK;
    RETURN_IF(memory_zeroed(&dataset->blocks[0], count, bytes, "features", error));
    RETURN_IF(memory_zeroed(&dataset->blocks[1], count, label_bytes, "labels", error));
    memcpy(dataset->blocks[0], examples_rows(train), count * bytes);
    memcpy(dataset->blocks[1], examples_labels(train), count * label_bytes);
    if (train->bytes)
        train->bytes = dataset->blocks[0];
    else
        train->floats = dataset->blocks[0];
    dataset_label(dataset, train, dataset->blocks[1]);
    dataset->borrowed = false;
    return OK;
}

/* The data set owns the memory of its examples, which is constant only to those who are handed them. */
static void swap(const struct examples *examples, size_t one, size_t other) {
    const size_t bytes = examples_row_bytes(examples), label_bytes = examples_label_bytes(examples);
    uint8_t *rows = (uint8_t *)examples_rows(examples), *labels = (uint8_t *)examples_labels(examples);
    if (one == other) return;
    swap_bytes(rows + one * bytes, rows + other * bytes, bytes);
    swap_bytes(labels + one * label_bytes, labels + other * label_bytes, label_bytes);
}

/* Draws for each example from `first` on one of those up to it, from the last one down, and swaps the two:
 * what stands there is then chosen at random. */
static int shuffle_from(const struct examples *train, int first, uint64_t purpose, struct error *error) {
    struct rng rng;
    rng_start(&rng, HOLD_OUT_SEED, purpose);
    for (int i = train->count - 1; i >= first; i--) {
        const int other = (int)rng_below(&rng, (uint32_t)i + 1);
        RETURN_IF(examples_use_one(train, i, error)); /* as the file has them */
        RETURN_IF(examples_use_one(train, other, error));
        swap(train, (size_t)i, (size_t)other);
    }
    return OK;
}

int dataset_slice(struct dataset *dataset, const char *slice, struct error *error) {
    struct examples *train = &dataset->train;
    int part = 0, parts = 0, end = 0;
    if (strcmp(slice, "all") == 0) return OK;
    if (sscanf(slice, "%6d/%6d%n", &part, &parts, &end) != 2 || slice[end] != '\0' || part < 1 ||
        part > parts || parts > train->count)
        return error_set(
            error, ERROR_USAGE,
            "--data-slice=%s: expected all, or K/N as in 2/4, with K from 1 to N and N at most %d, "
            "the training examples of %s",
            slice, train->count, dataset->name);
    RETURN_IF(own(dataset, error));
    RETURN_IF(shuffle_from(train, 0, SLICE_PURPOSE, error));
    const long all = train->count;
    const int first = (int)(all * (part - 1) / parts), after = (int)(all * part / parts);
    for (int i = first; i < after; i++) swap(train, (size_t)(i - first), (size_t)i);
    train->count = after - first;
    return OK;
}

int dataset_hold_out(struct dataset *dataset, double share, struct error *error) {
    struct examples *train = &dataset->train, *validation = &dataset->validation;
    const int held = (int)lround(share * train->count);
    if (held < 1 || held >= train->count)
        return error_set(error, ERROR_USAGE,
                         "--validation=%g: found %d of %d training examples of %s, expected at least one on "
                         "either side",
                         share, held, train->count, dataset->name);
    RETURN_IF(own(dataset, error));
    RETURN_IF(shuffle_from(train, train->count - held, PURPOSE, error));
    train->count -= held;
    *validation = *train;
    validation->count = held;
    validation->augment = dataset->test.augment;
    if (train->targets)
        validation->targets = train->targets + (size_t)train->count * (size_t)train->outputs;
    else
        validation->labels = train->labels + train->count;
    const uint8_t *rows = examples_rows(train) + (size_t)train->count * examples_row_bytes(train);
    if (train->bytes)
        validation->bytes = rows;
    else
        validation->floats = (const float *)(const void *)rows;
    return OK;
}
