/* Training: workers and servers at work on a store, as a thing that can be started, paused at a border, and
 * ended.
 *
 * The coordinator (the thread that opens it) lets the workers go until the dealer's limit, waits until all
 * are paused, and then has the store to itself: it can evaluate, write a checkpoint, set the next limit, and
 * let them go again. A worker or server that fails stops the world, so nobody hangs; the first failure is the
 * one reported. How a worker computes is behind `struct compute`, so that tests train a formula with the same
 * loop. */
#ifndef TRAINER_TRAIN_TRAINING_H
#define TRAINER_TRAIN_TRAINING_H

#include "../device/device.h"
#include "../output/log.h"
#include "../store/strategy.h"
#include "dealer.h"

/* How workers compute; every function is called on the worker's own thread. */
struct compute {
    /* Before the first batch; NULL: nothing to do. */
    int (*open)(void *self, int worker, struct error *error);
    /* Makes the batch of these examples the input of the next run. */
    int (*load)(void *self, int worker, long number, const int *index, struct error *error);
    /* Forward and backward: fills gradient[layout floats] with the mean over the batch, and the loss. Weights
     * may change meanwhile (in place). */
    int (*run)(void *self, int worker, float *weights, float *gradient, float *loss, struct error *error);
    void *self;
};

struct training_settings {
    struct world *world;
    struct roster *roster;         /* opened, with names; workers first, then servers */
    struct store *store;           /* opened, with weights; its `finished` is training_finished */
    const struct choice *strategy; /* descriptor: struct strategy */
    struct dealer *dealer;
    struct compute compute;
    struct log *log;           /* NULL: none */
    const struct cores *cores; /* [workers] where each runs; NULL: anywhere */
    double seconds_before;     /* of training, in earlier parts of it: the log goes on from there */
    float clip;                /* a gradient's norm is cut to this; 0: not */
};

struct worker_totals {
    long steps, examples;
    double loss_sum; /* over steps since the coordinator last took it */
    long loss_steps;
    float last_loss;
    double input_s, pull_s, compute_s, push_s, wait_s;
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
    struct event go;       /* one post a segment, and one to end */
    struct event bell;     /* for the coordinator: a worker is paused, has failed, or its log is full */
    _Atomic long pauses;   /* one a worker a segment */
    _Atomic bool log_full; /* set by workers: the coordinator should empty the log, and clears this */
    long segments;         /* the coordinator's */
    _Atomic bool ending;
    _Atomic bool hold_servers;  /* fault injection: servers leave their mail alone */
    _Atomic int failed;         /* member that failed first, -1: none */
    double started_s, paused_s; /* world time of the first go; time spent paused since */
    double pause_began_s;
};

/* How many servers a strategy wants for this many shards and workers: the roster needs their number first. */
int training_servers(const struct choice *strategy, int shards, int workers);

/* The store's `finished` callback; its argument is the training. */
void training_finished(void *training, struct gradient *gradient);

/* Makes workers and servers (as threads of the world); they wait for the first go. */
int training_open(struct training *training, const struct training_settings *settings, struct error *error);
void training_go(struct training *training);
/* Waits at most `seconds` for all workers to be paused, or until a log is full; true when they are, or when
 * one has failed. */
bool training_wait(struct training *training, double seconds);
bool training_failed(const struct training *training);
double training_seconds(const struct training *training); /* since the first go, pauses excluded */
const struct worker_totals *training_totals(const struct training *training,
                                            int worker);                     /* while paused or ended */
long long training_bytes_moved(const struct training *training, int worker); /* likewise */
void training_take_loss(struct training *training, double *sum,
                        long *steps); /* while paused: mean loss since the last call, over all workers */
/* Ends and joins all threads. Returns the first failure, with its words. */
int training_end(struct training *training, struct error *error);
void training_close(struct training *training); /* after training_end; safe on a zeroed one */

#endif
