/* easgd against its own serial form, to the bit: workers whose steps come in any order, exchanges every
 * `period` steps and at a pause, and the optimizer state that a pause leaves. */
#include "../by_hand.h"

enum { MOST = 4 };

static float weights[MOST][BY_HAND_FLOATS], moments[2][MOST][BY_HAND_FLOATS], centre[BY_HAND_FLOATS],
    mean[2][BY_HAND_FLOATS], gradient_of[BY_HAND_FLOATS];

static void exchange(float *own, size_t floats, float rate) {
    for (size_t i = 0; i < floats; i++) {
        const float moved = rate * (own[i] - centre[i]);
        own[i] -= moved;
        centre[i] += moved;
    }
}

static void check_against_serial(int workers, int period, const char *optimizer, uint64_t seed) {
    static struct rig rig;
    static long since[MOST];
    char text[60];
    struct rng rng;
    long total = 0;
    const float rate = (float)(0.9 / (double)workers);
    snprintf(text, sizeof text, "easgd:period=%d", period);
    const struct rig_settings settings = {.strategy = text,
                                          .optimizer = optimizer,
                                          .schedule = "cosine",
                                          .workers = workers,
                                          .shards = 3,
                                          .batches = 60,
                                          .block = 61,
                                          .simulated = true,
                                          .seed = seed,
                                          .formula = formula_mixed};
    by_hand_open(&rig, &settings);
    rng_start(&rng, seed, 3);
    memset(weights, 0, sizeof weights);
    memset(moments, 0, sizeof moments);
    memset(centre, 0, sizeof centre);
    memset(mean, 0, sizeof mean);
    memset(since, 0, sizeof since);
    bool begun[MOST] = {false};
    for (int pause = 0; pause < 2; pause++) {
        for (int i = 0; i < 30; i++, total++) {
            const int come = pause == 0 && workers > 2 ? workers - 1 : workers; /* the last one comes late */
            const int w = (int)rng_below(&rng, (uint32_t)come);
            float loss;
            if (!begun[w]) memcpy(weights[w], centre, sizeof centre);
            if (!begun[w])
                for (int m = 0; m < 2; m++) memcpy(moments[m][w], mean[m], sizeof mean[m]);
            begun[w] = true;
            if (since[w] == period) exchange(weights[w], rig.layout.floats, rate);
            if (since[w] == period) since[w] = 0;
            since[w]++;
            formula_mixed(&rig, w, total, weights[w], gradient_of, &loss, &rig.error);
            by_hand_step(&rig, weights[w], (float *const[2]){moments[0][w], moments[1][w]}, gradient_of,
                         total + 1);
            by_hand_send(&rig, by_hand_compute(&rig, w, total));
        }
        int resting = 0;
        for (int w = workers - 1; w >= 0; w--) {
            by_hand_rest(&rig, w);
            if (!begun[w]) continue;
            if (since[w] > 0) exchange(weights[w], rig.layout.floats, rate);
            since[w] = 0;
            const float share = 1.0f / (float)++resting;
            for (int m = 0; m < 2; m++)
                for (size_t i = 0; i < rig.layout.floats; i++) {
                    float sum = (1.0f - share) * mean[m][i];
                    sum += share * moments[m][w][i];
                    mean[m][i] = sum;
                }
        }
    }
    CHECK(by_hand_same(&rig, centre, rig.store.weights), "%s, %d workers, %s: the centre is elsewhere", text,
          workers, optimizer);
    for (int w = 0; w < workers; w++)
        CHECK(!begun[w] || by_hand_same(&rig, weights[w], by_hand_side(&rig, w)->own.vector[0].at),
              "%s, %d workers, %s: worker %d is elsewhere", text, workers, optimizer, w);
    for (int m = 0; m < optimizer_of(&rig.optimizer)->moments; m++)
        CHECK(by_hand_same(&rig, mean[m], rig.store.host.vector[1 + m].at),
              "%s, %d workers, %s: the store has another optimizer state than the mean", text, workers,
              optimizer);
    by_hand_close(&rig);
}

/* A faster worker waits for no slower one: it takes as many steps more as it is faster. */
static void check_nobody_waits(void) {
    static struct rig rig;
    struct rig_settings settings = {.strategy = "easgd:period=2",
                                    .optimizer = "sgd:rate=0.1",
                                    .workers = 2,
                                    .shards = 2,
                                    .batches = 100,
                                    .block = 61,
                                    .simulated = true,
                                    .seed = 3,
                                    .together = true,
                                    .formula = formula_blocks};
    settings.slowness[1] = 9.0;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s", rig.error.words);
    const long slow = training_totals(&rig.training, 1)->steps;
    CHECK(slow >= 9 && slow <= 11, "a worker nine times as slow took %ld of 100 steps", slow);
    CHECK(rig.roster.members[0].waited_for[1] < 1e-9, "it was waited for, for %g s",
          rig.roster.members[0].waited_for[1]);
    rig_close(&rig);
}

int main(void) {
    for (int workers = 1; workers <= MOST; workers++)
        for (int period = 1; period <= 7; period += 3) {
            check_against_serial(workers, period, "sgd:rate=0.1", (uint64_t)(workers + period));
            check_against_serial(workers, period, "momentum:rate=0.1", (uint64_t)(workers + 10 * period));
            check_against_serial(workers, period, "adam:rate=0.01", (uint64_t)(workers + 20 * period));
        }
    check_nobody_waits();
    return check_end();
}
