/* The moving average of the weights under every strategy, in both worlds: the formula to the bit wherever it
 * does not depend on the order of arrival, and never any influence on the weights themselves. */
#include "../../src/device/update.h"
#include "../harness.h"

enum { BATCHES = 48, BLOCK_FLOATS = 700, MOST_STEPS = BATCHES + 1, MOST_FLOATS = 6 * 704 };

static struct rig_settings usual(const char *text, int workers, int shards, bool simulated) {
    return (struct rig_settings){.strategy = text,
                                 .optimizer = "sgd:rate=0.0625",
                                 .workers = workers,
                                 .shards = shards,
                                 .slots = 2,
                                 .batches = BATCHES,
                                 .block = BLOCK_FLOATS,
                                 .simulated = simulated,
                                 .seed = (uint64_t)(workers + 10 * shards),
                                 .average = 0.75};
}

/* --- every update takes the same away: the average depends on their number alone --- */

static int formula_ones(struct rig *rig, int worker, long number, float *weights, float *gradient,
                        float *loss, struct error *error) {
    (void)worker, (void)number, (void)weights, (void)error;
    memset(gradient, 0, rig->layout.floats * sizeof *gradient);
    for (int r = 0; r < rig->layout.count; r++)
        for (size_t i = 0; i < rig->ranges[r].floats; i++) gradient[rig->ranges[r].begin + i] = 1.0f;
    *loss = 1.0f;
    return OK;
}

/* After n updates of 1/16 each. 0.75 is reached by (1+n)/(10+n) at n = 26. */
static float average_after(long n) {
    float average = 0.0f, weight = 0.0f;
    for (long update = 1; update <= n; update++) {
        const double early = (1.0 + (double)update) / (10.0 + (double)update);
        weight -= 0.0625f;
        average += (float)(1.0 - (early < 0.75 ? early : 0.75)) * (weight - average);
    }
    return average;
}

/* Under a race weights and average may lose different updates, but the average stays between the first
 * weights and those that no update was lost to. */
static void check_shard(const char *name, const struct rig *rig, const struct shard *shard, bool exact) {
    const long n = atomic_load(&shard->version);
    const float most = rig->training.traits->outer ? 7.0f : 1.0f; /* 0.7 / (1 - 0.9) */
    const float expected = average_after(n);
    const float *average = state_find(&rig->store.host, "average");
    long wrong = 0;
    for (int r = 0; r < rig->layout.count; r++)
        for (size_t i = rig->ranges[r].begin; i < rig->ranges[r].begin + rig->ranges[r].floats; i++) {
            if (i < shard->begin || i >= shard->end) continue;
            if (exact)
                wrong += memcmp(&average[i], &expected, sizeof expected) != 0;
            else
                wrong += !(average[i] < 0.0f && average[i] >= -0.0625f * (float)n * most);
        }
    CHECK(wrong == 0, "%s: %ld averages are wrong after %ld updates; one is %g, expected %g", name, wrong, n,
          (double)average[shard->begin], (double)expected);
}

static void check_counted(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    static const int workers_of[] = {1, 2, 4};
    (void)strategy, (void)argument;
    for (int c = 0; c < 12; c++) {
        const int workers = workers_of[c / 4], shards = c % 2 ? 3 : 1;
        struct rig_settings settings = usual(text, workers, shards, c / 2 % 2);
        char name[128];
        snprintf(name, sizeof name, "%s, %s world, %d workers, %d shards", text,
                 settings.simulated ? "simulated" : "real", workers, shards);
        settings.formula = formula_ones;
        const int code = rig_run(&rig, &settings, c / 4 == 1);
        CHECK(code == OK, "%s: %s", name, rig.error.words);
        const struct traits *traits = rig.training.traits;
        for (int s = 0; s < shards && code == OK; s++)
            check_shard(name, &rig, &rig.store.shards[s],
                        (traits->exactly_once && !traits->corrects) || traits->drops ||
                            (workers == 1 && traits->conserved != CONSERVED_WITH_STORE && !traits->outer));
        rig_close(&rig);
    }
}

/* --- sync and local SGD: the average of the weights as they were seen --- */

static float seen[HARNESS_WORKERS][MOST_STEPS][MOST_FLOATS]; /* what each worker computed its steps on */
static long steps_seen[HARNESS_WORKERS];

