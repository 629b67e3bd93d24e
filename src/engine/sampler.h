/* The sampler: hands out the numbers of the stream's batches, and knows how far a run has come.
 *
 * Strategies with rounds: batch r*W+w goes to worker w of round r, so each worker knows its own; a worker
 * for which no batch is left in the last round is assigned an empty one. Other strategies take the next
 * number from one cursor, so a slow worker does not slow the others. With --data-sharding=split|all each
 * worker counts its own batches.
 *
 * Where workers have shares of different sizes (stream.sizes; shared stream alone), numbers count examples:
 * a round goes over a run of the stream, of which each worker is assigned a contiguous part of its size, in
 * roster order; without rounds the cursor goes on by the size of whoever takes a batch. So positions, limits
 * and totals are places in the stream, whatever the shares are. What is handed out anew keeps its size: with
 * rounds it makes rounds of its own, before the stream goes on, and whoever is assigned it has a batch of
 * another size than its own this once.
 *
 * Workers stop at a limit (the end of an epoch), or soon after sampler_stop. With rounds all must stop
 * after the same round: the last one that any worker was assigned. A worker computes everything it was
 * assigned before it pauses, including what a prefetcher asked for in advance.
 *
 * With rounds, the loss of a worker begins another generation: from the next round on, the remaining
 * workers are assigned first what the lost one was assigned but never computed, then the rest of the
 * stream. Only the batch that it was computing is lost. With split, a lost worker's slice ends with it. One
 * that leaves in order has computed what it was assigned, or gives it back: nothing is lost. */
#ifndef TRAINER_TRAIN_SAMPLER_H
#define TRAINER_TRAIN_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include "../data/stream.h"

enum { NO_BATCH = -1 }; /* an empty batch: take part in the round without an example */

/* Of one worker. Atomic, since the prefetcher of one that was given up for lost may still ask. */
struct sampler_line {
    _Alignas(64) _Atomic long done; /* rounds, or own batches, assigned in this run */
    long base;                      /* own batches before this run (split, all); constant */
    _Atomic long limit;             /* own batches, base included (split, all without rounds) */
    _Atomic bool gone;              /* lost, or it has left */
    _Atomic long
        back;        /* shared, no rounds: 1 + the number that it has given back; 0: none, or assigned anew */
    long back_width; /* numbers that this takes; written before `back` */
};

/* A batch that is handed out anew: its number, and how many numbers it takes. */
struct sampler_piece {
    long number, width;
};

/* From one loss to the next, with rounds on the shared stream. Generation e has e workers fewer than there
 * are places: those that are missing from the beginning, or when steps were last counted anew, have a
 * generation each, too, from round 0 on. */
struct sampler_generation {
    long from;                   /* its first round, of this run */
    int lost;                    /* the worker whose loss began it; -1: none */
    struct sampler_piece *again; /* [again_count] what it assigns first, anew ... */
    long again_count;
    long fresh; /* ... then the stream from this number on */
};

struct sampler {
    struct stream stream;
    bool rounds;
    int epochs;
    long base;  /* shared: numbers assigned before this run */
    long total; /* shared: numbers in the whole training */
    bool fills; /* with rounds the last one is a whole one, too */
    /* Where workers have shares of different sizes; else NULL. Both are [workers]. */
    int *sizes;   /* examples of what each was assigned last, written by its thread; the stream's `sizes` */
    int *widths;  /* its part of a round; who takes no part has 0 */
    int whole;    /* examples of a round: the sum of these, */
    int dividing; /* and how many there are */
    _Alignas(64) _Atomic long cursor; /* shared, no rounds: next number */
    _Alignas(64) _Atomic long limit;  /* rounds: rounds of this run; shared: numbers */
    _Alignas(
        64) _Atomic long opened; /* rounds: how many any worker was assigned; stopped: its complement, < 0 */
    _Atomic bool stopping;       /* no rounds */
    _Atomic long given_back; /* shared: numbers that are to be assigned anew; with rounds, after a failure */
    struct sampler_line *lines; /* [workers] */
    struct sampler_generation
        *generations; /* [workers + 1], generation_count of them in use; added while paused */
    _Atomic int generation_count;
    long in_flight; /* numbers that were lost with their workers */
};

