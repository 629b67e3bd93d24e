/* The verbs of a shard, all but the racy ones (racy.c). */
#include "store.h"

#include "home.h"
#include "window.h"

/* Steps weights, moments and average of [begin, end) of the flat vector, inside one span. gradient[0] belongs
 * to `begin`. */
static void step_window(const struct shard *shard, const struct span *span, size_t begin, size_t end,
                        const float *gradient, float rate, long update) {
    const struct store *store = shard->store;
    struct step step = {.floats = end - begin,
                        .weights = store->weights + begin,
                        .gradient = gradient,
                        .moments = {store->moments[0] ? store->moments[0] + begin : NULL,
                                    store->moments[1] ? store->moments[1] + begin : NULL},
                        .update = update};
    window_step(store, span, &step, rate, store->average ? store->average + begin : NULL);
}

long shard_apply(struct shard *shard, const struct gradient *gradient) {
    const long version = atomic_load_explicit(&shard->version, memory_order_relaxed);
    const float rate = store_rate(shard->store, version);
    if (shard->home) {
        const float *values = home_bring(shard, gradient->worker, gradient->values, shard->begin, shard->end);
        home_follow_reads(shard);
        home_step(shard, shard->home->device, &shard->home->vectors, values, shard->begin, shard->end, rate,
                  version + 1, false);
        home_finish(shard->store, shard->home->device);
        atomic_store(&shard->version, version + 1);
        return version;
    }
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        step_window(shard, span, span->begin, span->end, gradient->values + span->begin, rate, version + 1);
    }
    atomic_store(&shard->version, version + 1);
    return version;
}

void shard_lock(struct shard *shard, int worker) {
    lock_take_as(&shard->lock, shard->store->settings.roster, worker, "the lock of a shard");
}

void shard_lay(struct shard *shard, struct gradient *gradient) {
    atomic_store(&shard->laid[gradient->worker], gradient);
}

enum { BLOCK = 2048 }; /* floats of the mean at a time: 8 KB, stays in the first cache */

/* mean[0..end-begin) = the laid gradients' mean over [begin, end), weighted by examples, added in roster
 * order. */
static void mean_of_laid(const struct shard *shard, size_t begin, size_t end, float examples,
                         float *restrict mean) {
    const int workers = shard->store->settings.roster->workers;
    bool first = true;
    for (int w = 0; w < workers; w++) {
        const struct gradient *gradient = atomic_load_explicit(&shard->laid[w], memory_order_relaxed);
        if (!gradient || gradient->examples == 0) continue;
        const float weight = (float)gradient->examples / examples;
        const float *restrict values = gradient->values + begin;
        if (first)
            for (size_t i = 0; i < end - begin; i++) mean[i] = weight * values[i];
        else
            for (size_t i = 0; i < end - begin; i++) mean[i] += weight * values[i];
        first = false;
    }
}

size_t shard_border(const struct shard *shard, int share, int shares) {
    const size_t lines = (shard->end - shard->begin) / LINE_FLOATS;
    return shard->begin + lines * (size_t)share / (size_t)shares * LINE_FLOATS;
}

/* The same mean and step, where the shard lives on a device. */
static void step_share_at_home(struct shard *shard, size_t begin, size_t end, float examples, float rate,
                               long number) {
    enum { MOST = 1024 };
    struct store *store = shard->store;
    const int workers = store->settings.roster->workers;
    const float *values[MOST];
    float weight[MOST];
    int count = 0;
    for (int w = 0; w < workers && count < MOST; w++) {
        const struct gradient *gradient = atomic_load_explicit(&shard->laid[w], memory_order_relaxed);
        if (!gradient || gradient->examples == 0) continue;
        values[count] = home_bring(shard, w, gradient->values, begin, end);
        weight[count++] = (float)gradient->examples / examples;
    }
    const struct home *home = shard->home;
    home_follow_reads(shard);
    home_mean(shard, values, weight, count, begin, end, home->mean);
    home_step(shard, home->device, &home->vectors, home->mean, begin, end, rate, number, false);
}

