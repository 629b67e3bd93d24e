/* For the tests of strategies: the real store, the real training loop, either world, and a compute that is a
 * formula.
 *
 * The vector has a range of `block` floats for each worker, so that a gradient of 1 in the worker's own block
 * and 0 elsewhere makes the final weights count each worker's updates. */
#ifndef TRAINER_TESTS_HARNESS_H
#define TRAINER_TESTS_HARNESS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../src/base/rng.h"
#include "../src/engine/worker.h"
#include "check.h"

enum { HARNESS_WORKERS = 16, HARNESS_BUFFERS = 5 };

struct rig;
typedef int rig_formula(struct rig *rig, int worker, long number, float *weights, float *gradient,
                        float *loss, struct error *error);

struct rig_settings {
    const char *strategy, *optimizer;
    const char *schedule; /* NULL: constant */
    int workers, shards, slots, batches, block;
    const int
        *sizes; /* [workers] examples of each worker's batches, whose numbers then count examples; NULL: 4 */
    bool simulated;
    uint64_t seed;
    rig_formula *formula;
    enum shard_by shard_by;
    enum data_sharding sharding;
    bool statistic; /* the first block is one */
    float clip;
    double guess_loss;
    double average; /* decay of the moving average of the weights */
    int prefetch;
    bool together;                /* all steps take the same virtual time, so workers meet at the weights */
    bool go_on;                   /* --on-loss=continue */
    bool divides;                 /* --staleness=divide */
    const char *fail, *stall;     /* as typed; NULL: none */
    const struct device *devices; /* [workers] that compute, with memory of their own: the shards live on the
                                     first; NULL: in the host's */
    struct compute compute;       /* instead of the formula's; its load and self are the rig's */
    double slowness[HARNESS_WORKERS]; /* 0: 1 */
    double ending_s;                  /* 0: 10 */
    double timeout_s;                 /* 0: 20 */
    int absent;                       /* so many of the last workers have not come yet (rig_join) */
    double opening_s; /* that the last worker takes to open what it computes with; less than 0: it fails */
};

struct rig {
    struct rig_settings settings;
    struct choice strategy, optimizer, schedule;
    struct range ranges[HARNESS_WORKERS + 1];
    struct layout layout;
    struct world *world;
    struct roster roster;
    struct store store;
    struct sampler sampler;
    struct training training;
    struct error error;                            /* of the training */
    _Atomic long computed[HARNESS_WORKERS];        /* forward passes begun */
    long number[HARNESS_WORKERS][HARNESS_BUFFERS]; /* batch in each input buffer */
    _Atomic long seen_batches[4096];  /* how often each batch of the shared stream was computed */
    _Atomic long overwritten;         /* batches that were built anew while they were computed */
    long changed[HARNESS_WORKERS][8]; /* how often a worker came to other weights of a shard than before */
    long last_version[HARNESS_WORKERS][8]; /* plus 1; what it came to last */
    _Atomic long at_the_bound;             /* how often a formula saw the promised bound reached */
    _Atomic long wrong;                    /* what a formula found wrong */
    bool lost[HARNESS_WORKERS];
    char lost_words[500];
    _Atomic long finished;   /* gradients reported, empty ones too */
    _Atomic long wrong_rows; /* of them, with a row of another step, or a slot that was free already */
    float loss_of[4096];     /* of each batch of the shared stream, as its row should say */
    int applied[4096]
               [HARNESS_WORKERS]; /* examples that each worker has given to the update with this version */
};

static int rig_load(void *self, int worker, int buffer, long number, const struct indices *indices,
                    struct error *error) {
    struct rig *rig = self;
    (void)indices;
    (void)error;
    rig->number[worker][buffer] = number;
    return OK;
}

/* On the worker's thread, or when it has ended. */
static inline void rig_note_changes(struct rig *rig, int worker) {
    for (int s = 0; s < rig->settings.shards && s < 8; s++) {
        const long version = rig->training.workers[worker].side.version[s] + 1;
        rig->changed[worker][s] += version != rig->last_version[worker][s];
        rig->last_version[worker][s] = version;
    }
}

