/* Strategies: how devices share what they learn. One plug-in per file in strategies/.
 *
 * A strategy has two halves. The *shard half* runs where the shard lives: `push` is given a gradient and
 * decides who applies it and when; `pull` gives a worker its weights. `push` never waits; only `pull`
 * does, and the wait for a free slot (store_wait_room). The *worker half* runs beside the computation and
 * is the same for all: push to every shard, pull from every shard, and before a pause rest at every shard.
 * A strategy whose workers step their own copies also does so in its shard half. A strategy never names a
 * device or a thread, and blocks only through the world's waits. */
#ifndef TRAINER_STORE_STRATEGY_H
#define TRAINER_STORE_STRATEGY_H

#include "store.h"

/* Of strategies with own_moments: the sum in which each gradient is exactly once at a pause, as long as no
 * worker is lost, whatever was exchanged: that of the workers' copies, or of these and the store's weights.
 */
enum conserved { CONSERVED_NOWHERE, CONSERVED_COPIES, CONSERVED_WITH_STORE };

/* What a strategy needs and what it promises; the tests check every promise of every variant of every
 * strategy. */
struct traits {
    /* What it needs. */
    bool own_weights; /* each worker computes on a copy of its own; else on the store's weights in place */
    bool own_moments; /* each worker has optimizer state and moving average of its own, too */
    bool servers;     /* server threads apply what is in the mailboxes */
    bool steps_own; /* push steps with the worker's gradient on its own thread, and is done with it on return:
                       nobody else reads it */
    bool rounds;    /* all workers take equally many steps: batch r*W+w goes to worker w of round r */
    /* What it promises. */
    bool merged;       /* one update per round of the workers, not one per gradient */
    bool exactly_once; /* each gradient is applied to each shard exactly once */
    bool drops;        /* or it is dropped, and counted: at most once then */
    bool repeatable;   /* same seed, same bits, with any number of threads and in any order of arrival */
    bool like_serial;  /* those bits are the ones of serial training: one thread that steps with the mean of
                          the W gradients */
    bool
        own_update_in_reply; /* the weights that a worker computes on include its own last gradient, always */
    bool whole_reads; /* a worker computes on weights that are of one version in each shard, never torn */
    bool lock_free;   /* no lock is taken on the worker's path */
    bool joint; /* an update is the mean of what some workers have sent, and the version counts gradients;
                   whose these are is decided in one place */
    bool outer; /* what the workers have learnt is a gradient of another step: only how often they learn and
                   step is known, not how far that takes the weights */
    bool corrects; /* a stale gradient is corrected for its age; one that is not stale is applied as it is */
    bool weighs; /* an update is the mean of several workers' gradients, in which each counts by its examples:
                    workers may have shares of different sizes */
    enum conserved conserved;
    /* No gradient is staler than this many updates, for W workers with `slots` slots each; NULL: no bound. */
    long (*staleness_bound)(const void *settings, int workers, int slots);
    /* No worker begins step s+1 before every shard has every gradient of step s - lead; NULL: no promise. */
    long (*lead)(const void *settings);
    /* Bytes copied between a worker's memory and the store in a segment (from one pause to the next) of
     * `steps` steps, in which it found the weights of the store changed `changed` times: `bytes` is the size
     * of the weights, `moments` how many vectors of optimizer state there are, a moving average among them.
     */
    long long (*bytes_moved)(const void *settings, long long bytes, int moments, long steps, long changed);
};

/* The worker's side of an exchange. */
struct worker_side {
    struct store *store;
    const struct strategy *strategy;
    int worker;
    long step;                   /* steps finished so far: the round that `pull` must wait for is step - 1 */
    float *weights;              /* [layout floats] its own copy, or the store's */
    const struct device *device; /* in whose memory its own copy is */
    struct state own;            /* its own copies where the store gets at them: the weights, with
                                    traits.own_moments all vectors; count 0: none */
    long *version;               /* [shards] of the weights that it has; set by pull, always */
    bool queued; /* what pull did may still be under way on the worker's device, before what comes next; set
                    by pull, cleared by the worker */
    long long bytes_moved; /* copied so far between its own memory and the store */
};

