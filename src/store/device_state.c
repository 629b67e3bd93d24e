/* Where a store's vectors live, and what its verbs do there. See device_state.h. */
#include "device_state.h"

#include <assert.h>
#include <stdio.h>

#include "../base/text.h"
#include "../device/copy.h"
#include "matrices.h"

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

/* --- which memory --- */

bool store_on_devices(const struct store *store) {
    return device_apart(store->homes[0].device);
}

bool store_shares_memory(const struct store *store, const struct device *device) {
    return store->home_count == 1 && device_same_memory(store->homes[0].device, device);
}

const struct device *store_own_device(const struct store *store, int worker) {
    const struct device *device =
        store_on_devices(store) ? &store->settings.devices[worker] : &store->processor;
    return device_apart(device) ? device : &store->processor;
}

void store_name_homes(const struct store *store, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    for (int h = 0; store_on_devices(store) && h < store->home_count; h++)
        text_item(&text, ",", "%s", store->homes[h].device->name);
}

static int open_vector(const struct store *store, const struct device *device, float **out, const char *what,
                       struct error *error) {
    const size_t bytes = store->settings.layout->floats * sizeof **out;
    const struct device *reader = store->reader;
    void *block = NULL;
    *out = NULL;
    RETURN_IF(device_apart(device) ? device->backend->allocate(device, &block, bytes, what, error)
                                   : reader->backend->allocate_host(reader, &block, bytes, what, error));
    *out = block;
    return OK;
}

static void close_vector(const struct store *store, const struct device *device, float *vector) {
    const struct device *reader = store->reader;
    if (!vector) return;
    if (device_apart(device))
        device->backend->release(device, vector);
    else
        reader->backend->release_host(reader, vector);
}

int store_own_vector(const struct store *store, int worker, float **out, const char *what,
                     struct error *error) {
    return open_vector(store, store_own_device(store, worker), out, what, error);
}

void store_own_vector_free(const struct store *store, int worker, float *vector) {
    close_vector(store, store_own_device(store, worker), vector);
}

int shard_open_vector(struct shard *shard, float **out, const char *what, struct error *error) {
    return device_array(shard->home->device, out, shard->end - shard->begin, what, error);
}

void shard_close_vector(struct shard *shard, float *vector) {
    if (vector) shard->home->device->backend->release(shard->home->device, vector);
}

/* --- the store's vectors --- */

static int add_vector(const struct store *store, const struct device *device, struct state *state,
                      const char *name, const char *what, struct error *error) {
    state->vector[state->count].name = name;
    return open_vector(store, device, &state->vector[state->count++].at, what, error);
}

/* The one place that says which vectors there are. */
static int open_state(const struct store *store, const struct device *device, bool all, struct state *state,
                      struct error *error) {
    const struct optimizer *optimizer = optimizer_of(store->settings.optimizer);
    assert(optimizer->moments <= UPDATE_MOMENTS);
    RETURN_IF(add_vector(store, device, state, "", "the weights", error));
    for (int m = 0; all && m < optimizer->moments; m++)
        RETURN_IF(add_vector(store, device, state, optimizer->moment_names[m], "optimizer state", error));
    if (!all || !(store->settings.average > 0.0)) return OK;
    return add_vector(store, device, state, "average", "the average of the weights", error);
}

static void close_state(const struct store *store, const struct device *device, const struct state *state) {
    for (int v = 0; v < state->count; v++) close_vector(store, device, state->vector[v].at);
}

int store_own_state(const struct store *store, int worker, bool all, struct state *out, struct error *error) {
    return open_state(store, store_own_device(store, worker), all, out, error);
}

void store_own_state_free(const struct store *store, int worker, const struct state *state) {
    close_state(store, store_own_device(store, worker), state);
}

/* The devices that have memory of their own, each once, in the workers' order; no more than there are shards.
 * Else the processor. */
