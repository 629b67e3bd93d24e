/* The store: the model's vector, its optimizer state, and the verbs that strategies are made of.
 *
 * The vector is cut into shards: slices [begin, end) whose boundaries are cache lines, so shards share
 * nothing. A store may have some of them only, when others are in other processes. A shard has its slice of
 * the weights and moments, a version (updates applied), a lock, a mailbox, and one tally per worker. The
 * weights of all shards lie in one slab, in the order of the layout, so a replica in the same process can
 * compute on them in place.
 *
 * Verbs, the whole vocabulary of strategies:
 *   shard_apply         step with one gradient; the caller sees to it that nobody else writes
 *   shard_apply_compensated  the same with a gradient that is corrected for its age
 *   shard_apply_racy    the same without any guard: the only racy writer
 *   shard_contribute    put a gradient into its worker's place for the round
 *   shard_step_share    step a share of the slice with the mean of what was contributed, in roster order
 *   shard_end_round     the next version, when all shares are stepped
 *   shard_read          copy the slice if it has changed; the caller sees to it that nobody writes
 *   shard_read_racy     the same without any guard
 *   shard_post          put a gradient into the shard's mailbox
 *   shard_done          the shard has applied this gradient: measure its staleness, release the slot
 *   shard_drop          the shard throws this gradient away
 *   shard_settle        wait until what this thread has stepped is stepped
 *   shard_await_stepped what this thread queues next comes after the steps of all shares
 *   shard_lock          take the shard's lock on a worker's thread: time spent on it is waiting
 *   shard_unlock        give it back: who writes next comes after what this worker has read
 *   shard_await         wait until the shard is done with a worker's gradients
 *   shard_step_own      step a worker's own copy of the slice
 *   shard_reduce_share  write the mean of the workers' own copies, a share of the slice
 *   shard_step_outer    step a share of the slice with what separates it from that mean
 *   shard_copy          copy the slice and its optimizer state into a worker's own copy
 *   shard_open_vector   a vector of the strategy's own, as long as the slice, where that lives
 *   shard_keep          copy the slice into such a vector
 *   shard_read_kept     copy such a vector into a worker's weights
 *   shard_copy_own      copy a worker's own slice between two of its vectors
 *   shard_meet          both of two workers' own vectors = their mean, a slice of them
 *   shard_exchange      move a worker's own copy and the slice towards each other
 *   shard_follow        move the optimizer state of the slice towards a worker's own
 */
#ifndef TRAINER_STORE_STORE_H
#define TRAINER_STORE_STORE_H

#include <stdatomic.h>
#include "../base/memory.h"
#include "../base/option.h"
#include "../device/device.h"
#include "../graph/layout.h"
#include "../world/waits.h"
#include "optimizer.h"
#include "schedule.h"
#include "staleness.h"

/* How the mean of a round is made, where all workers step together on it. COPIES: each worker's slices are
 * copied to the shard's device, and added there in roster order. COLLECTIVE: the workers' devices compute
 * it as a group, in an order that the group chooses. AUTO: COLLECTIVE where each worker has a separate
 * device that can, and runs need not have the same bits. */
enum links { LINKS_AUTO, LINKS_COPIES, LINKS_COLLECTIVE };
enum shard_by { SHARD_BY_BYTES, SHARD_BY_TENSOR, SHARD_BY_ROUND_ROBIN };

struct store;

/* One gradient in flight: a slot of a worker. A worker has one slot per gradient that may be in flight,
 * and one that it fills. */
struct gradient {
    const float
        *values; /* [layout floats] in the memory of the worker's device; the worker sets it when it starts */
    int worker, slot;
    long step;     /* of this worker, from 0, in this run */
    float loss;    /* of its batch; not for strategies with steps_own */
    int examples;  /* it is the mean over these; 0: an empty gradient (its worker had no batch left) */
    long *version; /* [shards] that each slice was computed on */
    _Alignas(64) _Atomic int left; /* holders that still need it: shards, and the worker until it has sent it;
                                      0: free */
    _Atomic long staleness;        /* maximum over the shards that have applied it so far */
    _Atomic long applied_version;  /* smallest version that a shard reached by applying it; 0: none yet */
    _Atomic bool dropped;          /* some shard threw it away */
};

