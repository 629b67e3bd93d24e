/* What the training loop measures and does beside the strategy: losses, examples, bytes, clipping, and the
 * clock that stands still in a pause. */
#include "../harness.h"

static struct rig_settings usual(const char *strategy, int workers) {
    return (struct rig_settings){.strategy = strategy,
                                 .optimizer = "sgd:rate=1",
                                 .workers = workers,
                                 .shards = 2,
                                 .slots = 2,
                                 .batches = 43,
                                 .block = 64,
                                 .simulated = true,
                                 .seed = (uint64_t)workers,
                                 .formula = formula_blocks};
}

/* --- totals --- */

/* What the strategy says that a worker copies, from its steps and from the changed that it was seen to find.
 */
static long long stated_bytes(struct rig *rig, int worker) {
    const struct optimizer *optimizer = (const struct optimizer *)(const void *)rig->optimizer.plugin;
    const struct worker_side *side = &rig->training.workers[worker].side;
    long long bytes = 0;
    rig_note_changes(rig, worker);
    for (int s = 0; s < rig->settings.shards; s++)
        bytes += rig->training.traits->bytes_moved(
            rig->strategy.settings, strategy_slice_bytes(&rig->store.shards[s]),
            optimizer->moments + (rig->settings.average > 0.0), side->step, rig->changed[worker][s]);
    return bytes;
}

static void check_totals(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    (void)strategy;
    (void)argument;
    for (int round = 0; round < 4; round++) {
        const int workers = round % 2 ? 4 : 1;
        struct rig_settings settings = usual(text, workers);
        settings.optimizer = round < 2 ? "sgd:rate=1" : "adam"; /* with optimizer state to move */
        settings.average = round == 1 || round == 2 ? 0.9 : 0.0;
        settings.batches -= settings.batches % workers; /* no empty ones, whose pulls nobody sees */
        CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
        double sum = 0.0, steps = 0.0;
        long examples = 0;
        for (int w = 0; w < workers; w++) {
            const struct worker_totals *totals = training_totals(&rig.training, w);
            const long long moved = training_bytes_moved(&rig.training, w), stated = stated_bytes(&rig, w);
            examples += totals->examples;
            /* What a worker gives to others it gives to nobody where it is alone. */
            const bool less = workers == 1 && rig.training.traits->conserved && moved < stated;
            CHECK((moved == stated || less) && (moved > 0) == rig.training.traits->own_weights,
                  "%s: worker %d moved %lld bytes in %ld steps, the strategy states %lld", text, w, moved,
                  totals->steps, stated);
            /* In virtual time a step takes 1 to 5 ms, all of it computing. */
            CHECK(totals->compute_s >= 1e-3 * (double)totals->steps &&
                      totals->compute_s <= 5e-3 * (double)totals->steps,
                  "%s: worker %d computed for %g s in %ld steps", text, w, totals->compute_s, totals->steps);
            const double all =
                totals->input_s + totals->pull_s + totals->compute_s + totals->push_s + totals->wait_s;
            CHECK(fabs(all - training_seconds(&rig.training)) < 1e-9, "%s: %g s of phases in %g s", text, all,
                  training_seconds(&rig.training));
        }
        CHECK(examples == 4L * settings.batches, "%s: %ld examples in %d batches of 4", text, examples,
              settings.batches);
        training_take_loss(&rig.training, &sum, &steps);
        /* The loss of batch b is 1 + b. */
        CHECK(fabs(steps - settings.batches) <= 0.0 &&
                  fabs(sum - settings.batches * (settings.batches + 1) / 2.0) < 1e-9,
              "%s: losses of %g steps add up to %g", text, steps, sum);
        training_take_loss(&rig.training, &sum, &steps);
        CHECK(fabs(steps) <= 0.0 && fabs(sum) <= 0.0, "%s: losses were taken twice: %g of %g steps", text,
              sum, steps);
        rig_close(&rig);
    }
}

/* --- where the waiting was --- */

