/* dc-asgd against its own serial form, to the bit: gradients that are several updates old, each corrected for
 * what the weights have changed since; statistics as they are; and without lambda, async-apply. */
#include "../by_hand.h"

enum { MOST = 4 };

static float weights[BY_HAND_FLOATS], moments[2][BY_HAND_FLOATS], squares[BY_HAND_FLOATS],
    then[MOST][BY_HAND_FLOATS], gradient_of[MOST][BY_HAND_FLOATS];

static void compensate(const struct rig *rig, float *gradient, const float *before, float lambda, bool adapts,
                       float seen) {
    for (int r = 0; r < rig->layout.count; r++)
        for (size_t i = rig->ranges[r].begin; i < rig->ranges[r].begin + rig->ranges[r].floats; i++) {
            const float g = gradient[i], change = weights[i] - before[i];
            if (rig->ranges[r].kind == RANGE_STATISTIC) continue;
            if (adapts) squares[i] = 0.875f * squares[i] + 0.125f * g * g;
            const float l = adapts ? lambda / sqrtf(squares[i] / seen + 1e-7f) : lambda;
            gradient[i] = g + l * g * g * change;
        }
}

/* Of the first range, which is a statistic, the gradient is what it changes by. */
static void step(const struct rig *rig, const float *gradient, long number) {
    const size_t first = rig->ranges[1].begin;
    struct update update = optimizer_update(&rig->optimizer, number);
    update.rate = store_rate(&rig->store, number - 1);
    for (size_t i = 0; i < first; i++) weights[i] -= gradient[i];
    update.step(&update, rig->layout.floats - first, weights + first,
                (float *const[2]){moments[0] + first, moments[1] + first}, gradient + first);
}

static void check_against_serial(const char *text, int workers, const char *optimizer, float lambda,
                                 bool adapts, uint64_t seed) {
    static struct rig rig;
    struct gradient *in_hand[MOST] = {NULL};
    struct rng rng;
    long applied = 0, stalest = 0, number = 0;
    float unseen = 1.0f;
    const struct rig_settings settings = {.strategy = text,
                                          .optimizer = optimizer,
                                          .workers = workers,
                                          .shards = 3,
                                          .slots = 2,
                                          .batches = 80,
                                          .block = 61,
                                          .statistic = true,
                                          .simulated = true,
                                          .seed = seed,
                                          .formula = formula_mixed};
    by_hand_open(&rig, &settings);
    rng_start(&rng, seed, 4);
    memset(weights, 0, sizeof weights);
    memset(moments, 0, sizeof moments);
    memset(squares, 0, sizeof squares);
    memset(then, 0, sizeof then);
    while (applied < 80) {
        const int w = (int)rng_below(&rng, (uint32_t)workers);
        float loss;
        if (!in_hand[w]) {
            in_hand[w] = by_hand_compute(&rig, w, number);
            CHECK(by_hand_same(&rig, weights, by_hand_side(&rig, w)->weights),
                  "%s: worker %d computes on other weights", text, w);
            memcpy(then[w], by_hand_side(&rig, w)->weights, sizeof(float) * rig.layout.floats);
            formula_mixed(&rig, w, number++, then[w], gradient_of[w], &loss, &rig.error);
            continue;
        }
        const long age = applied - in_hand[w]->version[0];
        if (age > stalest) stalest = age;
        by_hand_send(&rig, in_hand[w]);
        CHECK(store_drain(&rig.store, w, &rig.error) == OK, "%s", rig.error.words);
        in_hand[w] = NULL;
        unseen *= 0.875f;
        compensate(&rig, gradient_of[w], then[w], lambda, adapts, 1.0f - unseen);
        step(&rig, gradient_of[w], ++applied);
    }
    CHECK(by_hand_same(&rig, weights, rig.store.weights), "%s, %d workers, %s: other weights", text, workers,
          optimizer);
    CHECK(workers == 1 || stalest > 1, "%s: the stalest gradient was %ld updates old", text, stalest);
    by_hand_close(&rig);
}

/* The same steps in the same order as another strategy: the same bits. */
static void check_same(const char *text, const char *other) {
    static struct rig rig;
    static float expected[BY_HAND_FLOATS];
    for (int which = 0; which < 2; which++) {
        const struct rig_settings settings = {.strategy = which ? text : other,
                                              .optimizer = "momentum:rate=0.1",
                                              .workers = 3,
                                              .shards = 1,
                                              .slots = 2,
                                              .batches = 60,
                                              .block = 61,
                                              .simulated = true,
                                              .seed = 9,
                                              .formula = formula_mixed};
        struct gradient *in_hand[3] = {NULL};
        by_hand_open(&rig, &settings);
        for (int i = 0; i < 60; i++) {
            const int w = i * 7 % 11 % 3;
            if (in_hand[w]) by_hand_send(&rig, in_hand[w]);
            if (in_hand[w]) CHECK(store_drain(&rig.store, w, &rig.error) == OK, "%s", rig.error.words);
            in_hand[w] = by_hand_compute(&rig, w, i);
        }
        if (which)
            CHECK(by_hand_same(&rig, expected, rig.store.weights), "%s has other weights than %s", text,
                  other);
        memcpy(expected, rig.store.weights, sizeof(float) * rig.layout.floats);
        by_hand_close(&rig);
    }
}

int main(void) {
    static const char *const chosen[] = {"sgd:rate=0.1", "momentum:rate=0.1", "adam:rate=0.01"};
    for (int workers = 1; workers <= MOST; workers++)
        for (int o = 0; o < 3; o++) {
            const uint64_t seed = (uint64_t)(workers * 10 + o);
            check_against_serial("dc-asgd:lambda=0.5", workers, chosen[o], 0.5f, false, seed);
            check_against_serial("dc-asgd:lambda=2,adapt=mean-square,keep=0.875", workers, chosen[o], 2.0f,
                                 true, seed);
        }
    check_same("dc-asgd:lambda=0", "async-apply");
    return check_end();
}