struct strategy {
    struct plugin plugin;
    /* The settings that select variants with other traits, ended by NULL: {"apply=server", "apply=worker",
     * NULL}; NULL: only one. */
    const char *const *variants;
    const struct traits *traits;                             /* with one variant */
    const struct traits *(*traits_of)(const void *settings); /* with several */
    /* How many shards it likes, when --shards does not say; NULL: one. */
    int (*shards)(const void *settings);
    /* With so many workers: a setting that comes to something else than it says, "k=9 is as k=2", into
     * out[bytes]; where there is none, nothing. NULL: there never is. */
    void (*comes_to)(const void *settings, int workers, char *out, size_t bytes);
    /* Makes and frees what a shard needs for this strategy (shard->state); each may be NULL. */
    int (*open)(struct shard *shard, const void *settings, struct error *error);
    void (*close)(struct shard *shard);
    /* Shard half; on the worker's thread (for a remote worker: its proxy's). */
    int (*push)(struct shard *shard, struct gradient *gradient, struct error *error);
    int (*pull)(struct shard *shard, struct worker_side *side, struct error *error);
    /* Instead of a pull, when the worker has no more batches until the next segment: the shard must then hold
     * what the worker has learnt. NULL: pull. */
    int (*rest)(struct shard *shard, struct worker_side *side, struct error *error);
    /* With traits.own_moments, on the worker's thread: whether the shard will want the worker's copies after
     * the step that it begins now. Where the worker is in another process, it steps there, and gives them
     * back only then, and when it rests or has no batch. NULL: it steps here. */
    bool (*shares)(const struct shard *shard, int worker);
    /* On a server's thread: one mail of the shard. NULL: no servers. */
    int (*serve)(struct shard *shard, struct gradient *gradient, struct error *error);
};

extern const struct strategy *const strategies[]; /* generated, ended by NULL */
extern const struct plugin_kind strategy_kind;    /* generated: the same */

/* The descriptor that a choice from this table has. */
static inline const struct strategy *strategy_of(const struct choice *choice) {
    return (const struct strategy *)(const void *)choice->plugin;
}

/* What the strategy needs and promises with these settings. */
const struct traits *strategy_traits(const struct strategy *strategy, const void *settings);

/* --- the usual halves, from which strategies are composed --- */
int strategy_send_all(struct worker_side *side, struct gradient *gradient,
                      struct error *error);                           /* push to every shard */
int strategy_take_all(struct worker_side *side, struct error *error); /* pull from every shard */
int strategy_rest_all(struct worker_side *side, struct error *error); /* rest at every shard */
/* Shard halves, beside shard_post, which gives a gradient to the shard's server. The server applies
 * gradients in order of arrival (an empty one is only released), with or without the shard's lock. */
int strategy_serve(struct shard *shard, struct gradient *gradient, struct error *error);
int strategy_serve_locked(struct shard *shard, struct gradient *gradient, struct error *error);
/* Copies the shard's weights for the worker when they have changed, with or without the shard's lock. */
int strategy_read_locked(struct shard *shard, struct worker_side *side, struct error *error);
int strategy_read_racy(struct shard *shard, struct worker_side *side, struct error *error);
/* For pull: the worker has been given a copy of the slice. */
void strategy_count_copy(const struct shard *shard, struct worker_side *side);
/* For pull, before the worker computes in place on weights of which others have stepped shares. */
void strategy_await_stepped(struct shard *shard, struct worker_side *side);
/* Values of `bytes_moved`: nothing is copied; the weights once for each change. */
long long strategy_bytes_none(const void *settings, long long bytes, int moments, long steps, long changed);
long long strategy_bytes_changed(const void *settings, long long bytes, int moments, long steps,
                                 long changed);
/* Value of `staleness_bound`: 0. */
long strategy_never_stale(const void *settings, int workers, int slots);

/* Bytes of a shard's slice of the weights. */
static inline long long strategy_slice_bytes(const struct shard *shard) {
    return (long long)((shard->end - shard->begin) * sizeof(float));
}

#endif