/* What one worker did to one shard. Written by whoever applies that worker's gradients, one at a time. */
struct tally {
    _Alignas(64) _Atomic long steps; /* the shard is done with this worker's steps before this one */
    long dropped;                    /* gradients thrown away (late ones, say) */
    struct staleness staleness;      /* of the gradients applied */
};

/* A slice of a shard in which the attributes are constant. Padding belongs to the span before it: it is
 * zero, its gradient is zero, and every optimizer leaves a zero weight with a zero gradient unchanged. */
struct span {
    size_t begin, end; /* in the flat vector */
    enum range_kind kind;
    float decay, rate_multiplier;
    bool decays; /* of weights of two dimensions or more, where the optimizer has weight-decay */
    const struct range *matrix; /* stepped as a whole, matrices.h; NULL: each weight alone */
};

/* What a share of a slice was before a round stepped it. */
struct former_share {
    size_t begin, end; /* of the flat vector */
    long round;        /* whose first version is one less; 0: of none */
};

struct shard {
    struct store *store;
    int index;
    const struct home *home; /* where it lives */
    size_t begin, end;       /* of the flat vector; multiples of LINE_FLOATS */
    struct span *spans;      /* [span_count], they cover the slice */
    int span_count;
    _Alignas(64) _Atomic long version;     /* updates applied; of some strategies, gradients */
    _Atomic long joined;                   /* of these, gradients that were in one update with another */
    struct lock lock;                      /* rank 1: nothing else is taken under it */
    struct event applied;                  /* posted whenever the shard is done with a gradient */
    struct mailbox mailbox;                /* to its server */
    struct event *mail;                    /* its server's event; NULL: nobody serves */
    struct tally *tallies;                 /* [workers] */
    struct gradient *_Atomic *contributed; /* [workers] of the round */
    struct shard_order *order;             /* in which the queues of its home come */
    bool atomic;                           /* racy steps add to weights atomically */
    double *witness;                       /* [one line] the racy loop adds 1 to it with each update ... */
    _Atomic long racy_updates;             /* ... so that these minus the witness are the lost updates */
    _Atomic bool in_round;                 /* a share of the round is stepped, and the round has not ended */
    float *former[STATE_VECTORS];          /* [slice floats] before the last round, where it can be undone */
    struct former_share *former_shares;    /* [workers] what of them is there; NULL: no round can be undone */
    _Atomic long not_kept;                 /* a round of which there is not all; 0: none */
    struct matrix_room *matrices;          /* where who has the shard for itself steps matrices; or NULL */
    void *state;                           /* of the strategy, made by its open */
};

struct store_settings {
    const struct layout *layout;
    struct roster *roster;
    int shards;      /* in this store */
    int shard_first; /* which of all shards is its first; 0 where it has all */
    int shards_all;  /* into which the vector is cut, over all stores; 0: into those of this one */
    enum shard_by shard_by;
    int slots;      /* gradients a worker may have in the mailboxes; 0 where there are no servers */
    int slots_most; /* of all strategies that the store will have; 0: this one alone */
    const struct choice *strategy;  /* descriptor: struct strategy */
    const struct choice *optimizer; /* descriptor: struct optimizer */
    const struct choice *schedule;  /* descriptor: struct schedule */
    long total_updates;             /* of each shard in the whole training; for the schedule */
    long schedule_ahead; /* added to a version: under another strategy, or with other workers, the updates
                            until here were more or fewer than this one needs for as many examples */
    const struct device *devices; /* [roster workers] of the workers; NULL: they are elsewhere, or none */
    /* The shards live on the workers' devices that have memory of their own, spread over them in turn; else
     * in the host's memory. */
    bool on_devices;
    enum links links;
    double average; /* decay of the moving average of the weights, at most; 0: there is none */
    bool divides;   /* the rate of a gradient that is n > 1 updates old is divided by n */
    bool owes;      /* a vector more is kept: what compressing has left out of gradients */
    bool undoes;    /* the last round can be undone, where the slice is one of several stores' */
    bool far;       /* workers step their own copies in their processes: shard_step_own does nothing here */
    /* Called when no holder needs a gradient any more, by the last of them, before the slot is free again.
     * May be NULL. */
    void (*finished)(void *argument, struct gradient *gradient);
    void *finished_argument;
};

