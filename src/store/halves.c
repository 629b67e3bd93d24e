/* The halves that strategies share: send the gradient to every shard and take the weights from every shard;
 * post to a server, serve, read. */
#include "device_state.h"
#include "strategy.h"

const struct traits *strategy_traits(const struct strategy *strategy, const void *settings) {
    return strategy->traits_of ? strategy->traits_of(settings) : strategy->traits;
}

int strategy_send_all(struct worker_side *side, struct gradient *gradient, struct error *error) {
    const int shards = side->store->settings.shards;
    RETURN_IF(store_wait_room(side->store, side->worker, error));
    atomic_store(&gradient->left, shards + 2); /* the shards, the worker, and store_release's own */
    for (int s = 0; s < shards; s++)
        RETURN_IF(side->strategy->push(&side->store->shards[s], gradient, error));
    return store_check(side->store, error);
}

int strategy_take_all(struct worker_side *side, struct error *error) {
    for (int s = 0; s < side->store->settings.shards; s++)
        RETURN_IF(side->strategy->pull(&side->store->shards[s], side, error));
    return store_check(side->store, error);
}

static void settle_all(const struct worker_side *side) {
    struct store *store = side->store;
    const struct device *own = store_own_device(store, side->worker);
    for (int h = 0; h < store->home_count; h++) home_finish(store, store->homes[h].device);
    home_finish(store, own);
}

int strategy_rest_all(struct worker_side *side, struct error *error) {
    if (!side->strategy->rest) RETURN_IF(strategy_take_all(side, error));
    for (int s = 0; side->strategy->rest && s < side->store->settings.shards; s++)
        RETURN_IF(side->strategy->rest(&side->store->shards[s], side, error));
    settle_all(side); /* nothing is under way while all pause */
    return store_check(side->store, error);
}

int strategy_serve(struct shard *shard, struct gradient *gradient, struct error *error) {
    const bool empty = gradient->examples == 0;
    shard_done(shard, gradient, empty ? atomic_load(&shard->version) : shard_apply(shard, gradient));
    return store_check(shard->store, error);
}

int strategy_serve_locked(struct shard *shard, struct gradient *gradient, struct error *error) {
    long version = atomic_load(&shard->version);
    if (gradient->examples > 0) {
        lock_take(&shard->lock);
        version = shard_apply(shard, gradient);
        lock_release(&shard->lock);
    }
    shard_done(shard, gradient, version);
    return store_check(shard->store, error);
}

/* From one device to another, or the same, it is only queued. */
void strategy_count_copy(const struct shard *shard, struct worker_side *side) {
    side->bytes_moved += strategy_slice_bytes(shard);
    side->queued = side->queued || device_apart(store_own_device(shard->store, side->worker));
}

int strategy_read_locked(struct shard *shard, struct worker_side *side, struct error *error) {
    (void)error;
    shard_lock(shard, side->worker);
    const bool changed = shard_read(shard, side->device, side->weights, &side->version[shard->index]);
    if (!changed) {
        lock_release(&shard->lock);
        return OK;
    }
    shard_unlock(shard, side->worker);
    strategy_count_copy(shard, side);
    return OK;
}

int strategy_read_racy(struct shard *shard, struct worker_side *side, struct error *error) {
    (void)error;
    if (shard_read_racy(shard, side->device, side->weights, &side->version[shard->index]))
        strategy_count_copy(shard, side);
    return OK;
}

void strategy_await_stepped(struct shard *shard, struct worker_side *side) {
    shard_await_stepped(shard, side->worker);
    side->queued = side->queued || device_apart(store_own_device(shard->store, side->worker));
}

long long strategy_bytes_none(const void *settings, long long bytes, int moments, long steps, long changed) {
    (void)settings, (void)bytes, (void)moments, (void)steps, (void)changed;
    return 0;
}

long long strategy_bytes_changed(const void *settings, long long bytes, int moments, long steps,
                                 long changed) {
    (void)settings, (void)moments, (void)steps;
    return changed * bytes;
}

long strategy_never_stale(const void *settings, int workers, int slots) {
    (void)settings, (void)workers, (void)slots;
    return 0;
}
