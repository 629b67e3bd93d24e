/* The prefetcher: whatever is built ahead, every batch is computed once, in its own buffer, through stops and
 * resuming, by every strategy in both worlds; input is off the step's path; and a prefetcher that fails or
 * hangs is named. */
#include "../harness.h"

static const int ahead[] = {1, 2, 4};
enum { AHEADS = sizeof ahead / sizeof *ahead };

static struct rig_settings usual(const char *strategy, bool simulated, int workers, int prefetch) {
    return (struct rig_settings){.strategy = strategy,
                                 .optimizer = "sgd:rate=1",
                                 .workers = workers,
                                 .shards = 2,
                                 .slots = 2,
                                 .batches = 83,
                                 .block = 61,
                                 .simulated = simulated,
                                 .seed = (uint64_t)(workers * 100 + prefetch),
                                 .prefetch = prefetch,
                                 .formula = formula_blocks};
}

static void wait_for_pause(struct rig *rig) {
    while (!training_wait(&rig->training, 1.0)) {
    }
}

/* --- every batch once, through stops --- */

/* What was assigned when all are paused is what was computed, no batch twice. */
static void check_standing(const struct rig *rig, long before, const char *name) {
    long steps = 0, seen = 0;
    const long position = sampler_position(&rig->sampler);
    for (int w = 0; w < rig->settings.workers; w++) steps += training_totals(&rig->training, w)->steps;
    CHECK(before + steps == position, "%s: %ld and %ld steps, but %ld batches were assigned", name, before,
          steps, position);
    for (int b = 0; b < rig->settings.batches; b++) {
        const long times = atomic_load(&rig->seen_batches[b]);
        CHECK(times <= 1, "%s: batch %d was computed %ld times", name, b, times);
        seen += times;
    }
    CHECK(seen == position, "%s: %ld batches of %ld were computed", name, seen, position);
    CHECK(atomic_load(&rig->overwritten) == 0, "%s: %ld batches were overwritten", name,
          atomic_load(&rig->overwritten));
    CHECK(atomic_load(&rig->wrong_rows) == 0, "%s: %ld wrong rows", name, atomic_load(&rig->wrong_rows));
}

static void name_case(char out[200], const struct rig_settings *s) {
    snprintf(out, 200, "%s, %s world, %d workers, prefetch %d", s->strategy,
             s->simulated ? "simulated" : "real", s->workers, s->prefetch);
}

/* Two stops, and then, after the second one, on to the end or a new training that resumes. */
static void check_stop(const struct rig_settings *settings, bool resumes) {
    static struct rig rig, resumed;
    char name[200];
    name_case(name, settings);
    CHECK(rig_open(&rig, settings) == OK, "%s: %s", name, rig.error.words);
    for (int stop = 0; stop < 2; stop++) {
        sampler_set_limit(&rig.sampler, 0);
        training_go(&rig.training);
        training_wait(&rig.training, settings->simulated ? 0.003 + 0.004 * settings->workers : 0.0003);
        sampler_stop(&rig.sampler);
        wait_for_pause(&rig);
        check_standing(&rig, 0, name);
    }
    const long position = sampler_position(&rig.sampler);
    if (settings->simulated && settings->workers <= 3)
        CHECK(position > 0 && position < settings->batches, "%s: stopped at %ld, not in the middle", name,
              position);
    struct rig *last = &rig;
    if (resumes) {
        CHECK(rig_open(&resumed, settings) == OK, "%s: %s", name, resumed.error.words);
        const struct stream stream = rig.sampler.stream;
        sampler_close(&resumed.sampler);
        CHECK(sampler_open(&resumed.sampler, &stream, rig.sampler.rounds, 1, position, NULL,
                           &resumed.error) == OK,
              "%s", resumed.error.words);
        for (int b = 0; b < settings->batches; b++)
            atomic_store(&resumed.seen_batches[b], atomic_load(&rig.seen_batches[b]));
        last = &resumed;
    }
    sampler_set_limit(&last->sampler, 0);
    training_go(&last->training);
    wait_for_pause(last);
    check_standing(last, resumes ? position : 0, name);
    CHECK(sampler_position(&last->sampler) == settings->batches, "%s: ended at %ld", name,
          sampler_position(&last->sampler));
    CHECK(training_end(&rig.training, &rig.error) == OK, "%s: %s", name, rig.error.words);
    rig_close(&rig);
    if (!resumes) return;
    CHECK(training_end(&resumed.training, &resumed.error) == OK, "%s: %s", name, resumed.error.words);
    rig_close(&resumed);
}