struct worker_slots {
    struct gradient *gradients;   /* [slots + 1] */
    struct event room;            /* posted when a slot becomes free */
    long room_waits;              /* times the worker found no room; its own thread's */
    const float **values;         /* [workers + 2] for its own thread: the vectors of a mean, ... */
    float *weight;                /* [workers + 2] ... and how much each counts */
    struct matrix_room *matrices; /* where its thread steps matrices; or NULL */
    /* With settings.far, all its own thread's: the worker's own copies here, whether shard_copy has written
     * them since its process took them, and whether that has stepped them since it gave them back. */
    const struct state *own;
    bool own_written, own_behind;
};

/* A device in whose memory shards live. Its vectors have room for the whole layout, of which it uses the
 * slices of its shards, so an offset in the layout is the same offset in every vector. */
struct home {
    const struct device *device;
    struct state state; /* the store's; in the host's memory it is store->host */
    float *mean;        /* [layout floats] of a round; NULL in the host's memory */
    /* [workers][layout floats]: where a slice of a worker's own vectors is copied before it is used; NULL:
     * it is in this device's memory already. */
    float **brought;
};

struct store {
    struct store_settings settings;
    struct world *world;
    size_t begin, end;            /* the slice of its shards */
    float *weights;               /* [layout floats], of which it keeps its slice; the first home's */
    struct shard *shards;         /* [settings.shards] */
    struct worker_slots *workers; /* [roster workers] */
    struct state host;            /* the store's vectors where the processor can read them: themselves, or the
                                     host's copies of what lives on devices, as old as the last store_fetch */
    struct state kept;            /* the same, and "owed", which no step touches, if there is one: what a
                                     checkpoint has, and what processes of a cluster tell each other */
    struct home *homes;           /* [home_count] shard s lives on number s % home_count */
    int home_count;
    struct device processor; /* the home of all, unless they live on the workers' devices */
    void *group;             /* the workers' devices, by whom the mean of a round is made; NULL: by copies */
    char mean_by[200];       /* that in words: "NCCL 2.28.9"; "": nothing on devices has a mean */
    const struct device *reader; /* whose allocate_host gives host memory to copy from and to */
    struct error failure;        /* of a device, the first; once `failed` */
    _Atomic bool failing, failed;
};

/* Opens a store with zero weights. Errors: ERROR_USAGE: more shards than cache lines, LINKS_COLLECTIVE where
 * it cannot be; ERROR_DEVICE: memory, a device. */
int store_open(struct store *store, const struct store_settings *settings, struct error *error);
void store_close(struct store *store); /* safe on a zeroed or half-open one */
/* While all are paused: goes on under the strategy that settings.strategy has become, with these slots,
 * links, far, total_updates and schedule_ahead; the rest of `settings` is as it was. Weights, optimizer state
 * and versions stay, and what the tallies have counted; the workers' steps begin anew. Errors: those of
 * links. */
int store_change(struct store *store, const struct store_settings *settings, struct error *error);

/* The moving average starts from the current weights. */
void store_begin_average(struct store *store);
/* The weights to test and to save: the moving average, or, without one, the weights. [layout floats], in
 * the host's memory. */
float *store_tested(const struct store *store);

/* Copies what lives on devices into store->host, or what was written there to the devices; does nothing
 * where both are the same memory. Only while no worker trains. Errors: ERROR_DEVICE. */
int store_fetch(const struct store *store, struct error *error);
int store_send(const struct store *store, struct error *error);
/* Copies the weights of all shards to weights[layout floats] in the memory of `to`, by the thread that drives
 * it: on its queue when it has memory of its own, else complete. Errors: ERROR_DEVICE. */
int store_copy_weights(const struct store *store, const struct device *to, float *weights,
                       struct error *error);

/* Whether the shards live on devices with memory of their own. */
bool store_on_devices(const struct store *store);
/* out: "gpu:0,gpu:1", those devices; "": all is in the host's memory. */
void store_name_homes(const struct store *store, char *out, size_t bytes);
/* Whether a device computes on the store's weights themselves: all of them are in its memory. */
bool store_shares_memory(const struct store *store, const struct device *device);
/* A worker's own vectors (its gradients, its copies of the store's vectors) are where both it and the
 * shards can reach them: where shards live on devices, in the memory of its device (the host's, for a
 * CPU); else in the host's memory. store_own_device: that device, or the CPU. store_own_vector: one
 * [layout floats], zeroed. store_own_state: new vectors like the store's; without `all` only the weights.
 * Errors: ERROR_DEVICE. */
