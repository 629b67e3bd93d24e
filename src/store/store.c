/* The store opened and closed: the vector cut into shards, and every worker's slots. */
#include "device_state.h"
#include "matrices.h"

#include <string.h>

int store_cut(const struct layout *layout, int shards, enum shard_by by, size_t *boundary,
              struct error *error) {
    const size_t lines = layout->floats / LINE_FLOATS;
    const size_t pieces = by == SHARD_BY_BYTES ? lines : (size_t)layout->count;
    if (shards < 1 || (size_t)shards > pieces)
        return error_set(error, ERROR_USAGE, "%d shards: expected 1 to %zu, the model's %s", shards, pieces,
                         by == SHARD_BY_BYTES ? "cache lines" : "arrays");
    for (int s = 0; s <= shards; s++) boundary[s] = lines * (size_t)s / (size_t)shards * LINE_FLOATS;
    if (by == SHARD_BY_BYTES) return OK;
    /* Whole ranges: shard s ends where the first range of the next group begins. The groups lie one after the
     * other. */
    for (int s = 1; s < shards; s++) {
        size_t first = layout->floats;
        for (int i = 0; i < layout->count; i++) {
            const int group = by == SHARD_BY_TENSOR ? (int)((long)i * shards / layout->count) : i % shards;
            if (group == s && layout->ranges[i].begin < first) first = layout->ranges[i].begin;
        }
        boundary[s] = first;
    }
    return OK;
}

