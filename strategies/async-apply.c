/* async-apply: each worker waits only for its own gradient, and gets weights that include it.
 *
 * Who applies:   the shard's server, in order of arrival.
 * What guards:   the shard's lock: a worker copies the weights, or the server changes them.
 * How old:       what the others have had applied since this worker read its weights: about W-1 updates.
 * Bytes/step:    the weights, once: its own update always changes them. The gradient is read where it lies.
 * Reproducible:  with one worker, bit for bit equal to serial training; else not.
 *
 * Source: the parameter server of Dean et al., "Large scale distributed deep networks", NIPS 2012 (Downpour).
 */
#include "../src/store/strategy.h"

static int apply_pull(struct shard *shard, struct worker_side *side, struct error *error) {
    RETURN_IF(shard_await(shard, side->worker, side->worker, side->step,
                          "the server, for its own gradient to be applied", error));
    return strategy_read_locked(shard, side, error);
}

static const struct traits apply_traits = {
    .own_weights = true,
    .servers = true,
    .exactly_once = true,
    .own_update_in_reply = true,
    .whole_reads = true,
    .bytes_moved = strategy_bytes_changed,
};

const struct strategy strategy_async_apply = {
    .plugin = {.name = "async-apply", .help = "each worker waits only until its own gradient is applied"},
    .traits = &apply_traits,
    .push = shard_post,
    .pull = apply_pull,
    .serve = strategy_serve_locked,
};
