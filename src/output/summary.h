/* summary.json: what a run was and what came of it, in one object. */
#ifndef TRAINER_OUTPUT_SUMMARY_H
#define TRAINER_OUTPUT_SUMMARY_H

#include <stdbool.h>
#include "../base/error.h"

/* Real numbers that are not known (an accuracy without a test set) are NAN and become null. Texts are
 * borrowed. */
struct summary {
    const char *model, *dataset, *strategy; /* as typed, with their settings */
    const char *devices;                    /* "cpu:0,cpu:1" */
    int workers;
    int threads; /* of each worker */
    long seed;
    double epochs; /* gone through, over all workers; a fraction when interrupted */
    long steps;    /* of all workers together */
    long updates;  /* of the weights */
    long long examples;
    double train_seconds;  /* from the start of the first step to the end of the last, evaluation excluded */
    double examples_per_s; /* examples / train_seconds */
    double test_accuracy, test_cost;
    double final_cost; /* training loss at the end */
    struct {
        double mean;
        long p50, p99, max;
    } staleness; /* updates by others between reading the weights and applying the gradient */
    double wait_share, pull_share, push_share, compute_share,
        input_share; /* of the workers' time; they add up to 1 */
    long lost_updates;
    long long bytes_moved;
    bool interrupted;
};

/* Writes `path` (temporary name, fsync, rename). Errors: ERROR_FILE. */
int summary_write(const char *path, const struct summary *summary, struct error *error);

#endif
