/* sync: all workers step together on the mean of their gradients.
 *
 * Who applies:   every worker steps its own share of each shard with the mean gradient, added in roster order
 *                and weighted by examples.
 * What guards:   two gates a shard and round: all gradients are laid; all shares are stepped.
 * How old:       a gradient is never stale.
 * Bytes a step:  none are copied: a worker reads W gradients and writes 1/W of the weights, in place.
 * Reproducible:  bit for bit, and equal to one thread that computes the same W gradients in turn, adds them
 *                in roster order and steps once. */
#include "../src/store/strategy.h"

struct sync_state {
    struct gate laid, stepped;
};

static int sync_open(struct shard *shard, const void *settings, struct error *error) {
    void *block = NULL;
    (void)settings;
    RETURN_IF(memory_zeroed(&block, 1, sizeof(struct sync_state), "gates of a shard", error));
    struct sync_state *state = shard->state = block;
    struct roster *roster = shard->store->settings.roster;
    RETURN_IF(gate_open(&state->laid, roster, "the gate where all gradients are laid", error));
    return gate_open(&state->stepped, roster, "the gate where all shares are stepped", error);
}

static void sync_close(struct shard *shard) {
    struct sync_state *state = shard->state;
    if (!state) return;
    gate_close(&state->laid);
    gate_close(&state->stepped);
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

static int sync_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    struct sync_state *state = shard->state;
    const int worker = side->worker;
    const long round = side->step - 1;
    if (round < 0) side->version[shard->index] = atomic_load(&shard->version);
    if (round < 0 || gate_is_open(&state->stepped, round)) return OK;
    RETURN_IF(gate_wait(&state->laid, worker, round, error));
    const long version = atomic_load(&shard->version);
    int shares = 0;
    const int share = gate_rank(&state->laid, worker, round, &shares);
    shard_step_share(shard, share, shares);
    gate_arrive(&state->stepped, worker, round);
    RETURN_IF(gate_wait(&state->stepped, worker, round, error));
    /* Nobody reads the shard's version again before the first worker has laid its next gradient: the others
     * count for themselves. */
    if (share == 0) shard_end_round(shard);
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
