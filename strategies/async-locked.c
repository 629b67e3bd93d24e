/* async-locked: a worker continues at once with the newest complete copy; its gradient is applied later.
 *
 * Who applies:   the shard's server, in order of arrival.
 * What guards:   the shard's lock: a worker copies the weights, or the server changes them; never both.
 * How old:       what the others have pushed meanwhile, and up to `slots` gradients of the worker's own that
 *                are still in its mailbox.
 * Bytes/step:    the weights, once, when they have changed. The gradient is read where it lies.
 * Reproducible:  not. */
#include "../src/store/strategy.h"

static const struct traits locked_traits = {
    .own_weights = true,
    .servers = true,
    .exactly_once = true,
    .whole_reads = true,
    .bytes_moved = strategy_bytes_changed,
};

const struct strategy strategy_async_locked = {
    .plugin = {.name = "async-locked",
               .help = "workers go on at once, with the newest complete copy of the weights"},
    .traits = &locked_traits,
    .push = shard_post,
    .pull = strategy_read_locked,
    .serve = strategy_serve_locked,
};
