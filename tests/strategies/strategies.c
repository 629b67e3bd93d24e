/* Every promise of every strategy, in both worlds, for many numbers of workers and shards, with odd parameter
 * counts.
 *
 * Runs only what is declared: traits say what a strategy promises, and a false promise fails here. */
#include "../harness.h"

static const int worker_counts[] = {1, 2, 3, 5, 8};
static const int shard_counts[] = {1, 2, 3, 7};

static struct rig_settings usual(const char *strategy, bool simulated, int workers, int shards) {
    return (struct rig_settings){.strategy = strategy,
                                 .optimizer = "sgd:rate=1",
                                 .workers = workers,
                                 .shards = shards,
                                 .slots = 2,
                                 .batches = 43,
                                 .block = 61,
                                 .simulated = simulated,
                                 .seed = (uint64_t)(workers * 100 + shards),
                                 .formula = formula_blocks};
}

static void name_case(char out[200], const struct rig_settings *s) {
    snprintf(out, 200, "%s, %s world, %d workers, %d shards, %s", s->strategy,
             s->simulated ? "simulated" : "real", s->workers, s->shards, s->optimizer);
}

/* --- exactly once: the final weights count the updates --- */

/* What `updates` steps of w -= share leave, in the same arithmetic. */
static float after(long updates, float share) {
    float w = 0.0f;
    for (long i = 0; i < updates; i++) w = w - 1.0f * share;
    return w;
}

static void check_counts(struct rig *rig, const char *name) {
    const struct traits *traits = rig->training.traits;
    const int workers = rig->settings.workers;
    const bool plain = strncmp(rig->settings.optimizer, "sgd", 3) == 0;
    long steps = 0, updates = 0, lost_floats = 0;
    for (int w = 0; w < workers; w++) {
        const struct range *range = &rig->ranges[w];
        const long own = training_totals(&rig->training, w)->steps;
        steps += own;
        for (size_t i = range->begin; i < range->begin + range->floats; i++) {
            const float got = rig->store.weights[i];
            if (traits->merged) continue;    /* the mean over those who had a batch: checked against serial */
            if (!plain) continue;            /* moments remember: only the tallies count */
            if (traits->conserved) continue; /* each worker has weights of its own: check_conserved */
            if (traits->exactly_once || workers == 1)
                CHECK(got == after(own, 1.0f), "%s: weight %zu is %g after %ld updates", name, i, (double)got,
                      own);
            CHECK(got >= after(own, 1.0f) && got <= 0.0f, "%s: weight %zu is %g, more than %ld updates", name,
                  i, (double)got, own);
            lost_floats += own + (long)got;
        }
    }
    /* Every gradient is reported once, an empty one of a last round too, with its own row, before its slot is
     * free. */
    const long reported = traits->rounds ? (steps + workers - 1) / workers * workers : steps;
    CHECK(atomic_load(&rig->finished) == reported, "%s: %ld gradients were reported, expected %ld", name,
          atomic_load(&rig->finished), reported);
    CHECK(atomic_load(&rig->wrong_rows) == 0,
          "%s: %ld rows are of another step, or were written into a free slot", name,
          atomic_load(&rig->wrong_rows));
    CHECK(steps == rig->settings.batches, "%s: %ld steps for %d batches", name, steps, rig->settings.batches);
    for (int b = 0; b < rig->settings.batches; b++)
        CHECK(atomic_load(&rig->seen_batches[b]) == 1, "%s: batch %d was computed %ld times", name, b,
              atomic_load(&rig->seen_batches[b]));
    for (int s = 0; s < rig->settings.shards; s++) {
        const struct shard *shard = &rig->store.shards[s];
        updates = 0;
        for (int w = 0; w < workers; w++) {
            const long own = training_totals(&rig->training, w)->steps;
            const long dropped = shard->tallies[w].dropped;
            CHECK(shard->tallies[w].staleness.gradients + dropped == own && (traits->drops || dropped == 0),
                  "%s: shard %d tallies %ld updates and %ld dropped of worker %d, not %ld", name, s,
                  shard->tallies[w].staleness.gradients, dropped, w, own);
            updates += shard->tallies[w].staleness.gradients;
        }
        CHECK(updates <= steps && (traits->drops || updates == steps),
              "%s: shard %d counts %ld updates for %ld gradients", name, s, updates, steps);
        const long version = atomic_load(&shard->version);
        const long least = traits->merged ? (updates + workers - 1) / workers : steps;
        CHECK(version >= least && version <= (traits->drops ? updates : least),
              "%s: shard %d is at version %ld, expected %ld", name, s, version, least);
    }
    const struct range *nobody = &rig->ranges[workers];
    for (size_t i = nobody->begin; i < nobody->begin + nobody->floats; i++)
        CHECK(rig->store.weights[i] == 0.0f, "%s: nobody's weight %zu is %g", name, i,
              (double)rig->store.weights[i]);
    if (traits->exactly_once || workers == 1)
        CHECK(store_lost_updates(&rig->store) == 0, "%s: %ld lost updates", name,
              store_lost_updates(&rig->store));
    if (lost_floats == 0) return;
    CHECK(!traits->exactly_once, "%s: %ld floats were lost", name, lost_floats);
}