static int rig_open_worker(void *self, int worker, struct error *error) {
    const struct rig *rig = self;
    if (worker < rig->settings.workers - 1) return OK;
    if (rig->settings.opening_s < 0.0) return error_set(error, ERROR_DEVICE, "it cannot be opened");
    world_sleep(rig->world, rig->settings.opening_s);
    return OK;
}

static int rig_compute(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
                       struct error *error) {
    struct rig *rig = self;
    const long number = rig->number[worker][buffer];
    if (number < 4096) atomic_fetch_add(&rig->seen_batches[number], 1);
    atomic_fetch_add(&rig->computed[worker], 1);
    rig_note_changes(rig, worker);
    /* In virtual time workers are unequal, so that they overtake each other. */
    if (rig->settings.together)
        world_work(rig->world, 1e-3);
    else
        world_work(
            rig->world,
            1e-3 * (1.0 + worker % 3 +
                    rng_unit(rng_philox(rig->settings.seed, (uint64_t)worker, (uint64_t)number).word[0])));
    const int code = rig->settings.formula(rig, worker, number, weights, gradient, loss, error);
    if (rig->settings.sharding == SHARDING_SHARED && number < 4096) rig->loss_of[number] = *loss;
    if (rig->number[worker][buffer] != number) atomic_fetch_add(&rig->overwritten, 1);
    return code;
}

/* 1 in the worker's own block, 0 elsewhere. */
static inline int formula_blocks(struct rig *rig, int worker, long number, float *weights, float *gradient,
                                 float *loss, struct error *error) {
    const struct range *own = &rig->ranges[worker];
    (void)weights;
    (void)error;
    memset(gradient, 0, rig->layout.floats * sizeof(float));
    for (size_t i = 0; i < own->floats; i++) gradient[own->begin + i] = 1.0f;
    *loss = 1.0f + (float)number;
    return OK;
}

/* A gradient that depends on the weights and on the batch. */
static inline int formula_mixed(struct rig *rig, int worker, long number, float *weights, float *gradient,
                                float *loss, struct error *error) {
    (void)worker;
    (void)error;
    for (int r = 0; r < rig->layout.count; r++)
        for (size_t i = rig->ranges[r].begin; i < rig->ranges[r].begin + rig->ranges[r].floats; i++)
            gradient[i] =
                0.1f * weights[i] + rng_unit(rng_philox(7, (uint64_t)number, (uint64_t)i).word[0]) - 0.5f;
    *loss = 1.0f;
    return OK;
}

/* Between the store and the training: looks at each gradient that is reported and at its row. */
static inline void rig_finished(void *argument, struct gradient *gradient) {
    struct rig *rig = argument;
    const struct log_row *row = &rig->training.workers[gradient->worker].rows[gradient->slot];
    const float rate = store_rate(&rig->store, gradient->version[0]);
    bool right = atomic_load(&gradient->left) != 0 && row->worker == gradient->worker &&
                 row->step == gradient->step + 1 && row->examples == gradient->examples;
    const int *sizes = rig->settings.sizes;
    if (row->examples > 0) right = right && row->examples == (sizes ? sizes[row->worker] : 4);
    const long version = atomic_load(&gradient->applied_version);
    if (!atomic_load(&gradient->dropped) && version < 4096)
        rig->applied[version][gradient->worker] = gradient->examples;
    if (row->examples > 0) right = right && memcmp(&row->learning_rate, &rate, sizeof rate) == 0;
    if (row->examples > 0 && rig->settings.sharding == SHARDING_SHARED && rig->sampler.epochs == 1 && !sizes)
        right = right && memcmp(&row->loss, &rig->loss_of[row->batch - 1], sizeof rate) == 0;
    if (!right) atomic_fetch_add(&rig->wrong_rows, 1);
    atomic_fetch_add(&rig->finished, 1);
    training_finished(&rig->training, gradient);
}

