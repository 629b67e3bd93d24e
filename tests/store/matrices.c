/* Steps of whole matrices (muon) and decoupled decay, against the same in double precision and done the long
 * way; and that it does not matter who steps a matrix, in how many shards and shares. */
#include <math.h>
#include <string.h>

#include "../../src/base/rng.h"
#include "../../src/store/strategy.h"
#include "../check.h"

enum { WORKERS = 3, RANGES = 8, STEPS = 3, MOST = 4096 };

/* Wider, taller, square, of four dimensions; a vector and a column, which are no matrices; and the head. */
static const struct shape shapes[RANGES] = {{.rank = 2, .dims = {5, 17}}, {.rank = 1, .dims = {17}},
                                            {.rank = 2, .dims = {33, 8}}, {.rank = 4, .dims = {3, 3, 2, 7}},
                                            {.rank = 2, .dims = {9, 1}},  {.rank = 2, .dims = {12, 12}},
                                            {.rank = 2, .dims = {6, 6}},  {.rank = 2, .dims = {12, 4}}};
enum { FROZEN = 6, HEAD = 7 };
static const float l2[RANGES] = {0.3f, 0.0f, 0.0f, 0.1f, 0.1f, 0.0f, 0.1f, 0.2f};

struct bench {
    struct range ranges[RANGES];
    struct layout layout;
    struct world *world;
    struct roster roster;
    struct choice strategy, optimizer, schedule;
    struct device devices[WORKERS]; /* the workers' */
    struct store store;
    struct error error;
    float values[WORKERS][MOST];
};

static float some(uint64_t a, uint64_t b) {
    return rng_unit(rng_philox(5, a, b).word[0]) - 0.5f;
}

static bool is_matrix(int range, bool head) {
    return shapes[range].rank >= 2 && range != 4 && range != FROZEN && (range != HEAD || head);
}

static int bench_open_in(struct bench *bench, const char *optimizer, int shards, enum shard_by by,
                         enum precision precision) {
    struct error *error = &bench->error;
    memset(bench, 0, sizeof *bench);
    bench->layout = (struct layout){.ranges = bench->ranges, .count = RANGES};
    for (int i = 0; i < RANGES; i++) {
        struct range *range = &bench->ranges[i];
        *range = (struct range){.shape = shapes[i],
                                .floats = shape_count(&shapes[i]),
                                .begin = bench->layout.floats,
                                .kind = i == FROZEN ? RANGE_FROZEN : RANGE_TRAINABLE,
                                .decay = l2[i],
                                .rate_multiplier = i == 2 ? 0.5f : 1.0f};
        snprintf(range->name, sizeof range->name, "range%d", i);
        bench->layout.floats += (range->floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    }
    RETURN_IF(plugin_choose(&bench->strategy, &strategy_kind, "sync", error));
    RETURN_IF(plugin_choose(&bench->optimizer, &optimizer_kind, optimizer, error));
    RETURN_IF(plugin_choose(&bench->schedule, &schedule_kind, "constant", error));
    RETURN_IF(world_open_threads(&bench->world, error));
    RETURN_IF(roster_open(&bench->roster, bench->world, WORKERS, 0, 0.05, error));
    for (int w = 0; w < WORKERS; w++) {
        bench->devices[w] = device_processor();
        bench->devices[w].precision = precision;
    }
    const struct store_settings settings = {.layout = &bench->layout,
                                            .roster = &bench->roster,
                                            .devices = bench->devices,
                                            .shards = shards,
                                            .shard_by = by,
                                            .strategy = &bench->strategy,
                                            .optimizer = &bench->optimizer,
                                            .schedule = &bench->schedule,
                                            .total_updates = STEPS,
                                            .average = 0.4};
    RETURN_IF(store_open(&bench->store, &settings, error));
    for (int i = 0; i < RANGES; i++)
        for (size_t at = 0; at < bench->ranges[i].floats; at++)
            bench->store.weights[bench->ranges[i].begin + at] = some(1, bench->ranges[i].begin + at);
    store_begin_average(&bench->store);
    return OK;
}

static int bench_open(struct bench *bench, const char *optimizer, int shards, enum shard_by by) {
    return bench_open_in(bench, optimizer, shards, by, PRECISION_FP32);
}

static void bench_close(struct bench *bench) {
    store_close(&bench->store);
    if (bench->world) roster_close(&bench->roster);
    if (bench->world) world_close(bench->world);
}

static float gradient_at(int worker, long step, size_t at) {
    return some((uint64_t)(100 + worker + 10 * step), at);
}

static struct gradient *give(struct bench *bench, int worker, long step) {
    struct gradient *gradient = store_gradient(&bench->store, worker, step);
    memset(bench->values[worker], 0, sizeof bench->values[worker]);
    for (int i = 0; i < RANGES; i++)
        for (size_t at = bench->ranges[i].begin; at < bench->ranges[i].begin + bench->ranges[i].floats; at++)
            bench->values[worker][at] = gradient_at(worker, step, at);
    gradient->values = bench->values[worker];
    gradient->examples = 4;
    atomic_store(&gradient->left, bench->store.settings.shards + 1);
    return gradient;
}

/* --- the same in double precision, the iteration on the whole matrix --- */

struct model {
    double w[MOST], v[MOST], average[MOST];
};

/* x[rows][columns], of which rows are the fewer, becomes a x + (b s + c s s) x with s = x x'. */
static void round_of(int rows, int columns, double *x) {
    static double s[64 * 64], p[64 * 64], y[MOST];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < rows; j++) {
            double sum = 0;
            for (int k = 0; k < columns; k++) sum += x[i * columns + k] * x[j * columns + k];
            s[i * rows + j] = sum;
        }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < rows; j++) {
            double sum = 0;
            for (int k = 0; k < rows; k++) sum += s[i * rows + k] * s[k * rows + j];
            p[i * rows + j] = -4.7750 * s[i * rows + j] + 2.0315 * sum;
        }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            double sum = 0;
            for (int k = 0; k < rows; k++) sum += p[i * rows + k] * x[k * columns + j];
            y[i * columns + j] = 3.4445 * x[i * columns + j] + sum;
        }
    memcpy(x, y, sizeof *x * (size_t)rows * (size_t)columns);
}

