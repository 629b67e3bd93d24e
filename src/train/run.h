/* A run: everything that `trainer train` does, from settings to the last line printed. */
#ifndef TRAINER_TRAIN_RUN_H
#define TRAINER_TRAIN_RUN_H

#include <stdio.h>
#include "../output/summary.h"
#include "settings.h"

/* Trains; results go to standard output, progress and log lines to standard error. When it is interrupted it
 * writes a checkpoint and returns ERROR_INTERRUPTED. Errors: as their exit codes say. */
int run_train(const struct run_settings *settings, struct error *error);

#endif
