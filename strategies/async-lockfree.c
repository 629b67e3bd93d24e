/* async-lockfree: no worker waits for another; as in Project Adam (apply=server) or Hogwild (apply=worker).
 *
 * Who applies:   apply=server: the shard's server, in order of arrival.
 *                apply=worker: the worker itself, in place.
 * What guards:   nothing. A copy may be taken in the middle of an update; in place, two workers may overwrite
 *                each other's update of a line; with adds=atomic a weight is added to, and no update is lost.
 * How old:       server: what the others have pushed meanwhile, and up to `slots` gradients of the worker's
 *                own that are still in its mailbox. In place: the updates of others since this forward pass
 *                began.
 * Bytes/step:    server: the weights, once, when they have changed. In place: none are copied.
 * Reproducible:  with one worker in place, bit for bit equal to serial training; else not.
 *
 * Sources: Niu et al., "Hogwild!", NIPS 2011; Chilimbi et al., "Project Adam", OSDI 2014. */
#include "../src/store/strategy.h"

enum apply { APPLY_SERVER, APPLY_WORKER };

enum adds { ADDS_PLAIN, ADDS_ATOMIC };

struct lockfree_settings {
    int apply, adds;
};

static const struct option rows[] = {
    OPTION_ROW(
        CHOICE, "apply", struct lockfree_settings, apply, .fallback = "server", .choices = "server|worker",
        .help = "who applies a gradient: the shard's server, or the worker itself in place, as in Hogwild"),
    OPTION_ROW(
        CHOICE, "adds", struct lockfree_settings, adds, .fallback = "plain", .choices = "plain|atomic",
        .help =
            "with apply=worker: plain: read, change and write a weight; atomic: add the change atomically"),
    {0},
};

static int apply_of(const struct shard *shard) {
    const struct lockfree_settings *settings = choice_settings(shard->store->settings.strategy);
    return settings->apply;
}

static int lockfree_open(struct shard *shard, const void *settings, struct error *error) {
    (void)error;
    shard->atomic = ((const struct lockfree_settings *)settings)->adds == ADDS_ATOMIC;
    return OK;
}

static int lockfree_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    if (apply_of(shard) == APPLY_SERVER) return shard_post(shard, gradient, error);
    shard_done(shard, gradient, shard_apply_racy(shard, gradient));
    return OK;
}

static int lockfree_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    if (apply_of(shard) == APPLY_SERVER) return strategy_read_racy(shard, side, error);
    side->version[shard->index] = atomic_load(&shard->version);
    return OK;
}

static const struct traits traits[] = {
    [APPLY_SERVER] = {.own_weights = true,
                      .servers = true,
                      .exactly_once = true,
                      .lock_free = true,
                      .bytes_moved = strategy_bytes_changed},
    [APPLY_WORKER] = {.steps_own = true,
                      .own_update_in_reply = true,
                      .lock_free = true,
                      .bytes_moved = strategy_bytes_none},
};

static const struct traits *lockfree_traits(const void *settings) {
    return &traits[((const struct lockfree_settings *)settings)->apply];
}

static const char *const variants[] = {"apply=server", "apply=worker", NULL};

const struct strategy strategy_async_lockfree = {
    .plugin = {.name = "async-lockfree",
               .help = "no waiting and no locks (Project Adam; apply=worker: Hogwild)",
               .options = rows,
               .settings_bytes = sizeof(struct lockfree_settings)},
    .variants = variants,
    .traits_of = lockfree_traits,
    .open = lockfree_open,
    .push = lockfree_push,
    .pull = lockfree_pull,
    .serve = strategy_serve,
};
