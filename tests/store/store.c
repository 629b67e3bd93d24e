/* The store: the vector cut into shards and spans, every verb, slots, versions, schedules, and every
 * optimizer against its formula.
 *
 * One thread drives everything, so what is wrong here is wrong without any race.
 * tests/strategies/strategies.c drives the same store with threads. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/rng.h"
#include "../../src/store/strategy.h"
#include "../check.h"

enum { WORKERS = 3, RANGES = 9, FLOATS = 8192 };

/* Neighbours that are alike and that are not, sizes that end inside a line, and one that is longer than two
 * blocks of a mean, and than the racy loop's. */
static const struct range sample[RANGES] = {
    {.floats = 37, .decay = 0.1f, .rate_multiplier = 1.0f},
    {.floats = 16, .decay = 0.1f, .rate_multiplier = 1.0f},
    {.floats = 20, .kind = RANGE_STATISTIC, .decay = 0.1f, .rate_multiplier = 1.0f},
    {.floats = 33, .kind = RANGE_FROZEN, .decay = 0.1f, .rate_multiplier = 1.0f},
    {.floats = 70, .decay = 0.0f, .rate_multiplier = 2.0f},
    {.floats = 5, .decay = 0.1f, .rate_multiplier = 2.0f},
    {.floats = 5300, .decay = 0.1f, .rate_multiplier = 0.5f},
    {.floats = 1, .kind = RANGE_STATISTIC, .rate_multiplier = 0.5f},
    {.floats = 90, .decay = 0.2f, .rate_multiplier = 0.5f},
};

struct bench {
    struct range ranges[RANGES];
    struct layout layout;
    struct world *world;
    struct roster roster;
    struct choice strategy, optimizer, schedule;
    struct store store;
    struct error error;
    float values[WORKERS][FLOATS]; /* gradients */
    long finished;                 /* calls */
    bool finished_while_free;      /* the slot was free before it was reported */
};