const struct device *store_own_device(const struct store *store, int worker);
int store_own_vector(const struct store *store, int worker, float **out, const char *what,
                     struct error *error);
void store_own_vector_free(const struct store *store, int worker, float *vector); /* NULL is fine */
int store_own_state(const struct store *store, int worker, bool all, struct state *out, struct error *error);
void store_own_state_free(const struct store *store, int worker, const struct state *state);
/* In the process of a worker that is far: steps all of own[], number `number`. */
void store_step_far(struct store *store, const struct state *own, const float *gradient, float rate,
                    long number);
/* Where all step together, once nobody steps any more: every shard is what it was at this version, with no
 * share of the next round stepped. One that gave up at a barrier leaves its share as it was, while another
 * one may have stepped its own. Takes back one round at most, and only where `undoes` is set. Errors:
 * ERROR_PEER: a shard is further, or less far; then others may have been taken back. */
int store_undo(struct store *store, long version, struct error *error);
/* The first failure of a device that shards live on: verbs themselves return no errors. */
int store_check(const struct store *store, struct error *error);

/* Learning rate for the update after `version` updates (the optimizer's rate times the schedule). */
float store_rate(const struct store *store, long version);
/* What a gradient counts for in the update after `version` updates: 1, or with settings.divides one over its
 * age, if that is more than 1. Source: Zhang, Gupta, Lian, Liu, "Staleness-aware async-SGD for distributed
 * deep learning", IJCAI 2016. */
float shard_worth(const struct shard *shard, const struct gradient *gradient, long version);

/* Sets all versions; for resuming. */
void store_set_version(struct store *store, long version);
long store_version(const struct store *store); /* the smallest over the shards */
/* Times that the weights were changed, the smallest over the shards: the version, but where that counts
 * gradients and an update is of several. Setting them comes after the version. */
void store_set_updates(struct store *store, long updates);
long store_updates(const struct store *store);
long store_lost_updates(const struct store *store); /* updates counted minus updates that the witness lines
                                                       saw, over all shards */
long store_dropped(const struct store *store);      /* gradients thrown away, over all shards and workers */
long store_locks_taken(const struct store *store);
/* Adds to *sum what the shards have counted for this worker; its atomic is left alone. */
void store_tally(const struct store *store, int worker, struct tally *sum);
void tally_add(struct tally *sum, const struct tally *tally);

/* The slot that a worker's step fills: one that is not in flight. */
struct gradient *store_gradient(struct store *store, int worker, long step);
/* Waits until fewer than `slots` gradients of this worker are in the mailboxes: the one wait of a sender.
 * Errors: ERROR_PEER. */
int store_wait_room(struct store *store, int worker, struct error *error);
/* Waits until no gradient of this worker is in flight. Errors: ERROR_PEER. */
int store_drain(struct store *store, int worker, struct error *error);
/* Releases one hold on a gradient: each shard has one (shard_done, shard_drop), the worker has one until
 * it has sent it. */
void store_release(struct store *store, struct gradient *gradient);

/* Boundaries of the shards: boundary[shards + 1] floats of the flat vector. By bytes: equal to a cache line.
 * By tensor or round-robin: whole ranges, in groups. Errors: ERROR_USAGE: more shards than there are cache
 * lines, or ranges. */
int store_cut(const struct layout *layout, int shards, enum shard_by by, size_t *boundary,
              struct error *error);
/* For round-robin, before anything else uses the layout: puts the ranges i with i % shards == 0 first in
 * the flat vector, and so on. */
void store_spread_ranges(struct layout *layout, int shards, enum shard_by by);

/* --- verbs --- */
long shard_apply(struct shard *shard, const struct gradient *gradient);      /* returns the version before */
long shard_apply_racy(struct shard *shard, const struct gradient *gradient); /* returns the version before */
/* As shard_apply, where weights are trained with what `compensation` (update.h) makes of the gradient; its
 * vectors are strategy vectors. */
long shard_apply_compensated(struct shard *shard, const struct gradient *gradient,
                             const struct compensation *compensation);
