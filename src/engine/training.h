/* Training: workers and servers that work on a store. It can be started, paused at a step or epoch
 * boundary, and ended.
 *
 * The coordinator (the thread that opens it) lets the workers go until the sampler's limit, waits until
 * all are paused, and then has the store to itself: it can evaluate, write a checkpoint, set the next
 * limit, and let them go again. A worker or server that fails stops the world, so nothing hangs; the first
 * failure is reported. With `go_on`, a worker whose device fails, or that shows no sign of life, is lost
 * instead: it leaves the roster and the others continue without it. How a worker computes is behind
 * `struct compute`, so that tests train a formula with the same loop. */
#ifndef TRAINER_TRAIN_TRAINING_H
#define TRAINER_TRAIN_TRAINING_H

#include "../device/device.h"
#include "../record/log.h"
#include "../store/strategy.h"
#include "sampler.h"
#include "faults.h"
#include "step_time.h"

/* The result of a batch, and how long before the end of `synchronize` the device passed its boundaries: so
 * the time that the worker waited is charged to what the device did meanwhile. */
struct outcome {
    float loss;
    bool timed; /* it did it by itself, after `run`; else the two are 0 */
    double begun_s, computed_s;
};

/* How workers compute. `load` is called on the thread that builds batches, the prefetcher's when there is
 * one; the others on the worker's own. A buffer is never loaded and run at the same time. */
struct compute {
    /* What is assigned next: a batch's number, NO_BATCH, or a pause; NULL: the sampler decides. */
    int (*next)(void *self, int worker, long *number, bool *pause, struct error *error);
    /* The worker is lost: release it. NULL: nothing to do. */
    void (*lose)(void *self, int worker);
    /* After `next` or `run` has failed: whether the worker leaves in order, as somebody wants it to: that is
     * no loss. NULL: none does. */
    bool (*left)(const void *self, int worker);
    /* Before the first batch; NULL: nothing to do. */
    int (*open)(void *self, int worker, struct error *error);
    /* The strategy has changed, between two segments; NULL: nothing to do. */
    int (*change)(void *self, int worker, struct error *error);
    /* Builds the batch of these examples in input buffer `buffer`, 0 to prefetch. Where indices has keys, it
     * has one more number and key behind the last: the example that comes next, to mix the last one with. */
    int (*load)(void *self, int worker, int buffer, long number, const struct indices *indices,
                struct error *error);
    /* Forward and backward over the batch in `buffer`, with weights in the memory of the worker's device when
     * training_copies_to says so, else its own copy where its own vectors are (store_own_device), or the
     * store's: fills gradient[layout floats], one of its own vectors, with the mean over the batch, and the
     * loss. Weights may change meanwhile (in place). With `synchronize`, some may only be queued, on the
     * device's queue of the worker's thread, and the loss is not given here. */
    int (*run)(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
               struct error *error);
    /* Waits until what `run` has queued is done, unless the worker has waited for its device since. NULL:
     * nothing is queued. */
    int (*synchronize)(void *self, int worker, bool waited, struct outcome *outcome, struct error *error);
    /* Whether the worker may from now on queue a run before it has waited for the one before, of which
     * `behind` then gives the outcome. Once for each segment. NULL: it may not. */
    int (*go_ahead)(void *self, int worker, bool *may, struct error *error);
    /* Waits for the run before the last one that was queued. */
    int (*behind)(void *self, int worker, struct outcome *outcome, struct error *error);
    /* Bytes so far to the worker and from it, over a wire. NULL: there is none. */
    long long (*wire)(const void *self, int worker);
    /* Seconds that it took to compute, of the `run` before, whose rest was the wire's. NULL: all of it. */
    double (*computed)(const void *self, int worker);
    /* Words for a worker that gives no sign of life while it computes: what it has come to, in out[bytes],
     * which is "" before. On the coordinating thread. NULL: nothing to say. */
    void (*say_hanging)(void *self, int worker, char *out, size_t bytes);
    void *self;
};

struct training_settings {
    struct world *world;
    struct roster *roster; /* opened, with names; workers first, then servers; one that is not active has not
                              come yet */
    struct store *store;   /* opened, with weights; its `finished` is training_finished */
    const struct choice *strategy; /* descriptor: struct strategy */
    struct sampler *sampler;
    struct compute compute;
    struct log *log;              /* NULL: none */
    const struct device *devices; /* [workers] that compute; NULL: elsewhere, or on no device */
    const struct cores *cores;    /* [workers] where each runs; NULL: anywhere */
    double seconds_before;        /* of training, in earlier parts of it: the log goes on from there */
    const long *steps_before;     /* [workers] likewise; NULL: none */
    float clip;                   /* a gradient's norm is cut to this; 0: not */
    double guess_loss;            /* of guessing; a loss far above it has diverged; 0: no loss has */
    bool go_on;                   /* the loss of a worker ends it alone, as long as there is another */
    double ending_s;              /* how long threads may take to end, when all is over */
    struct faults faults;         /* injected */
    const double *slowness;       /* [workers] each computes this many times as long; NULL: 1 */
    struct step_time step_time;   /* that computing takes in the simulated world; 0: no time */
    int prefetch;                 /* batches that are built ahead of a worker; 0: it builds them itself */
    int batch_most; /* examples of the largest that there will be, where sizes change; 0: a round's */
};

