/* Times the exchange of every strategy: pull and push of a model of AlexNet's size (4.27 MB) by two workers
 * at once, waiting excluded, beside memcpy of as many bytes by both cores at once.
 *
 *   bench/exchange [STEPS [FLOATS]]      200 steps and 1068298 floats unless given
 *
 * Workers compute nothing. They push together at each tick of a clock and pull together half a tick later, so
 * that the servers, which on two cores share them with the workers, have done in between. memcpy is measured
 * the same way: what a strategy moves was written by another core, and that costs more than copying the same
 * bytes again and again (printed, too); whoever copies waits until the other core has written, and that one
 * until it was copied, as both mostly are within half a tick. What must move is counted in memcpy's terms: as
 * many bytes read as written. Copies count once; a step of w -= rate * g reads two vectors and writes one,
 * which is one and a half. At the end: what a step costs that moves next to nothing, with all counters and
 * the log's row: the price of the loop and of measuring it. */
#include <stdio.h>
#include <stdlib.h>

#include "../tests/harness.h"

enum { WORKERS = 2, LOOP_STEPS = 2000 /* of the loop by itself, for each of STEPS */ };
static const double tick_s = 10e-3;

static void sleep_until_tick(struct world *world, double phase) {
    const double now = world_now(world), at = tick_s * (floor(now / tick_s - phase) + 1.0 + phase);
    world_sleep(world, at - now);
}

/* --- memcpy --- */

/* One of the threads that copy at once. */
struct copier {
    struct world *world;
    float *from, *to; /* [floats] */
    size_t floats;
    int rounds;
    bool fresh;     /* at each tick the other core writes anew what is copied half a tick later */
    double seconds; /* of one copy */
    struct copier *other;
    struct event written, copied; /* `from`, by the other one; from there to `to`: posted once a round */
};

static void copy_slabs(void *argument) {
    struct copier *copier = argument;
    const size_t bytes = copier->floats * sizeof(float);
    double sum = 0.0;
    sleep_until_tick(copier->world, 0.0);
    for (int i = 0; i < copier->rounds; i++) {
        if (copier->fresh) {
            event_wait(&copier->other->copied, (uint64_t)i, INFINITY);
            for (size_t f = 0; f < copier->floats; f++) copier->other->from[f] += 1.0f;
            event_post(&copier->other->written);
            sleep_until_tick(copier->world, 0.5);
            event_wait(&copier->written, (uint64_t)i + 1, INFINITY);
        }
        const double begin = world_now(copier->world);
        memcpy(copier->to, copier->from, bytes);
        __asm__ volatile("" ::: "memory");
        sum += world_now(copier->world) - begin;
        event_post(&copier->copied);
        if (copier->fresh) sleep_until_tick(copier->world, 0.0);
    }
    copier->seconds = sum / copier->rounds;
}

static double memcpy_seconds(size_t floats, int rounds, bool fresh, const struct cores *cores) {
    struct copier copiers[WORKERS] = {{0}};
    struct world_thread *threads[WORKERS];
    struct error error = {0};
    struct world *world = NULL;
    double sum = 0.0;
    if (world_open_threads(&world, &error) != OK) return NAN;
    for (int w = 0; w < WORKERS; w++) {
        void *from = NULL, *to = NULL;
        memory_zeroed(&from, floats, sizeof(float), "a slab", &error);
        memory_zeroed(&to, floats, sizeof(float), "a slab", &error);
        copiers[w] = (struct copier){.world = world,
                                     .from = from,
                                     .to = to,
                                     .floats = floats,
                                     .rounds = rounds,
                                     .fresh = fresh,
                                     .other = &copiers[(w + 1) % WORKERS]};
        event_open(&copiers[w].written, world);
        event_open(&copiers[w].copied, world);
    }
    for (int w = 0; w < WORKERS; w++)
        world_spawn(world, "copy", &cores[w], copy_slabs, &copiers[w], &threads[w], &error);
    for (int w = 0; w < WORKERS; w++) world_join(threads[w]); /* each writes the other's slab, too */
    for (int w = 0; w < WORKERS; w++) {
        sum += copiers[w].seconds;
        memory_free(copiers[w].from);
        memory_free(copiers[w].to);
    }
    world_close(world);
    return sum / WORKERS;
}

/* --- strategies --- */

static int load_nothing(void *self, int worker, int buffer, long number, const struct indices *indices,
                        struct error *error) {
    struct rig *rig = self;
    (void)worker, (void)indices, (void)error;
    rig->number[worker][buffer] = number;
    sleep_until_tick(rig->world, 0.5);
    return OK;
}

static int compute_nothing(struct rig *rig, int worker, long number, float *weights, float *gradient,
                           float *loss, struct error *error) {
    (void)worker, (void)number, (void)weights, (void)gradient, (void)error;
    *loss = 1.0f;
    sleep_until_tick(rig->world, 0.0);
    return OK;
}