static void check_once(const char *text, const struct strategy *strategy, void *argument) {
    static uint64_t number;
    static const char *const chosen[] = {"sgd:rate=1", "momentum:rate=1", "sgd:rate=1", "adam:rate=1"};
    (void)strategy;
    (void)argument;
    for (int simulated = 0; simulated < 2; simulated++)
        for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++)
            for (size_t s = 0; s < sizeof shard_counts / sizeof *shard_counts; s++)
                for (int pauses = 0; pauses < 2; pauses++) {
                    struct rig_settings settings = usual(text, simulated, worker_counts[w], shard_counts[s]);
                    static struct rig rig;
                    char name[200];
                    if (simulated && !is_chosen(number++)) continue;
                    settings.optimizer = chosen[(w + s + (size_t)pauses) % 4];
                    name_case(name, &settings);
                    const int code = rig_run(&rig, &settings, pauses);
                    CHECK(code == OK, "%s: %s", name, rig.error.words);
                    if (code == OK) {
                        check_counts(&rig, name);
                        if (rig.training.traits->lock_free)
                            CHECK(store_locks_taken(&rig.store) == 0, "%s: %ld locks taken", name,
                                  store_locks_taken(&rig.store));
                    }
                    rig_close(&rig);
                }
}

/* Many orders of events, each with a pause that falls elsewhere: nobody may wait for somebody who waits for
 * it. */
static void check_many_seeds(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int seed = 1; seed <= 24; seed++) {
        if (!is_chosen((uint64_t)seed)) continue;
        static struct rig rig;
        struct rig_settings settings = usual(text, true, 3 + seed % 2, 2 + seed % 2);
        char name[200];
        settings.seed = (uint64_t)seed;
        settings.prefetch = seed % 3;
        settings.together = seed % 4 == 0;
        name_case(name, &settings);
        const int code = rig_run(&rig, &settings, true);
        CHECK(code == OK, "%s, seed %d: %s", name, seed, rig.error.words);
        if (code == OK) check_counts(&rig, name);
        rig_close(&rig);
    }
}

/* --- what is exchanged is neither lost nor counted twice --- */

/* What each worker's first weights add up to: who comes late begins with what the store has by then. Where
 * copies meet one by one, others meet a worker before its first step, too: it begins at its first pull or at
 * the first pause, before which the store has what it had at first, which is 0. */
static double begun_with[HARNESS_WORKERS];

static int formula_numbered(struct rig *rig, int worker, long number, float *weights, float *gradient,
                            float *loss, struct error *error) {
    const int code = formula_blocks(rig, worker, number, weights, gradient, loss, error);
    const struct range *own = &rig->ranges[worker];
    for (size_t i = 0; i < own->floats; i++) gradient[own->begin + i] = (float)(1 + number % 3);
    const struct traits *traits = rig->training.traits;
    const bool meets = traits->conserved == CONSERVED_COPIES && !traits->rounds;
    for (int w = 0; w < rig->settings.workers && !meets && atomic_load(&rig->computed[worker]) == 1; w++)
        begun_with[worker] += (double)weights[rig->ranges[w].begin];
    return code;
}

/* What the gradients add up to is missing from the copies, and from the store where it has weights of its
 * own. */
