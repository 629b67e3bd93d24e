/* Faults put in: a worker that fails, stalls or is slow, a server that stalls, under every strategy. Nobody
 * hangs, the words name who it was, and with go_on the others finish the epoch: every batch is computed once,
 * but for what was in flight. */
#include "../harness.h"

/* In the real world; a busy machine may keep a worker from its core for half a second. */
#define SILENT_S 1.0

/* Slow enough for all workers to come to their steps, also in the real world. */
static int formula_paced(struct rig *rig, int worker, long number, float *weights, float *gradient,
                         float *loss, struct error *error) {
    if (!rig->settings.simulated) world_sleep(rig->world, 5e-4);
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static struct rig_settings usual(const char *strategy, bool simulated, int workers) {
    return (struct rig_settings){.strategy = strategy,
                                 .optimizer = "sgd:rate=1",
                                 .workers = workers,
                                 .shards = 2,
                                 .slots = 2,
                                 .batches = 60,
                                 .block = 37,
                                 .simulated = simulated,
                                 .seed = (uint64_t)workers,
                                 .formula = formula_paced};
}

/* --- the end of a run --- */

static void check_stop(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int simulated = 0; simulated < 2; simulated++)
        for (int workers = 3 - simulated; workers <= 3; workers++) {
            static struct rig rig;
            struct rig_settings settings = usual(text, simulated, workers);
            settings.fail = "worker:1@step:5";
            CHECK(rig_run(&rig, &settings, false) == ERROR_DEVICE, "%s: %s", text, rig.error.words);
            CHECK(strcmp(rig.error.words, "worker 1 failed at step 5, as --fail asked") == 0,
                  "%s: words are \"%s\"", text, rig.error.words);
            rig_close(&rig);

            settings = usual(text, simulated, workers);
            settings.stall = "worker:1@step:5";
            settings.timeout_s = simulated ? 20.0 : SILENT_S;
            CHECK(rig_run(&rig, &settings, false) == ERROR_PEER, "%s: %s", text, rig.error.words);
            CHECK(strstr(rig.error.words, "waiting for worker 1, computing for") &&
                      strstr(rig.error.words, "at step 5") && !strstr(rig.error.words, "; server"),
                  "%s: words are \"%s\"", text, rig.error.words);
            rig_close(&rig);
        }
}

static void check_stalled_server(const char *text, const struct strategy *strategy, void *argument) {
    (void)argument;
    for (int simulated = 0; simulated < 2; simulated++)
        for (int go_on = 0; go_on < 2; go_on++) {
            static struct rig rig;
            struct rig_settings settings = usual(text, simulated, 3);
            struct choice choice;
            struct error error = {0};
            plugin_choose(&choice, &strategy_kind, text, &error);
            if (!strategy_traits(strategy, choice.settings)->servers) return;
            settings.stall = "server:1";
            settings.go_on = go_on;
            settings.timeout_s = simulated ? 20.0 : SILENT_S;
            CHECK(rig_run(&rig, &settings, false) == ERROR_PEER, "%s: %s", text, rig.error.words);
            CHECK(strstr(rig.error.words, "waiting for server 1, "), "%s: words are \"%s\"", text,
                  rig.error.words);
            rig_close(&rig);
        }
}

/* --- going on --- */

/* Every batch of the stream was computed once, but for those in the hands of who was lost. */
static void check_stream(const struct rig *rig, const char *name, int lost) {
    long missing = 0, steps = 0, updates = 0;
    for (int b = 0; b < rig->settings.batches; b++) {
        const long seen = atomic_load(&rig->seen_batches[b]);
        CHECK(seen <= 1, "%s: batch %d was computed %ld times", name, b, seen);
        missing += seen == 0;
    }
    const int most = lost * (1 + rig->settings.prefetch);
    CHECK(missing <= most && missing == rig->sampler.in_flight,
          "%s: %ld batches were never computed, %ld were in flight with %d lost workers", name, missing,
          rig->sampler.in_flight, lost);
    for (int w = 0; w < rig->settings.workers; w++) {
        steps += training_totals(&rig->training, w)->steps;
        updates +=
            rig->store.shards[0].tallies[w].staleness.gradients + rig->store.shards[0].tallies[w].dropped;
    }
    CHECK(steps == rig->settings.batches - missing && updates == steps,
          "%s: %ld steps and %ld updates for %ld batches", name, steps, updates,
          rig->settings.batches - missing);
}

