/* What the files of the sampler share: rounds and their generations. Used by these files alone. */
#ifndef TRAINER_ENGINE_SAMPLER_ROUNDS_H
#define TRAINER_ENGINE_SAMPLER_ROUNDS_H

#include "sampler.h"

static inline bool shared(const struct sampler *sampler) {
    return sampler->stream.sharding == SHARDING_SHARED;
}

static inline long up(long a, long b) {
    return (a + b - 1) / b;
}

/* Numbers that a batch of this worker takes. */
static inline long sampler_width_of(const struct sampler *sampler, int worker) {
    return sampler->widths ? sampler->widths[worker] : 1;
}

/* Numbers that the batch takes which this worker was assigned last. */
static inline long sampler_size_now(const struct sampler *sampler, int worker) {
    return sampler->sizes ? sampler->sizes[worker] : 1;
}

/* How far the newest generation is when all its rounds before `round` are assigned. */
struct sampler_reach {
    long past;  /* of what it hands out anew, so many are assigned */
    long owed;  /* and so many numbers are not */
    long fresh; /* where the stream goes on; past the end, when the last round had empty ones */
};

/* In a round of generation `e`: numbers that those take who stand before `worker`; that all take. */
long sampler_numbers_before(const struct sampler *sampler, int e, int worker);
long sampler_round_numbers(const struct sampler *sampler, int e);
/* Rounds with which generation `e` begins, of what is handed out anew alone. */
long sampler_rounds_again(const struct sampler *sampler, int e);
/* What is assigned to a worker in a round of no later generation than that of its loss; number NO_BATCH:
 * nothing. */
struct sampler_piece sampler_piece_of(const struct sampler *sampler, int worker, long round);
struct sampler_reach sampler_reach_of(const struct sampler *sampler, long round);
long sampler_rounds_opened(const struct sampler *sampler);

/* sampler.c: the parts of a round from now on; where the training ends that goes on from number `from`. */
void sampler_take_widths(struct sampler *sampler, const int *sizes);
void sampler_find_total(struct sampler *sampler, long from);
/* sampler_progress.c: own batches, until the end of an epoch, of the worker that has the most. */
long sampler_longest_own(const struct sampler *sampler, int epoch);

#endif