static void check_sum(const struct rig *rig, const char *name) {
    const struct traits *traits = rig->training.traits;
    const int workers = rig->settings.workers;
    double applied = 0.0, found = 0.0, most = 0.0;
    for (int b = 0; b < rig->settings.batches; b++) applied += 1 + b % 3;
    for (int w = 0; w < workers; w++) found += begun_with[w];
    for (int w = 0; w <= workers; w++)
        for (size_t i = rig->ranges[w].begin; i < rig->ranges[w].begin + rig->ranges[w].floats; i++) {
            const double centre = (double)rig->store.weights[i];
            double copies = 0.0;
            for (int v = 0; v < workers; v++) {
                const struct state *own = &rig->training.workers[v].side.own;
                copies += rig->training.workers[v].side.version[0] < 0 ? 0.0 : (double)own->vector[0].at[i];
            }
            if (i == rig->ranges[w].begin)
                found -= copies + (traits->conserved == CONSERVED_WITH_STORE ? centre : 0.0);
            if (traits->conserved == CONSERVED_COPIES)
                most = fmax(most, fabs(copies / (double)workers - centre));
            CHECK(w < workers || fabs(centre) <= 0.0, "%s: nobody's weight is %g", name, centre);
            CHECK(centre <= 0.0, "%s: a weight is %g", name, centre);
        }
    CHECK(fabs(found - applied) < 1e-4 * applied, "%s: what was applied adds up to %g, and is found as %g",
          name, applied, found);
    CHECK(most < 1e-4, "%s: the store is %g away from the mean of the copies", name, most);
}

static void check_conserved(const char *text, const struct strategy *strategy, void *argument) {
    struct choice choice;
    struct error error = {0};
    (void)argument;
    plugin_choose(&choice, &strategy_kind, text, &error);
    if (!strategy_traits(strategy, choice.settings)->conserved) return;
    for (int simulated = 0; simulated < 2; simulated++)
        for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++)
            for (int pauses = 0; pauses < 2; pauses++) {
                static struct rig rig;
                struct rig_settings settings = usual(text, simulated, worker_counts[w], shard_counts[w % 4]);
                char name[200];
                settings.formula = formula_numbered;
                settings.batches = 97;
                memset(begun_with, 0, sizeof begun_with);
                name_case(name, &settings);
                CHECK(rig_run(&rig, &settings, pauses) == OK, "%s: %s", name, rig.error.words);
                check_sum(&rig, name);
                rig_close(&rig);
            }
}

/* --- repeatable, and equal to serial --- */

static float *run_and_copy(const struct rig_settings *settings, bool pauses) {
    static struct rig rig;
    const int code = rig_run(&rig, settings, pauses);
    CHECK(code == OK, "%s: %s", settings->strategy, rig.error.words);
    float *copy = calloc(rig.layout.floats, sizeof *copy);
    memcpy(copy, rig.store.weights, rig.layout.floats * sizeof *copy);
    rig_close(&rig);
    return copy;
}

/* How many examples a worker's batch has, and how many a number counts. */
static int size_of(const struct rig_settings *settings, int worker) {
    return settings->sizes ? settings->sizes[worker] : 4;
}

/* One thread computes W gradients at equal weights, adds them in roster order, by their examples, and steps
 * once. */
static float *serial(const struct rig_settings *settings) {
    static struct rig rig;
    struct rig_settings own = *settings;
    static float gradients[8][8192], mean[8192];
    own.strategy = "sync";
    own.workers = settings->workers;
    rig = (struct rig){.settings = own};
    rig_layout(&rig);
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &optimizer_kind, settings->optimizer, &error) == OK, "%s", error.words);
    const size_t floats = rig.layout.floats;
    float *weights = calloc(floats, sizeof *weights),
          *moments[2] = {calloc(floats, sizeof(float)), calloc(floats, sizeof(float))};
    memset(gradients, 0, sizeof gradients);
    const long examples = 4L * own.batches;
    for (long place = 0, round = 0; place < examples; round++) {
        int given = 0, sum = 0;
        float loss = 0.0f;
        for (; given < own.workers && place < examples; given++) {
            const long number = own.sizes ? place : place / 4;
            own.formula(&rig, given, number, weights, gradients[given], &loss, &error);
            sum += size_of(&own, given);
            place += size_of(&own, given);
        }
        for (size_t i = 0; i < floats; i++) {
            mean[i] = (float)size_of(&own, 0) / (float)sum * gradients[0][i];
            for (int w = 1; w < given; w++) mean[i] += (float)size_of(&own, w) / (float)sum * gradients[w][i];
        }
        struct update step = optimizer_update(&choice, round + 1);
        step.rate = (float)((const struct optimizer_common *)(const void *)choice.settings)->rate;
        step.step(&step, floats, weights, moments, mean);
    }
    free(moments[0]);
    free(moments[1]);
    return weights;
}

