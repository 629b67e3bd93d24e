/* Where a store's vectors live: in the host's memory, or in that of devices. See home.h. */
#include "home.h"

#include <stdio.h>

#include "../device/link.h"

/* --- failures --- */

void home_remember(struct store *store, int code, const struct error *error) {
    if (code == OK || atomic_exchange(&store->failing, true)) return;
    store->failure = *error;
    atomic_store(&store->failed, true);
}

int store_check(const struct store *store, struct error *error) {
    if (!atomic_load_explicit(&store->failed, memory_order_acquire)) return OK;
    return error_set(error, store->failure.code, "%s", store->failure.words);
}

static const struct optimizer *optimizer_of(const struct store *store) {
    return (const struct optimizer *)(const void *)store->settings.optimizer->plugin;
}

/* --- which memory --- */

static bool same_memory(const struct device *one, const struct device *other) {
    return one->backend == other->backend && one->label == other->label;
}

bool store_shares_memory(const struct store *store, const struct device *device) {
    if (store->home_count == 0) return !device->backend->copy;
    return store->home_count == 1 && same_memory(store->homes[0].device, device);
}

const struct device *store_own_device(const struct store *store, int worker) {
    if (store->home_count == 0) return NULL;
    const struct device *device = &store->settings.devices[worker];
    return device->backend->vectors ? device : NULL;
}

void store_name_homes(const struct store *store, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = '\0';
    for (int h = 0; h < store->home_count && used < bytes; h++)
        used +=
            (size_t)snprintf(out + used, bytes - used, "%s%s", h ? "," : "", store->homes[h].device->name);
}

static int open_vector(const struct store *store, const struct device *device, float **out, const char *what,
                       struct error *error) {
    const size_t floats = store->settings.layout->floats;
    const struct device *reader = store->reader;
    void *block = NULL;
    *out = NULL;
    if (device)
        RETURN_IF(device->backend->allocate(device, &block, floats * sizeof **out, what, error));
    else if (reader)
        RETURN_IF(reader->backend->allocate_host(reader, &block, floats * sizeof **out, what, error));
    else
        RETURN_IF(memory_zeroed(&block, floats, sizeof **out, what, error));
    *out = block;
    return OK;
}

static void close_vector(const struct store *store, const struct device *device, float *vector) {
    const struct device *reader = store->reader;
    if (!vector) return;
    if (device)
        device->backend->release(device, vector);
    else if (reader)
        reader->backend->release_host(reader, vector);
    else
        memory_free(vector);
}

int store_own_vector(const struct store *store, int worker, float **out, const char *what,
                     struct error *error) {
    return open_vector(store, store_own_device(store, worker), out, what, error);
}

void store_own_vector_free(const struct store *store, int worker, float *vector) {
    close_vector(store, store_own_device(store, worker), vector);
}

/* --- the store's vectors --- */

static int open_copies(const struct store *store, const struct device *device, struct copies *copies,
                       struct error *error) {
    const int moments = optimizer_of(store)->moments;
    RETURN_IF(open_vector(store, device, &copies->weights, "the weights", error));
    for (int m = 0; m < moments; m++)
        RETURN_IF(open_vector(store, device, &copies->moments[m], "optimizer state", error));
    if (!(store->settings.average > 0.0)) return OK;
    return open_vector(store, device, &copies->average, "the average of the weights", error);
}

static void close_copies(const struct store *store, const struct device *device,
                         const struct copies *copies) {
    close_vector(store, device, copies->weights);
    for (int m = 0; m < 2; m++) close_vector(store, device, copies->moments[m]);
    close_vector(store, device, copies->average);
}

/* The devices that have memory of their own, each once, in the workers' order; no more than there are shards.
 */
static int find_homes(struct store *store, struct error *error) {
    const struct store_settings *settings = &store->settings;
    const int workers = settings->devices ? settings->roster->workers : 0;
    void *block = NULL;
    RETURN_IF(memory_zeroed(&block, (size_t)workers, sizeof *store->homes, "homes of shards", error));
    store->homes = block;
    for (int w = 0; w < workers; w++) {
        const struct device *device = &settings->devices[w];
        if (!device->backend->vectors) continue;
        if (!store->reader) store->reader = device;
        if (!settings->on_devices || store->home_count == settings->shards) continue;
        int h = 0;
        while (h < store->home_count && !same_memory(store->homes[h].device, device)) h++;
        if (h == store->home_count) store->homes[store->home_count++].device = device;
    }
    return OK;
}

static int open_home(struct store *store, struct home *home, struct error *error) {
    const int workers = store->settings.roster->workers;
    void *block = NULL;
    RETURN_IF(open_copies(store, home->device, &home->vectors, error));
    RETURN_IF(open_vector(store, home->device, &home->mean, "the mean of a round", error));
    RETURN_IF(memory_zeroed(&block, (size_t)workers, sizeof *home->brought, "what is brought home", error));
    home->brought = block;
    for (int w = 0; w < workers; w++)
        if (!same_memory(home->device, &store->settings.devices[w]))
            RETURN_IF(open_vector(store, home->device, &home->brought[w], "a worker's gradient", error));
    return OK;
}

