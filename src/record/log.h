/* The log of steps: one row per worker and step, gathered without disturbing the workers.
 *
 * Each worker has a ring of finished rows (one writer: whoever applies that worker's gradients; one reader:
 * the coordinating thread). The coordinator takes rows out now and then, in order of time, and tells the
 * outputs. */
#ifndef TRAINER_RECORD_LOG_H
#define TRAINER_RECORD_LOG_H

#include <stdbool.h>
#include "../base/error.h"

struct log_row {
    double time_s; /* since training began (paused time excluded), when the step ended */
    int worker;
    int epoch;    /* from 1: that of the step's batch */
    long step;    /* of this worker, from 1, earlier parts of the run included */
    long batch;   /* position in its epoch, from 1 */
    long batches; /* batches this worker takes an epoch, about: "100 of 550" */
    float loss;
    float learning_rate;
    int examples;
    double input_ms, pull_ms, compute_ms, push_ms, wait_ms; /* disjoint; they add up to the step */
    long staleness;                                         /* maximum over shards */
    long version;      /* of the weights with this gradient in them; the shards' minimum; 0: all dropped it */
    long read_version; /* of the weights that it was computed on */
    long wire_bytes;   /* to the worker and from it, since its last row; 0: it is in this process */
};

struct log_ring; /* per worker */
struct telling;

struct log {
    struct log_ring *rings; /* [workers] */
    int workers;
    int rows;                       /* in each ring, a power of two */
    struct telling *telling;        /* who is told, borrowed */
    struct log_row *batch;          /* what they are told at once */
    int epoch;                      /* the newest of the rows that were taken out */
    double loss_sum, loss_examples; /* over the rows of this epoch */
};

/* Errors: ERROR_DEVICE (memory). */
int log_open(struct log *log, int workers, struct telling *telling, struct error *error);
bool log_wants(const struct log *log, long step); /* whether a row of this step is of use to anyone */
/* Puts a row into its worker's ring. False: the ring is full (the coordinator is behind); try again later.
 * Never blocks. */
bool log_put(struct log *log, const struct log_row *row);
/* Takes out the rows that are there now, ordered by time over all workers, and tells them. A worker that puts
 * a row late can follow a younger row of the drain before; a worker's own rows always keep their order.
 * Called by the coordinator alone. */
void log_drain(struct log *log);
/* The mean loss of the rows of that epoch so far; NAN: none was taken out, or one of a later epoch was. */
double log_epoch_loss(const struct log *log, int epoch);
void log_close(struct log *log); /* frees; safe on a zeroed one */

#endif
