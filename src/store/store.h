/* The store: the model's vector, its optimizer state, and the verbs that strategies are made of.
 *
 * The vector is cut into shards: windows [begin, end) whose borders are cache lines, so shards share nothing. A shard has its window of the
 * weights and moments, a version (updates applied), a lock, a mailbox, and a tally a worker. The weights of all shards lie in one slab,
 * in the order of the layout, so a replica in the same process can compute on them in place.
 *
 * Verbs, the whole vocabulary of strategies:
 *   shard_apply        step with one gradient, the caller sees to it that nobody else writes
 *   shard_apply_racy   the same without any guard: the only racy writer
 *   shard_lay          lay a gradient into its worker's place for the round
 *   shard_step_share   step this worker's share with the mean of what was laid, added in roster order
 *   shard_read         copy the window if it has news, the caller sees to it that nobody writes
 *   shard_read_racy    the same without any guard
 *   shard_post         put a gradient into the shard's mailbox
 *   shard_done         the shard needs this gradient no more: the slot may be filled again
 */
#ifndef TRAINER_STORE_STORE_H
#define TRAINER_STORE_STORE_H

#include <stdatomic.h>
#include "../base/memory.h"
#include "../base/option.h"
#include "../graph/layout.h"
#include "../world/waits.h"
#include "optimizer.h"
#include "schedule.h"

enum shard_by { SHARD_BY_BYTES, SHARD_BY_TENSOR, SHARD_BY_ROUND_ROBIN };
enum { STALENESS_BINS = 65 }; /* 0 .. 63, and 64 or more */

struct store;

/* One gradient on its way: a slot of a worker. */
struct gradient {
    const float *values;  /* [layout floats] in the memory of the worker's device */
    int worker, slot;
    long step;            /* of this worker, from 0 */
    int examples;         /* it is the mean over these; 0: an empty gradient (its worker had no batch left) */
    long *version;        /* [shards] that each window was computed on */
    _Atomic long applied_version; /* largest version that a shard reached by applying it */
    _Atomic long staleness; /* maximum over the shards that have applied it so far */
    _Alignas(64) _Atomic int left; /* shards that still need it; 0: the slot is free */
    void *note;           /* for the worker's log; see store_settings.finished */
};

/* What one worker did to one shard. Written by whoever applies that worker's gradients, one at a time. */
struct tally {
    _Alignas(64) long updates;         /* gradients applied */
    long dropped;                      /* gradients thrown away (late ones, say) */
    long staleness[STALENESS_BINS];
    double staleness_sum;
    long staleness_max;
};

/* A window of a shard in which the attributes are constant. */
struct span {
    size_t begin, end; /* in the flat vector */
    enum range_kind kind;
    float decay, rate_multiplier;
};

struct shard {
    struct store *store;
    int index;
    size_t begin, end;                    /* of the flat vector; multiples of LINE_FLOATS */
    struct span *spans;                   /* [span_count], covers the window without its padding */
    int span_count;
    _Alignas(64) _Atomic long version;    /* updates applied */
    struct lock lock;                     /* rank 1: nothing else is taken under it */
    struct event applied;                 /* posted after every update */
    struct mailbox mailbox;               /* to its server */
    struct event *mail;                   /* its server's event; NULL: nobody serves */
    struct tally *tallies;                /* [workers] */
    struct gradient *_Atomic *laid;       /* [workers] of the round */
    float *witness;                       /* [LINE_FLOATS] the racy loop adds 1 to it with each update: version - witness = lost updates */
    void *state;                          /* of the strategy, made by its open */
};

struct store_settings {
    const struct layout *layout;
    struct roster *roster;
    int shards;
    enum shard_by shard_by;
    int slots;                       /* gradients a worker may have on the way */
    const struct choice *optimizer;  /* descriptor: struct optimizer */
    const struct choice *schedule;   /* descriptor: struct schedule */
    long total_updates;              /* of each shard in the whole training; for the schedule */
    /* Called when the last shard is done with a gradient, by the thread that did it, before the slot is free again. May be NULL. */
    void (*finished)(void *argument, struct gradient *gradient);
    void *finished_argument;
};

struct worker_slots {
    struct gradient *gradients; /* [slots] */
    struct event room;          /* posted when a slot becomes free */
};

struct store {
    struct store_settings settings;
    struct world *world;
    float *weights;        /* [layout floats] */
    float *moments[2];     /* [layout floats] each, as many as the optimizer has */
    struct shard *shards;  /* [settings.shards] */
    struct worker_slots *workers; /* [roster workers] */
    void *blocks[8];       /* memory owned */
};

/* Opens a store with zero weights. Errors: ERROR_USAGE: more shards than cache lines; ERROR_DEVICE: memory. */
int store_open(struct store *store, const struct store_settings *settings, struct error *error);
void store_close(struct store *store); /* safe on a zeroed or half-open one */

/* Learning rate for the update after `version` updates (the optimizer's rate times the schedule). */
float store_rate(const struct store *store, long version);

/* Sets all versions; for resuming. */
void store_set_version(struct store *store, long version);
long store_version(const struct store *store); /* the smallest over the shards */
long store_lost_updates(const struct store *store); /* updates counted minus updates that the witness lines saw, over all shards */
long store_locks_taken(const struct store *store);

/* A free slot of the worker, or waits for room ("waits only for room in its own mailbox"). NULL and error set: gave up or stopped. */
struct gradient *store_slot(struct store *store, int worker, struct error *error);
bool store_has_room(const struct store *store, int worker);
/* Waits until no gradient of this worker is on the way. */
int store_drain(struct store *store, int worker, struct error *error);

/* --- verbs --- */
void shard_apply(struct shard *shard, const struct gradient *gradient);
void shard_apply_racy(struct shard *shard, const struct gradient *gradient);
void shard_lay(struct shard *shard, struct gradient *gradient);
/* Steps the `share`-th of `shares` equal parts of the window with the mean of the laid gradients, weighted by examples, added in roster order. */
void shard_step_share(struct shard *shard, int share, int shares);
/* The round is over: version + 1, tallies of all who laid one. Called by one thread, when all shares are stepped. */
void shard_step_end(struct shard *shard);
/* Copies the window to weights + begin when the shard's version differs from *version, which is set to the version read. Returns whether it copied. */
bool shard_read(const struct shard *shard, float *weights, long *version);
bool shard_read_racy(const struct shard *shard, float *weights, long *version);
int shard_post(struct shard *shard, struct gradient *gradient, struct error *error);
void shard_done(struct shard *shard, struct gradient *gradient);

#endif