static bool same_bits(const float *a, const float *b, const struct rig_settings *settings) {
    struct rig rig = {.settings = *settings};
    rig_layout(&rig);
    return memcmp(a, b, rig.layout.floats * sizeof *a) == 0;
}

/* In the simulated world every strategy repeats for the same seed. */
static void check_simulated(const struct rig_settings *real, const float *expected, const char *name) {
    struct rig_settings settings = *real;
    settings.simulated = true;
    float *first = run_and_copy(&settings, false), *again = run_and_copy(&settings, false);
    if (expected) CHECK(same_bits(first, expected, &settings), "%s: simulated differs from serial", name);
    CHECK(same_bits(first, again, &settings), "%s: the simulated world did not repeat itself", name);
    free(first);
    free(again);
}

static void check_repeatable(const char *text, const struct strategy *strategy, void *argument) {
    static uint64_t number;
    static const char *const chosen[] = {"sgd:rate=0.1", "momentum:rate=0.1", "nesterov:rate=0.1",
                                         "adagrad:rate=0.1", "adam:rate=0.01"};
    struct choice choice;
    struct error error = {0};
    (void)argument;
    CHECK(plugin_choose(&choice, &strategy_kind, text, &error) == OK, "%s", error.words);
    const struct traits *traits = strategy_traits(strategy, choice.settings);
    for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++)
        for (size_t o = 0; o < sizeof chosen / sizeof *chosen; o++) {
            struct rig_settings settings = usual(text, false, worker_counts[w], shard_counts[(w + o) % 4]);
            /* With one worker, whoever replies after applying equals serial too. */
            const bool like_serial =
                traits->like_serial || (settings.workers == 1 && traits->own_update_in_reply);
            char name[200];
            settings.formula = formula_mixed;
            settings.optimizer = chosen[o];
            name_case(name, &settings);
            float *first = NULL, *expected = serial(&settings);
            if (like_serial) {
                first = run_and_copy(&settings, false);
                CHECK(same_bits(first, expected, &settings), "%s: differs from serial", name);
                free(first);
                first = run_and_copy(&settings, true);
                CHECK(same_bits(first, expected, &settings), "%s: a pause changed the bits", name);
                free(first);
            }
            if (traits->repeatable && !like_serial) {
                float *again = run_and_copy(&settings, false);
                first = run_and_copy(&settings, false);
                CHECK(same_bits(first, again, &settings), "%s: did not repeat itself", name);
                free(first);
                free(again);
            }
            if (is_chosen(number++)) check_simulated(&settings, like_serial ? expected : NULL, name);
            free(expected);
        }
}

/* --- shares of different sizes --- */

static const int sizes_of[][8] = {
    {4, 4, 4, 4, 4, 4, 4, 4}, {12, 1, 3, 2, 7, 1, 5, 1}, {1, 5, 1, 9, 1, 1, 1, 13}};

/* As many of them as there are workers; together they are a round, four examples per worker. */
static const int *cut_sizes(const int *wanted, int workers) {
    static int sizes[8];
    int left = 4 * workers;
    for (int w = 0; w < workers; w++) {
        const int behind = workers - 1 - w, most = left - behind;
        sizes[w] = behind == 0 || wanted[w] > most ? most : wanted[w];
        left -= sizes[w];
    }
    return sizes;
}

/* Who has given what to an update is known from the reports: every block has gone as far as its worker's part
 * of the examples in each of them. */