static void orthogonal(int rows, int columns, int rounds, double *m) {
    const int count = rows * columns;
    const bool tall = rows > columns;
    static double x[MOST];
    double squares = 0;
    for (int i = 0; i < count; i++) squares += m[i] * m[i];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            x[tall ? j * rows + i : i * columns + j] = m[i * columns + j] / (sqrt(squares) + 1e-7);
    for (int r = 0; r < rounds; r++) round_of(tall ? columns : rows, tall ? rows : columns, x);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) m[i * columns + j] = x[tall ? j * rows + i : i * columns + j];
}

/* muon:rate=0.2,momentum=0.7,weight-decay=0.5,rest-rate=0.1,rest-momentum=0.6 */
static void model_range(const struct bench *bench, int i, struct model *model, const double *g, int rounds,
                        bool head) {
    const struct range *range = &bench->ranges[i];
    const int columns = range->shape.dims[range->shape.rank - 1], rows = (int)range->floats / columns;
    const bool matrix = is_matrix(i, head);
    const double momentum = matrix ? 0.7 : 0.6, rate = (matrix ? 0.2 : 0.1) * (double)range->rate_multiplier,
                 shrink = matrix ? 0.5 : 0.0;
    static double step[MOST];
    if (i == FROZEN) return;
    for (size_t k = 0; k < range->floats; k++) {
        const size_t at = range->begin + k;
        const double with_l2 = g[at] + (double)range->decay * model->w[at];
        model->v[at] = momentum * model->v[at] + with_l2;
        step[k] = with_l2 + momentum * model->v[at];
    }
    if (matrix) orthogonal(rows, columns, rounds, step);
    const double longer = matrix && columns > rows ? sqrt((double)columns / rows) : 1.0;
    for (size_t k = 0; k < range->floats; k++) {
        double *w = &model->w[range->begin + k];
        *w -= rate * longer * step[k] + rate * shrink * *w;
    }
}

static void model_step(const struct bench *bench, struct model *model, const double *g, int rounds, bool head,
                       long number) {
    for (int i = 0; i < RANGES; i++) model_range(bench, i, model, g, rounds, head);
    for (size_t at = 0; at < bench->layout.floats; at++)
        model->average[at] += (double)update_average_rate(0.4, number) * (model->w[at] - model->average[at]);
}

enum way { WAY_APPLY, WAY_SHARES, WAY_OWN, WAYS };
static const char *const way_names[WAYS] = {"applied", "in shares", "in a copy"};

/* Steps the store, or in WAY_OWN a copy of it, and gives the mean of the gradients that it was stepped with.
 */
static void step(struct bench *bench, enum way way, int shares, long number, const struct state *own,
                 double *mean) {
    struct store *store = &bench->store;
    struct gradient *given[WORKERS];
    const int count = way == WAY_SHARES ? WORKERS : 1;
    for (int w = 0; w < count; w++) given[w] = give(bench, w, number);
    for (size_t at = 0; at < bench->layout.floats; at++) {
        mean[at] = 0;
        for (int w = 0; w < count; w++) mean[at] += (double)bench->values[w][at] / count;
    }
    for (int s = 0; s < store->settings.shards; s++) {
        struct shard *shard = &store->shards[s];
        for (int w = 0; w < count; w++) shard_contribute(shard, given[w]);
        if (way == WAY_APPLY) (void)shard_apply(shard, given[0]);
        if (way == WAY_OWN) shard_step_own(shard, own, given[0], number);
        for (int k = 0; way == WAY_SHARES && k < shares; k++) shard_step_share(shard, k % WORKERS, k, shares);
        if (way == WAY_SHARES) shard_end_round(shard, atomic_load(&shard->version) + 1);
    }
    for (int w = 0; w < count; w++) atomic_store(&given[w]->left, 0);
}

