/* A sweep (`trainer sweep`): many runs that differ in some settings, one per device at a time, and which of
 * them is best by the validation part.
 *
 * Its folder has sweep.json, what was asked for; sweep.csv, a row for each run, which is written anew
 * whenever a run has ended; and the runs, ordinary folders named 1, 2, ... A sweep that was killed goes on
 * from these three. Machines that join it (--listen, --join) lend their devices: they train runs and send
 * back the folders. */
#ifndef TRAINER_COMPARE_SWEEP_H
#define TRAINER_COMPARE_SWEEP_H

#include "../base/page.h"
#include "../bridge/terms.h"
#include "../record/progress.h"
#include "lanes.h"
#include "vary.h"

struct sweep_host;

enum sweep_method { SWEEP_RANDOM, SWEEP_GRID, SWEEP_HALVING };
enum sweep_metric { SWEEP_AUTO, SWEEP_ACCURACY, SWEEP_RMSE, SWEEP_LOSS };

enum { SWEEP_ADDRESS_BYTES = 320 };

/* Filled from the rows of the command. */
struct sweep_settings {
    struct typed run;           /* first: the rows of a run fill it */
    char vary[VARY_TEXT_BYTES]; /* the last one that was typed */
    struct vary_texts varied;   /* all of them */
    int runs;                   /* 0: 24, or of a grid all */
    int method, metric;         /* enum sweep_method, sweep_metric */
    int keep, first_rung;       /* of halving: one run in `keep` goes on; epochs of the first rung */
    char listen[SWEEP_ADDRESS_BYTES], join[SWEEP_ADDRESS_BYTES]; /* where lanes of others come; or go */
    struct {
        bool runs, method, metric, keep, first_rung;
    } given;
};

enum sweep_status { SWEEP_WAITING, SWEEP_RUNNING, SWEEP_STOPPED, SWEEP_FINISHED, SWEEP_FAILED };
extern const char *const sweep_status_words[]; /* as sweep.csv has them */

enum { SWEEP_RUNS = 10000, SWEEP_RUNGS = 24, SWEEP_USUAL_RUNS = 24 };

struct sweep_run {
    char **values; /* [variations] owned, as they are typed */
    enum sweep_status status;
    int epochs, best_epoch;       /* that it has been through; the best of them by the validation part */
    double metric, test, seconds; /* of the best epoch; on the test part, of the winner alone; NAN: none */
    int rungs;                    /* that it has been through */
    double at_rung[SWEEP_RUNGS];  /* [rungs] the metric at the end of each */
    int lost;                     /* how often with the machine that had it */
    char reason[500];             /* of one that failed */
};

struct sweep {
    struct sweep_settings settings;
    char out[PATH_BYTES];
    struct variation variations[VARY_MOST];
    int variation_count;
    struct sweep_run *runs; /* [count] */
    int count;
    int rung_epochs[SWEEP_RUNGS]; /* [rungs] a run stops after so many; the last one: 0, at its end */
    int rungs;
    enum metric score;       /* that the network is judged by */
    const char *metric_name; /* of the metric that the runs are ranked by: "validation_accuracy" */
    bool lower;              /* the lower, the better */
    struct lanes lanes;
    struct typed *typed;     /* [lanes, at least 1] of the run in hand */
    struct sweep_host *host; /* owned; NULL: no other machine can join */
    struct fingerprint data; /* of the data set: data_fingerprint */
    struct error stopped;    /* what ends the sweep: a file that cannot be written */
    struct progress progress;
    void *hold;
    bool resumed;
    double began_s;
};

/* Draws the settings of all runs, or, where settings->run.value.resume names a sweep, takes up that one.
 * Errors: ERROR_USAGE: what varies, settings that cannot be had; ERROR_FILE: the folder. */
int sweep_open(struct sweep *sweep, const struct sweep_settings *settings, struct error *error);
/* Runs what is left, then tests the best one. A run that fails is a row, and the others go on. Errors:
 * ERROR_INTERRUPTED; ERROR_FILE; that of the first run, where all have failed. */
int sweep_do(struct sweep *sweep, struct error *error);
void sweep_close(struct sweep *sweep); /* safe on a half-open one */

/* The table of results, the best first, and the command that trains that one again. */
int sweep_print(const struct sweep *sweep, const struct page *page, struct error *error);

/* --- its parts --- */

/* sweep_draw.c: fills in runs and count. The same seed draws the same settings, and more runs begin with the
 * same ones. */
int sweep_draw(struct sweep *sweep, uint64_t seed, struct error *error);

/* sweep_next.c: which run is next; the rungs of halving; ranks. */
void sweep_make_rungs(struct sweep *sweep, int epochs);
enum lane_answer sweep_next(const struct sweep *sweep, int *run);
/* Whether a run is better than another one: what has no metric never is; of equals the earlier. */
bool sweep_better(const struct sweep *sweep, int run, int than);
int sweep_best(const struct sweep *sweep); /* or -1: none has a metric */
/* order[count]: the best first. */
void sweep_rank(const struct sweep *sweep, int *order);

/* sweep_files.c */
/* The option of a sweep's own that was typed, of those that say what is tried; NULL: none. */
const char *sweep_own_typed(const struct sweep_settings *settings);
int sweep_save(const struct sweep *sweep, struct error *error); /* sweep.json */
/* Fills in what was not typed. Errors: ERROR_USAGE: what was typed differs; ERROR_FILE. */
int sweep_load(struct sweep_settings *settings, const char *folder, struct error *error);
int sweep_write(const struct sweep *sweep, struct error *error); /* sweep.csv */
int sweep_read(struct sweep *sweep, struct error *error);        /* of the runs that were drawn again */

/* sweep.c: the options of a run as they would be typed. */
int sweep_typed(const struct sweep *sweep, int run, struct typed *typed, struct error *error);
int sweep_folder(const struct sweep *sweep, int run, char path[PATH_BYTES], struct error *error);
/* What every run has, wherever it is trained: its folder, with whose checkpoint it goes on if it has one, and
 * where it stops. stop_after: epochs; 0: at its end. */
int sweep_settle(struct typed *typed, const char *folder, int stop_after, struct error *error);
/* A run is taken; has ended; was lost with its lane, so another one takes it, but not for ever. Called under
 * the lock of the lanes. */
enum lane_answer sweep_take(void *sweep, int *run);
void sweep_ended(void *sweep, int run, const struct error *failure);
enum { SWEEP_LOST_MOST = 3 };
bool sweep_lose(struct sweep *sweep, int run, const struct error *why); /* false: it has failed now */
/* What this machine cannot do ends the sweep; the run is still to be done. Under the same lock. */
void sweep_stop(struct sweep *sweep, int run, const struct error *why);

/* sweep_host.c: machines that join. Errors of open: ERROR_USAGE: the address, settings that cannot be sent;
 * ERROR_DEVICE: the port is in use. */
int sweep_host_open(struct sweep *sweep, struct error *error);
void sweep_host_serve(void *sweep, struct shared_lanes *shared);
void sweep_host_close(struct sweep_host *host); /* NULL is fine */

/* sweep_join.c: lends this machine's devices to the sweep at settings->join until that ends. Errors:
 * ERROR_USAGE: settings that the sweep has; ERROR_PEER: it refuses, is gone, or ends; ERROR_INTERRUPTED. */
int sweep_join(const struct sweep_settings *settings, struct error *error);

#endif
