/* The dealer: hands out the numbers of the stream's batches, and knows how far a run has come.
 *
 * Strategies with rounds: batch r*W+w goes to worker w of round r, so everyone knows its own; a worker for
 * whom no batch is left in the last round is dealt an empty one. Others take the next number from one cursor,
 * so a slow worker slows nobody. With --data-sharding=split|all each worker counts its own batches.
 *
 * Workers stop at a limit (the border of an epoch), or soon after dealer_stop. With rounds all must stop
 * after the same round: the furthest that anybody was dealt, however far ahead of the others. What a worker
 * was dealt it computes before it pauses, also when a feeder asked for it in advance.
 *
 * With rounds, the loss of a worker begins another era: from the next round on, those who are left are dealt
 * first what the lost one was dealt but never came to, then the rest of the stream. Only the batch that it
 * had in hand is lost with it. With split, a lost worker's slice ends with it. */
#ifndef TRAINER_TRAIN_DEALER_H
#define TRAINER_TRAIN_DEALER_H

#include <stdatomic.h>
#include <stdbool.h>
#include "../data/stream.h"

enum { NO_BATCH = -1 }; /* an empty batch: take part in the round without an example */

/* Of one worker. Atomic, since the feeder of one that was given up for lost may still ask. */
struct dealer_line {
    _Alignas(64) _Atomic long done; /* rounds, or own batches, dealt in this run */
    long base;                      /* own batches before this run (split, all); constant */
    _Atomic long limit;             /* own batches, base included (split, all without rounds) */
    _Atomic bool gone;              /* lost */
};

/* From one loss to the next, with rounds on the shared stream. Era e has e workers fewer than the first. */
struct dealer_era {
    long from;   /* its first round, of this run */
    int lost;    /* whose loss began it; -1: nobody's */
    long *again; /* [again_count] numbers that it deals first, anew ... */
    long again_count;
    long fresh; /* ... then the stream from this number on */
};

struct dealer {
    struct stream stream;
    bool rounds;
    int epochs;
    long base;                        /* shared: batches dealt before this run */
    long total;                       /* shared: batches in the whole training */
    _Alignas(64) _Atomic long cursor; /* shared, no rounds: next number */
    _Alignas(64) _Atomic long limit;  /* rounds: rounds of this run; shared: numbers */
    _Alignas(64) _Atomic long opened; /* rounds: how many anybody was dealt; stopped: its complement, < 0 */
    _Atomic bool stopping;            /* no rounds */
    struct dealer_line *lines;        /* [workers] */
    struct dealer_era *eras;          /* [workers + 1], era_count of them in use; added while paused */
    _Atomic int era_count;
    long in_flight; /* batches that were lost with their workers */
};

/* done[workers]: own batches of each worker before this run (split, all; may be NULL); base: shared ones. */
int dealer_open(struct dealer *dealer, const struct stream *stream, bool rounds, int epochs, long base,
                const long *done, struct error *error);
void dealer_close(struct dealer *dealer); /* safe on a zeroed one */

/* By one thread for each worker: the next batch to compute, or NO_BATCH; false: pause. */
bool dealer_next(struct dealer *dealer, int worker, long *number);
void dealer_stop(struct dealer *dealer); /* any thread: pause soon, at the end of the steps in hand */
void dealer_bar(struct dealer *dealer, int worker); /* any thread: that worker is dealt nothing more */

/* While all are paused: */
void dealer_set_limit(struct dealer *dealer,
                      int epoch); /* go on to the end of epoch `epoch` (from 0); clears a stop */
/* A worker that was barred before was lost in its step `step` (from 1, in this run; 0: before its first).
 * Errors: memory. */
int dealer_lose(struct dealer *dealer, int worker, long step, struct error *error);
bool dealer_reached(const struct dealer *dealer, int epoch); /* whether epoch `epoch` is complete */
long dealer_position(const struct dealer *dealer); /* batches dealt since training began, over all workers */
long dealer_own(const struct dealer *dealer,
                int worker);                    /* split, all: batches of this worker since training began */
long dealer_total(const struct dealer *dealer); /* batches in the whole training, over all workers */
/* Updates that makes of each shard: one a batch, or, merged, one a round of the workers. */
long dealer_updates(const struct dealer *dealer, bool merged);

/* Epoch (from 0) of a batch, its place in it (from 0), and the batches of that epoch. */
void dealer_place(const struct dealer *dealer, int worker, long number, int *epoch, long *place,
                  long *batches);

#endif
