/* adasync: an update is the mean of the first K gradients that are there, however old; K grows as the loss
 * falls. K-async SGD: with K=1 asynchronous, with K=W as sync.
 *
 * Who applies:   the worker whose gradient is the K-th, with the mean of the K, added in roster order and
 *                weighted by examples. These K workers go on with the new weights; the others still compute,
 *                and their gradients count in a later update. With adapt=loss, K is k sqrt(first loss / loss
 *                now): stale gradients teach fast at first, and hold up the end.
 * What guards:   the shard's lock, for contributing, stepping and copying.
 * How old:       what the others have had applied meanwhile. The version counts gradients, not updates, so
 *                ages compare with those of the other asynchronous strategies, and a schedule knows where
 *                it ends whatever K comes to.
 * Bytes/step:    the weights, once: its own update always changes them. The gradients are read where they
 *                lie.
 * Reproducible:  with one worker, bit for bit equal to serial training; else not: who is first decides.
 *
 * The losses are in no checkpoint: who goes on from one measures the first loss anew, and K begins with k.
 *
 * Sources: Dutta et al., "Slow and stale gradients can win the race", AISTATS 2018 (K-async SGD) and IEEE
 * JSAIT 2021 (AdaSync). */
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "../src/store/quorum.h"

enum adapt { ADAPT_NONE, ADAPT_LOSS };

struct adasync_settings {
    int k, adapt;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "k", struct adasync_settings, k, .fallback = "1", .least = 1, .most = 1000000,
               .unit = "gradients",
               .help = "gradients of an update, or of the first ones (at most one per worker)"),
    OPTION_ROW(CHOICE, "adapt", struct adasync_settings, adapt, .fallback = "loss", .choices = "none|loss",
               .help = "loss: wait for more of them as the loss falls; none: always for as many"),
    {0},
};

struct adasync_state {
    struct quorum quorum;
    long losses;          /* seen so far; this and the next two under the lock */
    double first, recent; /* mean of the first ones, one per worker; moving mean of the last ones */
};

static int adasync_open(struct shard *shard, const void *settings, struct error *error) {
    struct adasync_state *state = NULL;
    RETURN_IF(memory_array(&state, 1, "the round of a shard", error));
    shard->state = state;
    return quorum_open(shard, ((const struct adasync_settings *)settings)->k, true, error);
}

static void adasync_close(struct shard *shard) {
    quorum_close(shard);
    memory_free(shard->state);
    shard->state = NULL;
}

/* Under the lock. A loss of 0 or less says nothing of what is left to learn. */
static void adapt(struct shard *shard, double loss) {
    const struct adasync_settings *settings = choice_settings(shard->store->settings.strategy);
    const int workers = shard->store->settings.roster->workers;
    struct adasync_state *state = shard->state;
    const long seen = ++state->losses;
    if (seen <= workers) state->first += (loss - state->first) / (double)seen;
    state->recent += (loss - state->recent) / (double)(seen < 2L * workers ? seen : 2L * workers);
    if (seen < workers || !(state->first > 0.0) || !(state->recent > 0.0)) return;
    const double k = settings->k * sqrt(state->first / state->recent);
    const double most = settings->k > workers ? settings->k : workers;
    atomic_store(&state->quorum.needed, (int)fmin(fmax(k, settings->k), most));
}

static int adasync_push(struct shard *shard, struct gradient *gradient, struct error *error) {
    const struct adasync_settings *settings = choice_settings(shard->store->settings.strategy);
    if (settings->adapt == ADAPT_LOSS) {
        shard_lock(shard, gradient->worker);
        adapt(shard, (double)gradient->loss);
        lock_release(&shard->lock);
    }
    return quorum_push(shard, gradient, error);
}

/* Where an update always waits for all. */
static long adasync_staleness(const void *settings, int workers, int slots) {
    const struct adasync_settings *adasync = settings;
    (void)slots;
    return adasync->k >= workers ? 0 : LONG_MAX;
}

static void adasync_comes_to(const void *settings, int workers, char *out, size_t bytes) {
    const int k = ((const struct adasync_settings *)settings)->k;
    if (k > workers && workers > 1) snprintf(out, bytes, "k=%d is as k=%d", k, workers);
}

static const struct traits traits[] = {
    [ADAPT_NONE] = {.own_weights = true,
                    .joint = true,
                    .own_update_in_reply = true,
                    .whole_reads = true,
                    .staleness_bound = adasync_staleness,
                    .bytes_moved = strategy_bytes_changed},
    [ADAPT_LOSS] = {.own_weights = true,
                    .joint = true,
                    .own_update_in_reply = true,
                    .whole_reads = true,
                    .staleness_bound = adasync_staleness,
                    .bytes_moved = strategy_bytes_changed},
};

static const struct traits *adasync_traits(const void *settings) {
    return &traits[((const struct adasync_settings *)settings)->adapt];
}

static const char *const variants[] = {"adapt=loss", "k=2,adapt=none", NULL};

const struct strategy strategy_adasync = {
    .plugin = {.name = "adasync",
               .help = "each update is the mean of the first K gradients; K grows as the loss falls",
               .options = rows,
               .settings_bytes = sizeof(struct adasync_settings)},
    .variants = variants,
    .traits_of = adasync_traits,
    .comes_to = adasync_comes_to,
    .open = adasync_open,
    .close = adasync_close,
    .push = adasync_push,
    .pull = quorum_pull,
    .rest = quorum_rest,
};
