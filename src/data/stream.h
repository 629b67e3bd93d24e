/* The stream: one endless sequence of examples, cut from seeded permutations of the training set. It says
 * which example goes to which worker, and when.
 *
 * A pure function of (seed, position): no state, no lock, random access; a batch may straddle two epochs.
 * It does not depend on the strategy or, for `shared`, on the number of workers.
 *
 * With `block`, examples that lie side by side come near each other, so that a file larger than memory is
 * read in runs: the blocks of an epoch are permuted, STREAM_WINDOW of them in this order are a window, and
 * the examples of a window are permuted. Those behind the last whole block belong to the last window. */
#ifndef TRAINER_DATA_STREAM_H
#define TRAINER_DATA_STREAM_H

#include <stdint.h>
#include "../base/error.h"
#include "../device/device.h"

enum data_sharding {
    SHARDING_SHARED, /* one stream for all: every example once an epoch over all workers */
    SHARDING_SPLIT,  /* each worker its own slice: examples i with i % workers == worker */
    SHARDING_ALL,    /* each worker goes through everything in its own order */
};

enum { STREAM_WINDOW = 64 };

struct stream {
    uint64_t seed;
    int examples; /* in the training set */
    int batch;    /* examples per batch */
    int workers;
    enum data_sharding sharding;
    int block; /* examples; 0: any order of all of them */
    /* [workers] borrowed: examples of each worker's batches, where these are not `batch` (--share,
     * --batch-total). A batch is then numbered by its first example's place in the stream. NULL: all batches
     * are of one size. */
    const int *sizes;
};

/* Examples of a worker's batches; and how many examples a number counts. */
static inline int stream_size(const struct stream *stream, int worker) {
    return stream->sizes ? stream->sizes[worker] : stream->batch;
}
static inline int stream_unit(const struct stream *stream) {
    return stream->sizes ? 1 : stream->batch;
}

/* index[stream_size] = the example numbers of batch `number` (from 0). For SPLIT and ALL, number counts the
 * worker's own batches. */
void stream_batch(const struct stream *stream, int worker, long number, int *index);

/* For numbers that come from `peer`. Errors: ERROR_PEER: there is no such worker, or no such batch. */
int stream_check(const struct stream *stream, int worker, long number, const char *peer, struct error *error);

/* key[stream_size] = what each of these examples is augmented by: a number of its own for every place in
 * the stream, so that an example looks different each time, and the same whoever builds it. */
void stream_keys(const struct stream *stream, int worker, long number, uint64_t *key);

/* What comes behind batch `number` in the worker's stream: the number of the example, and its key. */
void stream_next(const struct stream *stream, int worker, long number, int *index, uint64_t *key);

/* *soon = what is to be read while this batch is computed: its share of the blocks of the next window, so
 * that each is named once, by the batches of the window before; batch 0 names those of its own window, too.
 * Likewise what was used: its share of the blocks of the window before. Their numbers are in
 * first[stream_soon_room(stream_size)]. None without `block`. */
void stream_soon(const struct stream *stream, int worker, long number, struct soon *soon, int *first);
int stream_soon_room(int size);

/* Examples in what `worker` goes through in one epoch, and the number of its batch at which epoch `epoch`
 * (from 0) is complete: ceil((epoch + 1) * examples / stream_unit). For SHARED both are of the one stream. */
int stream_epoch_examples(const struct stream *stream, int worker);
long stream_epoch_end(const struct stream *stream, int worker, int epoch);

#endif
