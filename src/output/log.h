/* The log of steps: a row a worker a step, gathered without disturbing the workers.
 *
 * Each worker has a ring of finished rows (one writer: whoever applies that worker's gradients; one reader: the coordinating thread). The
 * coordinator takes rows out now and then, in order of time, writes them to steps.csv, and prints the lines of the reference programs. */
#ifndef TRAINER_OUTPUT_LOG_H
#define TRAINER_OUTPUT_LOG_H

#include <stdatomic.h>
#include <stdio.h>
#include "../base/error.h"
#include "../base/file.h"

struct log_row {
    double time_s;  /* since training began (paused time excluded), when the step ended */
    int worker;
    int epoch;      /* from 1: that of the step's batch */
    long step;      /* of this worker, from 1, in this run */
    long batch;     /* position in its epoch, from 1 */
    long batches;   /* batches this worker takes an epoch, about: "100 of 550" */
    float loss;
    float learning_rate;
    int examples;
    double input_ms, pull_ms, compute_ms, push_ms, wait_ms; /* disjoint; they add up to the step */
    long staleness; /* maximum over shards */
    long version;   /* of the weights with this gradient in them; the shards' minimum */
};

struct log_ring; /* per worker */

struct log {
    struct log_ring *rings; /* [workers] */
    int workers;
    const char *const *devices; /* [workers] names, borrowed */
    struct file_new csv;
    int log_every;   /* a row of steps.csv every N steps of a worker; 0: none */
    int print_every; /* a printed line every N steps of a worker; 0: none */
    FILE *lines;     /* where lines are printed; NULL: nowhere */
    struct {
        double time_s;
        long step;
    } *printed;      /* [workers] at the last printed line, for AvgTime */
};

/* csv_path NULL: no CSV. Its header is written at once. When `append_from_resume` the old rows stay. */
int log_open(struct log *log, int workers, const char *const *devices, const char *csv_path, int log_every, int print_every, FILE *lines,
             struct error *error);
bool log_wants(const struct log *log, long step); /* whether a row of this step is of use to anyone */
/* Puts a row into its worker's ring. False: the ring is full (the coordinator is behind); try again later. Never blocks. */
bool log_put(struct log *log, const struct log_row *row);
/* Takes all rows out, writes and prints them. Called by the coordinator alone. Errors: ERROR_FILE (a full disk). */
int log_drain(struct log *log, struct error *error);
int log_finish(struct log *log, struct error *error); /* drains, syncs and closes the CSV under its final name */
void log_close(struct log *log);                      /* frees; safe on a zeroed one */

#endif
