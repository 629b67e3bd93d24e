/* Private to src/engine: the data of a worker and of a server, and their thread functions. */
#ifndef TRAINER_TRAIN_WORKER_H
#define TRAINER_TRAIN_WORKER_H

#include "prefetcher.h"

/* A step that the device may still compute, while the worker takes the next one: its loss is not there yet.
 */
struct unheard {
    bool waits;
    bool applied; /* its gradient is, so its row is complete but for the loss */
    int slot;     /* of its gradient */
    struct log_row row;
};

struct worker {
    struct training *training;
    int index;
    struct world_thread *thread;
    struct error error;
    struct worker_side side;     /* side.weights: its own copy, or the store's */
    const struct traits *traits; /* of side.strategy */
    int changes;                 /* of the strategy that it has followed: side.step counts since then */
    int counted;                 /* the last change that it was active at, which has added what side.step was
                                    to the member's earlier steps; written while all are paused */
    float *there; /* [layout floats] its copy, when it lies in its device's memory for that alone to read */
    _Atomic long pauses; /* segments it has finished, or that were over before it came */
    int hopeless_steps;  /* in a row */
    bool by_itself;      /* at what concerns nobody else, its input or its computation, or it failed there */
    struct slowed slowed;
    bool owes_pull; /* it has pushed since */
    _Atomic bool lost;
    bool left;         /* it was not lost but has left; written before `lost` */
    bool opened;       /* it has what it computes with */
    long lost_step;    /* and why; written before `lost` */
    struct error loss; /* by its own thread or by who expelled it */
    float **slabs;     /* [slots + 1] gradients, [layout floats] each */
    int slab_count;
    struct prefetcher prefetcher; /* of its batches */
    struct log_row *rows;         /* [slots + 1] the row of each gradient in flight */
    bool ahead;                   /* it waits for a step when it has queued the next one */
    struct unheard unheard;       /* then: the one before */
    struct worker_totals totals;
    long long wire_bytes; /* that are in its rows */
    double accounted_s;   /* world time up to which its totals say what it did; its own, while paused
                             everybody's */
};

struct server {
    struct training *training;
    int index; /* serves shards s with s % server_count == index */
    struct world_thread *thread;
    struct event mail;
    _Atomic bool busy; /* it may be applying a gradient */
    struct error error;
};

void worker_body(void *worker);
void server_body(void *server);

/* change.c: what the shards have for the strategy, made and freed. */
int training_open_strategy(struct training *training, struct error *error);
void training_close_strategy(struct training *training); /* safe on a zeroed one */
/* On the worker's thread: what it computes on, as the strategy has it; and, before a segment, all that a
 * change of the strategy asks of it. */
int worker_open_own(struct worker *worker);
void worker_close_own(struct worker *worker); /* also by who ends it; safe on a zeroed one */
int worker_change(struct worker *worker);

/* diverged.c: ERROR_DIVERGED with words in the worker's error. The loss of its step of that number, and the
 * rate it was made with; a gradient, which can be infinite where the loss is not. */
int worker_check_loss(struct worker *worker, long step, double rate, float loss);
int worker_check_gradient(struct worker *worker, const struct gradient *gradient, long step);

/* step_length.c: a step that has computed since then goes on for as long as it is to take, in a simulated run
 * of virtual time, or as much longer as --slow asks for. *wire_s: what of it the wire took. */
void worker_take_time(struct worker *worker, double since_s, long step, double *wire_s);

/* Records a failure and stops the world. */
void training_fail(struct training *training, int member);
/* Takes a worker off the roster, in its own name or after it was expelled. */
void training_lose(struct training *training, int worker, const struct error *why);
/* The same of one that leaves in order. */
void training_leave(struct training *training, int worker);
/* Whether the training continues without this worker: that is allowed, and there is another. */
bool training_spares(const struct training *training, int worker);
/* The roster's `remove`; its argument is the training. */
bool training_remove(void *training, int member);
/* The last thing that a thread of the training does. */
void training_thread_ends(struct training *training);

#endif
