/* The verbs of strategies whose workers step copies of their own and average them now and then. */
#include <string.h>

#include "home.h"
#include "window.h"

static int moments_of(const struct shard *shard) {
    const struct choice *choice = shard->store->settings.optimizer;
    return ((const struct optimizer *)(const void *)choice->plugin)->moments;
}

void shard_step_own(struct shard *shard, const struct copies *copies, const struct gradient *gradient,
                    long version) {
    const struct store *store = shard->store;
    const float rate = store_rate(store, version);
    const struct device *device = store_own_device(store, gradient->worker);
    if (device) {
        home_step(shard, device, copies, gradient->values, shard->begin, shard->end, rate, version + 1,
                  false);
        home_finish(shard->store, device);
        return;
    }
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        struct step step = {.floats = span->end - span->begin,
                            .weights = copies->weights + span->begin,
                            .gradient = gradient->values + span->begin,
                            .update = version + 1};
        for (int m = 0; m < moments_of(shard); m++) step.moments[m] = copies->moments[m] + span->begin;
        window_step(store, span, &step, rate, copies->average ? copies->average + span->begin : NULL);
    }
}

enum { MOMENTS, WEIGHTS = 2, AVERAGE = 3 };

/* Vector number `vector` of the copies: a moment, the weights or their average. */
static float *vector_of(const struct copies *copies, int vector) {
    if (vector == AVERAGE) return copies->average;
    return vector == WEIGHTS ? copies->weights : copies->moments[vector];
}

/* out[floats] = the mean of that vector of the copies, from `begin` on. */
static void mean_of_copies(const struct copies *copies, int count, int vector, size_t begin, size_t floats,
                           float *restrict out) {
    int given = 0;
    for (int w = 0; w < count; w++) {
        if (!copies[w].weights) continue;
        const float *restrict from = vector_of(&copies[w], vector) + begin;
        if (given++ == 0)
            memcpy(out, from, floats * sizeof(float));
        else
            for (size_t i = 0; i < floats; i++) out[i] += from[i];
    }
    const float per = 1.0f / (float)given;
    for (size_t i = 0; i < floats && given > 1; i++) out[i] *= per;
}

/* The same of all vectors, where the shard lives on a device. What is brought there of one vector has been
 * used before the next one is, because both are queued. */
static void reduce_at_home(struct shard *shard, const struct copies *copies, size_t begin, size_t end) {
    enum { MOST = 1024 };
    struct store *store = shard->store;
    const struct copies own = shard_vectors(shard);
    for (int vector = MOMENTS; vector <= AVERAGE; vector++) {
        const float *values[MOST];
        float weight[MOST];
        int count = 0;
        if (!vector_of(&own, vector)) continue;
        for (int w = 0; w < store->settings.roster->workers && count < MOST; w++)
            if (copies[w].weights)
                values[count++] = home_bring(shard, w, vector_of(&copies[w], vector), begin, end);
        for (int i = 0; i < count; i++) weight[i] = 1.0f;
        home_mean(shard, values, weight, count, begin, end, vector_of(&own, vector));
        if (count > 1) home_scale(shard, vector_of(&own, vector), begin, end, 1.0f / (float)count);
    }
    home_finish(store, shard->home->device);
}

void shard_reduce_share(struct shard *shard, const struct copies *copies, int share, int shares) {
    const struct store *store = shard->store;
    const int workers = store->settings.roster->workers;
    const size_t begin = shard_border(shard, share, shares), end = shard_border(shard, share + 1, shares);
    if (shard->home) {
        reduce_at_home(shard, copies, begin, end);
        return;
    }
    mean_of_copies(copies, workers, WEIGHTS, begin, end - begin, store->weights + begin);
    for (int m = 0; m < moments_of(shard); m++)
        mean_of_copies(copies, workers, MOMENTS + m, begin, end - begin, store->moments[m] + begin);
    if (store->average) mean_of_copies(copies, workers, AVERAGE, begin, end - begin, store->average + begin);
}

static void copy_window(const struct shard *shard, float *to, const float *from) {
    const size_t floats = shard->end - shard->begin;
    if (!to || !from) return;
    if (shard->home)
        home_queue_copy(shard, to + shard->begin, from + shard->begin, floats);
    else
        memcpy(to + shard->begin, from + shard->begin, floats * sizeof *to);
}

void shard_copy(const struct shard *shard, const struct copies *copies) {
    const struct copies own = shard_vectors(shard);
    for (int vector = MOMENTS; vector <= AVERAGE; vector++)
        copy_window(shard, vector_of(copies, vector), vector_of(&own, vector));
    if (shard->home) home_finish(shard->store, shard->home->device); /* others may be offered them next */
}
