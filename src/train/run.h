/* A run: everything from settings to files and results; what `trainer train` does once and `trainer bench`
 * often. */
#ifndef TRAINER_TRAIN_RUN_H
#define TRAINER_TRAIN_RUN_H

#include <stdio.h>
#include "../output/summary.h"
#include "faults.h"
#include "settings.h"

struct run_result {
    struct run_settings settings;  /* settled: nothing is left to defaults */
    struct summary summary;        /* its texts are those of the settings, and those below */
    struct worker_result *workers; /* [summary.workers] */
    char *devices;                 /* of the workers: "cpu:0,cpu:1" */
    char homes[256];               /* of the shards: "gpu:0,gpu:1"; empty: the host */
    char faults[FAULTS_TEXT_BYTES];
};

/* Trains. Step lines go to standard output unless settings.quiet, progress and log lines to standard error,
 * logs, model and checkpoint to settings.out. When it is interrupted it writes a checkpoint and returns
 * ERROR_INTERRUPTED. The result is filled on success and when interrupted; run_result_free is safe after any
 * outcome. Errors: as their exit codes say. */
int run_train(const struct run_settings *settings, struct run_result *result, struct error *error);
void run_result_free(struct run_result *result); /* safe on a zeroed one */

#endif
