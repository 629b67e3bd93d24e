/* The log of steps: one row per worker and step, gathered without disturbing the workers.
 *
 * Each worker has a ring of finished rows (one writer: whoever applies that worker's gradients; one reader:
 * the coordinating thread). The coordinator takes rows out now and then, in order of time, writes them to
 * steps.csv, and prints the lines of the reference programs. steps.csv stands under its own name from the
 * start and is flushed with every drain, so that it can be watched while the run goes on. A run that is
 * resumed goes on in it. */
#ifndef TRAINER_OUTPUT_LOG_H
#define TRAINER_OUTPUT_LOG_H

#include <stdbool.h>
#include <stdio.h>
#include "../base/error.h"
#include "../base/file.h"
#include "lines.h"

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
};

struct log_ring; /* per worker */

struct log {
    struct log_ring *rings; /* [workers] */
    int workers;
    int rows;                   /* in each ring, a power of two */
    const char *const *devices; /* [workers] names, borrowed */
    FILE *csv;                  /* NULL: none */
    char csv_path[PATH_BYTES];
    long long csv_bytes, csv_flushed; /* of whole rows: handed to the stream, known to have left it */
    int log_every;                    /* a row of steps.csv every N steps of a worker; 0: none */
    int print_every;                  /* a printed line every N steps of a worker; 0: none */
    struct lines *lines;              /* where lines are printed, borrowed; NULL: nowhere */
    struct log_printed {
        double time_s;
        long step;
    } * printed; /* [workers] at the last printed line, for AvgTime */
};

/* Cuts the log of an earlier part back to the steps before time_s, see table_rewind. */
int log_rewind(const char *csv_path, double time_s, long long *csv_bytes, struct error *error);
/* csv_path NULL: no CSV. csv_bytes: what the file has already of a run that goes on; 0: it is made anew and
 * its header is written at once. Errors: ERROR_FILE, ERROR_DEVICE (memory). */
int log_open(struct log *log, int workers, const char *const *devices, const char *csv_path,
             long long csv_bytes, int log_every, int print_every, struct lines *lines, struct error *error);
bool log_wants(const struct log *log, long step); /* whether a row of this step is of use to anyone */
/* Puts a row into its worker's ring. False: the ring is full (the coordinator is behind); try again later.
 * Never blocks. */
bool log_put(struct log *log, const struct log_row *row);
/* Takes out the rows that are there now, ordered by time over all workers, writes and prints them, and
 * flushes both. A worker that puts a row late can follow a younger row of the drain before; a worker's own
 * rows always keep their order. Called by the coordinator alone. Errors: ERROR_FILE (a full disk under
 * steps.csv; lines that cannot be printed are no error of the log). */
int log_drain(struct log *log, struct error *error);
int log_finish(struct log *log, struct error *error); /* drains, syncs and closes the CSV */
void log_close(struct log *log);                      /* frees; safe on a zeroed one */

#endif
