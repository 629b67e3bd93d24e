/* The worker half that most strategies share: send the gradient to every shard, take the weights from every
 * shard. */
#include "strategy.h"

int strategy_send_all(struct worker_side *side, struct gradient *gradient, struct error *error) {
    const int shards = side->store->settings.shards;
    RETURN_IF(store_wait_room(side->store, side->worker, error));
    atomic_store(&gradient->left, shards + 2); /* the shards, the worker, and store_release's own */
    for (int s = 0; s < shards; s++)
        RETURN_IF(side->strategy->push(&side->store->shards[s], gradient, error));
    return OK;
}

int strategy_take_all(struct worker_side *side, struct error *error) {
    for (int s = 0; s < side->store->settings.shards; s++)
        RETURN_IF(side->strategy->pull(&side->store->shards[s], side, error));
    return OK;
}