static size_t padded(size_t floats) {
    return (floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

static void lay_out(struct range *ranges, struct layout *layout) {
    *layout = (struct layout){.ranges = ranges, .count = RANGES};
    for (int i = 0; i < RANGES; i++) {
        ranges[i] = sample[i];
        ranges[i].begin = layout->floats;
        layout->floats += padded(ranges[i].floats);
        layout->parameters += ranges[i].floats;
    }
}

static void finished(void *argument, struct gradient *gradient) {
    struct bench *bench = argument;
    bench->finished++;
    if (atomic_load(&gradient->left) == 0) bench->finished_while_free = true;
}

static float some(uint64_t a, uint64_t b) {
    return rng_unit(rng_philox(3, a, b).word[0]) - 0.4f;
}

struct bench_settings {
    const char *optimizer, *schedule;
    int shards, slots;
    enum shard_by by;
    bool simulated;
    long total_updates;
    double average;
    bool undoes;
};

static bool bench_open(struct bench *bench, const struct bench_settings *settings) {
    struct error *error = &bench->error;
    memset(bench, 0, sizeof *bench);
    lay_out(bench->ranges, &bench->layout);
    store_spread_ranges(&bench->layout, settings->shards, settings->by);
    bool well = plugin_choose(&bench->strategy, &strategy_kind, "sync", error) == OK &&
                plugin_choose(&bench->optimizer, &optimizer_kind, settings->optimizer, error) == OK &&
                plugin_choose(&bench->schedule, &schedule_kind, settings->schedule, error) == OK;
    well = well && (settings->simulated ? world_open_simulated(&bench->world, 1, error)
                                        : world_open_threads(&bench->world, error)) == OK;
    well = well && roster_open(&bench->roster, bench->world, WORKERS, 0, 0.05, error) == OK;
    const struct store_settings store = {.layout = &bench->layout,
                                         .roster = &bench->roster,
                                         .shards = settings->shards,
                                         .shard_by = settings->by,
                                         .slots = settings->slots,
                                         .strategy = &bench->strategy,
                                         .optimizer = &bench->optimizer,
                                         .schedule = &bench->schedule,
                                         .total_updates = settings->total_updates,
                                         .average = settings->average,
                                         .undoes = settings->undoes,
                                         .finished = finished,
                                         .finished_argument = bench};
    well = well && store_open(&bench->store, &store, error) == OK;
    CHECK(well, "%s", error->words);
    if (!well) return false;
    for (int r = 0; r < RANGES; r++)
        for (size_t i = bench->ranges[r].begin; i < bench->ranges[r].begin + bench->ranges[r].floats; i++)
            bench->store.weights[i] = some(99, i);
    return true;
}

static void bench_close(struct bench *bench) {
    store_close(&bench->store);
    roster_close(&bench->roster);
    world_close(bench->world);
}

/* A gradient of a worker with random values in the ranges and zeros in the padding, held by `left` holders
 * and the reporter. */
static struct gradient *give(struct bench *bench, int worker, long step, int examples, int left) {
    struct gradient *gradient = store_gradient(&bench->store, worker, step);
    memset(bench->values[worker], 0, sizeof bench->values[worker]);
    for (int r = 0; r < RANGES; r++)
        for (size_t i = bench->ranges[r].begin; i < bench->ranges[r].begin + bench->ranges[r].floats; i++)
            bench->values[worker][i] = some((uint64_t)(step * WORKERS + worker), i);
    gradient->values = bench->values[worker];
    gradient->examples = examples;
    for (int s = 0; s < bench->store.settings.shards; s++)
        gradient->version[s] = atomic_load(&bench->store.shards[s].version);
    atomic_store(&gradient->left, left + 1);
    return gradient;
}

/* --- where the boundaries are --- */

/* Stores that have the shards between them step what one store with all of them steps, each its slice. */
static void check_slices(enum shard_by by, int stores, int each) {
    struct error error = {0};
    static struct bench whole;
    const struct bench_settings settings = {
        .optimizer = "adam:rate=0.1", .schedule = "constant", .shards = stores * each, .by = by};
    if (!bench_open(&whole, &settings)) return;
    size_t end = 0;
    for (int part = 0; part < stores; part++) {
        struct store store;
        struct store_settings own = whole.store.settings;
        own.shards = each;
        own.shards_all = stores * each;
        own.shard_first = part * each;
        CHECK(store_open(&store, &own, &error) == OK, "%s", error.words);
        CHECK(store.begin == end && store.end > end, "store %d has floats %zu to %zu, expected from %zu",
              part, store.begin, store.end, end);
        end = store.end;
        for (int s = 0; s < each; s++) {
            const struct shard *mine = &store.shards[s], *same = &whole.store.shards[part * each + s];
            CHECK(mine->begin == same->begin && mine->end == same->end && mine->index == s &&
                      mine->span_count == same->span_count,
                  "shard %d of store %d is another than shard %d of all", s, part, part * each + s);
        }
        memcpy(store.weights, whole.store.weights, whole.layout.floats * sizeof(float));
        static float before[FLOATS];
        memcpy(before, store.weights, whole.layout.floats * sizeof *before);
        struct gradient *gradient = give(&whole, 0, part, 4, 0);
        atomic_store(&gradient->left, 0);
        for (int s = 0; s < each; s++) {
            shard_apply(&store.shards[s], gradient);
            shard_apply(&whole.store.shards[part * each + s], gradient);
        }
        for (size_t i = 0; i < whole.layout.floats; i++) {
            const bool inside = i >= store.begin && i < store.end;
            const float expected = inside ? whole.store.weights[i] : before[i];
            CHECK(store.weights[i] == expected, "store %d, weight %zu is %g, expected %g", part, i,
                  (double)store.weights[i], (double)expected);
        }
        store_close(&store);
    }
    CHECK(end == whole.layout.floats, "the stores end at %zu of %zu", end, whole.layout.floats);
    bench_close(&whole);
}

static void check_cut_by_bytes(void) {
    size_t boundary[66];
    struct error error = {0};
    for (size_t lines = 1; lines <= 64; lines++) {
        struct range range = {.floats = lines * LINE_FLOATS};
        const struct layout layout = {.ranges = &range, .count = 1, .floats = range.floats};
        for (int shards = 1; shards <= (int)lines; shards++) {
            size_t least = SIZE_MAX, most = 0;
            CHECK(store_cut(&layout, shards, SHARD_BY_BYTES, boundary, &error) == OK, "%s", error.words);
            CHECK(boundary[0] == 0 && boundary[shards] == layout.floats, "%d shards cover %zu to %zu", shards,
                  boundary[0], boundary[shards]);
            for (int s = 0; s < shards; s++) {
                const size_t floats = boundary[s + 1] - boundary[s];
                CHECK(boundary[s] % LINE_FLOATS == 0, "boundary %d of %d is at %zu, inside a line", s, shards,
                      boundary[s]);
                if (floats < least) least = floats;
                if (floats > most) most = floats;
            }
            CHECK(least > 0 && most - least <= LINE_FLOATS, "%zu lines, %d shards: from %zu to %zu floats",
                  lines, shards, least, most);
        }
        CHECK(store_cut(&layout, (int)lines + 1, SHARD_BY_BYTES, boundary, &error) == ERROR_USAGE,
              "%zu lines, a shard more", lines);
        CHECK(store_cut(&layout, 0, SHARD_BY_BYTES, boundary, &error) == ERROR_USAGE, "no shard");
    }
}

/* By arrays: every array lies in one shard whole, and in which one is known. */
static void check_cut_by_arrays(void) {
    for (int by = SHARD_BY_TENSOR; by <= SHARD_BY_ROUND_ROBIN; by++)
        for (int shards = 1; shards <= RANGES; shards++) {
            struct range ranges[RANGES];
            struct layout layout;
            struct error error = {0};
            size_t boundary[RANGES + 2];
            bool taken[FLOATS / LINE_FLOATS] = {false};
            int last = 0;
            lay_out(ranges, &layout);
            store_spread_ranges(&layout, shards, (enum shard_by)by);
            CHECK(store_cut(&layout, shards, (enum shard_by)by, boundary, &error) == OK, "%s", error.words);
            CHECK(boundary[0] == 0 && boundary[shards] == layout.floats, "%d shards end at %zu", shards,
                  boundary[shards]);
            for (int s = 0; s < shards; s++)
                CHECK(boundary[s] % LINE_FLOATS == 0 && boundary[s] < boundary[s + 1],
                      "boundary %d of %d is at %zu", s, shards, boundary[s]);
            for (int i = 0; i < RANGES; i++) {
                const size_t end = ranges[i].begin + padded(ranges[i].floats);
                int home = 0;
                while (home < shards - 1 && ranges[i].begin >= boundary[home + 1]) home++;
                CHECK(ranges[i].begin % LINE_FLOATS == 0 && end <= boundary[home + 1],
                      "array %d reaches past shard %d of %d", i, home, shards);
                if (by == SHARD_BY_ROUND_ROBIN)
                    CHECK(home == i % shards, "array %d of %d shards is in shard %d", i, shards, home);
                if (by == SHARD_BY_TENSOR)
                    CHECK(home == last || home == last + 1, "array %d is in shard %d after %d", i, home,
                          last);
                last = home;
                for (size_t line = ranges[i].begin / LINE_FLOATS; line < end / LINE_FLOATS; line++) {
                    CHECK(!taken[line], "line %zu is in two arrays", line);
                    taken[line] = true;
                }
            }
            for (size_t line = 0; line < layout.floats / LINE_FLOATS; line++)
                CHECK(taken[line], "line %zu is in no array", line);
            CHECK(store_cut(&layout, RANGES + 1, (enum shard_by)by, boundary, &error) == ERROR_USAGE,
                  "more shards than arrays");
        }
    struct range ranges[RANGES];
    struct layout layout;
    size_t at = 0;
    lay_out(ranges, &layout);
    store_spread_ranges(&layout, 3, SHARD_BY_BYTES);
    store_spread_ranges(&layout, 3, SHARD_BY_TENSOR);
    for (int i = 0; i < RANGES; at += padded(ranges[i++].floats))
        CHECK(ranges[i].begin == at, "array %d was moved although it is not assigned", i);
}

static bool alike(const struct span *span, const struct range *range) {
    return span->kind == range->kind && !(span->decay < range->decay) && !(span->decay > range->decay) &&
           !(span->rate_multiplier < range->rate_multiplier) &&
           !(span->rate_multiplier > range->rate_multiplier);
}

/* The spans of a shard follow each other without gap or overlap, and every float finds its own attributes. */
static void check_spans(void) {
    static struct bench bench;
    for (int by = SHARD_BY_BYTES; by <= SHARD_BY_ROUND_ROBIN; by++)
        for (int shards = 1; shards <= RANGES; shards++) {
            const struct bench_settings settings = {
                .optimizer = "sgd", .schedule = "constant", .shards = shards, .by = (enum shard_by)by};
            if (!bench_open(&bench, &settings)) return;
            for (int s = 0; s < shards; s++) {
                const struct shard *shard = &bench.store.shards[s];
                size_t at = shard->begin;
                for (int i = 0; i < shard->span_count; i++) {
                    const struct span *span = &shard->spans[i];
                    CHECK(span->begin == at && span->end > at,
                          "span %d of shard %d is %zu to %zu, expected from %zu", i, s, span->begin,
                          span->end, at);
                    at = span->end;
                    for (int r = 0; r < RANGES; r++) {
                        const struct range *range = &bench.ranges[r];
                        if (range->begin >= span->end || range->begin + padded(range->floats) <= span->begin)
                            continue;
                        CHECK(alike(span, range), "array %d has the attributes of a neighbour, %d shards", r,
                              shards);
                    }
                }
                CHECK(at == shard->end, "the spans of shard %d end at %zu, the shard at %zu", s, at,
                      shard->end);
                if (s > 0) CHECK(shard->begin == shard[-1].end, "shard %d begins at %zu", s, shard->begin);
            }
            if (by == SHARD_BY_BYTES && shards == 1)
                CHECK(bench.store.shards[0].span_count == RANGES - 1, "%d spans: alike neighbours are one",
                      bench.store.shards[0].span_count);
            bench_close(&bench);
        }
}

/* --- every optimizer, by every verb that steps --- */

/* One weight in double precision. */
struct model_weight {
    double w, m, v;
};

static bool model_step(const char *optimizer, struct model_weight *a, double g, double rate, long t) {
    if (strncmp(optimizer, "sgd", 3) == 0) {
        a->w -= rate * g;
    } else if (strncmp(optimizer, "momentum", 8) == 0) {
        a->m = 0.8 * a->m + g;
        a->w -= rate * a->m;
    } else if (strncmp(optimizer, "nesterov", 8) == 0 || strncmp(optimizer, "muon", 4) == 0) {
        a->m = 0.8 * a->m + g;
        a->w -= rate * (g + 0.8 * a->m);
    } else if (strncmp(optimizer, "adagrad", 7) == 0) {
        a->m += g * g;
        a->w -= rate * g / (sqrt(a->m) + 0.05);
    } else if (strncmp(optimizer, "adam", 4) == 0) {
        const double seen1 = 1.0 - pow(0.7, (double)t), seen2 = 1.0 - pow(0.9, (double)t);
        a->m = 0.7 * a->m + 0.3 * g;
        a->v = 0.9 * a->v + 0.1 * g * g;
        if (strstr(optimizer, "hat=1")) /* in Keras' words */
            a->w -= rate * sqrt(seen2) / seen1 * a->m / (sqrt(a->v) + 0.05);
        else
            a->w -= rate * (a->m / seen1) / (sqrt(a->v / seen2) + 0.05);
    } else {
        return false;
    }
    return true;
}

static const char *const stepped[] = {"sgd:rate=0.3", "momentum:rate=0.3,momentum=0.8",
                                      "nesterov:rate=0.3,momentum=0.8", "adagrad:rate=0.3,epsilon=0.05",
                                      "adam:rate=0.3,beta1=0.7,beta2=0.9,epsilon=0.05",
                                      "adam:rate=0.3,beta1=0.7,beta2=0.9,epsilon=0.05,hat=1",
                                      /* no range here is a matrix: tests/store/matrices.c */
                                      "muon:rate=0.3,rest-rate=0.3,rest-momentum=0.8"};
enum { UPDATES = 6 };

/* Warm-up over 1.5 of 6 updates, then half a cosine down to 0.2. */
static const char *const falling = "cosine:warmup=0.25,end=0.2";
static double falling_rate(long update) {
    if ((double)update < 1.5) return 0.3 * (double)(update + 1) / 2.5;
    return 0.3 * (0.2 + 0.8 * 0.5 * (1.0 + cos(acos(-1.0) * ((double)update - 1.5) / 4.5)));
}

enum way { WAY_APPLY, WAY_RACY, WAY_SHARES, WAY_OWN, WAYS };
static const char *const way_names[] = {"shard_apply", "shard_apply_racy", "shard_step_share",
                                        "shard_step_own"};

/* On a worker's own copy, which then replaces what is in the store: the mean of one. */
static void step_own(struct shard *shard, const struct gradient *gradient, long update) {
    static float own[STATE_VECTORS][FLOATS];
    struct state copy = shard->store->host;
    const struct state *copies[WORKERS] = {0};
    for (int v = 0; v < copy.count; v++) copy.vector[v].at = own[v];
    copies[gradient->worker] = &copy;
    shard_copy(shard, gradient->worker, &copy);
    shard_step_own(shard, &copy, gradient, update);
    CHECK(atomic_load(&shard->version) == update, "the version went up before the end of the round");
    for (int share = 4; share >= 0; share--) shard_reduce_share(shard, 0, copies, share, 5);
    shard_end_round(shard, update + 1);
}

static void step_all(struct bench *bench, enum way way, long update) {
    struct gradient *gradient =
        give(bench, (int)(update % WORKERS), update, 4, bench->store.settings.shards + 1);
    for (int s = 0; s < bench->store.settings.shards; s++) {
        struct shard *shard = &bench->store.shards[s];
        long before = update;
        if (way == WAY_APPLY) before = shard_apply(shard, gradient);
        if (way == WAY_RACY) before = shard_apply_racy(shard, gradient);
        if (way == WAY_OWN) step_own(shard, gradient, update);
        if (way == WAY_SHARES) {
            for (int w = 0; w < WORKERS; w++) atomic_store(&shard->contributed[w], NULL);
            shard_contribute(shard, gradient);
            for (int share = 4; share >= 0; share--) shard_step_share(shard, 0, share, 5);
            CHECK(atomic_load(&shard->version) == update, "the version went up before the end of the round");
            shard_end_round(shard, update + 1);
        }
        CHECK(before == update, "%s says version %ld before update %ld", way_names[way], before, update);
        CHECK(atomic_load(&shard->version) == update + 1, "%s: version %ld after update %ld", way_names[way],
              atomic_load(&shard->version), update);
        shard_done(shard, gradient, before);
    }
    store_release(&bench->store, gradient);
}

/* The moving average after update n, from the weights that there are then: the same bits. */
static void check_average(const struct bench *bench, float *average, long n, const char *what) {
    const double decay = bench->store.settings.average, early = (1.0 + (double)n) / (10.0 + (double)n);
    const float towards = (float)(1.0 - (early < decay ? early : decay));
    const float *found = state_find(&bench->store.host, "average");
    long wrong = 0;
    CHECK((found != NULL) == (decay > 0.0), "decay %g: an average, or none", decay);
    CHECK(store_tested(&bench->store) == (decay > 0.0 ? found : bench->store.weights), "what is tested");
    for (size_t i = 0; found && i < bench->layout.floats; i++) {
        average[i] += towards * (bench->store.weights[i] - average[i]);
        wrong += memcmp(&average[i], &found[i], sizeof *average) != 0;
    }
    CHECK(wrong == 0, "%s: %ld of the averages are wrong after update %ld", what, wrong, n);
}

static void check_optimizer(const char *optimizer, enum way way, int shards, bool simulated, double decay) {
    static struct bench bench;
    static struct model_weight model[FLOATS];
    static float average[FLOATS];
    const struct bench_settings settings = {.optimizer = optimizer,
                                            .schedule = falling,
                                            .shards = shards,
                                            .by = shards == 4 ? SHARD_BY_ROUND_ROBIN : SHARD_BY_BYTES,
                                            .simulated = simulated,
                                            .total_updates = UPDATES,
                                            .average = decay};
    if (!bench_open(&bench, &settings)) return;
    store_begin_average(&bench.store);
    memcpy(average, bench.store.weights, bench.layout.floats * sizeof *average);
    for (size_t i = 0; i < bench.layout.floats; i++)
        model[i] = (struct model_weight){.w = (double)bench.store.weights[i]};
    for (long update = 0; update < UPDATES; update++) {
        step_all(&bench, way, update);
        check_average(&bench, average, update + 1, way_names[way]);
        for (int r = 0; r < RANGES; r++) {
            const struct range *range = &bench.ranges[r];
            const double rate = falling_rate(update) * (double)range->rate_multiplier;
            for (size_t i = range->begin; i < range->begin + range->floats; i++) {
                const double g = (double)bench.values[update % WORKERS][i];
                if (range->kind == RANGE_STATISTIC) model[i].w -= g;
                if (range->kind == RANGE_TRAINABLE)
                    CHECK(model_step(optimizer, &model[i], g + (double)range->decay * model[i].w, rate,
                                     update + 1),
                          "no formula");
                const double got = (double)bench.store.weights[i], off = fabs(got - model[i].w);
                if (range->kind == RANGE_FROZEN)
                    CHECK(off <= 0.0, "%s, %s: a frozen weight moved", optimizer, way_names[way]);
                CHECK(off < 2e-5,
                      "%s, %s, %d shards, update %ld: array %d, weight %zu is %.7g, expected %.7g", optimizer,
                      way_names[way], shards, update, r, i, got, model[i].w);
                model[i].w = got; /* so that rounding does not add up */
                for (int m = 0; m < 2; m++) {
                    const bool there = m < optimizer_of(&bench.optimizer)->moments;
                    const double moment = there ? (double)bench.store.host.vector[1 + m].at[i] : 0.0;
                    const double expected = m == 0 ? model[i].m : model[i].v;
                    CHECK(fabs(moment - expected) < 2e-5,
                          "%s, %s: moment %d of weight %zu is %.7g, expected %.7g", optimizer, way_names[way],
                          m, i, moment, expected);
                }
            }
            for (size_t i = range->begin + range->floats; i < range->begin + padded(range->floats); i++)
                CHECK(fabsf(bench.store.weights[i]) <= 0.0f, "%s, %s: padding %zu is not zero", optimizer,
                      way_names[way], i);
        }
    }
    const long racy = way == WAY_RACY ? UPDATES : 0;
    for (int s = 0; s < shards; s++) {
        CHECK(atomic_load(&bench.store.shards[s].racy_updates) == racy, "%s counts racy updates",
              way_names[way]);
        CHECK((long)bench.store.shards[s].witness[0] == racy, "%s: the witness of shard %d saw %g updates",
              way_names[way], s, bench.store.shards[s].witness[0]);
        for (int w = 0; w < WORKERS; w++)
            CHECK(bench.store.shards[s].tallies[w].staleness.gradients == UPDATES / WORKERS,
                  "shard %d tallies %ld", s, bench.store.shards[s].tallies[w].staleness.gradients);
    }
    CHECK(store_lost_updates(&bench.store) == 0, "%s: %ld lost updates by one thread", way_names[way],
          store_lost_updates(&bench.store));
    CHECK(bench.finished == UPDATES && !bench.finished_while_free, "%ld gradients were reported",
          bench.finished);
    bench_close(&bench);
}

/* By its name a vector is found in a state and in a checkpoint. */
static void check_names(const struct optimizer *optimizer) {
    CHECK(optimizer->moments >= 0 && optimizer->moments <= UPDATE_MOMENTS, "%s: %d vectors",
          optimizer->plugin.name, optimizer->moments);
    for (int m = 0; m < optimizer->moments; m++) {
        const char *name = optimizer->moment_names[m];
        CHECK(name && name[0] && strcmp(name, "average") != 0, "%s: vector %d has no name of its own",
              optimizer->plugin.name, m);
        for (int other = 0; other < m; other++)
            CHECK(strcmp(name, optimizer->moment_names[other]) != 0, "%s: two vectors are called %s",
                  optimizer->plugin.name, name);
    }
}

static void check_optimizers(void) {
    int tested = 0, known = 0;
    while (optimizers[known]) check_names(optimizers[known++]);
    for (size_t o = 0; o < sizeof stepped / sizeof *stepped; o++) {
        /* settings of one that is above are no other */
        tested += o == 0 || strncmp(stepped[o], stepped[o - 1], strcspn(stepped[o], ":") + 1) != 0;
        for (int way = 0; way < WAYS; way++)
            for (int shards = 1; shards <= 4; shards += 3)
                for (int what = 0; what < 4; what++)
                    check_optimizer(stepped[o], (enum way)way, shards, what % 2, what < 2 ? 0.0 : 0.4);
    }
    CHECK(tested == known, "%d optimizers have a formula here, of %d", tested, known);
}

/* --- the mean of a round --- */

/* Unequal numbers of examples, one gradient empty with values that must not be looked at, in every number of
 * shares. */
static void check_mean(void) {
    static const int examples[][WORKERS] = {{4, 4, 4}, {4, 0, 7}, {0, 3, 0}, {0, 5, 1}, {1, 2, 0}, {0, 0, 0}};
    static struct bench bench;
    for (size_t c = 0; c < sizeof examples / sizeof *examples; c++)
        for (int shares = 1; shares <= 6; shares++) {
            const struct bench_settings settings = {
                .optimizer = "sgd:rate=1", .schedule = "constant", .shards = 3};
            static float before[FLOATS];
            struct gradient *given[WORKERS];
            int all = 0;
            if (!bench_open(&bench, &settings)) return;
            memcpy(before, bench.store.weights, bench.layout.floats * sizeof *before);
            for (int w = 0; w < WORKERS; w++) {
                given[w] = give(&bench, w, 0, examples[c][w], 3);
                if (examples[c][w] == 0)
                    for (size_t i = 0; i < bench.layout.floats; i++) bench.values[w][i] = NAN;
                all += examples[c][w];
            }
            for (int s = 0; s < 3; s++) {
                for (int w = WORKERS - 1; w >= 0; w--)
                    if (examples[c][w] > 0 || shares % 2)
                        shard_contribute(&bench.store.shards[s], given[w]); /* else none was contributed */
                for (int share = 0; share < shares; share++)
                    shard_step_share(&bench.store.shards[s], 0, share, shares);
            }
            for (int r = 0; r < RANGES; r++)
                for (size_t i = bench.ranges[r].begin; i < bench.ranges[r].begin + bench.ranges[r].floats;
                     i++) {
                    float mean = 0.0f;
                    for (int w = 0; w < WORKERS; w++)
                        if (examples[c][w] > 0)
                            mean += (float)examples[c][w] / (float)all * bench.values[w][i];
                    if (bench.ranges[r].kind == RANGE_FROZEN || all == 0) mean = 0.0f;
                    const float decay = bench.ranges[r].decay * before[i];
                    float expected = before[i] - mean;
                    if (bench.ranges[r].kind == RANGE_TRAINABLE && all > 0)
                        expected = before[i] - bench.ranges[r].rate_multiplier * (mean + decay);
                    CHECK(memcmp(&expected, &bench.store.weights[i], sizeof expected) == 0,
                          "examples %d, %d, %d in %d shares: weight %zu is %.9g, expected %.9g",
                          examples[c][0], examples[c][1], examples[c][2], shares, i,
                          (double)bench.store.weights[i], (double)expected);
                }
            bench_close(&bench);
        }
}

/* --- reading --- */

static void check_reading(void) {
    static struct bench bench;
    static float copy[FLOATS];
    for (int simulated = 0; simulated < 2; simulated++)
        for (int racy = 0; racy < 2; racy++) {
            const struct bench_settings settings = {
                .optimizer = "sgd", .schedule = "constant", .shards = 3, .simulated = simulated};
            if (!bench_open(&bench, &settings)) return;
            const char *name = racy ? "shard_read_racy" : "shard_read";
            for (int s = 0; s < 3; s++) {
                const struct shard *shard = &bench.store.shards[s];
                long version = -1;
                bool (*read)(const struct shard *, const struct device *, float *, long *) =
                    racy ? shard_read_racy : shard_read;
                for (size_t i = 0; i < bench.layout.floats; i++) copy[i] = 77.0f;
                CHECK(read(shard, NULL, copy, &version) && version == s,
                      "%s: the first read is at version %ld", name, version);
                for (size_t i = 0; i < bench.layout.floats; i++) {
                    const float expected =
                        i >= shard->begin && i < shard->end ? bench.store.weights[i] : 77.0f;
                    CHECK(memcmp(&copy[i], &expected, sizeof expected) == 0,
                          "%s of shard %d: float %zu is %g", name, s, i, (double)copy[i]);
                }
                copy[shard->begin] = 78.0f;
                CHECK(!read(shard, NULL, copy, &version) && version == s && copy[shard->begin] > 77.5f,
                      "%s: copied what had not changed", name);
                step_all(&bench, WAY_APPLY, s);
                CHECK(read(shard, NULL, copy, &version) && version == s + 1,
                      "%s: did not see a change, version %ld", name, version);
                CHECK(memcmp(copy + shard->begin, bench.store.weights + shard->begin,
                             (shard->end - shard->begin) * sizeof *copy) == 0,
                      "%s: what had changed of shard %d was not copied", name, s);
                store_set_version(&bench.store, 0); /* an older version is a change too: a resumed run */
                CHECK(read(shard, NULL, copy, &version) && version == 0, "%s: version %ld after setting back",
                      name, version);
                store_set_version(&bench.store, s + 1);
            }
            bench_close(&bench);
        }
}

/* A racy reader that is overtaken by an update has the version from before: what it copied may be older than
 * that update. */
static void update_meanwhile(void *argument) {
    struct bench *bench = argument;
    shard_apply(&bench->store.shards[0], &bench->store.workers[0].gradients[0]);
}

static void check_overtaken_reader(void) {
    static struct bench bench;
    static float copy[FLOATS];
    const struct bench_settings settings = {
        .optimizer = "sgd", .schedule = "constant", .shards = 1, .simulated = true};
    int overtaken = 0;
    for (int again = 0; again < 8; again++) {
        long version = -1;
        struct world_thread *thread = NULL;
        if (!bench_open(&bench, &settings)) return;
        give(&bench, 0, 0, 4, 1);
        CHECK(world_spawn(bench.world, "writer", NULL, update_meanwhile, &bench, &thread, &bench.error) == OK,
              "%s", bench.error.words);
        const long before = atomic_load(&bench.store.shards[0].version);
        shard_read_racy(&bench.store.shards[0], NULL, copy, &version);
        if (before == 0 && atomic_load(&bench.store.shards[0].version) == 1) {
            overtaken++;
            CHECK(version == 0, "a reader that was overtaken says version %ld", version);
        }
        world_join(thread);
        CHECK(atomic_load(&bench.store.shards[0].version) == 1, "the update is missing");
        bench_close(&bench);
    }
    CHECK(overtaken > 0, "no reader was overtaken: is the test awake?");
}

/* --- versions, staleness, tallies, slots --- */

/* Percentiles of 0, every, 2 every, ... with 1000 gradients in two tables that are added. */
static void check_percentiles(long every) {
    static const double shares[] = {0.01, 0.5, 0.99, 1.0};
    struct staleness parts[2] = {0};
    for (int i = 0; i < 1000; i++) staleness_add(&parts[i % 2], i * every);
    staleness_merge(&parts[0], &parts[1]);
    CHECK(parts[0].gradients == 1000 && parts[0].max == 999 * every, "%ld, at most %ld", parts[0].gradients,
          parts[0].max);
    for (int i = 0; i < 4; i++) {
        const long found = staleness_percentile(&parts[0], shares[i]);
        const long expected = (long)(shares[i] * 1000 - 1) * every;
        CHECK(found >= expected && found <= expected + expected / STALENESS_PARTS && found <= parts[0].max,
              "%g of ages up to %ld: %ld, expected %ld", shares[i], parts[0].max, found, expected);
    }
}

static void check_ages(void) {
    const struct staleness none = {0};
    CHECK(staleness_percentile(&none, 0.5) == -1 && isnan(staleness_mean(&none)), "of none");
    for (long every = 0; every <= 1000; every += every < 4 ? 1 : 332) check_percentiles(every);
    for (int bin = 0; bin < 2 * STALENESS_BINS; bin++) {
        const long begin = staleness_begin(bin), next = staleness_begin(bin + 1);
        CHECK(begin < next && staleness_bin(begin) == bin && staleness_bin(next - 1) == bin,
              "bin %d from %ld to before %ld", bin, begin, next);
    }
}

static void check_versions(void) {
    static struct bench bench;
    const struct bench_settings settings = {.optimizer = "sgd", .schedule = "constant", .shards = 3};
    if (!bench_open(&bench, &settings)) return;
    CHECK(store_version(&bench.store) == 0, "a new store is at version %ld", store_version(&bench.store));
    store_set_version(&bench.store, 41);
    for (int s = 0; s < 3; s++)
        CHECK(atomic_load(&bench.store.shards[s].version) == 41, "shard %d was not set", s);
    for (int s = 0; s < 3; s++) {
        shard_end_round(&bench.store.shards[s], 42);
        CHECK(store_version(&bench.store) == (s == 2 ? 42 : 41), "version %ld: the smallest counts",
              store_version(&bench.store));
    }
    bench_close(&bench);
}

/* --- rounds that are undone --- */

static void contribute(struct bench *bench, struct gradient *gradient) {
    for (int s = 0; s < bench->store.settings.shards; s++)
        shard_contribute(&bench->store.shards[s], gradient);
}

static void step_round(struct bench *bench, int s, long version, enum way way, int shares, int of) {
    struct shard *shard = &bench->store.shards[s];
    static float own[STATE_VECTORS][FLOATS];
    struct state copy = bench->store.host;
    const struct state *copies[WORKERS] = {&copy};
    for (int v = 0; v < copy.count; v++) copy.vector[v].at = own[v];
    for (int v = 0; v < copy.count; v++)
        for (int i = 0; i < FLOATS; i++) own[v][i] = some((uint64_t)(version + 7), (uint64_t)i);
    for (int share = 0; share < shares; share++)
        if (way == WAY_SHARES)
            shard_step_share(shard, 0, share, of);
        else
            shard_reduce_share(shard, 0, copies, share, of);
    if (shares == of) shard_end_round(shard, version + 1);
}

struct memory {
    float at[STATE_VECTORS][FLOATS];
};

static void remember(const struct bench *bench, struct memory *memory) {
    const struct state *state = &bench->store.host;
    for (int v = 0; v < state->count; v++)
        memcpy(memory->at[v], state->vector[v].at, bench->layout.floats * sizeof(float));
}

static bool same(const struct bench *bench, const struct memory *memory) {
    const struct state *state = &bench->store.host;
    bool equal = true;
    for (int v = 0; v < state->count; v++)
        equal =
            equal && memcmp(memory->at[v], state->vector[v].at, bench->layout.floats * sizeof(float)) == 0;
    return equal;
}

/* Shard 0 has stepped so many of three shares, shard 1 so many of two, after two whole rounds. */
static void undo_one(enum way way, int first, int second) {
    static struct bench bench;
    static struct memory before;
    const struct bench_settings settings = {
        .optimizer = "adam", .schedule = "constant", .shards = 2, .average = 0.9, .undoes = true};
    if (!bench_open(&bench, &settings)) return;
    contribute(&bench, give(&bench, 0, 0, 4, 2));
    for (long version = 0; version < 2; version++)
        for (int s = 0; s < 2; s++) step_round(&bench, s, version, way, 2 + s, 2 + s);
    CHECK(store_undo(&bench.store, 2, &bench.error) == OK, "%s", bench.error.words);
    remember(&bench, &before);
    step_round(&bench, 0, 2, way, first, 3);
    step_round(&bench, 1, 2, way, second, 2);
    CHECK(same(&bench, &before) == (first + second == 0), "a round with %d and %d shares", first, second);
    CHECK(store_undo(&bench.store, 2, &bench.error) == OK && same(&bench, &before) &&
              store_version(&bench.store) == 2,
          "%d and %d shares: not what was before: version %ld, \"%s\"", first, second,
          store_version(&bench.store), bench.error.words);
    CHECK(store_undo(&bench.store, 1, &bench.error) == (first + second == 0 ? OK : ERROR_PEER),
          "a second round is undone");
    bench_close(&bench);
}

static void check_undo(void) {
    for (int way = WAY_SHARES; way <= WAY_OWN; way++)
        for (int first = 0; first <= 3; first++)
            for (int second = 0; second <= 2; second++) undo_one((enum way)way, first, second);
}

/* What a run that fails in the middle must not keep: nothing is there to undo it with; or not all, where a
 * strategy cuts finer than there are workers. */
static void check_not_undone(bool undoes) {
    static struct bench bench;
    const struct bench_settings settings = {
        .optimizer = "sgd", .schedule = "constant", .shards = 2, .undoes = undoes};
    const int of = undoes ? WORKERS + 1 : 2;
    if (!bench_open(&bench, &settings)) return;
    contribute(&bench, give(&bench, 0, 0, 4, 2));
    CHECK(store_undo(&bench.store, 0, &bench.error) == OK, "a new store");
    for (int s = 0; s < 2; s++) {
        struct shard *shard = &bench.store.shards[s];
        for (int share = of - 1; share > 0; share--) shard_step_share(shard, 0, share, of);
        CHECK(store_undo(&bench.store, 0, &bench.error) == ERROR_PEER, "a share of shard %d is not stepped",
              s);
        shard_step_share(shard, 0, 0, of);
        shard_end_round(shard, 1);
        CHECK(store_undo(&bench.store, 1, &bench.error) == (s == 1 ? OK : ERROR_PEER),
              "shard %d has ended the round", s);
        CHECK(store_undo(&bench.store, 0, &bench.error) == ERROR_PEER, "shard %d has ended the round", s);
    }
    bench_close(&bench);
}

static void check_tallies(void) {
    static struct bench bench;
    const struct bench_settings settings = {
        .optimizer = "sgd", .schedule = "constant", .shards = 3, .slots = 2};
    if (!bench_open(&bench, &settings)) return;
    struct shard *shards = bench.store.shards;
    /* Worker 1: computed on versions 10, 20, 30; applied at 17, 23, 30. */
    struct gradient *gradient = give(&bench, 1, 0, 4, 4);
    for (int s = 0; s < 3; s++) gradient->version[s] = 10 * (s + 1);
    shard_done(&shards[0], gradient, 17);
    CHECK(atomic_load(&gradient->staleness) == 7 && atomic_load(&gradient->applied_version) == 18,
          "after one shard: %ld, version %ld", atomic_load(&gradient->staleness),
          atomic_load(&gradient->applied_version));
    shard_done(&shards[2], gradient, 30);
    shard_done(&shards[1], gradient, 23);
    CHECK(atomic_load(&gradient->staleness) == 7, "staleness %ld, expected the largest of 7, 0, 3",
          atomic_load(&gradient->staleness));
    CHECK(atomic_load(&gradient->applied_version) == 18,
          "applied at %ld, expected the smallest of 18, 31, 24", atomic_load(&gradient->applied_version));
    CHECK(bench.finished == 0 && atomic_load(&gradient->left) == 2, "reported while the worker holds it");
    store_release(&bench.store, gradient);
    CHECK(bench.finished == 1 && atomic_load(&gradient->left) == 0 && !bench.finished_while_free,
          "%ld reports", bench.finished);
    static const int expected[] = {7, 3, 0};
    for (int s = 0; s < 3; s++)
        for (int w = 0; w < WORKERS; w++) {
            const struct tally *tally = &shards[s].tallies[w];
            CHECK(tally->staleness.gradients == (w == 1) && tally->dropped == 0,
                  "shard %d tallies %ld updates of worker %d", s, tally->staleness.gradients, w);
            CHECK(tally->staleness.counts[expected[s]] == (w == 1), "shard %d, worker %d: no staleness of %d",
                  s, w, expected[s]);
            CHECK(tally->staleness.max == (w == 1 ? expected[s] : 0) &&
                      (int)tally->staleness.sum == tally->staleness.max,
                  "shard %d, worker %d: at most %ld, sum %g", s, w, tally->staleness.max,
                  tally->staleness.sum);
        }
    /* Two numbers share a bin from 64 on. */
    static const long stale[] = {63, 64, 65, 1000};
    for (int i = 0; i < 4; i++) {
        gradient = give(&bench, 2, i, 4, 1);
        shard_done(&shards[0], gradient, gradient->version[0] + stale[i]);
    }
    const struct tally *tally = &shards[0].tallies[2];
    CHECK(tally->staleness.counts[63] == 1 && tally->staleness.counts[64] == 2 &&
              tally->staleness.counts[0] == 0,
          "bins 0, 63 and 64: %ld, %ld, %ld", tally->staleness.counts[0], tally->staleness.counts[63],
          tally->staleness.counts[64]);
    CHECK(tally->staleness.max == 1000, "at most %ld", tally->staleness.max);
    /* An empty gradient is let go of and not counted. */
    gradient = give(&bench, 2, 4, 0, 1);
    shard_done(&shards[0], gradient, 0);
    CHECK(tally->staleness.gradients == 4 && atomic_load(&gradient->left) == 0,
          "an empty gradient is an update");
    /* A gradient that is thrown away is marked, counted and let go of; its slot starts anew. */
    gradient = give(&bench, 0, 0, 4, 2);
    shard_drop(&shards[1], gradient);
    CHECK(shards[1].tallies[0].dropped == 1 && shards[1].tallies[0].staleness.gradients == 0, "dropped %ld",
          shards[1].tallies[0].dropped);
    CHECK(atomic_load(&gradient->dropped) && atomic_load(&gradient->left) == 2, "left %d after a drop",
          atomic_load(&gradient->left));
    shard_done(&shards[0], gradient, 5);
    CHECK(atomic_load(&gradient->left) == 0, "left %d", atomic_load(&gradient->left));
    gradient = give(&bench, 0, 3, 4, 1);
    CHECK(gradient->slot == 0 && !atomic_load(&gradient->dropped) && atomic_load(&gradient->staleness) == 0 &&
              atomic_load(&gradient->applied_version) == 0 && gradient->step == 3,
          "slot %d still has what was there before", gradient->slot);
    bench_close(&bench);
}

/* A worker has `slots` gradients on the way at most, in slots that go round, and waits for room only beyond
 * that. */
static void check_slots(void) {
    static struct bench bench;
    for (int slots = 0; slots <= 4; slots++) {
        const struct bench_settings settings = {
            .optimizer = "sgd", .schedule = "constant", .shards = 1, .slots = slots, .simulated = true};
        if (!bench_open(&bench, &settings)) return;
        struct store *store = &bench.store;
        struct gradient *on_the_way[5];
        const int most = slots > 0 ? slots : 1;
        CHECK(store_drain(store, 0, &bench.error) == OK, "%s", bench.error.words);
        for (int i = 0; i < most; i++) {
            CHECK(store_wait_room(store, 0, &bench.error) == OK, "%d slots, %d on the way: %s", slots, i,
                  bench.error.words);
            on_the_way[i] = give(&bench, 0, i, 4, 1);
            CHECK(on_the_way[i]->slot == i && on_the_way[i]->worker == 0,
                  "step %d is in slot %d of worker %d", i, on_the_way[i]->slot, on_the_way[i]->worker);
            CHECK(store_drain(store, 0, &bench.error) == ERROR_PEER, "%d slots: drained with %d on the way",
                  slots, i + 1);
        }
        CHECK(store->workers[0].room_waits == 0, "%ld waits while there was room",
              store->workers[0].room_waits);
        CHECK(store_wait_room(store, 0, &bench.error) == ERROR_PEER, "%d slots: room for one more than that",
              slots);
        CHECK(store->workers[0].room_waits == 1, "%ld waits for room were counted",
              store->workers[0].room_waits);
        CHECK(store_wait_room(store, 1, &bench.error) == OK && store_drain(store, 1, &bench.error) == OK,
              "another worker has room");
        shard_done(&store->shards[0], on_the_way[most - 1], 0);
        CHECK(store_wait_room(store, 0, &bench.error) == OK, "%d slots: %s", slots, bench.error.words);
        for (int i = 0; i < most - 1; i++) shard_done(&store->shards[0], on_the_way[i], 0);
        CHECK(store_drain(store, 0, &bench.error) == OK, "%s", bench.error.words);
        for (int step = 0; step <= slots; step++) {
            struct gradient *gradient = store_gradient(store, 0, slots + 1 + step);
            CHECK(gradient->slot == step, "step %d is in slot %d", slots + 1 + step, gradient->slot);
        }
        bench_close(&bench);
    }
}

/* A mailbox takes what all workers can have on the way, and says so when it is full. */
static void check_posting(void) {
    static struct bench bench;
    const struct bench_settings settings = {
        .optimizer = "sgd", .schedule = "constant", .shards = 2, .slots = 2};
    if (!bench_open(&bench, &settings)) return;
    struct event mail[2];
    struct shard *shards = bench.store.shards;
    for (int s = 0; s < 2; s++) {
        event_open(&mail[s], bench.world);
        shards[s].mail = &mail[s];
    }
    for (int i = 0; i < 3 * WORKERS; i++) {
        struct gradient *gradient = give(&bench, i % WORKERS, i / WORKERS, 4, 1);
        CHECK(shard_post(&shards[1], gradient, &bench.error) == OK, "%s", bench.error.words);
    }
    CHECK(atomic_load(&mail[1].count) == 3 * WORKERS && atomic_load(&mail[0].count) == 0,
          "%lu posts of 9 told the server", (unsigned long)atomic_load(&mail[1].count));
    struct mail got;
    CHECK(!mailbox_receive(&shards[0].mailbox, &got), "the other shard has mail");
    for (int i = 0; i < 3 * WORKERS; i++) {
        CHECK(mailbox_receive(&shards[1].mailbox, &got), "mail %d is missing", i);
        CHECK(got.worker == i % WORKERS && got.slot == i / WORKERS, "mail %d is of worker %d, slot %d", i,
              got.worker, got.slot);
    }
    int code = OK, sent = 0;
    for (; code == OK && sent < 100; sent++)
        code = shard_post(&shards[1], &bench.store.workers[0].gradients[0], &bench.error);
    CHECK(code == ERROR_INTERNAL && sent > 3 * WORKERS, "a full mailbox took %d mails", sent);
    bench_close(&bench);
}

/* --- learning rates --- */

static double factor(const char *text, long update, long total) {
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &schedule_kind, text, &error) == OK, "%s", error.words);
    return schedule_factor(&choice, update, total);
}