static void check_loss(const char *text, bool simulated, int workers, const char *fail, const char *stall,
                       int lost, int prefetch, int shards) {
    static struct rig rig;
    struct rig_settings settings = usual(text, simulated, workers);
    char name[200];
    settings.shards = shards;
    snprintf(name, sizeof name, "%s, %s world, %d workers, fail %s, stall %s, prefetch %d", text,
             simulated ? "simulated" : "real", workers, fail ? fail : "nobody", stall ? stall : "nobody",
             prefetch);
    settings.go_on = true;
    settings.fail = fail;
    settings.stall = stall;
    settings.prefetch = prefetch;
    settings.timeout_s = simulated || !stall ? 20.0 : SILENT_S;
    const int code = rig_run(&rig, &settings, false);
    CHECK(code == OK, "%s: %s", name, rig.error.words);
    int gone = 0;
    for (int w = 0; w < workers; w++) gone += rig.lost[w];
    if (code == OK) check_stream(&rig, name, gone);
    /* In the real world a worker that gets no core may find no batch left before it comes to its step. */
    const bool may_be_less = lost < 0 || (!simulated && !rig.training.traits->rounds);
    CHECK(gone == lost || (may_be_less && gone <= (lost < 0 ? 1 : lost)),
          "%s: %d workers were lost, expected %d", name, gone, lost);
    if (stall && !fail && gone == lost)
        CHECK(strstr(rig.lost_words, "showed no sign of life") && strstr(rig.lost_words, "computing at step"),
              "%s: words are \"%s\"", name, rig.lost_words);
    if (fail && !stall)
        CHECK(strstr(rig.lost_words, "as --fail asked"), "%s: words are \"%s\"", name, rig.lost_words);
    rig_close(&rig);
}

static void check_going_on(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int simulated = 0; simulated < 2; simulated++) {
        check_loss(text, simulated, 2, "worker:0@step:1", NULL, 1, 0, 2);
        check_loss(text, simulated, 4, "worker:1@step:4", "worker:2@step:4", 2, 0, 2);
        check_loss(text, simulated, 3, "worker:0@step:7,worker:1@step:8", NULL, 2, 1, 2);
    }
    check_loss(text, true, 2, "worker:1@step:5", NULL, 1, 0, 2);
    check_loss(text, true, 3, "worker:0@step:7", NULL, 1, 0, 2);
    check_loss(text, true, 5, "worker:0@step:3,worker:3@step:3,worker:2@step:6", NULL, 3, 0, 2);
    check_loss(text, true, 3, NULL, "worker:2@step:4", 1, 0, 2);
    check_loss(text, true, 3, "worker:0@step:7", "worker:2@step:6", 2, 2, 2);
    /* A worker may fall silent at any step, also in the last ones before the boundary, where others rest. */
    for (int step = 1; step <= 20; step++) {
        char stall[40];
        snprintf(stall, sizeof stall, "worker:1@step:%d", step);
        check_loss(text, true, 3, NULL, stall, -1, step % 3, 1 + step % 7);
    }
    /* The last one is never spared. */
    static struct rig rig;
    struct rig_settings settings = usual(text, true, 2);
    settings.go_on = true;
    settings.fail = "worker:1@step:3,worker:0@step:20";
    CHECK(rig_run(&rig, &settings, false) == ERROR_DEVICE, "%s: the last worker was spared", text);
    CHECK(strcmp(rig.error.words, "worker 0 failed at step 20, as --fail asked") == 0, "%s: words are \"%s\"",
          text, rig.error.words);
    rig_close(&rig);
}

/* --- whoever comes back after it was given up for lost does not touch the store any more --- */

