/* Strategies: how devices share what they learn. A plug-in a file in strategies/.
 *
 * A strategy has two halves. The *shard half* runs where the shard lives: `push` is given a gradient and
 * decides who applies it and when; `pull` gives a worker its weights. `push` never waits; what waiting there
 * is, is `pull`'s, and waiting for a free slot (store_slot). The *worker half* runs beside the computation:
 * by default it pushes to every shard and pulls from every shard; a strategy that steps locally replaces it.
 * A strategy never names a device or a thread, and blocks only through the world's waits. */
#ifndef TRAINER_STORE_STRATEGY_H
#define TRAINER_STORE_STRATEGY_H

#include "store.h"

/* What a strategy needs and what it promises; the tests check every promise of every variant of every
 * strategy. */
struct traits {
    bool own_weights; /* each worker computes on a copy of its own; else on the store's weights in place */
    bool servers;     /* server threads apply what is in the mailboxes */
    bool rounds; /* all workers step together: batch r*W+w goes to worker w of round r, one update a round */
    bool exactly_once; /* each gradient is applied to each shard exactly once */
    bool repeatable;   /* same seed, same bits, with any number of threads and in any order of arrival */
    bool
        own_update_in_reply; /* the weights that a worker computes on include its own last gradient, always */
    bool lock_free;          /* no lock is taken on the worker's path */
    /* No gradient is staler than this many updates, for W workers with `slots` slots each; NULL: no bound. */
    long (*staleness_bound)(int workers, int slots);
};

/* The worker's side of an exchange. */
struct worker_side {
    struct store *store;
    const struct strategy *strategy;
    int worker;
    long step;             /* steps finished so far: the round that `pull` must wait for is step - 1 */
    float *weights;        /* [layout floats] its own copy, or the store's */
    long *version;         /* [shards] of the weights that it has; set by pull, always */
    long long bytes_moved; /* copied so far, weights and gradients */
};

struct strategy {
    struct plugin plugin;
    /* The settings that select variants with other traits, ended by NULL: {"apply=server", "apply=worker",
     * NULL}; NULL: only one. */
    const char *const *variants;
    const struct traits *(*traits)(const void *settings);
    int default_shards;
    /* Makes and frees what a shard needs for this strategy (shard->state); each may be NULL. */
    int (*open)(struct shard *shard, const void *settings, struct error *error);
    void (*close)(struct shard *shard);
    /* Shard half; on the worker's thread (for a remote worker: its proxy's). */
    int (*push)(struct shard *shard, struct gradient *gradient, struct error *error);
    int (*pull)(struct shard *shard, struct worker_side *side, struct error *error);
    /* On a server's thread: one mail of the shard. NULL: no servers. */
    int (*serve)(struct shard *shard, struct gradient *gradient, struct error *error);
    /* Worker half; NULL: strategy_send_all and strategy_take_all. */
    int (*send)(struct worker_side *side, struct gradient *gradient, struct error *error);
    int (*take)(struct worker_side *side, struct error *error);
};

extern const struct strategy *const strategies[]; /* generated, ended by NULL */

int strategy_send_all(struct worker_side *side, struct gradient *gradient,
                      struct error *error);                           /* push to every shard */
int strategy_take_all(struct worker_side *side, struct error *error); /* pull from every shard */

/* Bytes of a shard's window of the weights. */
static inline long long strategy_window_bytes(const struct shard *shard) {
    return (long long)((shard->end - shard->begin) * sizeof(float));
}

#endif