/* In bf16 the products of the long side are rounded: the same within `most`, and not the same. */
static void check_way(enum way way, int rounds, bool head, int shards, int shares, enum precision precision) {
    const double most = precision == PRECISION_BF16 ? 0.01 : 2e-5;
    double apart = 0.0;
    static struct bench bench;
    static struct model model;
    static double mean[MOST];
    char optimizer[160];
    struct state own = {0};
    snprintf(optimizer, sizeof optimizer,
             "muon:rate=0.2,momentum=0.7,weight-decay=0.5,rest-rate=0.1,rest-momentum=0.6,steps=%d,head=%d",
             rounds, head);
    const bool well = bench_open_in(&bench, optimizer, shards, SHARD_BY_TENSOR, precision) == OK;
    CHECK(well, "%s", bench.error.words);
    if (!well) goto end;
    memset(&model, 0, sizeof model);
    for (size_t at = 0; at < bench.layout.floats; at++)
        model.w[at] = model.average[at] = (double)bench.store.weights[at];
    if (way == WAY_OWN) {
        CHECK(store_own_state(&bench.store, 1, true, &own, &bench.error) == OK, "%s", bench.error.words);
        for (int s = 0; s < shards; s++) shard_copy(&bench.store.shards[s], 1, &own);
    }
    for (long n = 0; n < STEPS; n++) {
        step(&bench, way, shares, n, &own, mean);
        model_step(&bench, &model, mean, rounds, head, n + 1);
    }
    const struct state *state = way == WAY_OWN ? &own : &bench.store.host;
    for (int i = 0; i < RANGES; i++)
        for (size_t k = 0; k < bench.ranges[i].floats; k++) {
            const size_t at = bench.ranges[i].begin + k;
            const double w = (double)state->vector[0].at[at],
                         average = (double)state_find(state, "average")[at];
            CHECK(
                fabs(w - model.w[at]) < most && fabs(average - model.average[at]) < most,
                "range %d of %d shards, %s, %d rounds: weight %zu is %.7f, expected %.7f; its average %.7f, "
                "expected %.7f",
                i, shards, way_names[way], rounds, k, w, model.w[at], average, model.average[at]);
            apart = fmax(apart, fabs(w - model.w[at]));
        }
    CHECK(precision != PRECISION_BF16 || apart > 1e-4, "bf16 is not used: %g apart", apart);
    for (int i = 0; i < RANGES; i++)
        for (size_t at = bench.ranges[i].begin + bench.ranges[i].floats; at % LINE_FLOATS; at++)
            CHECK(fabsf(state->vector[0].at[at]) <= 0.0f, "padding %zu is %g", at,
                  (double)state->vector[0].at[at]);
    CHECK(store_check(&bench.store, &bench.error) == OK, "%s", bench.error.words);
end:
    if (own.count) store_own_state_free(&bench.store, 1, &own);
    bench_close(&bench);
}

/* Who steps a matrix, and into how many shards and shares all is cut, changes no bit. */
static void check_bits(void) {
    static struct bench bench;
    static float first[MOST];
    static double mean[MOST];
    for (int shards = 1; shards <= RANGES; shards++)
        for (int shares = 1; shares <= 6; shares++) {
            const bool well = bench_open(&bench, "muon", shards, SHARD_BY_TENSOR) == OK;
            CHECK(well, "%s", bench.error.words);
            for (long n = 0; well && n < STEPS; n++) step(&bench, WAY_SHARES, shares, n, NULL, mean);
            const size_t bytes = bench.layout.floats * sizeof *first;
            if (well && shards == 1 && shares == 1) memcpy(first, bench.store.weights, bytes);
            CHECK(well && memcmp(first, bench.store.weights, bytes) == 0,
                  "%d shards in %d shares have other bits than one", shards, shares);
            bench_close(&bench);
        }
}