/* Strategy vectors: [end - begin] floats in the memory where the shard lives, zeroed. For a strategy's open
 * and close. They are in no checkpoint. Errors: ERROR_DEVICE: memory. */
int shard_open_vector(struct shard *shard, float **out, const char *what, struct error *error);
void shard_close_vector(struct shard *shard, float *vector); /* NULL is fine */
/* vector = the weights of the slice; the caller sees to it that nobody writes. Complete on return. */
void shard_keep(struct shard *shard, float *vector);
/* Copies a vector to weights + begin, in the memory of `to`, as shard_read does. */
void shard_read_kept(const struct shard *shard, const struct device *to, float *weights, const float *vector);
void shard_lock(struct shard *shard, int worker);   /* on a worker's thread; with lock_release, when it ... */
void shard_unlock(struct shard *shard, int worker); /* ... has not read, or with this */
void shard_contribute(struct shard *shard, struct gradient *gradient);
/* Steps, on the worker's thread, the `share`-th of `shares` equal parts of the slice. Queued on the
 * shard's device: shard_settle must come before the version says that it is done, or, where every reader
 * of the weights calls it first, shard_await_stepped. */
void shard_step_share(struct shard *shard, int worker, int share, int shares);
void shard_settle(struct shard *shard);
void shard_await_stepped(struct shard *shard, int worker); /* on the worker's thread */
void shard_end_round(struct shard *shard, long version);   /* which the round has made */
/* Copies the slice to weights + begin, in the memory of `to` (NULL: the host's), when the shard's
 * version differs from *version, which is set to the version read (a racy reader: to the one before it
 * began). Returns whether it copied; within the memory of a device it is only queued on it. */
bool shard_read(const struct shard *shard, const struct device *to, float *weights, long *version);
bool shard_read_racy(const struct shard *shard, const struct device *to, float *weights, long *version);
int shard_post(struct shard *shard, struct gradient *gradient, struct error *error);
/* Waits, on behalf of `self`, until the shard is done with all steps before `step` of this worker; -1: of
 * every active worker. Errors: ERROR_PEER. */
int shard_await(struct shard *shard, int self, int worker, long step, const char *place, struct error *error);
/* Steps the own copy, which is at `version`. */
void shard_step_own(struct shard *shard, const struct state *own, const struct gradient *gradient,
                    long version);
/* On the worker's thread: the `share`-th of `shares` equal parts of the slice in the store = the mean of the
 * own copies[workers], NULL those that are left out, added in their order. */
void shard_reduce_share(struct shard *shard, int worker, const struct state *const *copies, int share,
                        int shares);
/* The same, but where weights are trained: with d = mean - slice, velocity = momentum velocity + d and slice
 * += rate (d + momentum velocity). velocity: a strategy vector. */
struct outer_step {
    float *velocity;
    float rate, momentum;
};
void shard_step_outer(struct shard *shard, int worker, const struct state *const *copies, int share,
                      int shares, const struct outer_step *outer);
/* Boundary number `share` of `shares` equal parts of the slice, on a cache line. */
size_t shard_boundary(const struct shard *shard, int share, int shares);
/* Copies the slice from the store into the own copy. */
void shard_copy(const struct shard *shard, int worker, const struct state *own);
/* On the worker's thread: to = from, of the slice; both are its own vectors. Complete on return. */
void shard_copy_own(struct shard *shard, int worker, float *to, const float *from);
/* On one worker's thread: of the slice, vectors[i] of worker workers[i] = the mean of both. The caller sees
 * to it that nobody else uses these slices. Complete on return. */
void shard_meet(struct shard *shard, const int workers[2], float *const vectors[2]);
/* On the worker's thread, under the lock: with d = rate (own - slice), takes d from the worker's own weights
 * and adds it to those of the slice. */
void shard_exchange(struct shard *shard, int worker, const struct state *own, float rate);
/* On the worker's thread, under the lock: every vector of the slice but the weights = itself and the worker's
 * own, of which this counts `share`. */
void shard_follow(struct shard *shard, int worker, const struct state *own, float share);
void shard_done(struct shard *shard, struct gradient *gradient, long version_before);
void shard_drop(struct shard *shard, struct gradient *gradient);

#endif