static void check_stops(const char *text, const struct strategy *strategy, void *argument) {
    static uint64_t number;
    (void)strategy;
    (void)argument;
    for (int simulated = 0; simulated < 2; simulated++)
        for (int workers = 1; workers <= 5; workers++)
            for (int a = 0; a < AHEADS; a++)
                for (int resumes = 0; resumes < 2; resumes++) {
                    const struct rig_settings settings = usual(text, simulated, workers, ahead[a]);
                    if (!simulated || is_chosen(number++)) check_stop(&settings, resumes);
                }
}

/* --- the same bits --- */

enum { MOST_FLOATS = 4096 };

static void run_and_copy(const struct rig_settings *settings, bool pauses, float weights[MOST_FLOATS]) {
    static struct rig rig;
    const int code = rig_run(&rig, settings, pauses);
    CHECK(code == OK, "%s: %s", settings->strategy, rig.error.words);
    memset(weights, 0, MOST_FLOATS * sizeof *weights);
    memcpy(weights, rig.store.weights, rig.layout.floats * sizeof *weights);
    rig_close(&rig);
}

static void check_bits(const char *text, const struct strategy *strategy, void *argument) {
    static float without[MOST_FLOATS], with[MOST_FLOATS], again[MOST_FLOATS];
    struct choice choice;
    struct error error = {0};
    (void)argument;
    CHECK(plugin_choose(&choice, &strategy_kind, text, &error) == OK, "%s", error.words);
    for (int workers = 1; workers <= 3; workers++)
        for (int a = 0; a < AHEADS; a++) {
            struct rig_settings settings = usual(text, false, workers, 0);
            settings.formula = formula_mixed;
            settings.optimizer = "momentum:rate=0.1";
            if (strategy_traits(strategy, choice.settings)->repeatable) {
                run_and_copy(&settings, false, without);
                settings.prefetch = ahead[a];
                run_and_copy(&settings, false, with);
                CHECK(memcmp(with, without, sizeof with) == 0, "%s, %d workers: prefetch %d changed the bits",
                      text, workers, ahead[a]);
            }
            settings.prefetch = ahead[a];
            settings.simulated = true;
            run_and_copy(&settings, true, with);
            run_and_copy(&settings, true, again);
            CHECK(memcmp(with, again, sizeof with) == 0,
                  "%s, %d workers, prefetch %d: the simulated world did not repeat itself", text, workers,
                  ahead[a]);
        }
}

/* --- off the path: in virtual time, to the microsecond --- */

enum { SLOW_STEPS = 40 };
#define STEP_S 1e-3

/* Batches built, and how many of them ahead of the step in hand when that ends. */
struct watched {
    double load_s;
    _Atomic long built;
    long ahead_least, ahead_most;
};
static struct watched watched;

static int load_slowly(void *self, int worker, int buffer, long number, const struct indices *indices,
                       struct error *error) {
    struct rig *rig = self;
    world_work(rig->world, watched.load_s);
    atomic_fetch_add(&watched.built, 1);
    return rig_load(rig, worker, buffer, number, indices, error);
}

