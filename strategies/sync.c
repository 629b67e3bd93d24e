/* sync: all workers step together on the mean of their gradients.
 *
 * Who applies:   every worker steps its own share of each shard with the mean gradient, added in roster order
 *                and weighted by examples.
 * What guards:   two barriers per shard and round: all gradients are in; all shares are stepped. A third
 *                where a worker was lost between the two: its share is stepped by another.
 * How old:       a gradient is never stale.
 * Bytes/step:    none are copied: a worker reads W gradients and writes 1/W of the weights, in place.
 * Reproducible:  bit for bit, and equal to one thread that computes the same W gradients in turn, adds them
 *                in roster order and steps once. */
#include "../src/store/strategy.h"

struct sync_state {
    struct barrier contributed, stepped, recovered;
};

static int sync_open(struct shard *shard, const void *settings, struct error *error) {
    struct sync_state *state = NULL;
    (void)settings;
    RETURN_IF(memory_array(&state, 1, "barriers of a shard", error));
    shard->state = state;
    struct roster *roster = shard->store->settings.roster;
    RETURN_IF(barrier_open(&state->contributed, roster, "the barrier where all gradients are in", error));
    RETURN_IF(barrier_open(&state->stepped, roster, "the barrier where all shares are stepped", error));
    return barrier_open(&state->recovered, roster, "the barrier where a lost worker's share is stepped",
                        error);
}

static void sync_close(struct shard *shard) {
    struct sync_state *state = shard->state;
    if (!state) return;
    barrier_close(&state->contributed);
    barrier_close(&state->stepped);
    barrier_close(&state->recovered);
    memory_free(state);
    shard->state = NULL;
}

static int sync_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    struct sync_state *state = shard->state;
    (void)error;
    shard_contribute(shard, gradient);
    barrier_arrive(&state->contributed, gradient->worker, gradient->step);
    return OK;
}

static bool is_left(const struct sync_state *state, int worker, long round) {
    return barrier_has(&state->contributed, worker, round) && !barrier_has(&state->stepped, worker, round);
}

/* Steps the shares of those who have contributed a gradient and were lost then. Their gradients are in the
 * mean of every share, so they are let go after that. */
static void step_left_shares(struct shard *shard, int worker, long round, long version) {
    struct sync_state *state = shard->state;
    const int workers = shard->store->settings.roster->workers;
    for (int w = 0; w < workers; w++) {
        int shares = 0;
        const int share = barrier_rank(&state->contributed, w, round, &shares);
        if (is_left(state, w, round)) shard_step_share(shard, worker, share, shares);
    }
    for (int w = 0; w < workers; w++)
        if (is_left(state, w, round))
            shard_done(shard, atomic_exchange(&shard->contributed[w], NULL), version);
}

/* All see the same: who was lost arrives nowhere any more. *first: this worker ends the round. */
static int recover(struct shard *shard, int worker, long round, long version, bool *first,
                   struct error *error) {
    struct sync_state *state = shard->state;
    int contributed = 0, stepped = 0;
    *first = barrier_rank(&state->stepped, worker, round, &stepped) == 0;
    barrier_rank(&state->contributed, worker, round, &contributed);
    if (contributed == stepped) return OK;
    if (*first) step_left_shares(shard, worker, round, version);
    barrier_arrive(&state->recovered, worker, round);
    return barrier_wait(&state->recovered, worker, round, error);
}

static int sync_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    struct sync_state *state = shard->state;
    const int worker = side->worker;
    const long round = side->step - 1;
    if (round < 0) side->version[shard->index] = atomic_load(&shard->version);
    if (round < 0 || barrier_is_open(&state->stepped, round)) return OK;
    RETURN_IF(barrier_wait(&state->contributed, worker, round, error));
    const long version = atomic_load(&shard->version);
    bool first = false;
    int shares = 0;
    const int share = barrier_rank(&state->contributed, worker, round, &shares);
    shard_step_share(shard, worker, share, shares);
    barrier_arrive(&state->stepped, worker, round);
    RETURN_IF(barrier_wait(&state->stepped, worker, round, error));
    RETURN_IF(recover(shard, worker, round, version, &first, error));
    strategy_await_stepped(shard, side);
    /* Nobody reads the shard's version again before the first worker has contributed its next gradient: the
     * others count for themselves. So it may be counted while a device still steps: who reads the weights has
     * followed. */
    if (first) shard_end_round(shard, version + 1);
    side->version[shard->index] = version + 1;
    shard_done(shard, atomic_exchange(&shard->contributed[worker], NULL), version);
    return OK;
}

static const struct traits sync_traits = {
    .rounds = true,
    .merged = true,
    .exactly_once = true,
    .repeatable = true,
    .like_serial = true,
    .weighs = true,
    .own_update_in_reply = true,
    .whole_reads = true,
    .lock_free = true,
    .staleness_bound = strategy_never_stale,
    .bytes_moved = strategy_bytes_none,
};

const struct strategy strategy_sync = {
    .plugin = {.name = "sync", .help = "all workers step together, with the mean of their gradients"},
    .traits = &sync_traits,
    .open = sync_open,
    .close = sync_close,
    .push = sync_push,
    .pull = sync_pull,
};
