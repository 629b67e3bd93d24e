/* self-apply: no servers: each worker steps the weights with its own gradient, one worker at a time. */
#include "../src/store/strategy.h"

static int self_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    (void)error;
    shard_lock(shard, gradient->worker);
    const long version = shard_apply(shard, gradient);
    lock_release(&shard->lock);
    shard_done(shard, gradient, version);
    return OK;
}

static const struct traits self_traits = {
    .own_weights = true,  /* what it needs: a copy of the weights for each worker */
    .exactly_once = true, /* what it promises, from here on */
    .own_update_in_reply = true,
    .whole_reads = true,
    .bytes_moved = strategy_bytes_changed,
};

const struct strategy strategy_self_apply = {
    .plugin = {.name = "self-apply", .help = "each worker applies its own gradient, one at a time"},
    .traits = &self_traits,
    .push = self_push,
    .pull = strategy_read_locked,
};
