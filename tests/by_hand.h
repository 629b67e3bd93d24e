/* For the tests of single strategies: workers whose steps a test takes by hand, on its own thread and in the
 * order that it likes, so that a plain reference beside them can do the same. */
#ifndef TRAINER_TESTS_BY_HAND_H
#define TRAINER_TESTS_BY_HAND_H

#include "harness.h"

enum { BY_HAND_FLOATS = 8192 };

/* In the simulated world; every worker has opened what is its own, and waits for a start that never comes. */
static inline void by_hand_open(struct rig *rig, const struct rig_settings *settings) {
    CHECK(rig_open(rig, settings) == OK, "%s: %s", settings->strategy, rig->error.words);
    CHECK(training_starting(&rig->training, 1.0) < 0, "%s: worker %d did not start", settings->strategy,
          training_starting(&rig->training, 0.0));
    CHECK(rig->layout.floats <= BY_HAND_FLOATS, "%zu floats", rig->layout.floats);
}

static inline struct worker_side *by_hand_side(struct rig *rig, int worker) {
    return &rig->training.workers[worker].side;
}

/* The first half of a step: weights as the strategy gives them, and a gradient that depends on these. */
static inline struct gradient *by_hand_compute(struct rig *rig, int worker, long number) {
    struct worker_side *side = by_hand_side(rig, worker);
    float loss = 0.0f;
    CHECK(strategy_take_all(side, &rig->error) == OK, "%s", rig->error.words);
    struct gradient *gradient = store_gradient(&rig->store, worker, side->step);
    float *values = rig->training.workers[worker].slabs[gradient->slot];
    rig->settings.formula(rig, worker, number, side->weights, values, &loss, &rig->error);
    for (int s = 0; s < rig->settings.shards; s++) gradient->version[s] = side->version[s];
    gradient->values = values;
    gradient->examples = 4;
    gradient->loss = loss;
    return gradient;
}

/* The other half. */
static inline void by_hand_send(struct rig *rig, struct gradient *gradient) {
    struct worker_side *side = by_hand_side(rig, gradient->worker);
    CHECK(strategy_send_all(side, gradient, &rig->error) == OK, "%s", rig->error.words);
    side->step++;
    store_release(&rig->store, gradient);
}

static inline void by_hand_rest(struct rig *rig, int worker) {
    CHECK(strategy_rest_all(by_hand_side(rig, worker), &rig->error) == OK, "%s", rig->error.words);
}

static inline void by_hand_close(struct rig *rig) {
    training_end(&rig->training, &rig->error);
    rig_close(rig);
}

/* One step of a reference that has its own vectors, in the optimizer's arithmetic. */
static inline void by_hand_step(const struct rig *rig, float *weights, float *const moments[2],
                                const float *gradient, long number) {
    struct update step = optimizer_update(&rig->optimizer, number);
    step.rate = store_rate(&rig->store, number - 1);
    step.step(&step, rig->layout.floats, weights, moments, gradient);
}

static inline bool by_hand_same(const struct rig *rig, const float *a, const float *b) {
    return memcmp(a, b, rig->layout.floats * sizeof *a) == 0;
}

#endif