struct worker_totals {
    long steps, examples;
    /* Over steps since the coordinator last took it: each counts as often as its examples make a batch. */
    double loss_sum, loss_steps;
    float first_loss, last_loss;
    double input_s, pull_s, compute_s, push_s,
        wait_s; /* together: the time of training, as long as it takes part */
    double
        rest_s; /* of wait_s: where an epoch or a part of it begins and ends, which no row of the log has */
};

struct worker;
struct server;

struct training {
    struct training_settings settings;
    const struct strategy *strategy;
    const struct traits *traits;
    struct worker *workers; /* [roster workers] */
    struct server *servers; /* [server_count] */
    int server_count;
    struct event go;       /* one post per segment, and one to end */
    struct event bell;     /* for the coordinator: a worker is paused, has failed, or its log is full */
    _Atomic bool log_full; /* set by workers: the coordinator should empty the log, and clears this */
    long segments;         /* the coordinator's */
    int changes;           /* of the strategy so far; set while all are paused */
    _Atomic bool ending;
    _Atomic bool awaits_servers; /* all workers are paused: a server that has come to rest rings the bell */
    _Atomic bool hold_servers;   /* for tests: servers leave their mail alone, until it is taken back */
    _Atomic int failed;          /* member that failed first, -1: none; roster count: see `silence` */
    struct error silence;        /* what the coordinator found, when it was the one that gave up */
    _Atomic int losses;          /* workers lost so far */
    bool abandoned;              /* a thread did not end: its memory must stay */
    double started_s, paused_s;  /* world time of the first go; time spent paused since */
    double pause_began_s;
    double went_s; /* world time of the last go */
    long settled;  /* segments whose pauses are in the workers' totals */
};

/* A loss of so many times the first one, or that of guessing if that is more, over so many of a worker's
 * steps in a row, ends a run (ERROR_DIVERGED). Measured: networks with hidden layers that came to 100 times
 * that never learnt again, even where a schedule brought the loss down later, as their units were dead by
 * then. A linear model comes back from 10,000 times as much, but is below it again within a few steps. */
#define HOPELESS_TIMES 1000.0
enum { HOPELESS_STEPS = 100 };
bool training_is_hopeless(const struct training_settings *settings, double first, double loss);

/* Once all threads have ended: applies what lies in the mailboxes still. Errors: the strategy's. */
int training_serve_rest(struct training *training, struct error *error);

/* How many servers a strategy wants for this many shards and workers: the roster needs their number first. */
int training_servers(const struct choice *strategy, int shards, int workers);

/* The store's `finished` callback; its argument is the training. */
void training_finished(void *training, struct gradient *gradient);

/* Whether a worker has own weights in a memory that its device computes in. */
bool training_copies_to(const struct store *store, const struct traits *traits, int worker,
                        const struct device *device);

/* Makes workers and servers (as threads of the world); they wait for the first go. */
int training_open(struct training *training, const struct training_settings *settings, struct error *error);
/* Before the first go: waits at most `seconds` for all workers to have opened what they compute with, which
 * can take them longer than the roster's timeout, and gives no sign of life. -1: all have, or one has failed;
 * else the first that has not. */
int training_starting(struct training *training, double seconds);
void training_go(struct training *training);
/* Waits at most `seconds` for all workers to be paused and all that was sent to be applied, or until a log is
 * full; true when it is so, or when one has failed. */
bool training_wait(struct training *training, double seconds);
/* Fails a training that runs, unless it has failed: for what its coordinator has heard. */
void training_stop(struct training *training, const struct error *why);
bool training_failed(const struct training *training);
int training_failing(
    const struct training *training); /* the first that has: a worker, or behind them a server */
double training_seconds(const struct training *training); /* since the first go, pauses excluded */
const struct worker_totals *training_totals(const struct training *training,
                                            int worker);          /* while paused or ended */
long training_steps(const struct training *training, int worker); /* likewise; as the sampler counts them */
long long training_bytes_moved(const struct training *training, int worker); /* likewise */
/* Sum and number of the steps' losses since the last call of the second, which begins anew; over all workers,
 * while paused or ended. */
void training_loss(const struct training *training, double *sum, double *steps);
void training_take_loss(struct training *training, double *sum, double *steps);
/* Whether a worker was lost, at which step, and why; while paused or ended. */
bool training_lost(const struct training *training, int worker, long *step, const char **words);
/* Whether it was not lost but has left, and after how many steps; while paused or ended. */
bool training_left(const struct training *training, int worker, long *steps);
/* Removes a worker that was lost elsewhere. In the middle of an exchange it does nothing, and must be
 * called again. */
void training_give_up(struct training *training, int worker);
/* A worker whose place is free has not come yet, or its thread has ended after it was lost or has left: while
 * all are paused, another may take the place. training_join: it takes part from the next segment on; behind
 * it comes training_change, and then training_start, which makes its thread. Errors: those of threads. */
bool training_place_is_free(struct training *training, int worker);
void training_join(struct training *training, int worker);
int training_start(struct training *training, int worker, struct error *error);
/* While all are paused, or before the first go: goes on under the strategy that settings.strategy has become,
 * once the store has (store_change). Steps and rounds begin anew for it; totals go on. go_on: as in the
 * settings. Errors: those of the strategy's `open`. */
int training_change(struct training *training, bool go_on, struct error *error);
/* Ends and joins all threads. Returns the first failure, with its message. A thread that hangs and does
 * not end within `ending_s` is left behind: then training->abandoned is set, and nothing it may use may be
 * freed. */
int training_end(struct training *training, struct error *error);
void training_close(
    struct training *training); /* after training_end; safe on a zeroed one; nothing when abandoned */

#endif
