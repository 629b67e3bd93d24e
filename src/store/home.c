/* Where a store's vectors live: in the host's memory, or in that of a device. See home.h. */
#include "home.h"

#include <string.h>

#include "../device/link.h"

/* --- failures --- */

static void remember(struct store *store, int code, const struct error *error) {
    if (code == OK || atomic_exchange(&store->failing, true)) return;
    store->failure = *error;
    atomic_store(&store->failed, true);
}

int store_check(const struct store *store, struct error *error) {
    if (!atomic_load_explicit(&store->failed, memory_order_acquire)) return OK;
    return error_set(error, store->failure.code, "%s", store->failure.words);
}

/* --- vectors --- */

bool store_shares_memory(const struct store *store, const struct device *device) {
    const struct device *home = store->home;
    if (!home) return !device->backend->copy;
    return device->backend == home->backend && device->label == home->label;
}

int store_vector(const struct store *store, float **out, const char *what, struct error *error) {
    const size_t floats = store->settings.layout->floats;
    const struct device *home = store->home, *reader = store->settings.reader;
    void *block = NULL;
    *out = NULL;
    if (home)
        RETURN_IF(home->backend->allocate(home, &block, floats * sizeof **out, what, error));
    else if (reader)
        RETURN_IF(reader->backend->allocate_host(reader, &block, floats * sizeof **out, what, error));
    else
        RETURN_IF(memory_zeroed(&block, floats, sizeof **out, what, error));
    *out = block;
    return OK;
}

void store_vector_free(const struct store *store, float *vector) {
    const struct device *home = store->home, *reader = store->settings.reader;
    if (!vector) return;
    if (home)
        home->backend->release(home, vector);
    else if (reader)
        reader->backend->release_host(reader, vector);
    else
        memory_free(vector);
}

static int open_mirror(const struct store *store, const float *vector, float **mirror, struct error *error) {
    void *block = NULL;
    if (!vector) return OK;
    RETURN_IF(memory_zeroed(&block, store->settings.layout->floats, sizeof **mirror,
                            "the host's copy of a vector", error));
    *mirror = block;
    return OK;
}

int store_open_host(struct store *store, struct error *error) {
    if (!store->home) {
        store->host = store_vectors(store);
        return OK;
    }
    RETURN_IF(store_vector(store, &store->mean, "the mean of a round", error));
    RETURN_IF(open_mirror(store, store->weights, &store->host.weights, error));
    for (int m = 0; m < 2; m++)
        RETURN_IF(open_mirror(store, store->moments[m], &store->host.moments[m], error));
    return open_mirror(store, store->average, &store->host.average, error);
}

void store_close_host(struct store *store) {
    if (!store->home) return;
    store_vector_free(store, store->mean);
    memory_free(store->host.weights);
    for (int m = 0; m < 2; m++) memory_free(store->host.moments[m]);
    memory_free(store->host.average);
}

/* Every vector there is, between the device's memory and the host's. */
static int exchange(const struct store *store, bool fetch, struct error *error) {
    const struct copies away = store_vectors(store), *host = &store->host;
    float *const there[] = {away.weights, away.moments[0], away.moments[1], away.average};
    float *const here[] = {host->weights, host->moments[0], host->moments[1], host->average};
    const size_t bytes = store->settings.layout->floats * sizeof(float);
    const struct device *home = store->home;
    for (int v = 0; home && v < 4; v++)
        if (there[v])
            RETURN_IF(home->backend->copy(home, fetch ? here[v] : there[v], fetch ? there[v] : here[v], bytes,
                                          error));
    return OK;
}

int store_fetch(const struct store *store, struct error *error) {
    return exchange(store, true, error);
}

int store_send(const struct store *store, struct error *error) {
    return exchange(store, false, error);
}

/* --- the verbs' work --- */

static const struct optimizer *optimizer_of(const struct store *store) {
    return (const struct optimizer *)(const void *)store->settings.optimizer->plugin;
}

static struct update update_of(const struct store *store, const struct span *span, float rate, long number) {
    struct update update = {.rule = UPDATE_NONE};
    if (span->kind == RANGE_TRAINABLE)
        optimizer_of(store)->formula(store->settings.optimizer->settings, &update, number);
    else if (span->kind == RANGE_STATISTIC)
        update.rule = UPDATE_SUBTRACT;
    update.rate = rate * span->rate_multiplier;
    update.decay = span->decay;
    if (store->average) update.towards = update_average_rate(store->settings.average, number);
    return update;
}

static float *window_of(float *vector, size_t begin) {
    return vector ? vector + begin : NULL;
}

void home_step(struct shard *shard, const struct copies *vectors, const float *gradient, size_t begin,
               size_t end, float rate, long number, bool racy) {
    struct store *store = shard->store;
    const struct device *home = store->home;
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        const size_t from = span->begin > begin ? span->begin : begin, to = span->end < end ? span->end : end;
        if (from >= to) continue;
        const struct update update = update_of(store, span, rate, number);
        const struct update_window window = {
            .floats = to - from,
            .weights = vectors->weights + from,
            .gradient = gradient + from,
            .moments = {window_of(vectors->moments[0], from), window_of(vectors->moments[1], from)},
            .average = window_of(vectors->average, from),
            .witness = racy && to == shard->end ? shard->witness : NULL,
            .atomic = racy && shard->atomic};
        struct error error = {0};
        remember(store, home->backend->vectors->update(home, &update, &window, &error), &error);
    }
}

void home_mean(struct store *store, const float *const *values, const float *weight, int count, size_t begin,
               size_t end, float *out) {
    enum { MOST = 64 };
    const struct device *home = store->home;
    const float *window[MOST];
    struct error error = {0};
    for (int i = 0; i < count && i < MOST; i++) window[i] = values[i] + begin;
    if (count > MOST)
        remember(store,
                 error_set(&error, ERROR_DEVICE, "%s: the mean of %d workers, expected at most %d",
                           home->name, count, MOST),
                 &error);
    else if (count > 0 && end > begin)
        remember(store,
                 home->backend->vectors->mean(home, window, weight, count, end - begin, out + begin, &error),
                 &error);
}

void home_copy(struct store *store, const struct device *to, float *out, const float *in, size_t floats) {
    struct error error = {0};
    const struct device *home = store->home;
    const size_t bytes = floats * sizeof *out;
    const struct device *mover = home ? home : to;
    if (mover && mover->backend->copy)
        remember(store, mover->backend->copy(mover, out, in, bytes, &error), &error);
    else
        memcpy(out, in, bytes);
}

void home_finish(struct store *store) {
    struct error error = {0};
    remember(store, store->home->backend->finish(store->home, &error), &error);
}