static void check_parts(const struct rig *rig, const char *name) {
    long examples = 0;
    for (int w = 0; w < rig->settings.workers; w++) {
        float expected = 0.0f;
        for (long version = 1; version < 4096; version++) {
            int sum = 0;
            for (int v = 0; v < rig->settings.workers; v++) sum += rig->applied[version][v];
            if (rig->applied[version][w] > 0) expected -= (float)rig->applied[version][w] / (float)sum;
        }
        const float found = rig->store.weights[rig->ranges[w].begin];
        CHECK(found == expected, "%s: the block of worker %d is at %.9g, expected %.9g", name, w,
              (double)found, (double)expected);
        examples += training_totals(&rig->training, w)->examples;
    }
    const long all = 4L * rig->settings.batches;
    CHECK(examples >= all && examples < all + 4 * 13, "%s: %ld examples, expected %ld", name, examples, all);
}

static void check_shares(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    struct choice choice;
    struct error error = {0};
    char name[200];
    (void)argument;
    CHECK(plugin_choose(&choice, &strategy_kind, text, &error) == OK, "%s", error.words);
    const struct traits *traits = strategy_traits(strategy, choice.settings);
    for (size_t s = 0; s < sizeof sizes_of / sizeof *sizes_of && traits->weighs; s++)
        for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++)
            for (int simulated = 0; simulated < 2; simulated++) {
                struct rig_settings settings = usual(text, simulated, worker_counts[w], 1);
                settings.sizes = cut_sizes(sizes_of[s], worker_counts[w]);
                settings.optimizer = "sgd:rate=1";
                settings.formula = formula_blocks;
                name_case(name, &settings);
                CHECK(rig_run(&rig, &settings, true) == OK, "%s: %s", name, rig.error.words);
                check_parts(&rig, name);
                CHECK(atomic_load(&rig.wrong_rows) == 0, "%s: %ld rows are wrong", name,
                      atomic_load(&rig.wrong_rows));
                rig_close(&rig);
                if (!traits->like_serial) continue;
                settings.shards = shard_counts[w % 4];
                settings.optimizer = "momentum:rate=0.1";
                settings.formula = formula_mixed;
                float *expected = serial(&settings), *found = run_and_copy(&settings, simulated);
                CHECK(same_bits(found, expected, &settings), "%s: shares differ from serial", name);
                free(expected);
                free(found);
            }
}

/* --- the own update is in the reply --- */

static int formula_own_update(struct rig *rig, int worker, long number, float *weights, float *gradient,
                              float *loss, struct error *error) {
    const struct range *own = &rig->ranges[worker];
    const float expected = after(atomic_load(&rig->computed[worker]) - 1, 1.0f);
    for (size_t i = own->begin; i < own->begin + own->floats; i++)
        if (weights[i] != expected) atomic_fetch_add(&rig->wrong, 1);
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static void check_own_update(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int simulated = 0; simulated < 2; simulated++)
        for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++) {
            struct rig_settings settings = usual(text, simulated, worker_counts[w], 2);
            static struct rig rig;
            settings.formula = formula_own_update;
            CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
            const struct traits *traits = rig.training.traits;
            /* In place, another worker may overwrite it: then only with one worker. With rounds the own
             * update is 1/W. */
            if (traits->own_update_in_reply &&
                (settings.workers == 1 || (traits->exactly_once && !traits->merged)))
                CHECK(atomic_load(&rig.wrong) == 0,
                      "%s, %d workers: %ld weights lacked the worker's own update", text, settings.workers,
                      atomic_load(&rig.wrong));
            if (!traits->own_update_in_reply && settings.simulated && settings.workers > 1 &&
                !traits->merged && !traits->conserved)
                CHECK(atomic_load(&rig.wrong) > 0,
                      "%s: every reply had the own update, which it does not promise: is the test awake?",
                      text);
            rig_close(&rig);
        }
}

/* --- staleness --- */

