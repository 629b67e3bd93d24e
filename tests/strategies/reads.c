/* What workers read: never a torn copy where that is promised, never ahead of the promised lead; and local
 * SGD against its own serial form. */
#include "../harness.h"

static struct rig_settings usual(const char *strategy, bool simulated, int workers, int shards) {
    return (struct rig_settings){.strategy = strategy,
                                 .optimizer = "sgd:rate=1",
                                 .workers = workers,
                                 .shards = shards,
                                 .slots = 2,
                                 .batches = 60,
                                 .block = 997,
                                 .simulated = simulated,
                                 .seed = (uint64_t)(workers * 10 + shards),
                                 .formula = NULL};
}

/* --- torn copies: every gradient is 1 everywhere, so all weights of a shard are equal in every version ---
 */

static int formula_equal(struct rig *rig, int worker, long number, float *weights, float *gradient,
                         float *loss, struct error *error) {
    (void)worker;
    (void)error;
    for (int r = 0; r < rig->layout.count; r++)
        for (size_t i = 0; i < rig->ranges[r].floats; i++) gradient[rig->ranges[r].begin + i] = 1.0f;
    for (int s = 0; s < rig->settings.shards; s++) {
        const struct shard *shard = &rig->store.shards[s];
        bool first = true;
        float value = 0.0f;
        for (size_t i = shard->begin; i < shard->end; i++) {
            if (gradient[i] == 0.0f) continue; /* padding */
            if (first) value = weights[i];
            if (weights[i] != value) {
                atomic_fetch_add(&rig->wrong, 1);
                break;
            }
            first = false;
        }
    }
    *loss = 1.0f + (float)number;
    return OK;
}

static void check_torn(const char *text, const struct strategy *strategy, void *argument) {
    long torn = 0;
    bool promised = true, alone = false;
    (void)strategy;
    (void)argument;
    static const char *const chosen[] = {"sgd:rate=1", "momentum:rate=0.1", "adam:rate=0.01"};
    for (int simulated = 0; simulated < 2; simulated++)
        for (int workers = 1; workers <= 5; workers += 2) {
            static struct rig rig;
            struct rig_settings settings = usual(text, simulated, workers, 2);
            settings.optimizer = chosen[(workers + simulated) / 2 % 3];
            settings.formula = formula_equal;
            settings.together = simulated;
            CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
            promised = rig.training.traits->whole_reads;
            alone = !rig.training.traits->own_weights;
            if (promised)
                CHECK(atomic_load(&rig.wrong) == 0, "%s, %s world, %d workers: %ld copies were torn", text,
                      simulated ? "simulated" : "real", workers, atomic_load(&rig.wrong));
            torn += atomic_load(&rig.wrong);
            rig_close(&rig);
        }
    /* In the simulated world every line of a racy copy is a place where it can tear. */
    CHECK(promised || alone || torn > 0,
          "%s: no copy was torn, though it is not promised: is the test awake?", text);
}

/* --- no copy is taken in the middle of an update: the optimizer takes a while there, in virtual time --- */

static struct world *slow_world; /* of the run, for the optimizer */

static void slow_step(const struct update *update, size_t floats, float *weights, float *const *moments,
                      const float *gradient) {
    (void)moments;
    for (size_t i = 0; i < floats; i++) {
        if (i == floats / 2) world_work(slow_world, 5e-4);
        weights[i] -= update->rate * gradient[i];
    }
}

static const struct optimizer slow_sgd = {.plugin = {.name = "slow"}, .step = slow_step};

static void check_overtaken(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int workers = 1; workers <= 5; workers += 2) {
        static struct rig rig;
        struct rig_settings settings = usual(text, true, workers, 2);
        settings.formula = formula_equal;
        CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
        slow_world = rig.world;
        rig.optimizer.plugin = &slow_sgd.plugin;
        CHECK(rig_go_through(&rig) == OK && training_end(&rig.training, &rig.error) == OK, "%s: %s", text,
              rig.error.words);
        const struct traits *traits = rig.training.traits;
        if (traits->whole_reads)
            CHECK(atomic_load(&rig.wrong) == 0, "%s, %d workers: %ld copies were taken during an update",
                  text, workers, atomic_load(&rig.wrong));
        else if (workers > 1)
            CHECK(atomic_load(&rig.wrong) > 0,
                  "%s, %d workers: no copy was taken during an update: is the test awake?", text, workers);
        rig_close(&rig);
    }
}