void store_spread_ranges(struct layout *layout, int shards, enum shard_by by) {
    if (by != SHARD_BY_ROUND_ROBIN) return;
    size_t at = 0;
    for (int s = 0; s < shards; s++)
        for (int i = s; i < layout->count; i += shards) {
            layout->ranges[i].begin = at;
            at += (layout->ranges[i].floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
        }
}

/* The range that comes first at or after `at` in the flat vector, or NULL. */
static const struct range *next_range(const struct layout *layout, size_t at) {
    const struct range *next = NULL;
    for (int i = 0; i < layout->count; i++) {
        const struct range *range = &layout->ranges[i];
        const size_t end = range->begin + (range->floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
        if (end > at && (!next || range->begin < next->begin)) next = range;
    }
    return next;
}

static bool same_attributes(const struct span *span, const struct range *range, bool decays,
                            const struct range *matrix) {
    return span->kind == range->kind && span->decays == decays && span->matrix == matrix &&
           memcmp(&span->decay, &range->decay, sizeof span->decay) == 0 &&
           memcmp(&span->rate_multiplier, &range->rate_multiplier, sizeof span->rate_multiplier) == 0;
}

/* Fills shard->spans (room for every range) with the slice's pieces of equal attributes. */
static void find_spans(struct shard *shard, const struct layout *layout) {
    const struct choice *optimizer = shard->store->settings.optimizer;
    const struct optimizer_common *common = choice_settings(optimizer);
    const bool matrices_alone = optimizer_of(optimizer)->matrix != NULL;
    size_t at = shard->begin;
    while (at < shard->end) {
        const struct range *range = next_range(layout, at);
        if (!range) break;
        size_t end = range->begin + (range->floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
        if (end > shard->end) end = shard->end;
        const struct range *matrix = store_is_matrix(shard->store, range) ? range : NULL;
        const bool decays =
            common->weight_decay > 0.0 && (matrices_alone ? matrix != NULL : range->shape.rank >= 2);
        struct span *last = shard->span_count > 0 ? &shard->spans[shard->span_count - 1] : NULL;
        if (last && same_attributes(last, range, decays, matrix)) {
            last->end = end;
        } else {
            shard->spans[shard->span_count++] = (struct span){.begin = at,
                                                              .end = end,
                                                              .kind = range->kind,
                                                              .decay = range->decay,
                                                              .rate_multiplier = range->rate_multiplier,
                                                              .decays = decays,
                                                              .matrix = matrix};
        }
        at = end;
    }
}

static int slots_most(const struct store_settings *settings) {
    return settings->slots_most > settings->slots ? settings->slots_most : settings->slots;
}

static int open_shard(struct store *store, int index, const size_t *boundary, struct error *error) {
    const struct store_settings *settings = &store->settings;
    struct shard *shard = &store->shards[index];
    const int workers = settings->roster->workers;
    shard->store = store;
    shard->index = index;
    shard->home = &store->homes[index % store->home_count];
    shard->begin = boundary[index];
    shard->end = boundary[index + 1];
    lock_open(&shard->lock, store->world);
    event_open(&shard->applied, store->world);
    RETURN_IF(mailbox_open(&shard->mailbox, workers * (slots_most(settings) + 1), error));
    RETURN_IF(memory_array(&shard->spans, settings->layout->count, "spans of a shard", error));
    RETURN_IF(memory_array(&shard->tallies, workers, "tallies of a shard", error));
    RETURN_IF(memory_array(&shard->contributed, workers, "gradients of a round", error));
    const struct device *home = shard->home->device;
    RETURN_IF(
        device_array(home, &shard->witness, CACHE_LINE / sizeof *shard->witness, "witness line", error));
    RETURN_IF(home_open_order(shard, error));
    RETURN_IF(undo_open(shard, error));
    find_spans(shard, settings->layout);
    return OK;
}

static int open_slots(struct store *store, int worker, struct error *error) {
    struct worker_slots *slots = &store->workers[worker];
    const int count = slots_most(&store->settings) + 1, workers = store->settings.roster->workers;
    event_open(&slots->room, store->world);
    RETURN_IF(memory_array(&slots->gradients, count, "slots of a worker", error));
    RETURN_IF(memory_array(&slots->values, workers + 2, "gradients of a mean", error));
    RETURN_IF(memory_array(&slots->weight, workers + 2, "weights of a mean", error));
    for (int i = 0; i < count; i++) {
        struct gradient *gradient = &slots->gradients[i];
        gradient->worker = worker;
        gradient->slot = i;
        RETURN_IF(memory_array(&gradient->version, store->settings.shards, "versions of a slot", error));
    }
    return OK;
}

int store_open(struct store *store, const struct store_settings *settings, struct error *error) {
    *store = (struct store){.settings = *settings, .world = settings->roster->world};
    const int workers = settings->roster->workers;
    size_t *boundary = NULL;
    const int all = settings->shards_all > 0 ? settings->shards_all : settings->shards;
    int code = memory_array(&boundary, (all > 0 ? all : 0) + 1, "boundaries", error);
    if (code != OK) return code;
    if ((code = store_cut(settings->layout, all, settings->shard_by, boundary, error)) != OK) goto end;
    store->begin = boundary[settings->shard_first];
    store->end = boundary[settings->shard_first + settings->shards];
    if ((code = store_open_vectors(store, error)) != OK) goto end;
    if ((code = store_open_group(store, error)) != OK) goto end;
    if ((code = memory_array(&store->shards, settings->shards, "shards", error)) != OK) goto end;
    if ((code = memory_array(&store->workers, workers, "slots", error)) != OK) goto end;
    for (int s = 0; s < settings->shards && code == OK; s++)
        code = open_shard(store, s, boundary + settings->shard_first, error);
    for (int w = 0; w < workers && code == OK; w++) code = open_slots(store, w, error);
    if (code == OK) code = store_open_matrices(store, error);
end:
    memory_free(boundary);
    return code;
}

void store_close(struct store *store) {
    store_close_matrices(store);
    for (int s = 0; store->shards && s < store->settings.shards; s++) {
        struct shard *shard = &store->shards[s];
        home_close_order(shard);
        undo_close(shard);
        mailbox_close(&shard->mailbox);
        memory_free(shard->spans);
        memory_free(shard->tallies);
        memory_free((void *)shard->contributed);
        if (shard->witness) shard->home->device->backend->release(shard->home->device, shard->witness);
    }
    for (int w = 0; store->workers && w < store->settings.roster->workers; w++) {
        struct gradient *gradients = store->workers[w].gradients;
        for (int i = 0; gradients && i <= slots_most(&store->settings); i++)
            memory_free(gradients[i].version);
        memory_free(gradients);
        memory_free((void *)store->workers[w].values);
        memory_free(store->workers[w].weight);
    }
    memory_free(store->shards);
    memory_free(store->workers);
    store_close_group(store);
    store_close_vectors(store);
    *store = (struct store){0};
}

/* What a worker that was lost had contributed is nobody's any more. */
int store_change(struct store *store, const struct store_settings *settings, struct error *error) {
    struct store_settings *now = &store->settings;
    now->slots_most = slots_most(now);
    now->slots = settings->slots;
    now->links = settings->links;
    now->far = settings->far;
    now->total_updates = settings->total_updates;
    now->schedule_ahead = settings->schedule_ahead;
    for (int s = 0; s < now->shards; s++)
        for (int w = 0; w < now->roster->workers; w++) {
            atomic_store(&store->shards[s].contributed[w], NULL);
            atomic_store(&store->shards[s].tallies[w].steps, 0);
        }
    store_close_group(store);
    return store_open_group(store, error);
}

void store_begin_average(struct store *store) {
    float *average = state_find(&store->host, "average");
    if (average) memcpy(average, store->host.vector[0].at, store->settings.layout->floats * sizeof *average);
}

float *store_tested(const struct store *store) {
    float *average = state_find(&store->host, "average");
    return average ? average : store->host.vector[0].at;
}

float store_rate(const struct store *store, long version) {
    const struct optimizer_common *common = choice_settings(store->settings.optimizer);
    return (float)(common->rate * schedule_factor(store->settings.schedule,
                                                  version + store->settings.schedule_ahead,
                                                  store->settings.total_updates));
}

float shard_worth(const struct shard *shard, const struct gradient *gradient, long version) {
    if (!shard->store->settings.divides) return 1.0f;
    const long age = version - gradient->version[shard->index];
    return age > 1 ? 1.0f / (float)age : 1.0f;
}

void store_set_version(struct store *store, long version) {
    for (int s = 0; s < store->settings.shards; s++) atomic_store(&store->shards[s].version, version);
}

long store_version(const struct store *store) {
    long least = atomic_load(&store->shards[0].version);
    for (int s = 1; s < store->settings.shards; s++) {
        const long version = atomic_load(&store->shards[s].version);
        if (version < least) least = version;
    }
    return least;
}

void store_set_updates(struct store *store, long updates) {
    for (int s = 0; s < store->settings.shards; s++) {
        struct shard *shard = &store->shards[s];
        atomic_store(&shard->joined, atomic_load(&shard->version) - updates);
    }
}

static long updates_of(const struct shard *shard) {
    return atomic_load(&shard->version) - atomic_load(&shard->joined);
}

long store_updates(const struct store *store) {
    long least = updates_of(&store->shards[0]);
    for (int s = 1; s < store->settings.shards; s++)
        if (updates_of(&store->shards[s]) < least) least = updates_of(&store->shards[s]);
    return least;
}

/* Where it lives on a device that has failed, nothing is known to be lost. */
static double witness_of(const struct shard *shard) {
    double seen = (double)atomic_load(&shard->racy_updates);
    struct error ignored = {0};
    const struct device *home = shard->home->device;
    home->backend->copy(home, &seen, shard->witness, sizeof seen, &ignored);
    return seen;
}

long store_lost_updates(const struct store *store) {
    long lost = 0;
    for (int s = 0; s < store->settings.shards; s++)
        lost += atomic_load(&store->shards[s].racy_updates) - (long)witness_of(&store->shards[s]);
    return lost;
}

long store_dropped(const struct store *store) {
    long dropped = 0;
    for (int s = 0; s < store->settings.shards; s++)
        for (int w = 0; w < store->settings.roster->workers; w++)
            dropped += store->shards[s].tallies[w].dropped;
    return dropped;
}

void tally_add(struct tally *sum, const struct tally *tally) {
    sum->dropped += tally->dropped;
    staleness_merge(&sum->staleness, &tally->staleness);
}

void store_tally(const struct store *store, int worker, struct tally *sum) {
    for (int s = 0; s < store->settings.shards; s++) tally_add(sum, &store->shards[s].tallies[worker]);
}

long store_locks_taken(const struct store *store) {
    long taken = 0;
    for (int s = 0; s < store->settings.shards; s++) taken += atomic_load(&store->shards[s].lock.taken);
    return taken;
}
