/* ssp: stale synchronous parallel: asynchronous, but no worker runs more than `bound` steps ahead.
 *
 * Who applies:   the shard's server, in order of arrival.
 * What guards:   the shard's lock, and the bound: no worker begins step s+1 before every gradient of step
 *                s-bound is applied. With bound=0 all wait for all after each step, as in sync, but each
 *                gradient is a separate update.
 * How old:       at most (W-1)(2 bound+1) updates of others and `bound` of its own: others are at most
 *                bound+1 steps ahead of what was read, and bound behind.
 * Bytes/step:    the weights, once, when they have changed. The gradient is read where it lies.
 * Reproducible:  with one worker and bound=0, bit for bit equal to serial training; else not.
 *
 * Source: Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS
 * 2013. */
#include "../src/store/strategy.h"

struct ssp_settings {
    int bound;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "bound", struct ssp_settings, bound, .fallback = "3", .least = 0, .most = 1000000,
               .unit = "steps",
               .help = "steps that a worker may be ahead of the slowest worker's last applied gradient"),
    {0},
};

static long bound_of(const void *settings) {
    return ((const struct ssp_settings *)settings)->bound;
}

static int ssp_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    const long bound = bound_of(shard->store->settings.strategy->settings);
    RETURN_IF(shard_await(shard, side->worker, -1, side->step - bound,
                          "the bound, for the slowest worker's gradient to be applied", error));
    return strategy_read_locked(shard, side, error);
}

static long ssp_staleness(const void *settings, int workers, int slots) {
    (void)slots;
    return (workers - 1) * (2 * bound_of(settings) + 1) + bound_of(settings);
}

static const struct traits traits[] = {
    {.own_weights = true,
     .servers = true,
     .rounds = true,
     .exactly_once = true,
     .whole_reads = true,
     .staleness_bound = ssp_staleness,
     .lead = bound_of,
     .bytes_moved = strategy_bytes_changed},
    {.own_weights = true, /* bound=0 */
     .servers = true,
     .rounds = true,
     .exactly_once = true,
     .own_update_in_reply = true,
     .whole_reads = true,
     .staleness_bound = ssp_staleness,
     .lead = bound_of,
     .bytes_moved = strategy_bytes_changed},
};

static const struct traits *ssp_traits(const void *settings) {
    return &traits[bound_of(settings) == 0];
}

static const char *const variants[] = {"bound=3", "bound=0", NULL};

const struct strategy strategy_ssp = {
    .plugin = {.name = "ssp",
               .help = "asynchronous, but no worker runs more than `bound` steps ahead",
               .options = rows,
               .settings_bytes = sizeof(struct ssp_settings)},
    .variants = variants,
    .traits_of = ssp_traits,
    .push = shard_post,
    .pull = ssp_pull,
    .serve = strategy_serve_locked,
};