/* Every wait has a place, also that for a thread to wake up. */
static void check_places(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    struct rig_settings settings = usual(text, 2);
    (void)strategy;
    (void)argument;
    settings.simulated = false;
    settings.batches -= settings.batches % 2;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
    for (int w = 0; w < 2; w++) {
        const double waited_s = training_totals(&rig.training, w)->wait_s;
        double sum = 0.0;
        for (int i = 0; i < WAIT_PLACES; i++) sum += rig.roster.members[w].waited_at[i].seconds;
        CHECK(waited_s > 0.0 && fabs(sum - waited_s) < 1e-9,
              "%s: worker %d waited for %g s, at its places %g s", text, w, waited_s, sum);
    }
    rig_close(&rig);
}

/* --- the rate of the log is that of the update --- */

static void check_rates(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    (void)strategy;
    (void)argument;
    struct rig_settings settings = usual(text, 1);
    settings.schedule = "cosine:warmup=0.2";
    CHECK(rig_run(&rig, &settings, true) == OK, "%s: %s", text, rig.error.words);
    CHECK(atomic_load(&rig.finished) == settings.batches && atomic_load(&rig.wrong_rows) == 0,
          "%s: %ld of %ld rows are wrong", text, atomic_load(&rig.wrong_rows), atomic_load(&rig.finished));
    float expected = 0.0f;
    for (long update = 0; update < settings.batches; update++) expected -= store_rate(&rig.store, update);
    const float *own = rig.training.workers[0].side.own.vector[0].at;
    const bool apart =
        rig.training.traits->conserved == CONSERVED_WITH_STORE; /* of it and the store, together */
    const float found = rig.store.weights[0] + (apart ? own[0] : 0.0f);
    const bool same = apart ? fabsf(found - expected) < 1e-4f : memcmp(&expected, &found, sizeof found) == 0;
    CHECK(same || rig.training.traits->outer, "%s: the rates add up to %g, expected %g", text, -(double)found,
          -(double)expected);
    rig_close(&rig);
}

/* --- clipping --- */

/* 3 and 4 in the first and the last float of the vector: the norm is 5. */
static int formula_ends(struct rig *rig, int worker, long number, float *weights, float *gradient,
                        float *loss, struct error *error) {
    (void)worker;
    (void)number;
    (void)weights;
    (void)error;
    memset(gradient, 0, rig->layout.floats * sizeof *gradient);
    gradient[0] = 3.0f;
    gradient[rig->layout.floats - 1] = 4.0f;
    *loss = 1.0f;
    return OK;
}

static void check_clipping(void) {
    static const struct {
        float clip, first, last;
        bool statistic; /* is the first: no part of the norm, and never cut */
    } rows[] = {{0.0f, -6.0f, -8.0f, false}, {5.5f, -6.0f, -8.0f, false},    {5.0f, -6.0f, -8.0f, false},
                {2.5f, -3.0f, -4.0f, false}, {0.625f, -0.75f, -1.0f, false}, {4.0f, -6.0f, -8.0f, true},
                {2.0f, -6.0f, -4.0f, true}};
    static struct rig rig;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig_settings settings = usual("sync", 1);
        settings.formula = formula_ends;
        settings.batches = 2;
        settings.clip = rows[i].clip;
        settings.statistic = rows[i].statistic;
        CHECK(rig_run(&rig, &settings, false) == OK, "%s", rig.error.words);
        const float first = rig.store.weights[0], last = rig.store.weights[rig.layout.floats - 1];
        CHECK(fabsf(first - rows[i].first) < 1e-6f && fabsf(last - rows[i].last) < 1e-6f,
              "clip %g: weights %g and %g, expected %g and %g", (double)rows[i].clip, (double)first,
              (double)last, (double)rows[i].first, (double)rows[i].last);
        rig_close(&rig);
    }
}

/* --- the clock --- */

static void check_pause_is_not_training(void) {
    static struct rig rig;
    const struct rig_settings settings = usual("sync", 3);
    CHECK(rig_open(&rig, &settings) == OK, "%s", rig.error.words);
    CHECK(training_seconds(&rig.training) <= 0.0, "%g s before the start", training_seconds(&rig.training));
    sampler_set_limit(&rig.sampler, 0);
    training_go(&rig.training);
    training_wait(&rig.training, 0.02);
    sampler_stop(&rig.sampler);
    while (!training_wait(&rig.training, 1.0)) {
    }
    const double first = training_seconds(&rig.training);
    CHECK(first > 0.01 && first < 0.2, "%g s until the stop", first);
    world_sleep(rig.world, 100.0);
    CHECK(fabs(training_seconds(&rig.training) - first) < 1e-9, "the clock went on in the pause: %g s",
          training_seconds(&rig.training));
    sampler_set_limit(&rig.sampler, 0);
    training_go(&rig.training);
    while (!training_wait(&rig.training, 1.0)) {
    }
    CHECK(training_seconds(&rig.training) > first && training_seconds(&rig.training) < 1.0, "%g s in all",
          training_seconds(&rig.training));
    CHECK(training_end(&rig.training, &rig.error) == OK, "%s", rig.error.words);
    rig_close(&rig);
}