static int formula_seen(struct rig *rig, int worker, long number, float *weights, float *gradient,
                        float *loss, struct error *error) {
    if (steps_seen[worker] < MOST_STEPS)
        memcpy(seen[worker][steps_seen[worker]++], weights, rig->layout.floats * sizeof *weights);
    return formula_mixed(rig, worker, number, weights, gradient, loss, error);
}

/* The mean of the workers' weights before step `step`; after the last one, the store's. */
static float mean_seen(const struct rig *rig, long step, size_t i) {
    if (step >= steps_seen[0]) return rig->store.weights[i];
    double sum = 0.0;
    for (int w = 0; w < rig->settings.workers; w++) sum += (double)seen[w][step][i];
    return (float)(sum / rig->settings.workers);
}

static void check_seen(const char *text, int workers, const char *optimizer, double most_off) {
    static struct rig rig;
    for (int simulated = 0; simulated < 2; simulated++) {
        struct rig_settings settings = usual(text, workers, 2, simulated);
        settings.optimizer = optimizer;
        settings.formula = formula_seen;
        memset(steps_seen, 0, sizeof steps_seen);
        CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
        const long steps = BATCHES / workers;
        CHECK(steps_seen[0] == steps && rig.layout.floats <= MOST_FLOATS, "%ld steps", steps_seen[0]);
        double furthest = 0.0;
        for (size_t i = 0; i < rig.layout.floats; i++) {
            float average = 0.0f; /* the first weights */
            for (long n = 1; n <= steps; n++)
                average = update_average(average, mean_seen(&rig, n, i), update_average_rate(0.75, n));
            furthest =
                fmax(furthest, fabs((double)average - (double)state_find(&rig.store.host, "average")[i]));
        }
        CHECK(furthest <= most_off, "%s, %d workers, %s: the average is %g off", text, workers, optimizer,
              furthest);
        rig_close(&rig);
    }
}

/* --- the weights do not notice --- */

static void check_unmoved(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    static float without[MOST_FLOATS];
    (void)strategy, (void)argument;
    for (int average = 0; average < 2; average++) {
        struct rig_settings settings = usual(text, 3, 2, true); /* the same seed, the same order */
        settings.optimizer = "adam";
        settings.formula = formula_mixed;
        settings.average = average ? 0.75 : 0.0;
        CHECK(rig_run(&rig, &settings, true) == OK, "%s: %s", text, rig.error.words);
        CHECK((state_find(&rig.store.host, "average") != NULL) == (average == 1), "%s: an average, or none",
              text);
        if (average == 0) memcpy(without, rig.store.weights, rig.layout.floats * sizeof *without);
        CHECK(memcmp(without, rig.store.weights, rig.layout.floats * sizeof *without) == 0,
              "%s: other weights with an average beside them", text);
        rig_close(&rig);
    }
}

/* The decay as TensorFlow has it, and an average that has arrived stays where it is, to the bit. */
static void check_formula(void) {
    CHECK(fabs((double)update_average_rate(0.9999, 1) - 9.0 / 11) < 1e-7, "first update");
    CHECK(fabs((double)update_average_rate(0.9999, 890) - 9.0 / 900) < 1e-7, "update 890");
    CHECK(fabs((double)update_average_rate(0.9999, 1000000) - 1e-4) < 1e-10, "update 1000000");
    for (uint64_t i = 0; i < 1000; i++) {
        const float w = rng_unit(rng_philox(1, 2, i).word[0]) * 3.0f - 1.0f;
        const float stays = update_average(w, w, update_average_rate(0.99, (long)i));
        CHECK(memcmp(&stays, &w, sizeof w) == 0, "%g moved", (double)w);
    }
}

int main(void) {
    check_formula();
    each_strategy(check_counted, NULL);
    for (int workers = 1; workers <= 4; workers++) {
        check_seen("sync", workers, "sgd:rate=0.1", 0.0);
        check_seen("sync", workers, "adam", 0.0);
        check_seen("local-sgd:every=1", workers, "sgd:rate=0.1", 1e-6);
        check_seen("local-sgd:every=5", workers, "momentum:rate=0.1", 1e-6);
    }
    each_strategy(check_unmoved, NULL);
    return check_end();
}