static int find_homes(struct store *store, struct error *error) {
    const struct store_settings *settings = &store->settings;
    const int workers = settings->devices ? settings->roster->workers : 0;
    store->processor = device_processor();
    if (workers > 0) store->processor.precision = settings->devices[0].precision; /* of Muon's products */
    store->reader = &store->processor;
    RETURN_IF(memory_array(&store->homes, workers + 1, "homes of shards", error));
    for (int w = 0; w < workers; w++) {
        const struct device *device = &settings->devices[w];
        if (!device_apart(device)) continue;
        if (!device_apart(store->reader)) store->reader = device;
        if (!settings->on_devices || store->home_count == settings->shards) continue;
        int h = 0;
        while (h < store->home_count && !device_same_memory(store->homes[h].device, device)) h++;
        if (h == store->home_count) store->homes[store->home_count++].device = device;
    }
    if (store->home_count == 0) store->homes[store->home_count++].device = &store->processor;
    return OK;
}

static int open_home(struct store *store, struct home *home, struct error *error) {
    const int workers = store->settings.roster->workers;
    RETURN_IF(memory_array(&home->brought, workers, "what is brought home", error));
    if (!device_apart(home->device)) {
        home->state = store->host;
        return OK;
    }
    RETURN_IF(open_state(store, home->device, true, &home->state, error));
    RETURN_IF(open_vector(store, home->device, &home->mean, "the mean of a round", error));
    for (int w = 0; w < workers; w++)
        if (!device_same_memory(home->device, store_own_device(store, w)))
            RETURN_IF(open_vector(store, home->device, &home->brought[w], "a worker's gradient", error));
    return OK;
}

static void close_home(const struct store *store, struct home *home) {
    for (int w = 0; home->brought && w < store->settings.roster->workers; w++)
        close_vector(store, home->device, home->brought[w]);
    memory_free((void *)home->brought);
    close_vector(store, home->device, home->mean);
    if (device_apart(home->device)) close_state(store, home->device, &home->state);
}

int store_open_vectors(struct store *store, struct error *error) {
    RETURN_IF(find_homes(store, error));
    RETURN_IF(open_state(store, &store->processor, true, &store->host, error));
    store->kept = store->host;
    if (store->settings.owes)
        RETURN_IF(
            add_vector(store, &store->processor, &store->kept, "owed", "what compressing leaves out", error));
    for (int h = 0; h < store->home_count; h++) RETURN_IF(open_home(store, &store->homes[h], error));
    store->weights = store->homes[0].state.vector[0].at;
    return OK;
}

void store_close_vectors(struct store *store) {
    for (int h = 0; h < store->home_count; h++) close_home(store, &store->homes[h]);
    close_vector(store, &store->processor, state_find(&store->kept, "owed"));
    close_state(store, &store->processor, &store->host);
    memory_free(store->homes);
}

