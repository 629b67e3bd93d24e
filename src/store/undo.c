/* The last round of a store whose other slices are in other processes. A gradient that its worker sent to
 * some of them only, because it was killed in between, has made a round of those and not of the others; the
 * others cannot make up for it, so it is taken back where it was made. What a share of a slice was before it
 * is stepped is kept for that, in the memory where the shard lives. */
#include "device_state.h"

int undo_open(struct shard *shard, struct error *error) {
    const struct store *store = shard->store;
    const int workers = store->settings.roster->workers;
    if (!store->settings.undoes) return OK;
    for (int v = 0; v < store->host.count; v++)
        RETURN_IF(shard_open_vector(shard, &shard->former[v], "the slice before its last round", error));
    return memory_array(&shard->former_shares, workers, "shares of a round", error);
}

void undo_close(struct shard *shard) {
    for (int v = 0; v < STATE_VECTORS; v++) shard_close_vector(shard, shard->former[v]);
    memory_free(shard->former_shares);
}

void undo_keep(struct shard *shard, int share, size_t begin, size_t end) {
    const struct state *state = &shard->home->state;
    atomic_store(&shard->in_round, true);
    if (!shard->former_shares) return;
    if (share >= shard->store->settings.roster->workers) { /* a strategy of somebody else's cuts finer */
        atomic_store(&shard->not_kept, atomic_load(&shard->version) + 1);
        return;
    }
    for (int v = 0; v < state->count; v++)
        home_queue_copy(shard, shard->former[v] + (begin - shard->begin), state->vector[v].at + begin,
                        end - begin);
    shard->former_shares[share] =
        (struct former_share){.begin = begin, .end = end, .round = atomic_load(&shard->version) + 1};
}

/* Whether there is all that the round after `version` has stepped; of one that has ended, that is the slice.
 */
static bool is_kept(const struct shard *shard, long version) {
    size_t floats = 0;
    if (!shard->former_shares || atomic_load(&shard->not_kept) == version + 1) return false;
    for (int w = 0; w < shard->store->settings.roster->workers; w++) {
        const struct former_share *share = &shard->former_shares[w];
        if (share->round == version + 1) floats += share->end - share->begin;
    }
    return floats == shard->end - shard->begin || atomic_load(&shard->version) == version;
}

static void take_back(struct shard *shard, long version) {
    const struct state *state = &shard->home->state;
    for (int w = 0; w < shard->store->settings.roster->workers; w++) {
        const struct former_share *share = &shard->former_shares[w];
        for (int v = 0; v < state->count && share->round == version + 1; v++)
            home_queue_copy(shard, state->vector[v].at + share->begin,
                            shard->former[v] + (share->begin - shard->begin), share->end - share->begin);
    }
    home_finish(shard->store, shard->home->device);
    atomic_store(&shard->version, version);
    atomic_store(&shard->in_round, false);
}

int store_undo(struct store *store, long version, struct error *error) {
    for (int s = 0; s < store->settings.shards; s++) {
        struct shard *shard = &store->shards[s];
        const long now = atomic_load(&shard->version);
        if (now == version && !atomic_load(&shard->in_round)) continue;
        if (now < version || !is_kept(shard, version))
            return error_set(error, ERROR_PEER, "shard %d is at update %ld, expected %ld",
                             store->settings.shard_first + s, now, version);
        take_back(shard, version);
    }
    return store_check(store, error);
}