/* --- the lead: nobody begins step s+1 before all have every gradient of step s - lead --- */

static int formula_lead(struct rig *rig, int worker, long number, float *weights, float *gradient,
                        float *loss, struct error *error) {
    const long begun = atomic_load(&rig->computed[worker]) - 1,
               lead = rig->training.traits->lead(rig->strategy.settings);
    for (int s = 0; s < rig->settings.shards; s++)
        for (int w = 0; w < rig->settings.workers; w++) {
            const long done = atomic_load(&rig->store.shards[s].tallies[w].steps);
            if (done < begun - lead) atomic_fetch_add(&rig->wrong, 1);
            if (done <= begun - lead) atomic_fetch_add(&rig->at_the_bound, 1);
        }
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static void check_lead(const char *text, const struct strategy *strategy, void *argument) {
    struct choice choice;
    struct error error = {0};
    (void)argument;
    plugin_choose(&choice, &strategy_kind, text, &error);
    if (!strategy_traits(strategy, choice.settings)->lead) return;
    for (int simulated = 0; simulated < 2; simulated++)
        for (int workers = 1; workers <= 5; workers += 2)
            for (int slots = 1; slots <= 5; slots += 4) {
                static struct rig rig;
                struct rig_settings settings = usual(text, simulated, workers, 3);
                settings.formula = formula_lead;
                settings.slots = slots;
                settings.slowness[workers - 1] = 4.0;
                CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
                CHECK(atomic_load(&rig.wrong) == 0, "%s, %d workers: %ld steps began before the bound allows",
                      text, workers, atomic_load(&rig.wrong));
                if (simulated && workers > 1 && slots == 5)
                    CHECK(atomic_load(&rig.at_the_bound) > 0, "%s, %d workers: nobody ever came to the bound",
                          text, workers);
                rig_close(&rig);
            }
}

/* --- local SGD: W copies in turn, averaged in roster order every H steps and at the end --- */

enum { MOST_FLOATS = 8192 };

static void step_copy(const struct rig *rig, const struct choice *choice, float *weights,
                      float *const moments[2], const float *gradient, long update) {
    struct update step = optimizer_update(choice, update);
    step.rate = (float)((const struct optimizer_common *)(const void *)choice->settings)->rate;
    step.step(&step, rig->layout.floats, weights, moments, gradient);
}

static void average(float (*vectors)[MOST_FLOATS], int count, size_t floats) {
    for (size_t i = 0; i < floats; i++) {
        float sum = vectors[0][i];
        for (int w = 1; w < count; w++) sum += vectors[w][i];
        if (count > 1) sum *= 1.0f / (float)count;
        for (int w = 0; w < count; w++) vectors[w][i] = sum;
    }
}

/* DiLoCo as its paper writes it: outer gradient = before - mean, Nesterov momentum. */
static void step_outer(float (*weights)[MOST_FLOATS], float *before, float *velocity, int count,
                       size_t floats) {
    for (size_t i = 0; i < floats; i++) {
        const float gradient = before[i] - weights[0][i];
        velocity[i] = 0.5f * velocity[i] + gradient;
        before[i] -= 0.75f * (gradient + 0.5f * velocity[i]);
        for (int w = 0; w < count; w++) weights[w][i] = before[i];
    }
}

/* first: steps after each of which all average. outer: with a step of the mean; the same up to rounding. */
static void check_local(int workers, int every, const char *optimizer, bool simulated, int first,
                        bool outer) {
    static struct rig rig, serial;
    static float weights[5][MOST_FLOATS], moments[2][5][MOST_FLOATS], gradient[MOST_FLOATS],
        before[MOST_FLOATS], velocity[MOST_FLOATS];
    char text[100];
    struct error error = {0};
    snprintf(text, sizeof text, "local-sgd:every=%d,sync_steps=%d%s", every, first,
             outer ? ",outer=nesterov,outer_rate=0.75,outer_momentum=0.5" : "");
    struct rig_settings settings = usual(text, simulated, workers, 3);
    settings.formula = formula_mixed;
    settings.optimizer = optimizer;
    settings.block = 61;
    settings.batches = 23;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);

    serial = (struct rig){.settings = settings};
    rig_layout(&serial);
    memset(weights, 0, sizeof weights);
    memset(moments, 0, sizeof moments);
    memset(gradient, 0, sizeof gradient);
    memset(before, 0, sizeof before);
    memset(velocity, 0, sizeof velocity);
    const long rounds = (settings.batches + workers - 1) / workers;
    long since = 0;
    for (long round = 0; round < rounds; round++) {
        for (int w = 0; w < workers && round * workers + w < settings.batches; w++) {
            float loss;
            formula_mixed(&serial, w, round * workers + w, weights[w], gradient, &loss, &error);
            step_copy(&serial, &rig.optimizer, weights[w], (float *const[2]){moments[0][w], moments[1][w]},
                      gradient, round + 1);
        }
        since++;
        const bool together = round < first;
        if (!together && since < every && round + 1 < rounds) continue;
        since = 0;
        average(weights, workers, serial.layout.floats);
        for (int m = 0; m < 2; m++) average(moments[m], workers, serial.layout.floats);
        if (outer && !together) step_outer(weights, before, velocity, workers, serial.layout.floats);
        memcpy(before, weights[0], sizeof before);
    }
    double furthest = 0.0;
    for (size_t i = 0; i < serial.layout.floats; i++)
        furthest = fmax(furthest, fabs((double)weights[0][i] - (double)rig.store.weights[i]));
    CHECK(furthest <= (outer ? 2e-6 : 0.0), "%s, %d workers, %s: weights are %g away from serial local SGD",
          text, workers, optimizer, furthest);
    CHECK(optimizer_of(&rig.optimizer)->moments <= 2, "%s: more vectors of state than are looked at",
          optimizer);
    for (int m = 0; m < optimizer_of(&rig.optimizer)->moments; m++) {
        const float *found = rig.store.host.vector[1 + m].at;
        furthest = 0.0;
        for (size_t i = 0; i < serial.layout.floats; i++)
            furthest = fmax(furthest, fabs((double)moments[m][0][i] - (double)found[i]));
        CHECK(furthest <= (outer ? 2e-6 : 0.0), "%s, %d workers, %s: the optimizer state is %g away", text,
              workers, optimizer, furthest);
    }
    rig_close(&rig);
}

