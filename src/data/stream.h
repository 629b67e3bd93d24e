/* The stream: one endless sequence of examples, cut from seeded permutations of the training set. It says
 * which example goes to which worker, and when.
 *
 * A pure function of (seed, position): no state, no lock, random access; a batch may straddle two epochs.
 * It does not depend on the strategy or, for `shared`, on the number of workers. */
#ifndef TRAINER_DATA_STREAM_H
#define TRAINER_DATA_STREAM_H

#include <stdint.h>
#include "../base/error.h"

enum data_sharding {
    SHARDING_SHARED, /* one stream for all: every example once an epoch over all workers */
    SHARDING_SPLIT,  /* each worker its own slice: examples i with i % workers == worker */
    SHARDING_ALL,    /* each worker goes through everything in its own order */
};

struct stream {
    uint64_t seed;
    int examples; /* in the training set */
    int batch;    /* examples per batch */
    int workers;
    enum data_sharding sharding;
};

/* index[stream->batch] = the example numbers of batch `number` (from 0). For SPLIT and ALL, number counts the
 * worker's own batches. */
void stream_batch(const struct stream *stream, int worker, long number, int *index);

/* key[stream->batch] = what each of these examples is augmented by: a number of its own for every place in
 * the stream, so that an example looks different each time, and the same whoever builds it. */
void stream_keys(const struct stream *stream, int worker, long number, uint64_t *key);

/* What comes behind batch `number` in the worker's stream: the number of the example, and its key. */
void stream_next(const struct stream *stream, int worker, long number, int *index, uint64_t *key);

/* Examples in what `worker` goes through in one epoch, and the number of its batch at which epoch `epoch`
 * (from 0) is complete: ceil((epoch + 1) * examples / batch). For SHARED both are of the one stream. */
int stream_epoch_examples(const struct stream *stream, int worker);
long stream_epoch_end(const struct stream *stream, int worker, int epoch);

#endif
