/* sharded: several parameter servers, each with its part of the weights, each answering separately.
 *
 * Who applies:   the server of each shard, in order of arrival at that shard.
 * What guards:   nothing, as in async-lockfree.
 * How old:       as in async-lockfree, but shard by shard: a worker may have one shard's newest weights and
 *                another's older ones, and each shard counts its own versions.
 * Bytes/step:    of each shard its slice, once, when they have changed.
 * Reproducible:  not.
 *
 * Source: Chilimbi et al., "Project Adam", OSDI 2014. */
#include "../src/store/strategy.h"

struct sharded_settings {
    int shards;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "shards", struct sharded_settings, shards, .fallback = "2", .least = 1, .most = 4096,
               .help = "pieces of the weights, each with a server; at most one per worker"),
    {0},
};

static int shards_of(const void *settings) {
    return ((const struct sharded_settings *)settings)->shards;
}

static const struct traits sharded_traits = {
    .own_weights = true,
    .servers = true,
    .exactly_once = true,
    .lock_free = true,
    .bytes_moved = strategy_bytes_changed,
};

const struct strategy strategy_sharded = {
    .plugin = {.name = "sharded",
               .help = "several parameter servers, each with a part of the weights",
               .options = rows,
               .settings_bytes = sizeof(struct sharded_settings)},
    .traits = &sharded_traits,
    .shards = shards_of,
    .push = shard_post,
    .pull = strategy_read_racy,
    .serve = strategy_serve,
};
