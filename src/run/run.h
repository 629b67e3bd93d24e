/* A run: everything from settings to files and results; what `trainer train` does once and `trainer bench`
 * often. */
#ifndef TRAINER_RUN_RUN_H
#define TRAINER_RUN_RUN_H

#include <stdatomic.h>
#include "../config/config.h"
#include "../engine/crew.h"
#include "../engine/faults.h"
#include "../record/output.h"
#include "../record/summary.h"

struct run_result {
    struct config config;                      /* settled: nothing is left to defaults */
    struct summary summary;                    /* its texts are those below */
    struct worker_result *workers;             /* [summary.workers] */
    double *waited_for;                        /* [summary.workers][summary.members] */
    char (*member_names)[MEMBER_NAME_BYTES];   /* [summary.members] */
    struct summary_staleness *shard_staleness; /* [summary.shards_here] */
    struct summary_phase phases[SUMMARY_PHASES];
    struct summary_join *joins; /* [summary.join_count] */
    char machine[400];
    char *devices;                         /* of the workers: "cpu:0,cpu:1" */
    long long *shard_bytes, *server_bytes; /* [summary.shards], [summary.servers] */
    char homes[256];                       /* of the shards: "gpu:0,gpu:1"; "cpu": the host */
    char faults[FAULTS_TEXT_BYTES];
    char rest[440]; /* of a run that failed: from where it goes on, "; go on from update 40 with: ...", or why
                       it does not; its error has it, too */
    bool abandoned; /* a thread hangs: world and crew's settings must stay as long as the program does */
};

/* Who has the run in itself, as src/library and a lane of another machine's sweep: what it brings, and what
 * it is told. Unless `as_program` is set, nothing is printed, no signal is caught, and without config.out
 * nothing is written. */
#define EMBEDDED_DATASET "own data" /* the name of `dataset` of a program */
struct embedding {
    bool as_program;               /* prints, heeds signals and names its folder, as `trainer train` does */
    const struct choice *dataset;  /* trained on instead of config.dataset; NULL: that one */
    const struct choice *strategy; /* likewise */
    const struct output *output;   /* told beside those of --outputs; NULL: none */
    void *self;                    /* for it, in the scene */
    const atomic_bool *stop;       /* asks for an end at the next step, as an interrupt does */
};

/* Trains, with this crew in this world. Its settings, steps and epochs are printed to standard output unless
 * it is to be quiet, progress and notices to standard error, logs, model and checkpoint to config.out. When
 * it is interrupted it writes a checkpoint and returns ERROR_INTERRUPTED. The result is filled on success and
 * when interrupted, and its summary, but for the verdict, after an error of the training; run_result_free is
 * safe after any outcome. Errors: as their exit codes say. */
int run_train(const struct typed *typed, const struct crew *crew, struct world *world,
              struct run_result *result, struct error *error);
/* The same in this process alone, in a world of its own; and within another program. */
int run_train_here(const struct typed *typed, struct run_result *result, struct error *error);
int run_train_embedded(const struct typed *typed, const struct embedding *embedding,
                       struct run_result *result, struct error *error);
/* Opens a run whose first weights are those of --weights, and keeps it where it begins, as a checkpoint and a
 * model in config.out; nothing is trained. Where the file has the state of the optimizer that was typed, it
 * is kept, too. *updates: that the state has been through, or 0. Errors: as their exit codes say; ERROR_FILE:
 * a layer for which the file has nothing. */
int run_keep_first(const struct typed *typed, long *updates, struct error *error);
/* What `trainer train` prints at the end of a run that ended with that code: after an error or an interrupt
 * the sentence on where the time went alone, and none when it was to be quiet. */
void run_print_results(int code, const struct run_result *result);
void run_result_free(struct run_result *result); /* safe on a zeroed one */

#endif