static void check_staleness(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++) {
        struct rig_settings settings = usual(text, true, worker_counts[w], 3);
        static struct rig rig;
        CHECK(rig_run(&rig, &settings, false) == OK, "%s: %s", text, rig.error.words);
        const struct traits *traits = rig.training.traits;
        long most = 0, binned = 0;
        for (int s = 0; s < settings.shards; s++)
            for (int v = 0; v < settings.workers; v++) {
                const struct tally *tally = &rig.store.shards[s].tallies[v];
                if (tally->staleness.max > most) most = tally->staleness.max;
                for (int b = 0; b < STALENESS_BINS; b++) binned += tally->staleness.counts[b];
            }
        const long dropped = store_dropped(&rig.store);
        CHECK(binned + dropped == (long)settings.batches * settings.shards, "%s: %ld staleness counts", text,
              binned);
        if (traits->staleness_bound) {
            const long bound =
                traits->staleness_bound(rig.strategy.settings, settings.workers, settings.slots);
            CHECK(most <= bound, "%s, %d workers: staleness %ld, promised at most %ld", text,
                  settings.workers, most, bound);
        } else if (settings.workers > 1) {
            CHECK(most > 0, "%s, %d workers: never stale, without a promise of it", text, settings.workers);
        }
        /* Alone, only its own gradients can be between: none where it goes on after they are applied, else
         * those in its mailbox. */
        if (settings.workers == 1)
            CHECK(most <= (traits->own_update_in_reply ? 0 : settings.slots), "%s, alone: staleness %ld",
                  text, most);
        rig_close(&rig);
    }
}

/* With the servers held, a worker that is answered before its gradient is applied runs exactly `slots` steps
 * ahead, or as far as its lead allows, and one more is in hand. */
static void check_held_server(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int workers = 1; workers <= 3; workers++)
        for (int slots = 1; slots <= 4; slots++) {
            struct rig_settings settings = usual(text, true, workers, 2);
            static struct rig rig;
            settings.slots = slots;
            CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
            const struct traits *traits = rig.training.traits;
            if (traits->servers && !traits->own_update_in_reply) {
                atomic_store(&rig.training.hold_servers, true);
                sampler_set_limit(&rig.sampler, 0);
                training_go(&rig.training);
                CHECK(!training_wait(&rig.training, 1.0), "%s: ended although the servers were held", text);
                const long lead = traits->lead ? traits->lead(rig.strategy.settings) : slots,
                           ahead = lead < slots ? lead : slots;
                for (int w = 0; w < workers; w++)
                    CHECK(atomic_load(&rig.computed[w]) == ahead + 1,
                          "%s, %d slots: worker %d began %ld steps, expected %ld", text, slots, w,
                          atomic_load(&rig.computed[w]), ahead + 1);
                atomic_store(&rig.training.hold_servers, false);
                for (int i = 0; i < rig.training.server_count; i++) event_post(rig.store.shards[i].mail);
                while (!training_wait(&rig.training, 1.0)) {
                }
                long most = 0;
                for (int w = 0; w < workers; w++)
                    if (rig.store.shards[0].tallies[w].staleness.max > most)
                        most = rig.store.shards[0].tallies[w].staleness.max;
                if (workers == 1)
                    CHECK(most == ahead, "%s: staleness reached %ld, expected %ld", text, most, ahead);
                CHECK(most >= ahead, "%s, %d workers: staleness reached %ld, expected at least %ld", text,
                      workers, most, ahead);
            }
            CHECK(training_end(&rig.training, &rig.error) == OK, "%s: %s", text, rig.error.words);
            rig_close(&rig);
        }
}

/* The promised bound is not smaller than what can happen: worker 0 is at the end of its lead, with all its
 * gradients before still in the mailboxes, and computes until the others are at the end of theirs. */
