/* The layout of the flat vector: where ranges lie, what they begin with, and the hash that two sides compare.
 */
#include <math.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/graph/graph.h"
#include "../check.h"

static const struct initial zero = {INITIAL_ZERO, 0, NULL};
enum { NORMAL_COUNT = 20000 };

static float *initialized(const struct graph *g, uint64_t seed) {
    struct error error = {0};
    float *weights = NULL;
    CHECK(memory_zeroed((void **)&weights, g->layout.floats, sizeof(float), "weights", &error) == OK, "%s",
          error.words);
    memset(weights, 0xFF, g->layout.floats * sizeof(float));
    layout_initialize(&g->layout, seed, weights);
    return weights;
}

static void test_places(void) {
    struct graph g;
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(5, 7));
    const node h = graph_dense(&g, x, 3, (struct initial){INITIAL_GLOROT_UNIFORM, 0, NULL}, zero);
    graph_dense(&g, h, 17, (struct initial){INITIAL_CONSTANT, 2, NULL},
                (struct initial){INITIAL_CONSTANT, 0.1f, NULL});
    const struct layout *layout = &g.layout;
    const char *const names[] = {"dense1/kernel", "dense1/bias", "dense2/kernel", "dense2/bias"};
    const size_t floats[] = {21, 3, 51, 17};
    CHECK(layout->count == 4 && layout->parameters == 92, "%d ranges, %zu parameters", layout->count,
          layout->parameters);
    float *weights = initialized(&g, 1);
    size_t end = 0, in_ranges = 0;
    for (int i = 0; i < layout->count; i++) {
        const struct range *range = &layout->ranges[i];
        CHECK(strcmp(range->name, names[i]) == 0 && range->floats == floats[i], "%s has %zu", range->name,
              range->floats);
        CHECK(range->begin % LINE_FLOATS == 0 && range->begin >= end && range->begin < end + LINE_FLOATS,
              "%s begins at %zu, the one before ends at %zu", range->name, range->begin, end);
        CHECK(range->kind == RANGE_TRAINABLE && range->rate_multiplier == 1.0f && range->decay == 0.0f, "%s",
              range->name);
        CHECK(layout_find(layout, names[i]) == range, "%s is not found", names[i]);
        for (; end < range->begin; end++) CHECK(weights[end] == 0.0f, "padding %zu", end);
        end += range->floats;
        in_ranges += range->floats;
    }
    for (; end < layout->floats; end++) CHECK(weights[end] == 0.0f, "padding %zu", end);
    CHECK(layout->floats % LINE_FLOATS == 0 && in_ranges == layout->parameters, "%zu floats", layout->floats);
    CHECK(layout_find(layout, "dense3/kernel") == NULL, "found what is not there");
    CHECK(weights[layout->ranges[2].begin] == 2.0f && weights[layout->ranges[3].begin + 16] == 0.1f,
          "constants");
    graph_close(&g);
    memory_free(weights);
}

/* All values of a range of this shape lie within the Glorot limit, and come near it. */
static void check_glorot(struct shape shape, double fans) {
    struct graph g;
    graph_open(&g, true, 1);
    graph_variable(&g, "w", shape, (struct initial){INITIAL_GLOROT_UNIFORM, 0, NULL});
    float *weights = initialized(&g, 3);
    const double limit = sqrt(6.0 / fans);
    double most = 0, least = 0;
    for (size_t i = 0; i < g.layout.parameters; i++) {
        most = fmax(most, weights[i]);
        least = fmin(least, weights[i]);
    }
    CHECK(most <= limit && most > 0.95 * limit && least >= -limit && least < -0.95 * limit,
          "%g to %g, limit %g", least, most, limit);
    memory_free(weights);
    graph_close(&g);
}

static void test_distributions(void) {
    check_glorot(SHAPE(50, 30), 80);
    check_glorot(SHAPE(3, 3, 8, 16), 9 * 24);
    check_glorot(SHAPE(400), 800);
    struct graph g;
    graph_open(&g, true, 1);
    const float own[] = {4, 5, 6};
    graph_variable(&g, "normal", SHAPE(NORMAL_COUNT), (struct initial){INITIAL_NORMAL, 0.5f, NULL});
    graph_variable(&g, "truncated", SHAPE(NORMAL_COUNT),
                   (struct initial){INITIAL_TRUNCATED_NORMAL, 0.5f, NULL});
    graph_variable(&g, "own", SHAPE(3), (struct initial){INITIAL_NORMAL, 1, own});
    float *weights = initialized(&g, 5);
    for (int r = 0; r < 2; r++) {
        const float *values = weights + g.layout.ranges[r].begin;
        double sum = 0, squares = 0, most = 0;
        for (int i = 0; i < NORMAL_COUNT; i++) {
            sum += values[i];
            squares += (double)values[i] * values[i];
            most = fmax(most, fabs(values[i]));
        }
        const double sd = sqrt(squares / NORMAL_COUNT), expected = r == 0 ? 0.5 : 0.5 * 0.8796;
        CHECK(fabs(sum / NORMAL_COUNT) < 0.02 && fabs(sd - expected) < 0.01, "mean %g, sd %g",
              sum / NORMAL_COUNT, sd);
        CHECK(r == 0 ? most > 1.5 : most <= 1.0, "largest %g", most);
    }
    CHECK(memcmp(weights + g.layout.ranges[2].begin, own, sizeof own) == 0, "own values");
    memory_free(weights);
    graph_close(&g);
}

