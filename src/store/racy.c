/* The racy verbs: the one place where two threads may touch the same weights at the same time, on purpose.
 *
 * This file alone is compiled without the thread sanitizer. What may go wrong: two workers that step the same
 * line at the same time both read the old value, and the one that writes first is lost; a reader may see a
 * window partly before and partly after an update. Single floats are never torn: they are aligned, and the
 * machine loads and stores them whole. How many updates are lost is measured: every update also adds 1 to the
 * shard's witness line, in the same loop, so updates minus witness is the number lost on one line. With
 * atomic steps what a step changes a weight by is added in one atomic addition, and no update of a weight is
 * lost; moments are overwritten as ever.
 *
 * Weights go through a small private buffer, a block at a time, so that optimizers never see shared memory.
 * In the simulated world a block is one cache line, with a scheduling point between reading and writing, so
 * updates are lost there too, the same ones for the same seed. */
#include "store.h"

#include "home.h"
#include "window.h"

enum { RACY_BLOCK = 256 }; /* floats between reading and writing in the real world: 1 KB */

static void racy_copy(float *restrict to, const float *restrict from, size_t floats) {
    for (size_t i = 0; i < floats; i++) to[i] = from[i];
}

static void add_atomically(float *weight, float change) {
    float seen, sum;
    __atomic_load(weight, &seen, __ATOMIC_RELAXED);
    do sum = seen + change;
    while (!__atomic_compare_exchange(weight, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

static void count_atomically(double *witness) {
    double seen, sum;
    __atomic_load(witness, &seen, __ATOMIC_RELAXED);
    do sum = seen + 1.0;
    while (!__atomic_compare_exchange(witness, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* Steps one block that lies in one span. With `witness`, it adds 1 to that line in the same breath. */
static void racy_block(struct shard *shard, const struct span *span, size_t begin, size_t end,
                       const struct gradient *gradient, float rate, long update, double *witness) {
    const struct store *store = shard->store;
    const size_t floats = end - begin;
    _Alignas(64) float weights[RACY_BLOCK], before[RACY_BLOCK], moments[2][RACY_BLOCK], average[RACY_BLOCK];
    struct step step = {
        .floats = floats, .weights = weights, .gradient = gradient->values + begin, .update = update};
    const double seen = witness ? *witness : 0.0;
    /* The next block is asked for now, and at once for writing: its lines are likely in another worker's
     * cache. */
    for (size_t i = end; i < end + floats; i += LINE_FLOATS) __builtin_prefetch(store->weights + i, 1);
    racy_copy(weights, store->weights + begin, floats);
    if (shard->atomic) racy_copy(before, weights, floats);
    for (int m = 0; m < 2; m++)
        if (store->moments[m]) {
            step.moments[m] = moments[m];
            racy_copy(moments[m], store->moments[m] + begin, floats);
        }
    if (store->average) racy_copy(average, store->average + begin, floats);
    world_yield(store->world);
    window_step(store, span, &step, rate, store->average ? average : NULL);
    if (shard->atomic)
        for (size_t i = 0; i < floats; i++)
            add_atomically(store->weights + begin + i, weights[i] - before[i]);
    else
        racy_copy(store->weights + begin, weights, floats);
    for (int m = 0; m < 2; m++)
        if (store->moments[m]) racy_copy(store->moments[m] + begin, moments[m], floats);
    if (store->average) racy_copy(store->average + begin, average, floats);
    if (witness && shard->atomic)
        count_atomically(witness);
    else if (witness)
        *witness = seen + 1.0;
}

/* Steps [begin, end) of the window, span by span and block by block. */
static void racy_sweep(struct shard *shard, size_t begin, size_t end, const struct gradient *gradient,
                       float rate, long update) {
    const size_t block = world_is_simulated(shard->store->world) ? LINE_FLOATS : RACY_BLOCK;
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        const size_t from = span->begin > begin ? span->begin : begin, to = span->end < end ? span->end : end;
        for (size_t at = from; at < to; at += block) {
            const size_t stop = to - at < block ? to : at + block;
            racy_block(shard, span, at, stop, gradient, rate, update,
                       stop == shard->end ? shard->witness : NULL);
        }
    }
}

/* Each worker begins its sweep at another place and goes round: workers whose steps take equally long fall
 * into step, and would otherwise follow each other through the same lines, which then move between their
 * caches one by one. */
long shard_apply_racy(struct shard *shard, const struct gradient *gradient) {
    const size_t lines = (shard->end - shard->begin) / LINE_FLOATS,
                 workers = (size_t)shard->store->settings.roster->workers;
    const size_t middle = shard->begin + lines * (size_t)gradient->worker / workers * LINE_FLOATS;
    const long seen = atomic_load(&shard->version);
    const float rate = store_rate(shard->store, seen);
    if (shard->home) {
        const float *values = home_bring(shard, gradient->worker, gradient->values, shard->begin, shard->end);
        home_step(shard, shard->home->device, &shard->home->vectors, values, shard->begin, shard->end, rate,
                  seen + 1, true);
        home_finish(shard->store, shard->home->device);
        atomic_fetch_add(&shard->racy_updates, 1);
        return atomic_fetch_add(&shard->version, 1);
    }
    racy_sweep(shard, middle, shard->end, gradient, rate, seen + 1);
    racy_sweep(shard, shard->begin, middle, gradient, rate, seen + 1);
    atomic_fetch_add(&shard->racy_updates, 1);
    return atomic_fetch_add(&shard->version, 1);
}

bool shard_read_racy(const struct shard *shard, const struct device *to, float *weights, long *version) {
    const long now = atomic_load(&shard->version);
    if (now == *version) return false;
    if (shard->home || to) {
        const struct copies vectors = shard_vectors(shard);
        home_copy(shard, to, weights + shard->begin, vectors.weights + shard->begin,
                  shard->end - shard->begin);
        *version = now;
        return true;
    }
    const size_t block = world_is_simulated(shard->store->world) ? LINE_FLOATS : shard->end - shard->begin;
    for (size_t at = shard->begin; at < shard->end; at += block) {
        racy_copy(weights + at, shard->store->weights + at,
                  shard->end - at < block ? shard->end - at : block);
        world_yield(shard->store->world);
    }
    *version = now;
    return true;
}
