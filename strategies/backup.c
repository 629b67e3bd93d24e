/* backup: sync with the first W-b gradients of a round; those that come late are dropped.
 *
 * Who applies:   the worker whose gradient completes the round, with the mean of those that are there, added
 *                in roster order and weighted by examples.
 * What guards:   the shard's lock, for contributing, stepping and copying.
 * How old:       a gradient that is applied is never stale; one of an earlier round is dropped and counted.
 * Bytes/step:    the weights, once, when they have changed: a slow worker still computes on its copy while a
 *                round ends without it. The gradients are read where they lie.
 * Reproducible:  with one worker, bit for bit equal to serial training; else not: who is first decides.
 *
 * Source: Chen et al., "Revisiting distributed synchronous SGD", ICLR workshop 2016. */
#include <stdio.h>

#include "../src/store/quorum.h"

struct backup_settings {
    int backups;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "backups", struct backup_settings, backups, .fallback = "1", .least = 0, .most = 1000000,
               .unit = "workers",
               .help = "workers that a round does not wait for (it always waits for one gradient)"),
    {0},
};

static int backup_open(struct shard *shard, const void *settings, struct error *error) {
    const int backups = ((const struct backup_settings *)settings)->backups;
    struct quorum *quorum = NULL;
    RETURN_IF(memory_array(&quorum, 1, "the round of a shard", error));
    shard->state = quorum;
    return quorum_open(shard, roster_active_workers(shard->store->settings.roster) - backups, false, error);
}

static void backup_close(struct shard *shard) {
    quorum_close(shard);
    memory_free(shard->state);
    shard->state = NULL;
}

/* One worker waits for nobody. */
static void backup_comes_to(const void *settings, int workers, char *out, size_t bytes) {
    const int backups = ((const struct backup_settings *)settings)->backups;
    if (backups >= workers && workers > 1)
        snprintf(out, bytes, "backups=%d is as backups=%d", backups, workers - 1);
}

static const struct traits backup_traits = {
    .own_weights = true,
    .merged = true,
    .drops = true,
    .weighs = true,
    .whole_reads = true,
    .staleness_bound = strategy_never_stale,
    .bytes_moved = strategy_bytes_changed,
};

const struct strategy strategy_backup = {
    .plugin = {.name = "backup",
               .help = "sync without waiting for the slowest workers, whose gradients are dropped",
               .options = rows,
               .settings_bytes = sizeof(struct backup_settings)},
    .traits = &backup_traits,
    .comes_to = backup_comes_to,
    .open = backup_open,
    .close = backup_close,
    .push = quorum_push,
    .pull = quorum_pull,
    .rest = quorum_rest,
};