/* What a step must move beside the copies, in slices and in memcpy's terms. */
static double stepping(const struct rig *rig) {
    const struct traits *traits = rig->training.traits;
    const double workers = WORKERS;
    if (traits->servers) return 0.0; /* not the workers' work */
    if (traits->own_moments)
        return 1.5 + 0.5 * (1.0 + 1.0 / workers) / 8.0; /* its own step; the mean, now and then */
    if (!traits->merged) return 1.5;                    /* in place */
    if (!traits->own_weights)
        return 0.5 * (1.0 + 2.0 / workers);       /* its share of all gradients, and of the weights */
    return 0.5 * (workers - 1.0 + 2.0) / workers; /* one worker steps for the round */
}

static void time_strategy(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    const double *facts = argument; /* floats, steps, seconds of memcpy */
    const struct rig_settings settings = {.strategy = text,
                                          .optimizer = "sgd:rate=0.01",
                                          .workers = WORKERS,
                                          .shards = strategy->shards ? 2 : 1,
                                          .slots = 2,
                                          .batches = (int)facts[1] * WORKERS,
                                          .block = (int)(facts[0] / (WORKERS + 1)),
                                          .formula = compute_nothing};
    if (rig_open(&rig, &settings) != OK) {
        printf("%-30s %s\n", text, rig.error.words);
        rig_close(&rig);
        return;
    }
    rig.training.settings.compute.load = load_nothing;
    rig_go_through(&rig);
    double pull_s = 0.0, push_s = 0.0, steps = 0.0, copied = 0.0;
    for (int w = 0; w < WORKERS; w++) {
        const struct worker_totals *totals = training_totals(&rig.training, w);
        pull_s += totals->pull_s;
        push_s += totals->push_s;
        steps += (double)totals->steps;
        copied += (double)training_bytes_moved(&rig.training, w);
    }
    const double bytes = (double)(rig.layout.floats * sizeof(float)),
                 must = copied / steps + stepping(&rig) * bytes, took = (pull_s + push_s) / steps,
                 ideal = facts[2] * must / bytes;
    printf("%-30s %9.2f %9.1f %9.1f %9.1f %8.0f %%\n", text, must / 1e6, 1e6 * pull_s / steps,
           1e6 * push_s / steps, 1e6 * ideal, 100.0 * ideal / took);
    training_end(&rig.training, &rig.error);
    rig_close(&rig);
}

/* --- the loop itself --- */

static int load_at_once(void *self, int worker, int buffer, long number, const struct indices *indices,
                        struct error *error) {
    (void)self, (void)worker, (void)buffer, (void)number, (void)indices, (void)error;
    return OK;
}

static int compute_at_once(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
                           struct error *error) {
    (void)self, (void)worker, (void)buffer, (void)weights, (void)gradient, (void)error;
    *loss = 1.0f;
    return OK;
}

static void time_loop(int batches) {
    static struct rig rig;
    const struct rig_settings settings = {.strategy = "sync",
                                          .optimizer = "sgd:rate=0.01",
                                          .workers = 1,
                                          .shards = 1,
                                          .batches = batches,
                                          .block = 16,
                                          .sharding = SHARDING_ALL,
                                          .formula = compute_nothing};
    if (rig_open(&rig, &settings) != OK) return;
    rig.training.settings.compute.load = load_at_once;
    rig.training.settings.compute.run = compute_at_once;
    rig_go_through(&rig);
    printf(
        "\na step of one worker that computes nothing and moves 128 bytes: %.2f us, all counters included\n",
        1e6 * training_seconds(&rig.training) / batches);
    training_end(&rig.training, &rig.error);
    rig_close(&rig);
}

int main(int count, char **arguments) {
    const int steps = count > 1 ? atoi(arguments[1]) : 200;
    const int floats = count > 2 ? atoi(arguments[2]) : 1068298;
    struct cores all, cores[WORKERS] = {{0}};
    int found = 0;
    world_cores(&all);
    for (int c = 0; c < WORLD_CORES && found < WORKERS; c++)
        if (all.mask[c / 64] >> (c % 64) & 1) {
            cores[found].count = 1;
            cores[found++].mask[c / 64] = 1ull << (c % 64);
        }
    if (steps < 1 || floats < 100 || found < WORKERS) {
        fprintf(stderr, "usage: bench/exchange [STEPS [FLOATS]], on at least %d cores\n", WORKERS);
        return 2;
    }
    const double hot = memcpy_seconds((size_t)floats, steps, false, cores),
                 fresh = memcpy_seconds((size_t)floats, steps, true, cores),
                 bytes = (double)floats * sizeof(float), facts[3] = {floats, steps, fresh};
    printf("memcpy of %.2f MB, %d cores at once, the same again and again: %.1f us, %.1f GB/s each\n",
           bytes / 1e6, WORKERS, 1e6 * hot, bytes / hot / 1e9);
    printf("the same, once a tick, when the other core has written it:     %.1f us, %.1f GB/s each\n\n",
           1e6 * fresh, bytes / fresh / 1e9);
    printf("%-30s %9s %9s %9s %9s %10s\n", "a step of one of two workers", "must MB", "pull us", "push us",
           "memcpy us", "of memcpy");
    each_strategy(time_strategy, (void *)facts);
    time_loop(LOOP_STEPS * steps);
    return 0;
}