/* done[workers]: own batches of each worker before this run (split, all; may be NULL); base: shared ones. The
 * stream's sizes are copied. */
int sampler_open(struct sampler *sampler, const struct stream *stream, bool rounds, int epochs, long base,
                 const long *done, struct error *error);
void sampler_close(struct sampler *sampler); /* safe on a zeroed one */
/* Before the first batch: with rounds the training ends with a whole one, though that goes over its end. So
 * its updates do not depend on the number of workers. */
void sampler_fill(struct sampler *sampler);
/* Of one that assigns nothing, while all pause: where the training ends, as the leader's has it. */
void sampler_hear_total(struct sampler *sampler, long total);

/* By one thread for each worker: the next batch to compute, or NO_BATCH; false: pause. */
bool sampler_next(struct sampler *sampler, int worker, long *number);
/* By its thread: the batch that it was assigned last goes to another; it is to be barred. Rounds: see
 * sampler_leave. */
void sampler_give_back(struct sampler *sampler, int worker, long number);
void sampler_stop(struct sampler *sampler); /* any thread: pause soon, at the end of the steps in hand */
void sampler_bar(struct sampler *sampler, int worker); /* any thread: that worker is assigned nothing more */

/* While all are paused: */
void sampler_set_limit(struct sampler *sampler,
                       int epoch); /* continue to the end of epoch `epoch` (from 0); clears a stop */
/* A worker that was barred before was lost in its step `step` (from 1, in this run; 0: before its first),
 * which may be one for which it has not been assigned anything. Errors: memory. */
int sampler_lose(struct sampler *sampler, int worker, long step, struct error *error);
/* One that was barred before has left after so many steps of this run. Errors: memory. */
int sampler_leave(struct sampler *sampler, int worker, long steps, struct error *error);
/* After a run that failed, with rounds: takes back what was assigned after so many rounds of it, which nobody
 * has applied. Not where batches were handed out anew after a loss. */
void sampler_take_back(struct sampler *sampler, long rounds);
/* The same where each gradient is applied by itself, of this worker: as many batches as it was assigned after
 * so many steps of it are assigned again when the run goes on. They are its own where it steps alone. */
void sampler_take_in_hand(struct sampler *sampler, int worker, long steps);
/* The same of all that was lost with its workers. Where each has its own data, that stays lost. */
void sampler_take_lost(struct sampler *sampler);
/* The strategy has changed: goes on from where it is, in rounds or not. Steps are counted anew. */
void sampler_change(struct sampler *sampler, bool rounds);
/* One that took no part, as it had not come yet, was lost or has left, is assigned batches from now on. Steps
 * are counted anew. Only where it may: what it gave back, and nobody has taken yet, finds another place;
 * false: not before somebody takes some. Errors: memory. */
bool sampler_may_join(struct sampler *sampler, int worker);
int sampler_join(struct sampler *sampler, int worker, struct error *error);
/* sizes[workers] are the parts of a round from now on, 0 of those who take no part; `batch` is what
 * sampler_batches counts by. Where there have been sizes before. Steps are counted anew. Errors: memory. */
int sampler_divide(struct sampler *sampler, const int *sizes, int batch, struct error *error);
/* In a process that another one leads: so many examples has what this worker is assigned next. */
void sampler_hear_size(struct sampler *sampler, int worker, int examples);
bool sampler_reached(const struct sampler *sampler, int epoch); /* whether epoch `epoch` is complete */
long sampler_position(
    const struct sampler *sampler); /* numbers assigned since training began, over all workers */
long sampler_own(const struct sampler *sampler,
                 int worker); /* split, all: batches of this worker since training began */
long sampler_total(const struct sampler *sampler); /* numbers in the whole training, over all workers */
/* So many numbers in batches of --batch examples, rounded up. */
long sampler_batches(const struct sampler *sampler, long numbers);
/* Updates that the whole training makes of each shard, with so many batches in one; and so many numbers. */
long sampler_updates(const struct sampler *sampler, int batches_in_one);
long sampler_updates_of(const struct sampler *sampler, long numbers, int batches_in_one);

/* Epoch (from 0) of a batch, its place in it (from 0), and the batches of that epoch, of --batch examples. */
void sampler_place(const struct sampler *sampler, int worker, long number, int *epoch, long *place,
                   long *batches);

#endif
