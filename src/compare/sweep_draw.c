/* The settings of a sweep's runs: all of a grid, or some drawn at random. */
#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/rng.h"
#include "sweep.h"

/* Draws for one run, until it differs from all earlier ones. */
enum { TRIES = 1000 };
static const uint64_t PURPOSE = 0x7377656570ULL; /* "sweep" */

static void forget(struct sweep *sweep, struct sweep_run *run) {
    for (int v = 0; run->values && v < sweep->variation_count; v++) {
        memory_free(run->values[v]);
        run->values[v] = NULL;
    }
}

static bool is_new(const struct sweep *sweep, int run) {
    for (int other = 0; other < run; other++) {
        int same = 0;
        for (int v = 0; v < sweep->variation_count; v++)
            same += strcmp(sweep->runs[run].values[v], sweep->runs[other].values[v]) == 0;
        if (same == sweep->variation_count) return false;
    }
    return true;
}

static double unit(struct rng *rng) {
    const uint64_t high = rng_next(rng) >> 5, low = rng_next(rng) >> 6;
    return (double)((high << 26) + low) / 9007199254740992.0; /* 53 bits */
}

/* The counter of a run's numbers begins with the run, whatever was drawn before it. */
static int draw_one(struct sweep *sweep, int run, uint64_t seed, bool *drawn, struct error *error) {
    struct sweep_run *of = &sweep->runs[run];
    struct rng rng;
    rng_start(&rng, rng_mix(seed, (uint64_t)run), PURPOSE);
    *drawn = false;
    for (int i = 0; i < TRIES && !*drawn; i++) {
        forget(sweep, of);
        for (int v = 0; v < sweep->variation_count; v++)
            RETURN_IF(variation_value(&sweep->variations[v], unit(&rng), &of->values[v], error));
        *drawn = is_new(sweep, run);
    }
    return OK;
}

static int open_run(struct sweep *sweep, struct error *error) {
    RETURN_IF(memory_grow(&sweep->runs, sweep->count, sweep->count + 1, "the runs", error));
    struct sweep_run *run = &sweep->runs[sweep->count++];
    run->metric = run->test = run->seconds = (double)NAN;
    return memory_array(&run->values, sweep->variation_count, "a run's settings", error);
}

static int draw_random(struct sweep *sweep, uint64_t seed, struct error *error) {
    const int wanted = sweep->settings.runs > 0 ? sweep->settings.runs : SWEEP_USUAL_RUNS;
    for (bool drawn = true; drawn && sweep->count < wanted;) {
        RETURN_IF(open_run(sweep, error));
        RETURN_IF(draw_one(sweep, sweep->count - 1, seed, &drawn, error));
        if (drawn) continue;
        sweep->count--; /* there are no more */
        forget(sweep, &sweep->runs[sweep->count]);
        memory_free(sweep->runs[sweep->count].values);
    }
    return OK;
}

/* The last one changes fastest. */
static int draw_grid(struct sweep *sweep, struct error *error) {
    long all = 1;
    for (int v = 0; v < sweep->variation_count; v++) {
        const struct variation *variation = &sweep->variations[v];
        if (variation->count == 0)
            return error_set(error, ERROR_USAGE,
                             "--vary=%s: a range has no grid, expected a list, or LEAST..MOST/N for N values",
                             variation->name);
        all *= variation->count;
        if (all > SWEEP_RUNS)
            return error_set(error, ERROR_USAGE, "--method=grid: expected at most %d runs, found more",
                             SWEEP_RUNS);
    }
    for (int run = 0; run < all && (sweep->settings.runs == 0 || run < sweep->settings.runs); run++) {
        RETURN_IF(open_run(sweep, error));
        for (int v = sweep->variation_count - 1, rest = run; v >= 0; v--) {
            const struct variation *variation = &sweep->variations[v];
            RETURN_IF(
                memory_text(&sweep->runs[run].values[v], variation->values[rest % variation->count], error));
            rest /= variation->count;
        }
    }
    return OK;
}

int sweep_draw(struct sweep *sweep, uint64_t seed, struct error *error) {
    return sweep->settings.method == SWEEP_GRID ? draw_grid(sweep, error) : draw_random(sweep, seed, error);
}