/* The shares cover the shard, and none ends within a matrix. */
static void check_boundaries(void) {
    static struct bench bench;
    CHECK(bench_open(&bench, "muon", 1, SHARD_BY_BYTES) == OK, "%s", bench.error.words);
    const struct shard *shard = &bench.store.shards[0];
    for (int shares = 1; shares <= 40; shares++) {
        CHECK(shard_boundary(shard, 0, shares) == shard->begin &&
                  shard_boundary(shard, shares, shares) == shard->end,
              "%d shares do not cover the shard", shares);
        for (int k = 1; k <= shares; k++) {
            const size_t at = shard_boundary(shard, k, shares);
            CHECK(at >= shard_boundary(shard, k - 1, shares), "share %d of %d goes backwards", k, shares);
            for (int i = 0; i < RANGES; i++)
                CHECK(!is_matrix(i, false) || at <= bench.ranges[i].begin ||
                          at >= bench.ranges[i].begin + bench.ranges[i].floats,
                      "boundary %d of %d cuts range %d", k, shares, i);
        }
    }
    bench_close(&bench);
}

/* Cut by bytes, a shard would have a part of a matrix; without matrices it may. */
static void check_refused(void) {
    static struct bench bench;
    CHECK(bench_open(&bench, "muon", 5, SHARD_BY_BYTES) == ERROR_USAGE &&
              strstr(bench.error.words, "--shard-by=tensor") && strstr(bench.error.words, "range"),
          "five shards by bytes: %s", bench.error.words);
    bench_close(&bench);
    CHECK(bench_open(&bench, "nesterov", 5, SHARD_BY_BYTES) == OK, "%s", bench.error.words);
    bench_close(&bench);
}

/* A gradient of zeros has no direction: nothing moves, and nothing is not a number. */
static void check_zero(void) {
    static struct bench bench;
    static float before[MOST];
    CHECK(bench_open(&bench, "muon:weight-decay=0", 1, SHARD_BY_BYTES) == OK, "%s", bench.error.words);
    for (int i = 0; i < RANGES; i++) bench.ranges[i].decay = 0.0f;
    for (int i = 0; i < bench.store.shards[0].span_count; i++) bench.store.shards[0].spans[i].decay = 0.0f;
    struct gradient *gradient = give(&bench, 0, 0);
    memset(bench.values[0], 0, sizeof bench.values[0]);
    memcpy(before, bench.store.weights, bench.layout.floats * sizeof *before);
    (void)shard_apply(&bench.store.shards[0], gradient);
    CHECK(memcmp(before, bench.store.weights, bench.layout.floats * sizeof *before) == 0,
          "a gradient of zeros moves weights");
    atomic_store(&gradient->left, 0);
    bench_close(&bench);
}

/* Every other optimizer: weight-decay takes rate * decay * w off a weight of two dimensions or more. */
static void check_weight_decay(const struct optimizer *optimizer) {
    static struct bench plain, decayed;
    char name[80], with[120];
    snprintf(name, sizeof name, "%s:rate=0.1", optimizer->plugin.name);
    snprintf(with, sizeof with, "%s,weight-decay=0.25", name);
    CHECK(bench_open(&plain, name, 1, SHARD_BY_BYTES) == OK &&
              bench_open(&decayed, with, 1, SHARD_BY_BYTES) == OK,
          "%s: %s%s", with, plain.error.words, decayed.error.words);
    struct gradient *one = give(&plain, 0, 0), *other = give(&decayed, 0, 0);
    (void)shard_apply(&plain.store.shards[0], one);
    (void)shard_apply(&decayed.store.shards[0], other);
    for (int i = 0; i < RANGES; i++)
        for (size_t k = 0; k < plain.ranges[i].floats; k++) {
            const size_t at = plain.ranges[i].begin + k;
            const double multiplier = (double)plain.ranges[i].rate_multiplier;
            const double less = shapes[i].rank >= 2 && i != FROZEN ? 0.1 * 0.25 * multiplier : 0.0;
            const double expected = (double)plain.store.weights[at] - less * (double)some(1, at);
            CHECK(fabs((double)decayed.store.weights[at] - expected) < 1e-6,
                  "%s: weight %zu of range %d is %.7f, expected %.7f", with, k, i,
                  (double)decayed.store.weights[at], expected);
        }
    atomic_store(&one->left, 0);
    atomic_store(&other->left, 0);
    bench_close(&plain);
    bench_close(&decayed);
}

int main(void) {
    for (int way = 0; way < WAYS; way++)
        for (int rounds = 1; rounds <= 5; rounds++)
            for (int head = 0; head < 2; head++)
                for (int shards = 1; shards <= RANGES; shards += RANGES - 1)
                    check_way((enum way)way, rounds, head, shards, 1 + rounds, PRECISION_FP32);
    const struct device processor = device_processor();
    if (!processor.backend->lacks || !processor.backend->lacks(&processor, PRECISION_BF16))
        for (int way = 0; way < WAYS; way++) check_way((enum way)way, 3, false, 1, 2, PRECISION_BF16);
    check_bits();
    check_boundaries();
    check_refused();
    check_zero();
    for (int i = 0; optimizers[i]; i++)
        if (!optimizers[i]->matrix) check_weight_decay(optimizers[i]);
    return check_end();
}
