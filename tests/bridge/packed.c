/* Nothing is lost between a host and its workers: what the host has got of gradients, and what the workers
 * owe, add up to what they have computed, through pauses and for a worker that has nothing to do; and a
 * worker has the weights that the host takes it to have. Numbers are whole, so that sums are exact. */
#include "../check.h"

#include <math.h>
#include <string.h>

#include "../../src/base/rng.h"
#include "../../src/bridge/packed.h"

enum { FLOATS = 1024, WORKERS = 4, SEGMENTS = 5, STEPS = 7 };

static const struct range ranges[] = {
    {.name = "kernel", .shape = {.rank = 2, .dims = {20, 40}}, .begin = 0, .floats = 800},
    {.name = "mean",
     .shape = {.rank = 1, .dims = {100}},
     .begin = 800,
     .floats = 100,
     .kind = RANGE_STATISTIC},
    {.name = "still",
     .shape = {.rank = 1, .dims = {124}},
     .begin = 900,
     .floats = 124,
     .kind = RANGE_FROZEN}};
static const struct layout layout = {.ranges = (struct range *)ranges, .count = 3, .floats = FLOATS};

struct side {
    struct packed host, worker;
    float weights[FLOATS]; /* that the worker computes on */
};

static struct side sides[WORKERS];
static float weights[FLOATS], owed[FLOATS], gradient[FLOATS], got[FLOATS];
static double computed[FLOATS], received[FLOATS];

static float whole(uint64_t key, size_t i, float most) {
    return ranges[2].begin <= i ? 0.0f : floorf(rng_unit(rng_philox(key, 1, i).word[0]) * most);
}

/* What goes over the wire: the bytes, into the other side's. */
static size_t cross(const struct piece *piece, struct packed *to) {
    memmove(to->bytes, piece->memory, piece->bytes);
    return piece->bytes;
}

static void step(struct side *side, uint64_t key) {
    struct error error = {0};
    for (size_t i = 0; i < FLOATS; i++) weights[i] += whole(key, i, 5.0f) - 2.0f * (i < 900);
    if (side->host.known) {
        const struct piece piece = packed_weights(&side->host, weights);
        const size_t count = cross(&piece, &side->worker);
        CHECK(packed_read_weights(&side->worker, count, side->weights, "a host", &error) == OK, "%s",
              error.words);
    } else {
        packed_begin(&side->host, weights, owed, WORKERS);
        memcpy(side->weights, weights, sizeof weights);
        memcpy(side->worker.kept, side->host.sent, sizeof weights);
    }
    CHECK(memcmp(side->weights, side->host.kept, sizeof weights) == 0, "the worker has other weights");
    for (size_t i = 0; i < FLOATS; i++) {
        gradient[i] = whole(key + 1, i, 17.0f) - 8.0f * (i < 900);
        computed[i] += (double)gradient[i];
    }
    const struct piece piece = packed_gradient(&side->worker, gradient);
    const size_t count = cross(&piece, &side->host);
    CHECK(packed_read_gradient(&side->host, count, got, "a worker", &error) == OK, "%s", error.words);
    for (size_t i = 0; i < FLOATS; i++) received[i] += (double)got[i];
}

/* As at a pause: the worker says what it owes. */
static void pause_all(void) {
    float sum[FLOATS] = {0};
    for (int w = 0; w < WORKERS; w++) {
        struct side *side = &sides[w];
        memcpy(side->host.kept, side->worker.kept, sizeof sum);
        memset(side->worker.kept, 0, sizeof sum);
        if (!side->host.known) packed_add_share(&side->host, owed, WORKERS);
        side->host.known = false;
        for (size_t i = 0; i < FLOATS; i++) sum[i] += side->host.kept[i];
    }
    memcpy(owed, sum, sizeof sum);
    for (size_t i = 0; i < FLOATS; i++)
        CHECK(received[i] + (double)owed[i] == computed[i], "float %zu: %g received, %g owed, %g computed", i,
              received[i], (double)owed[i], computed[i]);
}

int main(void) {
    struct error error = {0};
    struct choice choice;
    CHECK(plugin_choose(&choice, &compressor_kind, "top-k:share=0.05", &error) == OK, "%s", error.words);
    for (int w = 0; w < WORKERS; w++) {
        CHECK(packed_open(&sides[w].host, &choice, &layout, 0, FLOATS, &error) == OK, "%s", error.words);
        CHECK(packed_open(&sides[w].worker, &choice, &layout, 0, FLOATS, &error) == OK, "%s", error.words);
    }
    for (int segment = 0; segment < SEGMENTS; segment++) {
        for (int s = 0; s < STEPS; s++)
            for (int w = 0; w < WORKERS - segment % 2; w++) /* now and then the last has nothing to do */
                step(&sides[w], 2 * (uint64_t)((segment * STEPS + s) * WORKERS + w));
        pause_all();
    }
    bool owes = false;
    for (size_t i = 0; i < FLOATS; i++) owes = owes || owed[i] != 0.0f;
    CHECK(owes, "nothing was ever left out");
    for (int w = 0; w < WORKERS; w++) {
        packed_close(&sides[w].host);
        packed_close(&sides[w].worker);
    }
    CHECK(plugin_choose(&choice, &compressor_kind, "none", &error) == OK, "%s", error.words);
    CHECK(packed_open(&sides[0].host, &choice, &layout, 0, FLOATS, &error) == OK &&
              !packed_is_on(&sides[0].host),
          "none packs");
    packed_close(&sides[0].host);
    return check_end();
}