static inline void rig_layout(struct rig *rig) {
    const struct rig_settings *settings = &rig->settings;
    size_t at = 0;
    for (int w = 0; w <= settings->workers; w++) {
        struct range *range = &rig->ranges[w];
        *range = (struct range){.shape = SHAPE(settings->block),
                                .begin = at,
                                .floats = (size_t)settings->block,
                                .rate_multiplier = 1.0f};
        if (w == 0 && settings->statistic) range->kind = RANGE_STATISTIC;
        snprintf(range->name, sizeof range->name, "block%d", w);
        at += (range->floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    }
    rig->layout = (struct layout){.ranges = rig->ranges,
                                  .count = settings->workers + 1,
                                  .floats = at,
                                  .parameters = (size_t)(settings->block * (settings->workers + 1))};
}

/* Opens everything up to the training itself. */
static inline int rig_open(struct rig *rig, const struct rig_settings *settings) {
    struct error *error = &rig->error;
    memset(rig, 0, sizeof *rig);
    rig->settings = *settings;
    rig_layout(rig);
    RETURN_IF(plugin_choose(&rig->strategy, &strategy_kind, settings->strategy, error));
    RETURN_IF(plugin_choose(&rig->optimizer, &optimizer_kind, settings->optimizer, error));
    RETURN_IF(plugin_choose(&rig->schedule, &schedule_kind,
                            settings->schedule ? settings->schedule : "constant", error));
    RETURN_IF(settings->simulated ? world_open_simulated(&rig->world, settings->seed, error)
                                  : world_open_threads(&rig->world, error));
    const struct strategy *strategy = (const struct strategy *)(const void *)rig->strategy.plugin;
    const struct traits *traits = strategy_traits(strategy, rig->strategy.settings);
    RETURN_IF(roster_open(&rig->roster, rig->world, settings->workers,
                          training_servers(&rig->strategy, settings->shards, settings->workers),
                          settings->timeout_s > 0.0 ? settings->timeout_s : 20.0, error));
    const struct stream stream = {.seed = 5,
                                  .examples = settings->batches * 4,
                                  .batch = 4,
                                  .workers = settings->workers,
                                  .sharding = settings->sharding,
                                  .sizes = settings->sizes};
    RETURN_IF(sampler_open(&rig->sampler, &stream, traits->rounds, 1, 0, NULL, error));
    for (int w = settings->workers - settings->absent; w < settings->workers; w++) {
        rig->lost[w] = true;
        roster_leave(&rig->roster, w, PHASE_DONE);
        sampler_bar(&rig->sampler, w);
    }
    if (settings->absent > 0) sampler_change(&rig->sampler, traits->rounds);
    const struct store_settings store = {
        .layout = &rig->layout,
        .roster = &rig->roster,
        .shards = settings->shards,
        .shard_by = settings->shard_by,
        .slots = traits->servers ? settings->slots : 0,
        .strategy = &rig->strategy,
        .optimizer = &rig->optimizer,
        .schedule = &rig->schedule,
        .total_updates = sampler_updates(&rig->sampler, traits->merged ? rig->sampler.stream.workers : 1),
        .devices = settings->devices,
        .on_devices = settings->devices != NULL,
        .average = settings->average,
        .divides = settings->divides,
        .finished = rig_finished,
        .finished_argument = rig};
    RETURN_IF(store_open(&rig->store, &store, error));
    struct faults faults;
    RETURN_IF(faults_parse(&faults, settings->fail ? settings->fail : "",
                           settings->stall ? settings->stall : "", "", error));
    for (int w = 0; w < settings->workers; w++)
        if (!(rig->settings.slowness[w] > 0.0)) rig->settings.slowness[w] = 1.0;
    struct training_settings training = {
        .world = rig->world,
        .go_on = settings->go_on,
        .faults = faults,
        .slowness = rig->settings.slowness,
        .ending_s = settings->ending_s > 0.0 ? settings->ending_s : 10.0,
        .roster = &rig->roster,
        .store = &rig->store,
        .strategy = &rig->strategy,
        .sampler = &rig->sampler,
        .clip = settings->clip,
        .guess_loss = settings->guess_loss,
        .prefetch = settings->prefetch,
        .devices = settings->devices,
        .compute = {.open = settings->compute.open,
                    .load = rig_load,
                    .run = settings->compute.run ? settings->compute.run : rig_compute,
                    .synchronize = settings->compute.synchronize,
                    .say_hanging = settings->compute.say_hanging,
                    .self = rig}};
    if (fabs(settings->opening_s) > 0.0) training.compute.open = rig_open_worker;
    return training_open(&rig->training, &training, error);
}

static inline void rig_close(struct rig *rig) {
    training_close(&rig->training);
    store_close(&rig->store);
    sampler_close(&rig->sampler);
    roster_close(&rig->roster);
    world_close(rig->world);
}

/* What a coordinator does about the workers that were lost in the segment that is over. */
static inline int rig_note_losses(struct rig *rig) {
    for (int w = 0; w < rig->settings.workers; w++) {
        const char *words = NULL;
        long step = 0;
        if (rig->lost[w] || !training_lost(&rig->training, w, &step, &words)) continue;
        rig->lost[w] = true;
        snprintf(rig->lost_words, sizeof rig->lost_words, "%s", words);
        RETURN_IF(sampler_lose(&rig->sampler, w, step, &rig->error));
    }
    return OK;
}

/* What a coordinator does, while all pause, about those who may come: all whose places are free do. */
static inline int rig_join(struct rig *rig, int *joined) {
    bool comes[HARNESS_WORKERS] = {false};
    *joined = 0;
    for (int w = 0; w < rig->settings.workers; w++) {
        comes[w] =
            rig->lost[w] && training_place_is_free(&rig->training, w) && sampler_may_join(&rig->sampler, w);
        if (!comes[w]) continue;
        *joined += 1;
        rig->lost[w] = false;
        training_join(&rig->training, w);
        RETURN_IF(sampler_join(&rig->sampler, w, &rig->error));
    }
    RETURN_IF(store_change(&rig->store, &rig->store.settings, &rig->error));
    RETURN_IF(training_change(&rig->training, rig->settings.go_on, &rig->error));
    for (int w = 0; w < rig->settings.workers; w++)
        if (comes[w]) RETURN_IF(training_start(&rig->training, w, &rig->error));
    return OK;
}

/* Goes on until the epoch is complete or something failed. */
static inline int rig_go_through(struct rig *rig) {
    while (!training_failed(&rig->training) && !sampler_reached(&rig->sampler, 0)) {
        sampler_set_limit(&rig->sampler, 0);
        training_go(&rig->training);
        while (!training_wait(&rig->training, rig->settings.simulated ? 1.0 : 0.02)) {
        }
        RETURN_IF(rig_note_losses(rig));
    }
    return OK;
}

/* Trains through; with `pauses`, in two segments with a stop in the middle. Returns the training's code; the
 * rig stays open for looking at. */
static inline int rig_run(struct rig *rig, const struct rig_settings *settings, bool pauses) {
    const int code = rig_open(rig, settings);
    if (code != OK) {
        fprintf(stderr, "rig: %s\n", rig->error.words);
        return code;
    }
    if (pauses) {
        sampler_set_limit(&rig->sampler, 0);
        training_go(&rig->training);
        training_wait(&rig->training, settings->simulated ? 0.02 : 0.001);
        sampler_stop(&rig->sampler);
        while (!training_wait(&rig->training, 1.0)) {
        }
        RETURN_IF(rig_note_losses(rig));
    }
    RETURN_IF(rig_go_through(rig));
    return training_end(&rig->training, &rig->error);
}

/* Every strategy with every variant, as typed: calls visit("async-lockfree:apply=worker", argument). */
static inline void each_strategy(void (*visit)(const char *text, const struct strategy *strategy,
                                               void *argument),
                                 void *argument) {
    for (int s = 0; strategies[s]; s++) {
        const struct strategy *strategy = strategies[s];
        if (!strategy->variants) visit(strategy->plugin.name, strategy, argument);
        for (int v = 0; strategy->variants && strategy->variants[v]; v++) {
            char text[256];
            snprintf(text, sizeof text, "%s:%s", strategy->plugin.name, strategy->variants[v]);
            visit(text, strategy, argument);
        }
    }
}

#endif
