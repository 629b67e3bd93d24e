/* sync: all workers step together on the mean of their gradients.
 *
 * Who applies:   every worker steps its own share of each shard with the mean gradient, added in roster order
 *                and weighted by examples.
 * What guards:   two gates a shard and round: all gradients are laid; all shares are stepped. A third where
 *                a worker was lost between the two: its share is stepped by another.
 * How old:       a gradient is never stale.
 * Bytes a step:  none are copied: a worker reads W gradients and writes 1/W of the weights, in place.
 * Reproducible:  bit for bit, and equal to one thread that computes the same W gradients in turn, adds them
 *                in roster order and steps once. */
#include "../src/store/strategy.h"

struct sync_state {
    struct gate laid, stepped, mended;
};

static int sync_open(struct shard *shard, const void *settings, struct error *error) {
    void *block = NULL;
    (void)settings;
    RETURN_IF(memory_zeroed(&block, 1, sizeof(struct sync_state), "gates of a shard", error));
    struct sync_state *state = shard->state = block;
    struct roster *roster = shard->store->settings.roster;
    RETURN_IF(gate_open(&state->laid, roster, "the gate where all gradients are laid", error));
    RETURN_IF(gate_open(&state->stepped, roster, "the gate where all shares are stepped", error));
    return gate_open(&state->mended, roster, "the gate where a lost worker's share is stepped", error);
}

static void sync_close(struct shard *shard) {
    struct sync_state *state = shard->state;
    if (!state) return;
    gate_close(&state->laid);
    gate_close(&state->stepped);
    gate_close(&state->mended);
    memory_free(state);
    shard->state = NULL;
}

static int sync_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    struct sync_state *state = shard->state;
    (void)error;
    shard_lay(shard, gradient);
    gate_arrive(&state->laid, gradient->worker, gradient->step);
    return OK;
}

static bool is_left(const struct sync_state *state, int worker, long round) {
    return gate_has(&state->laid, worker, round) && !gate_has(&state->stepped, worker, round);
}

/* Steps the shares of those who have laid a gradient and were lost then. Their gradients are in the mean of
 * every share, so they are let go after that. */
static void step_left_shares(struct shard *shard, long round, long version) {
    struct sync_state *state = shard->state;
    const int workers = shard->store->settings.roster->workers;
    for (int w = 0; w < workers; w++) {
        int shares = 0;
        const int share = gate_rank(&state->laid, w, round, &shares);
        if (is_left(state, w, round)) shard_step_share(shard, share, shares);
    }
    for (int w = 0; w < workers; w++)
        if (is_left(state, w, round)) shard_done(shard, atomic_exchange(&shard->laid[w], NULL), version);
}

/* All see the same: who was lost arrives nowhere any more. *first: this worker ends the round. */
static int mend(struct shard *shard, int worker, long round, long version, bool *first, struct error *error) {
    struct sync_state *state = shard->state;
    int laid = 0, stepped = 0;
    *first = gate_rank(&state->stepped, worker, round, &stepped) == 0;
    gate_rank(&state->laid, worker, round, &laid);
    if (laid == stepped) return OK;
    if (*first) step_left_shares(shard, round, version);
    gate_arrive(&state->mended, worker, round);
    return gate_wait(&state->mended, worker, round, error);
}

static int sync_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    struct sync_state *state = shard->state;
    const int worker = side->worker;
    const long round = side->step - 1;
    if (round < 0) side->version[shard->index] = atomic_load(&shard->version);
    if (round < 0 || gate_is_open(&state->stepped, round)) return OK;
    RETURN_IF(gate_wait(&state->laid, worker, round, error));
    const long version = atomic_load(&shard->version);
    bool first = false;
    int shares = 0;
    const int share = gate_rank(&state->laid, worker, round, &shares);
    shard_step_share(shard, share, shares);
    gate_arrive(&state->stepped, worker, round);
    RETURN_IF(gate_wait(&state->stepped, worker, round, error));
    RETURN_IF(mend(shard, worker, round, version, &first, error));
    strategy_follow(shard, side);
    /* Nobody reads the shard's version again before the first worker has laid its next gradient: the others
     * count for themselves. So it may be counted while a device still steps: who reads the weights has
     * followed. */
    if (first) shard_end_round(shard);
    side->version[shard->index] = version + 1;
    shard_done(shard, atomic_exchange(&shard->laid[worker], NULL), version);
    return OK;
}

static const struct traits sync_traits = {
    .rounds = true,
    .merged = true,
    .exactly_once = true,
    .repeatable = true,
    .like_serial = true,
    .own_update_in_reply = true,
    .whole_reads = true,
    .lock_free = true,
    .staleness_bound = strategy_never_stale,
    .bytes_moved = strategy_bytes_none,
};

const struct strategy strategy_sync = {
    .plugin = {.name = "sync", .help = "all workers step together on the mean of their gradients"},
    .traits = &sync_traits,
    .open = sync_open,
    .close = sync_close,
    .push = sync_push,
    .pull = sync_pull,
};