static int formula_late(struct rig *rig, int worker, long number, float *weights, float *gradient,
                        float *loss, struct error *error) {
    const long lead = rig->training.traits->lead(rig->strategy.settings);
    if (worker == 0 && atomic_load(&rig->computed[0]) == lead + 1) world_sleep(rig->world, 1.0);
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static void check_stalest(const char *text, const struct strategy *strategy, void *argument) {
    struct choice choice;
    struct error error = {0};
    (void)argument;
    plugin_choose(&choice, &strategy_kind, text, &error);
    const struct traits *traits = strategy_traits(strategy, choice.settings);
    if (!traits->lead || !traits->staleness_bound) return;
    for (int workers = 1; workers <= 4; workers++) {
        struct rig_settings settings = usual(text, true, workers, 2);
        static struct rig rig;
        settings.slots = (int)traits->lead(choice.settings) + 1;
        settings.formula = formula_late;
        CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
        atomic_store(&rig.training.hold_servers, true);
        sampler_set_limit(&rig.sampler, 0);
        training_go(&rig.training);
        CHECK(!training_wait(&rig.training, 0.5), "%s: ended although the servers were held", text);
        atomic_store(&rig.training.hold_servers, false);
        for (int i = 0; i < rig.training.server_count; i++) event_post(rig.store.shards[i].mail);
        while (!training_wait(&rig.training, 1.0)) {
        }
        CHECK(training_end(&rig.training, &rig.error) == OK, "%s: %s", text, rig.error.words);
        const long most = rig.store.shards[0].tallies[0].staleness.max,
                   bound = traits->staleness_bound(choice.settings, workers, settings.slots);
        CHECK(most == bound, "%s, %d workers: staleness reached %ld, the promise is %ld", text, workers, most,
              bound);
        rig_close(&rig);
    }
}

/* --- a worker that fails brings its words up and hangs nobody --- */

static int formula_failing(struct rig *rig, int worker, long number, float *weights, float *gradient,
                           float *loss, struct error *error) {
    if (worker == rig->settings.workers - 1 && atomic_load(&rig->computed[worker]) == 4)
        return error_set(error, ERROR_DEVICE, "worker %d was made to fail", worker);
    return formula_blocks(rig, worker, number, weights, gradient, loss, error);
}

static int formula_diverging(struct rig *rig, int worker, long number, float *weights, float *gradient,
                             float *loss, struct error *error) {
    const int code = formula_blocks(rig, worker, number, weights, gradient, loss, error);
    if (worker == 0 && atomic_load(&rig->computed[0]) == 3) *loss = NAN;
    return code;
}

/* Nobody goes on as if the failed worker had left: no tally was written out of its bounds. */
static void check_nothing_dropped(const struct rig *rig) {
    if (rig->training.traits->drops) return;
    for (int s = 0; s < rig->settings.shards; s++)
        for (int w = 0; w < rig->settings.workers; w++)
            CHECK(rig->store.shards[s].tallies[w].dropped == 0, "%s: %ld dropped after a failure",
                  rig->settings.strategy, rig->store.shards[s].tallies[w].dropped);
}

static void check_failing(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int simulated = 1; simulated >= 0; simulated--) /* a hang is short in virtual time */
        for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++) {
            struct rig_settings settings = usual(text, simulated, worker_counts[w], 2);
            static struct rig rig;
            char words[100];
            settings.batches = 400;
            settings.sharding = SHARDING_SPLIT; /* every worker comes to its fourth step */
            settings.formula = formula_failing;
            CHECK(rig_run(&rig, &settings, false) == ERROR_DEVICE, "%s: the failure did not come up", text);
            snprintf(words, sizeof words, "worker %d was made to fail", settings.workers - 1);
            CHECK(strcmp(rig.error.words, words) == 0, "%s: words are \"%s\"", text, rig.error.words);
            /* Nobody waits for the worker that failed until timeout ends, nor goes on for long without it.
             */
            for (int v = 0; simulated && v < settings.workers; v++)
                CHECK(training_totals(&rig.training, v)->steps < 30 && world_now(rig.world) < 5.0,
                      "%s, %d workers: worker %d took %ld steps, in %g s", text, settings.workers, v,
                      training_totals(&rig.training, v)->steps, world_now(rig.world));
            check_nothing_dropped(&rig);
            rig_close(&rig);
            settings.formula = formula_diverging;
            CHECK(rig_run(&rig, &settings, false) == ERROR_DIVERGED,
                  "%s: a loss that is not a number went unnoticed", text);
            CHECK(strstr(rig.error.words, "step 3") && strstr(rig.error.words, "rate 1"),
                  "%s: words are \"%s\"", text, rig.error.words);
            check_nothing_dropped(&rig);
            rig_close(&rig);
        }
}

/* --- lost updates: a forced interleaving --- */

/* The blocks, and 1 from every worker in the block that is nobody's: the last line of the vector counts like
 * the witness line. */
static int formula_contested(struct rig *rig, int worker, long number, float *weights, float *gradient,
                             float *loss, struct error *error) {
    const struct range *all = &rig->ranges[rig->settings.workers];
    const int code = formula_blocks(rig, worker, number, weights, gradient, loss, error);
    for (size_t i = 0; i < all->floats; i++) gradient[all->begin + i] = 1.0f;
    return code;
}

