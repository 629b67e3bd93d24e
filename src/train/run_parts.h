/* Private to src/train: everything a run has open, in the order in which it is opened. */
#ifndef TRAINER_TRAIN_RUN_PARTS_H
#define TRAINER_TRAIN_RUN_PARTS_H

#include "../output/epochs.h"
#include "../output/progress.h"
#include "../output/summary.h"
#include "evaluate.h"
#include "hosting.h"
#include "remote_run.h"
#include "replica.h"
#include "resume.h"
#include "run.h"

enum { ENDING_S = 10 }; /* a thread that has not ended by then hangs */

struct run {
    struct run_settings settings;
    struct choices choices;
    struct safetensors checkpoint; /* that is resumed, or zero */
    struct dataset dataset;
    struct device *devices; /* [device_count] */
    int device_count;
    int workers;       /* as many, or, hosted, as come */
    bool cores_shared; /* more devices than cores */
    struct world *world;
    struct roster roster;
    struct network network;
    struct store store;
    struct dealer dealer;
    struct terms terms;
    struct rules rules;
    struct host host; /* hosted: where the workers are */
    struct hosting hosting;
    struct replicas replicas;
    struct evaluator evaluator;
    struct training training;
    void *folder; /* where its files go, held against other runs */
    struct log log;
    struct epochs epochs;
    struct progress progress;
    const char **device_names; /* [workers] */
    double *slowness;          /* [workers] of --slow */
    bool *lost;                /* [workers] */
    struct cores *cores;       /* [workers] */
    struct evaluation tested;
    int epoch;                 /* epochs complete */
    long long examples_before; /* of earlier parts of this training, when resumed */
    long version_before, steps_before;
    double seconds_before;
    double cost_before;  /* final cost of the earlier parts, or NAN */
    double drained_s;    /* world time at which the log was last emptied in the middle, and progress shown */
    double checkpoint_s; /* world time of the last checkpoint */
    long checkpoint_steps; /* of the workers, when it was written; 0: none was */
    double train_loss;     /* of the last complete epoch */
    double target_s;       /* training seconds when the target accuracy was reached, or NAN */
    double epoch_s;        /* training seconds when the epoch began */
    long long epoch_examples;
    bool nothing_left; /* a run that is resumed where it is has no more to do: nothing is written */
    bool interrupted, told_interrupt;
    double interrupted_s; /* world time at which an interrupt was seen; 0: none was */
};

/* Opens everything and starts the workers, who wait for the first go. run->settings and run->progress are
 * set. */
int run_open(struct run *run, struct error *error);
void run_close(struct run *run); /* ends and joins what still runs; safe on a half-open one */

/* run_store.c: the strategy that was chosen, and what it needs and promises; of several parameter servers
 * each has as many shards; the store opened and filled. */
const struct strategy *run_strategy(const struct run *run);
const struct traits *run_traits(const struct run *run);
int run_shards_here(const struct run *run, int shards);
int run_open_store(struct run *run, int shards, struct error *error);

/* It is a parameter server that another one leads. */
bool run_follows(const struct run *run);
/* What it does then, until the leader ends it: follow.c. *finish: how it ended. */
int run_follow(struct run *run, struct finish *finish, struct error *error);

/* Steps of all workers, earlier parts included. */
long run_steps(const struct run *run);

/* Mean loss of the workers' last steps; of the earlier parts when there was none in this one. */
double run_final_cost(const struct run *run);

/* Sets result->settings, and says what was run, from the summary's model to its faults. Errors: ERROR_DEVICE
 * (memory). */
int run_describe(const struct run *run, struct run_result *result, struct error *error);

/* Adds up what the workers measured: staleness, shares of the time, steps, bytes, final cost; and each worker
 * by itself. Errors: ERROR_DEVICE (memory). */
int run_totals(const struct run *run, struct run_result *result, struct error *error);

#endif
