/* A comparison (`trainer bench`): the same training with several strategies, several times each, and with
 * two baselines. */
#ifndef TRAINER_TRAIN_COMPARE_H
#define TRAINER_TRAIN_COMPARE_H

#include "bench.h"
#include "../engine/faults.h"
#include "../engine/step_time.h"
#include "../run/run.h"
#include "strategy_list.h"

struct comparison {
    struct bench bench;           /* what is printed and written; its texts are those of the settings */
    struct typed typed;           /* what all runs share */
    struct config config;         /* what it settles to */
    struct strategy_list list;    /* what --strategies says */
    struct contender *contenders; /* [bench.count] the baselines first */
    struct bench_row *rows;       /* [bench.count] */
    struct bench_runs runs;       /* runs.csv; made when the first run is over */
    char devices[200], first[64]; /* "cpu:0 x1, cpu:1 x1", "cpu:0+cpu:1 x1"; "cpu:0" */
    char faults[FAULTS_TEXT_BYTES];
    char simulated[STEP_TIME_BYTES];
    bool folder_named; /* by the user */
    int ended;         /* runs so far, failed ones included */
};

/* Errors: as setup_choose, devices_open, strategy_list_parse. */
int compare_open(struct comparison *comparison, const struct typed *typed, const char *wanted, int repeats,
                 struct error *error);
/* Runs all, repeat by repeat, so that what disturbs the machine disturbs all alike, and an interrupt leaves
 * rows that can be compared. A run that fails is noted in its row, and the others go on; only when the very
 * first one, the plainest there is, cannot even start does it end at once. bench.csv, runs.csv and a folder a
 * run go to typed.value.out. Errors: ERROR_INTERRUPTED; else that of the first run that failed. */
int compare_run(struct comparison *comparison, struct error *error);
void compare_close(struct comparison *comparison); /* safe on a half-open one */

#endif