static void close_home(const struct store *store, struct home *home) {
    for (int w = 0; home->brought && w < store->settings.roster->workers; w++)
        close_vector(store, home->device, home->brought[w]);
    memory_free((void *)home->brought);
    close_vector(store, home->device, home->mean);
    close_copies(store, home->device, &home->vectors);
}

int store_open_vectors(struct store *store, struct error *error) {
    RETURN_IF(find_homes(store, error));
    for (int h = 0; h < store->home_count; h++) RETURN_IF(open_home(store, &store->homes[h], error));
    RETURN_IF(open_copies(store, NULL, &store->host, error));
    const struct copies *first = store->home_count > 0 ? &store->homes[0].vectors : &store->host;
    store->weights = first->weights;
    store->average = first->average;
    for (int m = 0; m < 2; m++) store->moments[m] = first->moments[m];
    return OK;
}

void store_close_vectors(struct store *store) {
    for (int h = 0; h < store->home_count; h++) close_home(store, &store->homes[h]);
    close_copies(store, NULL, &store->host);
    memory_free(store->homes);
}

/* Every window of every vector, between the devices' memory and the host's. */
static int exchange(const struct store *store, bool fetch, struct error *error) {
    const struct copies *host = &store->host;
    float *const here[] = {host->weights, host->moments[0], host->moments[1], host->average};
    for (int s = 0; store->home_count > 0 && s < store->settings.shards; s++) {
        const struct shard *shard = &store->shards[s];
        const struct device *device = shard->home->device;
        const struct copies *away = &shard->home->vectors;
        float *const there[] = {away->weights, away->moments[0], away->moments[1], away->average};
        const size_t bytes = (shard->end - shard->begin) * sizeof(float);
        for (int v = 0; v < 4; v++) {
            if (!there[v]) continue;
            float *const one = here[v] + shard->begin, *const other = there[v] + shard->begin;
            RETURN_IF(device->backend->copy(device, fetch ? one : other, fetch ? other : one, bytes, error));
        }
    }
    return OK;
}

int store_fetch(const struct store *store, struct error *error) {
    return exchange(store, true, error);
}

int store_send(const struct store *store, struct error *error) {
    return exchange(store, false, error);
}

int store_copy_weights(const struct store *store, const struct device *to, float *weights,
                       struct error *error) {
    int (*const copy)(const struct device *, void *, const struct device *, const void *, size_t,
                      struct error *) = to->backend->queue_copy ? link_queue : link_copy;
    for (int s = 0; s < store->settings.shards; s++) {
        const struct shard *shard = &store->shards[s];
        RETURN_IF(copy(to, weights + shard->begin, shard->home ? shard->home->device : NULL,
                       shard_vectors(shard).weights + shard->begin,
                       (shard->end - shard->begin) * sizeof *weights, error));
    }
    return OK;
}

/* --- the verbs' work --- */

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

void home_step(struct shard *shard, const struct device *device, const struct copies *vectors,
               const float *gradient, size_t begin, size_t end, float rate, long number, bool racy) {
    struct store *store = shard->store;
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
        home_remember(store, device->backend->vectors->update(device, &update, &window, &error), &error);
    }
}

const float *home_bring(struct shard *shard, int worker, const float *values, size_t begin, size_t end) {
    float *brought = shard->home->brought[worker];
    if (!brought) return values;
    home_queue_copy(shard, brought + begin, values + begin, end - begin);
    return brought;
}

void home_mean(struct shard *shard, const float *const *values, const float *weight, int count, size_t begin,
               size_t end, float *out) {
    enum { MOST = 64 };
    struct store *store = shard->store;
    const struct device *home = shard->home->device;
    const float *window[MOST];
    struct error error = {0};
    for (int i = 0; i < count && i < MOST; i++) window[i] = values[i] + begin;
    if (count > MOST)
        home_remember(store,
                      error_set(&error, ERROR_DEVICE, "%s: the mean of %d workers, expected at most %d",
                                home->name, count, MOST),
                      &error);
    else if (count > 0 && end > begin)
        home_remember(
            store,
            home->backend->vectors->mean(home, window, weight, count, end - begin, out + begin, &error),
            &error);
}

void home_scale(struct shard *shard, float *values, size_t begin, size_t end, float factor) {
    const struct device *home = shard->home->device;
    struct error error = {0};
    home_remember(shard->store,
                  home->backend->vectors->scale(home, values + begin, end - begin, factor, &error), &error);
}

void home_queue_copy(const struct shard *shard, float *out, const float *in, size_t floats) {
    struct error error = {0};
    const struct device *home = shard->home->device;
    home_remember(shard->store, home->backend->queue_copy(home, out, in, floats * sizeof *out, &error),
                  &error);
}

void home_copy(const struct shard *shard, const struct device *to, float *out, const float *in,
               size_t floats) {
    struct error error = {0};
    const size_t bytes = floats * sizeof *out;
    const struct device *from = shard->home ? shard->home->device : NULL;
    if (from && to && to->backend->queue_copy)
        home_remember(shard->store, to->backend->queue_copy(to, out, in, bytes, &error), &error);
    else
        home_remember(shard->store, link_copy(to, out, from, in, bytes, &error), &error);
}

void home_finish(struct store *store, const struct device *device) {
    struct error error = {0};
    home_remember(store, device->backend->finish(device, &error), &error);
}