static int formula_sleeping(struct rig *rig, int worker, long number, float *weights, float *gradient,
                            float *loss, struct error *error) {
    if (worker == 1 && atomic_load(&rig->computed[1]) == 4) world_sleep(rig->world, 25.0);
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static int load_sleeping(void *self, int worker, int buffer, long number, const struct indices *indices,
                         struct error *error) {
    struct rig *rig = self;
    if (worker == 1 && atomic_load(&rig->computed[1]) == 3) world_sleep(rig->world, 25.0);
    return rig_load(self, worker, buffer, number, indices, error);
}

static void check_coming_back(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int in_input = 0; in_input < 2; in_input++) {
        static struct rig rig;
        struct rig_settings settings = usual(text, true, 3);
        settings.go_on = true;
        if (!in_input) settings.formula = formula_sleeping;
        CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
        if (in_input) rig.training.settings.compute.load = load_sleeping;
        CHECK(rig_go_through(&rig) == OK && training_end(&rig.training, &rig.error) == OK, "%s: %s", text,
              rig.error.words);
        CHECK(rig.lost[1] && !rig.lost[0] && !rig.lost[2], "%s: another was lost than worker 1", text);
        CHECK(strstr(rig.training.workers[1].error.words, "came back after it was given up for lost"),
              "%s: it ended with \"%s\"", text, rig.training.workers[1].error.words);
        CHECK(training_totals(&rig.training, 1)->steps == 3 && atomic_load(&rig.computed[1]) == 4 - in_input,
              "%s: worker 1 took %ld steps and began %ld", text, training_totals(&rig.training, 1)->steps,
              atomic_load(&rig.computed[1]));
        rig_close(&rig);
    }
}

/* --- a slice of the examples that ends with its worker: the others go to the end of theirs --- */

static void check_split(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    struct rig_settings settings = usual(text, true, 3);
    (void)strategy;
    (void)argument;
    settings.sharding = SHARDING_SPLIT;
    settings.go_on = true;
    settings.fail = "worker:1@step:4";
    CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
    for (int w = 0; w < 3; w++)
        CHECK(training_totals(&rig.training, w)->steps == (w == 1 ? 3 : 20), "%s: worker %d took %ld steps",
              text, w, training_totals(&rig.training, w)->steps);
    rig_close(&rig);
}

/* --- what the weights are after a loss: with gradients of 1 everywhere, the rounds that there were --- */

/* Where every gradient counts once, the last one of worker 0 is another: it shows when it counts twice, or
 * not at all. What a worker has learnt in a copy of its own since the last average is lost with it. */
#define SURPRISE 1001.0f

static bool counts_once(const struct traits *traits) {
    return traits->exactly_once && !traits->own_moments;
}

static int formula_ones(struct rig *rig, int worker, long number, float *weights, float *gradient,
                        float *loss, struct error *error) {
    const bool surprises =
        counts_once(rig->training.traits) && worker == 0 && atomic_load(&rig->computed[0]) == 3;
    (void)weights;
    (void)error;
    for (size_t i = 0; i < rig->layout.floats; i++) gradient[i] = surprises ? SURPRISE : 1.0f;
    *loss = 1.0f + (float)number;
    return OK;
}

/* In its input a worker has sent its gradient and not taken the weights yet. */
static int load_failing(void *self, int worker, int buffer, long number, const struct indices *indices,
                        struct error *error) {
    struct rig *rig = self;
    if (worker == 0 && atomic_load(&rig->computed[0]) == 3)
        return error_set(error, ERROR_DEVICE, "worker 0 failed in its input");
    return rig_load(self, worker, buffer, number, indices, error);
}

static int load_silent(void *self, int worker, int buffer, long number, const struct indices *indices,
                       struct error *error) {
    struct rig *rig = self;
    if (worker == 0 && atomic_load(&rig->computed[0]) == 3) world_sleep(rig->world, 25.0);
    return rig_load(self, worker, buffer, number, indices, error);
}

enum loss { FAILS_COMPUTING, FAILS_IN_INPUT, SILENT_IN_INPUT, LOSSES };

static void check_weights(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int workers = 2; workers <= 5; workers++)
        for (int loss = 0; loss < LOSSES; loss++) {
            static struct rig rig;
            struct rig_settings settings = usual(text, true, workers);
            settings.go_on = true;
            settings.seed += (uint64_t)loss;
            if (loss == FAILS_COMPUTING) settings.fail = "worker:0@step:4";
            settings.formula = formula_ones;
            settings.batches = 100;
            CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
            if (loss == FAILS_IN_INPUT) rig.training.settings.compute.load = load_failing;
            if (loss == SILENT_IN_INPUT) rig.training.settings.compute.load = load_silent;
            CHECK(rig_go_through(&rig) == OK && training_end(&rig.training, &rig.error) == OK, "%s: %s", text,
                  rig.error.words);
            CHECK(rig.lost[0] && atomic_load(&rig.training.losses) == 1, "%s: %d were lost", text,
                  atomic_load(&rig.training.losses));
            const struct traits *traits = rig.training.traits;
            const bool known =
                (traits->exactly_once && !traits->corrects) || (traits->merged && !traits->outer);
            for (int s = 0; s < settings.shards && known; s++) {
                const struct shard *shard = &rig.store.shards[s];
                const float updates = (float)atomic_load(&shard->version);
                const float more = (SURPRISE - 1.0f) / (traits->merged ? (float)workers : 1.0f);
                const float sum = updates + (counts_once(traits) ? more : 0.0f);
                float furthest = 0.0f;
                for (size_t i = shard->begin; i < shard->end; i++)
                    furthest = fmaxf(furthest, fabsf(rig.store.weights[i] + sum));
                /* A copy that had no batch in the last round is one behind. */
                CHECK(furthest < 1.0f, "%s, %d workers, loss %d: after %g updates of 1 a weight is %g away",
                      text, workers, loss, (double)updates, (double)furthest);
            }
            rig_close(&rig);
        }
}