static int formula_watching(struct rig *rig, int worker, long number, float *weights, float *gradient,
                            float *loss, struct error *error) {
    const long lead = atomic_load(&watched.built) - atomic_load(&rig->computed[worker]);
    const long left = SLOW_STEPS - atomic_load(&rig->computed[worker]);
    if (left >= rig->settings.prefetch && lead < watched.ahead_least) watched.ahead_least = lead;
    if (lead > watched.ahead_most) watched.ahead_most = lead;
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static struct worker_totals totals_with(int prefetch, double load_s, double *seconds) {
    static struct rig rig;
    struct rig_settings settings = usual("sync", true, 1, prefetch);
    settings.batches = SLOW_STEPS;
    settings.together = true;
    settings.formula = formula_watching;
    watched = (struct watched){.load_s = load_s, .ahead_least = SLOW_STEPS};
    CHECK(rig_open(&rig, &settings) == OK, "%s", rig.error.words);
    rig.training.settings.compute.load = load_slowly;
    sampler_set_limit(&rig.sampler, 0);
    training_go(&rig.training);
    wait_for_pause(&rig);
    const struct worker_totals totals = *training_totals(&rig.training, 0);
    *seconds = training_seconds(&rig.training);
    CHECK(training_end(&rig.training, &rig.error) == OK, "%s", rig.error.words);
    rig_close(&rig);
    return totals;
}

static bool near(double a, double b) {
    return fabs(a - b) < 1e-6;
}

static void check_off_path(void) {
    double seconds = 0.0;
    for (int prefetch = 0; prefetch <= 4; prefetch++) {
        /* Building takes half a step: only the first batch is waited for; that is input, not waiting. */
        struct worker_totals totals = totals_with(prefetch, STEP_S / 2, &seconds);
        const double first = STEP_S / 2, all = SLOW_STEPS * STEP_S / 2;
        CHECK(near(totals.input_s, prefetch > 0 ? first : all), "prefetch %d: input took %g s", prefetch,
              totals.input_s);
        CHECK(near(totals.wait_s, 0.0), "prefetch %d: waited %g s", prefetch, totals.wait_s);
        CHECK(near(seconds, totals.input_s + SLOW_STEPS * STEP_S), "prefetch %d: took %g s", prefetch,
              seconds);
        /* Exactly as far ahead as was asked for. */
        if (prefetch != 1) /* at half a step's time each, one is built before the step ends */
            CHECK(watched.ahead_most == prefetch, "prefetch %d: %ld ahead", prefetch, watched.ahead_most);
        /* Twice a step: the prefetcher sets the pace, and what is not hidden is input. */
        totals = totals_with(prefetch, 2 * STEP_S, &seconds);
        CHECK(near(seconds, SLOW_STEPS * (prefetch > 0 ? 2 : 3) * STEP_S + (prefetch > 0 ? STEP_S : 0.0)),
              "prefetch %d, slow input: took %g s", prefetch, seconds);
        CHECK(near(totals.input_s + totals.compute_s, seconds) && near(totals.wait_s, 0.0),
              "prefetch %d, slow input: %g s input, %g s computing, %g s waiting in %g s", prefetch,
              totals.input_s, totals.compute_s, totals.wait_s, seconds);
        /* In no time: always all the way ahead. */
        totals_with(prefetch, 0.0, &seconds);
        CHECK(watched.ahead_least == prefetch && watched.ahead_most == prefetch,
              "prefetch %d: %ld to %ld ahead", prefetch, watched.ahead_least, watched.ahead_most);
    }
}

/* --- a prefetcher that fails, and one that hangs --- */

static int load_failing(void *self, int worker, int buffer, long number, const struct indices *indices,
                        struct error *error) {
    if (number >= 7) return error_set(error, ERROR_FILE, "batch %ld cannot be read", number);
    return rig_load(self, worker, buffer, number, indices, error);
}

static int load_hanging(void *self, int worker, int buffer, long number, const struct indices *indices,
                        struct error *error) {
    struct rig *rig = self;
    if (number == 7) world_sleep(rig->world, 1000.0);
    return rig_load(rig, worker, buffer, number, indices, error);
}

static int run_with(struct rig *rig, const struct rig_settings *settings,
                    int (*load)(void *self, int worker, int buffer, long number,
                                const struct indices *indices, struct error *error)) {
    CHECK(rig_open(rig, settings) == OK, "%s", rig->error.words);
    rig->training.settings.compute.load = load;
    sampler_set_limit(&rig->sampler, 0);
    training_go(&rig->training);
    wait_for_pause(rig);
    return training_end(&rig->training, &rig->error);
}

static void check_failing(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    (void)strategy;
    (void)argument;
    for (int workers = 1; workers <= 3; workers++)
        for (int prefetch = 0; prefetch <= 2; prefetch++) {
            for (int simulated = 0; simulated < 2; simulated++) {
                const struct rig_settings settings = usual(text, simulated, workers, prefetch);
                const int code = run_with(&rig, &settings, load_failing);
                CHECK(code == ERROR_FILE && strstr(rig.error.words, "cannot be read"),
                      "%s, %d workers, prefetch %d: code %d, \"%s\"", text, workers, prefetch, code,
                      rig.error.words);
                /* The first failure is the one that is told, and what came before it was computed. */
                if (workers == 1)
                    CHECK(strcmp(rig.error.words, "batch 7 cannot be read") == 0 &&
                              training_totals(&rig.training, 0)->steps == 7,
                          "%s, prefetch %d: %ld steps, \"%s\"", text, prefetch,
                          training_totals(&rig.training, 0)->steps, rig.error.words);
                rig_close(&rig);
            }
            if (prefetch == 0) continue; /* who hangs then is the worker */
            const struct rig_settings settings = usual(text, true, workers, prefetch);
            CHECK(run_with(&rig, &settings, load_hanging) == ERROR_PEER, "%s: a prefetcher that hangs", text);
            CHECK(strstr(rig.error.words, "gave up after 20 s") &&
                      strstr(rig.error.words, "at its prefetcher's next batch"),
                  "%s, %d workers: \"%s\"", text, workers, rig.error.words);
            CHECK(world_now(rig.world) < 30.0, "%s: gave up at %g s", text, world_now(rig.world));
            rig_close(&rig);
        }
}

/* A prefetcher that nothing wakes: its worker says so, and the end does not wait for it. */
static _Atomic bool released;

static int load_stuck(void *self, int worker, int buffer, long number, const struct indices *indices,
                      struct error *error) {
    struct rig *rig = self;
    struct world *world = NULL;
    struct error ignored = {0};
    if (number == 3 && world_open_threads(&world, &ignored) == OK) { /* this one is never stopped */
        while (!atomic_load(&released)) world_sleep(world, 1e-3);
        world_close(world);
    }
    return rig_load(rig, worker, buffer, number, indices, error);
}

static void check_stuck(void) {
    static struct rig rig;
    const struct rig_settings settings = usual("async-lockfree", false, 1, 2);
    CHECK(rig_open(&rig, &settings) == OK, "%s", rig.error.words);
    rig.training.settings.compute.load = load_stuck;
    rig.roster.timeout_s = 0.2;
    rig.training.settings.ending_s = 0.5;
    sampler_set_limit(&rig.sampler, 0);
    training_go(&rig.training);
    wait_for_pause(&rig);
    CHECK(training_end(&rig.training, &rig.error) == ERROR_PEER &&
              strcmp(rig.error.words, "worker 0 gave up after 0.2 s at its prefetcher's next batch") == 0,
          "\"%s\"", rig.error.words);
    CHECK(rig.training.abandoned, "ended although the prefetcher hangs");
    atomic_store(&released, true);
    world_join(rig.training.workers[0].prefetcher.thread);
    rig.training.abandoned = false;
    rig_close(&rig);
}

/* --- a worker that leaves in the middle, while the others go on --- */

static void check_left_alone(void) {
    for (int simulated = 0; simulated < 2; simulated++)
        for (int taken = 0; taken <= 3; taken++) {
            static struct rig rig;
            struct prefetcher prefetcher;
            struct feed feed;
            struct rig_settings settings = usual("sync", simulated, 1, 2);
            CHECK(rig_open(&rig, &settings) == OK, "%s", rig.error.words);
            sampler_set_limit(&rig.sampler, 0);
            CHECK(prefetcher_open(&prefetcher, &rig.training.settings, 0, &rig.error) == OK, "%s",
                  rig.error.words);
            prefetcher_begin(&prefetcher);
            for (int i = 0; i < taken; i++) {
                CHECK(prefetcher_take(&prefetcher, &feed, &rig.error) == OK && feed.number == i &&
                          !feed.pause,
                      "%s: took batch %ld", rig.error.words, feed.number);
                if (i + 1 < taken) prefetcher_give_back(&prefetcher);
            }
            prefetcher_end(&prefetcher);
            world_join(prefetcher.thread);
            CHECK(!world_stopped(rig.world), "the world had to be stopped to end the prefetcher");
            prefetcher_close(&prefetcher);
            CHECK(training_end(&rig.training, &rig.error) == OK, "%s", rig.error.words);
            rig_close(&rig);
        }
}

/* --- no memory --- */

static void check_memory_failures(void) {
    static struct rig rig;
    const struct rig_settings settings = usual("async-lockfree", true, 2, 2);
    bool opened = false;
    long requests = 0;
    int failures = 0;
    for (int nth = 1; nth < 300 && !opened; nth++) {
        char text[32];
        requests += nth; /* the count goes on over the attempts */
        snprintf(text, sizeof text, "%ld", requests);
        setenv("TRAINER_FAIL_ALLOCATION", text, 1);
        opened = rig_open(&rig, &settings) == OK;
        failures += !opened;
        unsetenv("TRAINER_FAIL_ALLOCATION");
        if (rig.training.settings.world) {
            struct error ignored = {0};
            world_stop(rig.world);
            training_end(&rig.training, &ignored);
        }
        rig_close(&rig);
    }
    CHECK(opened && failures > 20, "%d failures", failures);
}

int main(void) {
    each_strategy(check_stops, NULL);
    each_strategy(check_bits, NULL);
    check_off_path();
    each_strategy(check_failing, NULL);
    check_stuck();
    check_left_alone();
    check_memory_failures();
    prefetcher_end(&(struct prefetcher){0});
    prefetcher_close(&(struct prefetcher){0});
    return check_end();
}