/* Statistics have no outer step: they are averaged, and what an update takes from one stays what it is. */
static void check_outer_statistic(void) {
    static struct rig rig;
    struct rig_settings settings =
        usual("local-sgd:every=4,outer=nesterov,outer_rate=0.5,outer_momentum=0.9", true, 2, 3);
    settings.formula = formula_equal;
    settings.statistic = true;
    settings.batches = 40;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s", rig.error.words);
    const float statistic = rig.store.weights[0], trained = rig.store.weights[rig.ranges[1].begin];
    CHECK(fabsf(statistic + 20.0f) < 1e-5f, "a statistic is %g after 20 updates of 1", (double)statistic);
    CHECK(trained < -25.0f, "a trained weight is %g", (double)trained);
    rig_close(&rig);
}

int main(void) {
    each_strategy(check_torn, NULL);
    each_strategy(check_overtaken, NULL);
    each_strategy(check_lead, NULL);
    for (int simulated = 0; simulated < 2; simulated++)
        for (int workers = 1; workers <= 5; workers += 2)
            for (int every = 1; every <= 7; every += 3) {
                check_local(workers, every, "sgd:rate=0.1", simulated, 0, false);
                check_local(workers, every, "momentum:rate=0.1", simulated, every % 5, false);
                check_local(workers, every, "adam:rate=0.01", simulated, 0, false);
                check_local(workers, every, "momentum:rate=0.1", simulated, 0, true);
                check_local(workers, every, "adam:rate=0.01", simulated, 2, true);
            }
    check_outer_statistic();
    return check_end();
}