static void check_schedules(void) {
    static const struct {
        const char *text;
        long update, total;
        double factor;
    } rows[] = {
        {"constant", 0, 100, 1.0},
        {"constant", 99, 100, 1.0},
        {"constant:warmup=0.25", 0, 100, 1.0 / 26.0}, /* never 0: the first update counts */
        {"constant:warmup=0.25", 12, 100, 0.5},
        {"constant:warmup=0.25", 24, 100, 25.0 / 26.0},
        {"constant:warmup=0.25", 25, 100, 1.0},
        {"constant:warmup=1", 9, 10, 10.0 / 11.0},
        {"cosine", 0, 100, 1.0},
        {"cosine", 25, 100, 0.85355339059327376},
        {"cosine", 50, 100, 0.5},
        {"cosine", 100, 100, 0.0},
        {"cosine", 1000, 100, 0.0},
        {"cosine:end=0.2", 50, 100, 0.6},
        {"cosine:end=0.2", 100, 100, 0.2},
        {"cosine:warmup=0.2,end=0.2", 9, 100, 10.0 / 21.0},
        {"cosine:warmup=0.2,end=0.2", 20, 100, 1.0},
        {"cosine:warmup=0.2,end=0.2", 60, 100, 0.6},
        {"cosine", 3, 0, 0.0},
        {"linear", 0, 100, 1.0},
        {"linear", 25, 100, 0.75},
        {"linear", 100, 100, 0.0},
        {"linear:end=0.2", 50, 100, 0.6},
        {"linear:warmup=0.2,end=0.2", 9, 100, 10.0 / 21.0},
        {"linear:warmup=0.2,end=0.2", 60, 100, 0.6},
        {"step:every=0.25,factor=0.5", 0, 100, 1.0},
        {"step:every=0.25,factor=0.5", 24, 100, 1.0},
        {"step:every=0.25,factor=0.5", 25, 100, 0.5},
        {"step:every=0.25,factor=0.5", 60, 100, 0.25},
        {"step:every=0.25,factor=0.5", 99, 100, 0.125},
        {"step:every=0.25,factor=0.5,warmup=0.2", 39, 100, 1.0},
        {"step:every=0.25,factor=0.5,warmup=0.2", 40, 100, 0.5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const double got = factor(rows[i].text, rows[i].update, rows[i].total);
        CHECK(fabs(got - rows[i].factor) < 1e-12, "%s, update %ld of %ld: %.17g, expected %.17g",
              rows[i].text, rows[i].update, rows[i].total, got, rows[i].factor);
    }
    /* Every schedule, those that come later too: warms up, and never goes above the rate or below nothing. */
    for (int s = 0; schedules[s]; s++) {
        char text[100];
        snprintf(text, sizeof text, "%s:warmup=0.1", schedules[s]->plugin.name);
        for (long update = 0; update < 5; update++)
            CHECK(fabs(factor(text, update, 50) - (double)(update + 1) / 6.0) < 1e-12, "%s: update %ld", text,
                  update);
        for (long update = 5; update < 60; update++)
            CHECK(factor(text, update, 50) >= 0.0 && factor(text, update, 50) <= 1.0, "%s: update %ld", text,
                  update);
    }
    static struct bench bench;
    const struct bench_settings settings = {
        .optimizer = "sgd:rate=0.3", .schedule = falling, .shards = 1, .total_updates = UPDATES};
    if (!bench_open(&bench, &settings)) return;
    for (long update = 0; update < UPDATES; update++)
        CHECK(fabs((double)store_rate(&bench.store, update) - falling_rate(update)) < 1e-7, "rate %g",
              (double)store_rate(&bench.store, update));
    bench_close(&bench);
}

int main(void) {
    for (int by = 0; by < 3; by++)
        for (int stores = 1; stores <= 3; stores++)
            for (int each = 1; each <= 3; each++) check_slices((enum shard_by)by, stores, each);
    check_cut_by_bytes();
    check_cut_by_arrays();
    check_spans();
    check_optimizers();
    check_mean();
    check_reading();
    check_overtaken_reader();
    check_versions();
    check_undo();
    check_not_undone(false);
    check_not_undone(true);
    check_ages();
    check_tallies();
    check_slots();
    check_posting();
    check_schedules();
    return check_end();
}