/* Every slice of every vector, between the homes' memory and the host's. */
static int exchange(const struct store *store, bool fetch, struct error *error) {
    for (int s = 0; store_on_devices(store) && s < store->settings.shards; s++) {
        const struct shard *shard = &store->shards[s];
        const struct device *device = shard->home->device;
        const size_t bytes = (shard->end - shard->begin) * sizeof(float);
        for (int v = 0; v < store->host.count; v++) {
            float *const here = store->host.vector[v].at + shard->begin, *const there =
                                                                             shard->home->state.vector[v].at +
                                                                             shard->begin;
            RETURN_IF(
                device->backend->copy(device, fetch ? here : there, fetch ? there : here, bytes, error));
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
                      struct error *) = device_apart(to) ? device_queue_copy : device_copy;
    for (int s = 0; s < store->settings.shards; s++) {
        const struct shard *shard = &store->shards[s];
        RETURN_IF(copy(to, weights + shard->begin, shard->home->device,
                       shard->home->state.vector[0].at + shard->begin,
                       (shard->end - shard->begin) * sizeof *weights, error));
    }
    return OK;
}

/* --- the verbs' work --- */

/* Spans that are stepped together where the device has them so: those of one formula, and between them
 * statistics and frozen weights. */
struct windows {
    struct update_window window[UPDATE_WINDOWS];
    int count;
};

static void step_windows(struct shard *shard, const struct device *device, const struct update *update,
                         struct update_slice *slice, struct windows *windows) {
    struct error error = {0};
    if (windows->count == 0) return;
    slice->begin = windows->window[0].begin;
    slice->end = windows->window[windows->count - 1].end;
    slice->witness = slice->racy && slice->end == shard->end ? shard->witness : NULL;
    home_remember(shard->store,
                  device->backend->vectors->update_windows(device, update, slice, windows->window,
                                                           windows->count, &error),
                  &error);
    windows->count = 0;
}

void home_step(struct shard *shard, const struct device *device, struct update_slice *slice, float rate,
               long number, int worker) {
    struct store *store = shard->store;
    const size_t begin = slice->begin, end = slice->end;
    const struct choice *choice = store->settings.optimizer;
    const struct optimizer_common *common = choice_settings(choice);
    const struct matrix_rule rule = optimizer_of(choice)->matrix ? optimizer_of(choice)->matrix(common)
                                                                 : (struct matrix_rule){.rest = 1.0};
    struct matrix_room *room = worker < 0 ? shard->matrices : store->workers[worker].matrices;
    struct update trained = optimizer_update(choice, number), other = {0};
    const bool together = device->backend->vectors->update_windows && !slice->compensation;
    struct windows windows;
    struct error error = {0};
    windows.count = 0;
    slice->average = state_find(slice->state, "average");
    slice->mean = shard->home->mean;
    slice->atomic = slice->racy && shard->atomic;
    slice->world = store->world;
    trained.towards = other.towards = update_average_rate(store->settings.average, number);
    for (int i = 0; i < shard->span_count; i++) {
        const struct span *span = &shard->spans[i];
        struct update *update = span->kind == RANGE_TRAINABLE ? &trained : &other;
        slice->begin = span->begin > begin ? span->begin : begin;
        slice->end = span->end < end ? span->end : end;
        if (slice->begin >= slice->end) continue;
        slice->witness = slice->racy && slice->end == shard->end ? shard->witness : NULL;
        other.rule = span->kind == RANGE_STATISTIC ? UPDATE_SUBTRACT : UPDATE_NONE;
        update->rate = rate * span->rate_multiplier;
        if (!span->matrix && rule.rest != 1.0) update->rate *= (float)rule.rest;
        update->decay = span->decay;
        update->weight_decay = span->decays ? (float)common->weight_decay : 0.0f;
        if (together && !span->matrix) {
            windows.window[windows.count++] = (struct update_window){
                slice->begin, slice->end, update->rule, update->rate, update->decay, update->weight_decay};
            if (windows.count == UPDATE_WINDOWS) step_windows(shard, device, &trained, slice, &windows);
            continue;
        }
        home_remember(store,
                      span->matrix ? matrix_step(room, span, &rule, update, slice, &error)
                                   : device->backend->vectors->update(device, update, slice, &error),
                      &error);
    }
    step_windows(shard, device, &trained, slice, &windows);
}

const float *home_bring(struct shard *shard, int worker, const float *values, size_t begin, size_t end) {
    float *brought = shard->home->brought[worker];
    if (!brought) return values;
    home_queue_copy(shard, brought + begin, values + begin, end - begin);
    return brought;
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
    const struct device *from = shard->home->device;
    const bool queued = device_apart(from) && device_apart(to);
    home_remember(shard->store, (queued ? device_queue_copy : device_copy)(to, out, from, in, bytes, &error),
                  &error);
}

void home_finish(struct store *store, const struct device *device) {
    struct error error = {0};
    home_remember(store, device->backend->finish(device, &error), &error);
}