/* --- slow is not silent: as long as those that are awaited live, nobody is given up --- */

static int formula_slowly(struct rig *rig, int worker, long number, float *weights, float *gradient,
                          float *loss, struct error *error) {
    if (worker == 1) world_sleep(rig->world, 0.6 * rig->roster.timeout_s);
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static void check_timeout(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    struct rig_settings settings = usual(text, true, 3);
    (void)strategy;
    (void)argument;
    settings.formula = formula_slowly;
    settings.go_on = true;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
    CHECK(atomic_load(&rig.training.losses) == 0, "%s: %d workers were given up, \"%s\"", text,
          atomic_load(&rig.training.losses), rig.lost_words);
    rig_close(&rig);
}

/* --- a pause waits for what was sent by whom nobody waits for, but not for ever --- */

static void leave_mail(struct rig *rig) {
    struct gradient *gradient = &rig->store.workers[1].gradients[0];
    gradient->examples = 0;
    atomic_store(&gradient->left, 2); /* the shard's and one more, so that it is never used again */
    CHECK(shard_post(&rig->store.shards[0], gradient, &rig->error) == OK, "%s", rig->error.words);
}

static void check_mail_left(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    struct rig_settings settings = usual(text, true, 2);
    settings.go_on = true;
    (void)strategy;
    (void)argument;
    for (int taken = 0; taken < 2; taken++) {
        CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
        if (rig.training.server_count > 0 && !rig.training.traits->rounds) {
            sampler_set_limit(&rig.sampler, 0);
            training_go(&rig.training);
            while (!training_wait(&rig.training, 1.0)) {
            }
            atomic_store(&rig.training.hold_servers, true);
            training_give_up(&rig.training, 1);
            leave_mail(&rig);
            training_go(&rig.training);
            CHECK(!training_wait(&rig.training, 1.0), "%s: paused while a gradient was in the mail", text);
            if (taken) {
                atomic_store(&rig.training.hold_servers, false);
                event_post(rig.store.shards[0].mail);
                CHECK(training_wait(&rig.training, 1.0) && !training_failed(&rig.training),
                      "%s: not paused although all was applied", text);
            } else {
                while (!training_wait(&rig.training, 1.0)) {
                }
                const int code = training_end(&rig.training, &rig.error);
                CHECK(code == ERROR_PEER &&
                          strcmp(rig.error.words,
                                 "gave up after 20 s: waiting for server 0 to apply what was "
                                 "sent to it, while all workers are paused") == 0,
                      "%s: code %d, \"%s\"", text, code, rig.error.words);
                atomic_store(&rig.training.hold_servers, false);
                CHECK(training_serve_rest(&rig.training, &rig.error) == OK &&
                          !mailbox_has_mail(&rig.store.shards[0].mailbox),
                      "%s: what a failed run keeps lacks a gradient that was sent", text);
            }
        }
        training_end(&rig.training, &rig.error);
        rig_close(&rig);
    }
}

/* --- only the failure of a device is a loss --- */

static int formula_diverging(struct rig *rig, int worker, long number, float *weights, float *gradient,
                             float *loss, struct error *error) {
    const int code = formula_blocks(rig, worker, number, weights, gradient, loss, error);
    if (worker == 0 && atomic_load(&rig->computed[0]) == 3) *loss = NAN;
    return code;
}

static void check_diverging(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    struct rig_settings settings = usual(text, true, 3);
    (void)strategy;
    (void)argument;
    settings.formula = formula_diverging;
    settings.go_on = true;
    CHECK(rig_run(&rig, &settings, false) == ERROR_DIVERGED && atomic_load(&rig.training.losses) == 0,
          "%s: a loss that is not a number ended one worker alone", text);
    rig_close(&rig);
}

/* --- a slow worker --- */

static void check_slow(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    struct rig_settings settings = usual(text, true, 3);
    (void)strategy;
    (void)argument;
    settings.batches = 120;
    settings.together = true;
    settings.slowness[1] = 4.0;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
    const struct traits *traits = rig.training.traits;
    const long quick = training_totals(&rig.training, 0)->steps,
               slow = training_totals(&rig.training, 1)->steps;
    const double seconds = training_seconds(&rig.training);
    /* A quick step takes 1 ms, a slow one 4. */
    if (traits->rounds)
        CHECK(quick == slow && seconds > 0.99 * 4e-3 * 40 && seconds < 1.05 * 4e-3 * 40,
              "%s: %ld quick and %ld slow steps in %g s", text, quick, slow, seconds);
    else if (traits->joint) /* a quick one may wait for another, whose update the slow one has completed */
        CHECK(quick >= 2 * slow && seconds < 1.6 * 120 / 2250.0, "%s: %ld quick and %ld slow steps in %g s",
              text, quick, slow, seconds);
    else
        CHECK(quick >= 3 * slow && seconds < 1.2 * 120 / 2250.0, "%s: %ld quick and %ld slow steps in %g s",
              text, quick, slow, seconds);
    if (traits->drops)
        CHECK(rig.store.shards[0].tallies[1].dropped > 5 &&
                  rig.store.shards[0].tallies[0].dropped + rig.store.shards[0].tallies[2].dropped <= 2,
              "%s: %ld gradients of the slow worker were dropped, %ld of another", text,
              rig.store.shards[0].tallies[1].dropped, rig.store.shards[0].tallies[0].dropped);
    /* Who waits for workers, waits for the slow one. */
    const double *waited_for = rig.roster.members[0].waited_for;
    if (traits->rounds)
        CHECK(waited_for[1] > 0.5 * rig.roster.members[0].waited_s, "%s: of %g s, %g s for worker 1", text,
              rig.roster.members[0].waited_s, waited_for[1]);
    rig_close(&rig);
}

/* --- a thread that hangs for good is left behind, by name --- */

static _Atomic bool release, hanging;

static int formula_hanging(struct rig *rig, int worker, long number, float *weights, float *gradient,
                           float *loss, struct error *error) {
    if (worker == 1 && atomic_load(&rig->computed[1]) == 3) {
        atomic_store(&hanging, true);
        while (!atomic_load(&release)) {
        }
        atomic_store(&hanging, false);
    }
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static void check_hanging(void) {
    static struct rig rig;
    struct rig_settings settings = usual("sync", false, 2);
    settings.formula = formula_hanging;
    settings.timeout_s = 0.2;
    settings.ending_s = 0.5;
    CHECK(rig_run(&rig, &settings, false) == ERROR_PEER, "%s", rig.error.words);
    CHECK(strstr(rig.error.words, "waiting for worker 1, computing"), "words are \"%s\"", rig.error.words);
    CHECK(rig.training.abandoned && atomic_load(&hanging), "nobody was left behind");
    struct error error = {0};
    atomic_store(&release, true);
    rig.training.abandoned = false;
    CHECK(training_end(&rig.training, &error) == ERROR_PEER && !rig.training.abandoned,
          "the thread did not end when it could");
    rig_close(&rig);
}

/* --- reading them --- */

static void check_words(const char *fail, const char *stall, const char *slow, const char *words) {
    const char *const devices[] = {"cpu:0", "cpu:1"};
    struct error error = {0};
    struct faults faults;
    int code = faults_parse(&faults, fail, stall, slow, &error);
    if (code == OK) code = faults_check(&faults, devices, 2, 1, &error);
    CHECK(code == (words ? ERROR_USAGE : OK) && (!words || strcmp(error.words, words) == 0),
          "fail \"%s\", stall \"%s\", slow \"%s\": \"%s\"", fail, stall, slow, error.words);
}

static void check_reading(void) {
    struct faults faults;
    struct error error = {0};
    CHECK(faults_parse(&faults, "worker:1@step:50,worker:0@step:2", "worker:3@step:7,server:1",
                       "cpu:1=3x,cpu:0=1.5x", &error) == OK,
          "%s", error.words);
    CHECK(faults_at(&faults, 1, 50) == FAULT_FAIL && faults_at(&faults, 0, 2) == FAULT_FAIL &&
              faults_at(&faults, 3, 7) == FAULT_STALL && faults_at(&faults, 1, 49) == FAULT_NONE &&
              faults_at(&faults, 0, 50) == FAULT_NONE,
          "a worker's fault is at another step");
    CHECK(faults_hold(&faults, 1) && !faults_hold(&faults, 0), "another server is held");
    struct faults all;
    CHECK(faults_parse(&all, "", "server", "", &error) == OK && faults_hold(&all, 0) && faults_hold(&all, 3),
          "not every server is held");
    CHECK(fabs(faults_factor(&faults, "cpu:1") - 3.0) < 1e-12 &&
              fabs(faults_factor(&faults, "cpu:0") - 1.5) < 1e-12 &&
              fabs(faults_factor(&faults, "cpu:2") - 1.0) < 1e-12,
          "another device is slow");
    check_words("worker:1@step:50", "server", "cpu:1=3x", NULL);
    check_words("worker:1", "", "", "--fail: \"worker:1\", expected worker:1@step:50");
    check_words("worker:1@step:0", "", "", "--fail: \"worker:1@step:0\", expected worker:1@step:50");
    check_words("worker:1@step:5x", "", "", "--fail: \"worker:1@step:5x\", expected worker:1@step:50");
    check_words("server:0", "", "", "--fail: \"server:0\", expected worker:1@step:50");
    check_words("", "worker:-1@step:3", "",
                "--stall: \"worker:-1@step:3\", expected worker:1@step:50 or server:0 or server");
    check_words("worker:2@step:3", "", "", "--fail: worker 2, expected 0 to 1");
    check_words("", "server:1", "", "--stall: server 1, expected 0 to 0");
    check_words("", "", "cpu:1",
                "--slow: \"cpu:1\", expected a device and a factor of at least 1, as cpu:1=3x");
    check_words("", "", "cpu:1=3",
                "--slow: \"cpu:1=3\", expected a device and a factor of at least 1, as cpu:1=3x");
    check_words("", "", "cpu:1=0.5x",
                "--slow: \"cpu:1=0.5x\", expected a device and a factor of at least 1, as cpu:1=3x");
    CHECK(faults_check(&all, NULL, 0, 0, &error) == ERROR_USAGE &&
              strcmp(error.words, "--stall=server: this strategy has no servers") == 0,
          "without servers: \"%s\"", error.words);
    check_words("", "", "cpu:7=2x", "--slow: no worker is on cpu:7");
    check_words("", "", "cpu:0-1=2x", NULL);
    check_words("", "", "cpu:0-3=2x", "--slow: no worker is on cpu:2");
    check_words("", "", "cpu:1-0=2x", "--slow: no worker is on cpu:1-0");
    CHECK(faults_parse(&faults, "", "", "cpu:2-9=2x", &error) == OK &&
              fabs(faults_factor(&faults, "gpu:0+cpu:9") - 2.0) < 1e-12 &&
              fabs(faults_factor(&faults, "cpu:1") - 1.0) < 1e-12 &&
              fabs(faults_factor(&faults, "gpu:2") - 1.0) < 1e-12,
          "a range is slow elsewhere");
    check_words("worker:0@step:1,worker:0@step:2,worker:0@step:3,worker:0@step:4,worker:0@step:5,"
                "worker:0@step:6,worker:0@step:7,worker:0@step:8,worker:0@step:9,worker:1@step:1,"
                "worker:1@step:2,worker:1@step:3,worker:1@step:4,worker:1@step:5,worker:1@step:6,"
                "worker:1@step:7,worker:1@step:8",
                "", "", "more than 16 faults, expected fewer");
}

int main(void) {
    check_reading();
    each_strategy(check_stop, NULL);
    each_strategy(check_stalled_server, NULL);
    each_strategy(check_going_on, NULL);
    each_strategy(check_coming_back, NULL);
    each_strategy(check_split, NULL);
    each_strategy(check_weights, NULL);
    each_strategy(check_timeout, NULL);
    each_strategy(check_mail_left, NULL);
    each_strategy(check_diverging, NULL);
    each_strategy(check_slow, NULL);
    check_hanging();
    return check_end();
}