/* --- a stop: everything on the way is applied before all are paused, and nothing starts after --- */

static void check_pause(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    (void)strategy;
    (void)argument;
    for (int workers = 1; workers <= 5; workers += 2)
        for (int again = 0; again < 10; again++) {
            struct rig_settings settings = usual(text, workers);
            settings.seed = (uint64_t)(100 * workers + again);
            settings.slots = 3;
            settings.batches = 200;
            CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
            sampler_set_limit(&rig.sampler, 0);
            training_go(&rig.training);
            training_wait(&rig.training, 0.005 + 0.002 * again);
            sampler_stop(&rig.sampler);
            while (!training_wait(&rig.training, 1.0)) {
            }
            const long position = sampler_position(&rig.sampler);
            long steps = 0;
            for (int w = 0; w < workers; w++) steps += training_totals(&rig.training, w)->steps;
            CHECK(position > 0 && position < settings.batches, "%s: paused at batch %ld, not in the middle",
                  text, position);
            CHECK(steps == position, "%s: %ld steps, the sampler is at %ld", text, steps, position);
            const struct traits *traits = rig.training.traits;
            const long rounds = (steps + workers - 1) / workers, expected = traits->merged ? rounds : steps;
            CHECK(traits->drops || store_version(&rig.store) == expected,
                  "%s, %d workers: paused at version %ld after %ld steps", text, workers,
                  store_version(&rig.store), steps);
            CHECK(atomic_load(&rig.finished) == (traits->rounds ? rounds * workers : steps),
                  "%s: %ld gradients of %ld were let go of", text, atomic_load(&rig.finished), steps);
            CHECK(training_end(&rig.training, &rig.error) == OK, "%s: %s", text, rig.error.words);
            rig_close(&rig);
        }
}

/* --- the start: who opens something for long is not silent, and the clock does not run yet --- */

static void check_slow_start(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    (void)strategy;
    (void)argument;
    struct rig_settings settings = usual(text, 3);
    settings.opening_s = 100.0; /* five times the timeout of the others */
    CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
    const double began = world_now(rig.world);
    CHECK(training_starting(&rig.training, 1.0) == 2, "%s: not the last worker is starting", text);
    while (training_starting(&rig.training, 1.0) >= 0) {
    }
    const double took = world_now(rig.world) - began;
    CHECK(took > 99.9 && took < 100.1, "%s: the start took %g s", text, took);
    sampler_set_limit(&rig.sampler, 0);
    training_go(&rig.training);
    training_wait(&rig.training,
                  0.0); /* looks before anybody woke up, whose last sign of life is 100 s old */
    while (!training_wait(&rig.training, 1.0)) {
    }
    CHECK(training_end(&rig.training, &rig.error) == OK, "%s: %s", text, rig.error.words);
    CHECK(training_seconds(&rig.training) < 1.0, "%s: the start counts as training: %g s", text,
          training_seconds(&rig.training));
    rig_close(&rig);
}

static void check_failed_start(void) {
    static struct rig rig;
    struct rig_settings settings = usual("sync", 3);
    settings.opening_s = -1.0;
    CHECK(rig_open(&rig, &settings) == OK, "%s", rig.error.words);
    CHECK(training_starting(&rig.training, 10.0) == -1, "a worker that failed is awaited");
    CHECK(training_end(&rig.training, &rig.error) == ERROR_DEVICE &&
              strstr(rig.error.words, "cannot be opened"),
          "%s", rig.error.words);
    rig_close(&rig);
}

int main(void) {
    each_strategy(check_slow_start, NULL);
    check_failed_start();
    each_strategy(check_totals, NULL);
    each_strategy(check_places, NULL);
    each_strategy(check_rates, NULL);
    each_strategy(check_pause, NULL);
    check_clipping();
    check_pause_is_not_training();
    return check_end();
}