/* The whole window at once: one worker has the devices of all make the mean, the others wait at the gate. */
static void step_together(struct shard *shard, float rate, long number) {
    const struct home *home = shard->home;
    group_mean(shard);
    home_step(shard, home->device, &home->vectors, home->mean, shard->begin, shard->end, rate, number, false);
    home_stepped(shard, 0);
}

void shard_step_share(struct shard *shard, int share, int shares) {
    const int workers = shard->store->settings.roster->workers;
    const size_t begin = shard_border(shard, share, shares), end = shard_border(shard, share + 1, shares);
    const long version = atomic_load_explicit(&shard->version, memory_order_relaxed);
    const float rate = store_rate(shard->store, version);
    _Alignas(64) float mean[BLOCK];
    int examples = 0;
    for (int w = 0; w < workers; w++) {
        const struct gradient *gradient = atomic_load_explicit(&shard->laid[w], memory_order_relaxed);
        if (gradient) examples += gradient->examples;
    }
    if (examples == 0) return;
    if (group_takes(shard)) {
        if (share == 0) step_together(shard, rate, version + 1);
        return;
    }
    if (shard->home) {
        step_share_at_home(shard, begin, end, (float)examples, rate, version + 1);
        home_stepped(shard, share);
        return;
    }
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        const size_t from = span->begin > begin ? span->begin : begin, to = span->end < end ? span->end : end;
        for (size_t at = from; at < to; at += BLOCK) {
            const size_t stop = to - at < BLOCK ? to : at + BLOCK;
            mean_of_laid(shard, at, stop, (float)examples, mean);
            step_window(shard, span, at, stop, mean, rate, version + 1);
        }
    }
}

void shard_end_round(struct shard *shard) {
    atomic_fetch_add(&shard->version, 1);
}

bool shard_read(const struct shard *shard, const struct device *to, float *weights, long *version) {
    const long now = atomic_load(&shard->version);
    if (now == *version) return false;
    const struct copies vectors = shard_vectors(shard);
    home_copy(shard, to, weights + shard->begin, vectors.weights + shard->begin, shard->end - shard->begin);
    *version = now;
    return true;
}

int shard_post(struct shard *shard, struct gradient *gradient, struct error *error) {
    const struct mail mail = {.worker = gradient->worker, .slot = gradient->slot};
    if (!mailbox_send(&shard->mailbox, mail))
        return error_set(error, ERROR_INTERNAL,
                         "mailbox of shard %d is full, which a sender must not let happen", shard->index);
    event_post(shard->mail);
    return OK;
}

static void raise_to(_Atomic long *value, long least) {
    long now = atomic_load(value);
    while (now < least && !atomic_compare_exchange_weak(value, &now, least)) {
    }
}

/* The slot may be filled anew as soon as it is released. */
static void let_go(struct shard *shard, struct gradient *gradient) {
    atomic_store(&shard->tallies[gradient->worker].steps, gradient->step + 1);
    store_release(shard->store, gradient);
    event_post(&shard->applied);
}

void shard_done(struct shard *shard, struct gradient *gradient, long version_before) {
    const long staleness = version_before - gradient->version[shard->index];
    struct tally *tally = &shard->tallies[gradient->worker];
    if (gradient->examples > 0) {
        tally->updates++;
        tally->staleness[staleness < STALENESS_BINS - 1 ? staleness : STALENESS_BINS - 1]++;
        tally->staleness_sum += (double)staleness;
        if (staleness > tally->staleness_max) tally->staleness_max = staleness;
    }
    raise_to(&gradient->staleness, staleness);
    long reached = atomic_load(&gradient->applied_version);
    while ((reached == 0 || reached > version_before + 1) &&
           !atomic_compare_exchange_weak(&gradient->applied_version, &reached, version_before + 1)) {
    }
    let_go(shard, gradient);
}

void shard_drop(struct shard *shard, struct gradient *gradient) {
    shard->tallies[gradient->worker].dropped++;
    atomic_store(&gradient->dropped, true);
    let_go(shard, gradient);
}
