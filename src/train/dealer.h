/* The dealer: hands out the numbers of the stream's batches, and knows how far a run has come.
 *
 * Strategies with rounds: batch r*W+w goes to worker w of round r, so everyone knows its own; a worker for
 * whom no batch is left in the last round is dealt an empty one. Others take the next number from one cursor,
 * so a slow worker slows nobody. With --data-sharding=split|all each worker counts its own batches.
 *
 * Workers stop at a limit (the border of an epoch), or soon after dealer_stop. With rounds all must stop
 * after the same round: worker 0 publishes the limit before it arrives at a round that the others cannot
 * finish without it. */
#ifndef TRAINER_TRAIN_DEALER_H
#define TRAINER_TRAIN_DEALER_H

#include <stdatomic.h>
#include <stdbool.h>
#include "../data/stream.h"

enum { NO_BATCH = -1 }; /* an empty batch: take part in the round without an example */

struct dealer_line {
    _Alignas(64) long done; /* rounds, or own batches, dealt in this run; the worker's own while it runs */
    long base;              /* own batches before this run (split, all) */
    long limit;             /* own batches, base included (split, all without rounds); set while paused */
};

struct dealer {
    struct stream stream;
    bool rounds;
    int epochs;
    long base;                        /* shared: batches dealt before this run */
    long total;                       /* shared: batches in the whole training */
    _Alignas(64) _Atomic long cursor; /* shared, no rounds: next number */
    _Alignas(64) _Atomic long limit;  /* rounds: rounds of this run; shared: numbers */
    _Atomic bool stopping;
    struct dealer_line *lines; /* [workers] */
};

/* done[workers]: own batches of each worker before this run (split, all; may be NULL); base: shared ones. */
int dealer_open(struct dealer *dealer, const struct stream *stream, bool rounds, int epochs, long base,
                const long *done, struct error *error);
void dealer_close(struct dealer *dealer); /* safe on a zeroed one */

/* On the worker's thread: the next batch to compute, or NO_BATCH; false: pause. */
bool dealer_next(struct dealer *dealer, int worker, long *number);
void dealer_stop(struct dealer *dealer); /* any thread: pause soon, at the end of the steps in hand */

/* While all are paused: */
void dealer_set_limit(struct dealer *dealer,
                      int epoch); /* go on to the end of epoch `epoch` (from 0); clears a stop */
bool dealer_reached(const struct dealer *dealer, int epoch); /* whether epoch `epoch` is complete */
long dealer_position(const struct dealer *dealer); /* batches dealt since training began, over all workers */
long dealer_own(const struct dealer *dealer,
                int worker);                    /* split, all: batches of this worker since training began */
long dealer_total(const struct dealer *dealer); /* batches in the whole training, over all workers */
long dealer_updates(const struct dealer *dealer); /* updates that makes of each shard */

/* Epoch (from 0) of a batch, its place in it (from 0), and the batches of that epoch. */
void dealer_place(const struct dealer *dealer, int worker, long number, int *epoch, long *place,
                  long *batches);

#endif