/* Filters of a convolution, [rows][columns][in][out] of weights: their product over all places and inputs. */
static double product(const float *w, int size, int outs, int a, int b) {
    double sum = 0;
    for (int i = 0; i < size; i++) sum += (double)w[i * outs + a] * (double)w[i * outs + b];
    return sum;
}

/* The cosines are orthonormal, the first one is even, the second changes along a row; then come the same with
 * the other sign, then zeros. */
static void test_cosines(void) {
    enum { SIZE = 2 * 3 * 3, OUTS = 2 * SIZE + 1 };
    struct graph g;
    graph_open(&g, true, 1);
    graph_variable(&g, "w", SHAPE(2, 3, 3, OUTS), (struct initial){.kind = INITIAL_COSINES});
    float *w = initialized(&g, 3);
    for (int a = 0; a < OUTS; a++)
        for (int b = 0; b < OUTS; b++) {
            const double want = a == OUTS - 1 || a % SIZE != b % SIZE || b == OUTS - 1 ? 0 : a == b ? 1 : -1;
            CHECK(fabs(product(w, SIZE, OUTS, a, b) - want) < 1e-6, "filters %d and %d: %g, expected %g", a,
                  b, product(w, SIZE, OUTS, a, b), want);
        }
    const double even = 1 / sqrt(SIZE), edge = 1 / sqrt(2.0 * 2 * 3);
    for (int i = 0; i < SIZE; i++) {
        const int column = i / 3 % 3;
        CHECK(fabs((double)w[i * OUTS] - even) < 1e-6, "the first filter is not even");
        CHECK(fabs((double)w[i * OUTS + 1] - edge * (1 - column)) < 1e-6, "the second is no edge: [%d] %g", i,
              (double)w[i * OUTS + 1]);
    }
    memory_free(w);
    graph_close(&g);
}

/* So many outputs as there are inputs pass these on; the others have length 1 on average. */
static void test_passing(void) {
    enum { IN = 16, OUTS = 400, SIZE = 9 * IN };
    struct graph g;
    graph_open(&g, true, 1);
    graph_variable(&g, "w", SHAPE(3, 3, IN, OUTS), (struct initial){.kind = INITIAL_PASSING});
    float *w = initialized(&g, 3);
    double squares = 0;
    for (int i = 0; i < SIZE; i++)
        for (int out = 0; out < IN; out++)
            CHECK(w[i * OUTS + out] == (i == 4 * IN + out ? 1.0f : 0.0f), "output %d, place %d: %g", out, i,
                  (double)w[i * OUTS + out]);
    for (int out = IN; out < OUTS; out++) squares += product(w, SIZE, OUTS, out, out) / (OUTS - IN);
    CHECK(fabs(squares - 1) < 0.02, "the others have a mean square of %g", squares);
    memory_free(w);
    graph_close(&g);
}

/* A range's values depend on seed and range number, not on the size of the others. */
static void test_streams(void) {
    float *weights[3];
    size_t begin[3];
    for (int k = 0; k < 3; k++) {
        struct graph g;
        graph_open(&g, true, 1);
        graph_variable(&g, "a", SHAPE(k == 1 ? 90 : 40), (struct initial){INITIAL_NORMAL, 1, NULL});
        graph_variable(&g, "b", SHAPE(40), (struct initial){INITIAL_NORMAL, 1, NULL});
        weights[k] = initialized(&g, k == 2 ? 8 : 7);
        begin[k] = g.layout.ranges[1].begin;
        graph_close(&g);
    }
    const size_t bytes = 40 * sizeof(float);
    CHECK(memcmp(weights[0] + begin[0], weights[1] + begin[1], bytes) == 0,
          "the second range moved with the first");
    CHECK(memcmp(weights[0] + begin[0], weights[2] + begin[2], bytes) != 0, "the seed changes nothing");
    CHECK(memcmp(weights[0], weights[0] + begin[0], bytes) != 0, "two ranges are equal");
    for (int k = 0; k < 3; k++) memory_free(weights[k]);
}

static uint64_t hash_of(const char *name, struct shape shape, bool frozen, int variables) {
    struct graph g;
    graph_open(&g, true, 1);
    const node v = graph_variable(&g, name, shape, zero);
    if (variables > 1) graph_variable(&g, "more", SHAPE(2), zero);
    if (frozen) graph_freeze(&g, v);
    const uint64_t hash = layout_hash(&g.layout);
    CHECK(g.error.code == OK, "%s", g.error.words);
    graph_close(&g);
    return hash;
}

static void test_hash(void) {
    const uint64_t hash = hash_of("w", SHAPE(2, 3), false, 1);
    CHECK(hash == hash_of("w", SHAPE(2, 3), false, 1), "not repeatable");
    CHECK(hash != hash_of("v", SHAPE(2, 3), false, 1), "name");
    CHECK(hash != hash_of("w", SHAPE(3, 2), false, 1), "shape");
    CHECK(hash != hash_of("w", SHAPE(6), false, 1), "rank");
    CHECK(hash != hash_of("w", SHAPE(2, 3), true, 1), "kind");
    CHECK(hash != hash_of("w", SHAPE(2, 3), false, 2), "count");
}

int main(void) {
    test_places();
    test_distributions();
    test_cosines();
    test_passing();
    test_streams();
    test_hash();
    return check_end();
}