static void check_lost_updates(void) {
    long lost[2];
    for (int again = 0; again < 2; again++) {
        struct rig_settings settings = usual("async-lockfree:apply=worker", true, 3, 1);
        static struct rig rig;
        settings.batches = 300;
        settings.together = true;
        settings.formula = formula_contested;
        settings.seed = 11;
        CHECK(rig_run(&rig, &settings, false) == OK, "%s", rig.error.words);
        lost[again] = store_lost_updates(&rig.store);
        /* Every update of a worker's own block that is missing was lost. */
        long missing = 0;
        for (int w = 0; w < settings.workers; w++)
            missing +=
                training_totals(&rig.training, w)->steps + (long)rig.store.weights[rig.ranges[w].begin];
        const long last =
            -(long)rig.store.weights[rig.ranges[settings.workers].begin + (size_t)settings.block - 1];
        CHECK(last == settings.batches - lost[again], "the last line has %ld updates, the witness %ld", last,
              settings.batches - lost[again]);
        CHECK(lost[again] > 0 && missing > 0, "no update was lost: witness %ld, blocks %ld", lost[again],
              missing);
        CHECK(atomic_load(&rig.store.shards[0].version) == settings.batches, "version %ld",
              atomic_load(&rig.store.shards[0].version));
        rig_close(&rig);
    }
    CHECK(lost[0] == lost[1], "the same seed lost %ld, then %ld updates", lost[0], lost[1]);
}

/* The same interleaving with atomic additions: every worker's own block and the last line count every update.
 */
static void check_atomic_adds(void) {
    struct rig_settings settings = usual("async-lockfree:apply=worker,adds=atomic", true, 3, 1);
    static struct rig rig;
    settings.batches = 300;
    settings.together = true;
    settings.formula = formula_contested;
    settings.seed = 11;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s", rig.error.words);
    for (int w = 0; w < settings.workers; w++)
        CHECK(-(long)rig.store.weights[rig.ranges[w].begin] == training_totals(&rig.training, w)->steps,
              "worker %d: %ld of its %ld updates", w, -(long)rig.store.weights[rig.ranges[w].begin],
              training_totals(&rig.training, w)->steps);
    const long last =
        -(long)rig.store.weights[rig.ranges[settings.workers].begin + (size_t)settings.block - 1];
    CHECK(last == settings.batches, "the last line has %ld of %ld updates", last, (long)settings.batches);
    CHECK(store_lost_updates(&rig.store) == 0, "the witness lost %ld", store_lost_updates(&rig.store));
    rig_close(&rig);
}

/* --- data sharding, and shards by array --- */

static void check_sharding(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy;
    (void)argument;
    for (int sharding = SHARDING_SPLIT; sharding <= SHARDING_ALL; sharding++) {
        struct rig_settings settings = usual(text, false, 3, 2);
        static struct rig rig;
        settings.sharding = (enum data_sharding)sharding;
        settings.shard_by = sharding == SHARDING_ALL ? SHARD_BY_TENSOR : SHARD_BY_ROUND_ROBIN;
        CHECK(rig_run(&rig, &settings, true) == OK, "%s: %s", text, rig.error.words);
        for (int w = 0; w < settings.workers; w++) {
            const long steps = training_totals(&rig.training, w)->steps;
            const long least = sharding == SHARDING_ALL ? 43 : 14;
            CHECK(steps >= least && steps <= least + 1, "%s: worker %d took %ld steps, expected about %ld",
                  text, w, steps, least);
        }
        rig_close(&rig);
    }
}

int main(void) {
    each_strategy(check_once, NULL);
    each_strategy(check_many_seeds, NULL);
    each_strategy(check_conserved, NULL);
    each_strategy(check_repeatable, NULL);
    each_strategy(check_shares, NULL);
    each_strategy(check_own_update, NULL);
    each_strategy(check_staleness, NULL);
    each_strategy(check_held_server, NULL);
    each_strategy(check_stalest, NULL);
    each_strategy(check_failing, NULL);
    each_strategy(check_sharding, NULL);
    check_lost_updates();
    check_atomic_adds();
    return check_end();
}
