/* A strategy of a program's own, through the library: written as built-in ones are, it gives their weights
 * bit for bit; two of the same name do not meet; what a function of it ends with ends the run by name, and
 * what it calls in the wrong place is refused. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../library_check.h"

enum { EXAMPLES = 200, FEATURES = 9 };
static float features[EXAMPLES][FEATURES];
static int labels[EXAMPLES];

/* The label is that of the largest of three features. */
static void make_examples(void) {
    unsigned bits = 1;
    for (int i = 0; i < EXAMPLES; i++) {
        for (int f = 0; f < FEATURES; f++) {
            bits = bits * 1664525u + 1013904223u;
            features[i][f] = (float)(bits >> 8) / 16777216.0f;
        }
        for (int f = 1; f < 3; f++)
            if (features[i][f] > features[i][labels[i]]) labels[i] = f;
    }
}

static struct trainer_training *open_training(const char *devices, const struct trainer_strategy *strategy) {
    const struct trainer_data data = {
        .shape = TRAINER_SHAPE(FEATURES),
        .task = TRAINER_CLASSES,
        .outputs = 3,
        .train = {.count = EXAMPLES, .features = features[0], .labels = labels}};
    static const char *const settings[][2] = {
        {"model", "mlp:hidden=12"}, {"epochs", "2"}, {"batch", "20"}, {"threads", "1"}, {"shards", "3"}};
    struct trainer_training *training = NULL;
    GOOD(trainer_training_open(&training, &error));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        GOOD(trainer_training_set(training, settings[i][0], settings[i][1], &error));
    GOOD(trainer_training_set(training, "devices", devices, &error));
    GOOD(trainer_training_data(training, &data, &error));
    if (strategy) GOOD(trainer_training_strategy(training, strategy, &error));
    return training;
}

static bool same_weights(const struct trainer_training *one, const struct trainer_training *other) {
    struct trainer_shape shape, other_shape;
    const float *values, *other_values;
    int i = 0, same = 0;
    for (; trainer_training_weight(one, i, &shape, &values); i++) {
        size_t count = 1;
        for (int axis = 0; axis < shape.rank; axis++) count *= (size_t)shape.dims[axis];
        same += trainer_training_weight(other, i, &other_shape, &other_values) &&
                memcmp(values, other_values, count * sizeof *values) == 0;
    }
    return i == 4 && same == i;
}

/* Trained by both, on these devices: the same weights. */
static void check_same(const char *name, const struct trainer_strategy *own, const char *built_in,
                       const char *devices) {
    struct trainer_training *by_own = open_training(devices, own), *by_name = open_training(devices, NULL);
    struct trainer_result ours, theirs;
    GOOD(trainer_training_set(by_name, "strategy", built_in, &error));
    GOOD(trainer_training_run(by_own, &ours, &error));
    GOOD(trainer_training_run(by_name, &theirs, &error));
    CHECK(same_weights(by_own, by_name), "%s has other weights than %s on %s", name, built_in, devices);
    CHECK(ours.updates == theirs.updates && ours.examples == theirs.examples,
          "%s: %ld updates with %lld examples, expected %ld with %lld", name, ours.updates, ours.examples,
          theirs.updates, theirs.examples);
    trainer_training_close(by_own);
    trainer_training_close(by_name);
}

/* --- in rounds, as sync --- */

enum { CONTRIBUTED, STEPPED };
static const char *const barriers[] = {"the gradients", "the shares", NULL};

static int contribute(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    (void)argument;
    const int code = trainer_shard_contribute(at, why);
    return code != TRAINER_OK ? code : trainer_barrier_arrive(at, CONTRIBUTED, at->step, why);
}

static int step_together(void *argument, const struct trainer_exchange *at, long *version,
                         struct trainer_error *why) {
    const long round = at->step - 1;
    int shares = 0, code = TRAINER_OK;
    (void)argument;
    if (round < 0) *version = trainer_shard_version(at);
    if (round < 0 || trainer_barrier_is_open(at, STEPPED, round)) return TRAINER_OK;
    if ((code = trainer_barrier_wait(at, CONTRIBUTED, round, why)) != TRAINER_OK) return code;
    const long before = trainer_shard_version(at);
    const int share = trainer_barrier_rank(at, CONTRIBUTED, at->worker, round, &shares);
    for (int w = 0; w < at->workers; w++)
        if (!trainer_barrier_has(at, CONTRIBUTED, w, round)) return TRAINER_INTERNAL;
    if ((code = trainer_shard_step_share(at, share, shares, why)) != TRAINER_OK) return code;
    if ((code = trainer_barrier_arrive(at, STEPPED, round, why)) != TRAINER_OK) return code;
    if ((code = trainer_barrier_wait(at, STEPPED, round, why)) != TRAINER_OK) return code;
    if (share == 0) trainer_shard_end_round(at);
    *version = before + 1;
    return trainer_shard_done(at, at->worker, before, why);
}

static const struct trainer_strategy together = {.name = "together",
                                                 .rounds = true,
                                                 .merged = true,
                                                 .barriers = barriers,
                                                 .push = contribute,
                                                 .pull = step_together};

/* --- by servers, as async-apply, and in place, as async-lockfree:apply=worker; of one worker, bit for bit
 * --- */

static int post(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    (void)argument;
    return trainer_shard_post(at, why);
}

static int await_and_read(void *argument, const struct trainer_exchange *at, long *version,
                          struct trainer_error *why) {
    const long before = *version;
    (void)argument;
    const int code = trainer_shard_await(at, at->worker, at->step, why);
    if (code != TRAINER_OK || trainer_shard_read(at, why) != TRAINER_OK) return why->code;
    return *version >= before ? TRAINER_OK : TRAINER_INTERNAL;
}

static int apply(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    (void)argument;
    return trainer_shard_apply(at, why);
}

static int take_in_place(void *argument, const struct trainer_exchange *at, long *version,
                         struct trainer_error *why) {
    (void)argument, (void)why;
    *version = trainer_shard_version(at);
    return TRAINER_OK;
}

static const struct trainer_strategy served = {.name = "served",
                                               .own_weights = true,
                                               .servers = true,
                                               .whole_reads = true,
                                               .push = post,
                                               .pull = await_and_read};
static const struct trainer_strategy in_place = {.name = "in-place", .push = apply, .pull = take_in_place};

static void test_same_as_built_in(void) {
    struct trainer_strategy racy = served;
    check_same("together", &together, "sync", "cpu:0,cpu:1,cpu:2");
    check_same("served", &served, "async-apply", "cpu:0");
    racy.whole_reads = false;
    check_same("racy", &racy, "async-apply", "cpu:0");
    check_same("in-place", &in_place, "async-lockfree:apply=worker", "cpu:0");
}

/* Of several workers, every gradient once. */
static void test_several_workers(void) {
    const struct trainer_strategy *const all[] = {&served, &in_place};
    for (int i = 0; i < 2; i++) {
        struct trainer_training *training = open_training("cpu:0,cpu:1", all[i]);
        struct trainer_result result;
        GOOD(trainer_training_run(training, &result, &error));
        CHECK(result.examples == 2 * EXAMPLES && result.updates == 20, "%s: %lld examples, %ld updates",
              all[i]->name, result.examples, result.updates);
        trainer_training_close(training);
    }
}

/* --- two of the same name --- */

static int count_and_contribute(void *argument, const struct trainer_exchange *at,
                                struct trainer_error *why) {
    atomic_fetch_add((atomic_long *)argument, at->shard == 0 && at->examples > 0);
    return contribute(NULL, at, why);
}

static int count_and_apply(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    atomic_fetch_add((atomic_long *)argument, at->shard == 0 && at->examples > 0);
    return trainer_shard_apply(at, why);
}

static void *run_in_a_thread(void *training) {
    return trainer_training_run(training, NULL, NULL) == TRAINER_OK ? training : NULL;
}

static void test_two_of_a_name(void) {
    atomic_long counts[2] = {0};
    struct trainer_strategy own[2] = {together, in_place};
    struct trainer_training *trainings[2];
    pthread_t threads[2];
    void *ended;
    own[0].name = own[1].name = "mine";
    own[0].push = count_and_contribute;
    own[1].push = count_and_apply;
    for (int i = 0; i < 2; i++) {
        own[i].argument = &counts[i];
        trainings[i] = open_training("cpu:0,cpu:1", &own[i]);
        GOOD(trainer_training_set(trainings[i], "epochs", i == 0 ? "2" : "3", &error));
        CHECK(pthread_create(&threads[i], NULL, run_in_a_thread, trainings[i]) == 0, "no thread");
    }
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], &ended) == 0 && ended == trainings[i], "training %d failed", i);
    CHECK(counts[0] == 20 && counts[1] == 30, "%ld and %ld gradients, expected 20 and 30", counts[0],
          counts[1]);
    for (int i = 0; i < 2; i++) trainer_training_close(trainings[i]);
}

/* --- how it ends --- */

static void check_ends_within(const char *timeout, const struct trainer_strategy *strategy, int code,
                              const char *words) {
    struct trainer_training *training = open_training("cpu:0,cpu:1", strategy);
    GOOD(trainer_training_set(training, "timeout", timeout, &error));
    REFUSED(trainer_training_run(training, NULL, &error), code, words);
    trainer_training_close(training);
}

static void check_ends(const struct trainer_strategy *strategy, int code, const char *words) {
    check_ends_within("20", strategy, code, words);
}

static int refuse_to_push(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    if (at->step < 3 || at->worker > 0) return contribute(argument, at, why);
    snprintf(why->words, sizeof why->words, "the %s of step %ld is not liked", (const char *)argument,
             at->step);
    return TRAINER_PEER;
}

static int fail_without_words(void *argument, const struct trainer_exchange *at, long *version,
                              struct trainer_error *why) {
    (void)argument, (void)at, (void)version, (void)why;
    return -7;
}

static int say_no_version(void *argument, const struct trainer_exchange *at, long *version,
                          struct trainer_error *why) {
    (void)argument, (void)at, (void)version, (void)why;
    return TRAINER_OK;
}

/* Of weights that there will be some day. */
static int say_version_ahead(void *argument, const struct trainer_exchange *at, long *version,
                             struct trainer_error *why) {
    (void)why;
    *version = trainer_shard_version(at) + *(const long *)argument;
    return TRAINER_OK;
}

static int apply_ahead(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    (void)argument;
    return trainer_shard_apply(at, why);
}

static int do_nothing(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    (void)argument, (void)at, (void)why;
    return TRAINER_OK;
}

static int never_arrive(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    return at->worker > 0 ? contribute(argument, at, why) : trainer_shard_contribute(at, why);
}

static int never_done(void *argument, const struct trainer_exchange *at, long *version,
                      struct trainer_error *why) {
    return take_in_place(argument, at, version, why);
}

static void test_ends(void) {
    struct trainer_strategy own = together;
    own.argument = "gradient";
    own.push = refuse_to_push;
    check_ends(&own, TRAINER_PEER, "together: the gradient of step 3 is not liked");
    own.push = do_nothing;
    check_ends(&own, TRAINER_USAGE, "together: push left the gradient of step 0 where it was");
    own.push = never_arrive;
    check_ends_within("0.5", &own, TRAINER_PEER, "the gradients");
    own.push = contribute;
    own.pull = never_done;
    check_ends(&own, TRAINER_USAGE, "together: pull left the gradient that its worker contributed");
    own.own_weights = own.servers = true;
    check_ends_within("0.5", &own, TRAINER_PEER, "gave up");
    own.pull = fail_without_words;
    check_ends(&own, TRAINER_USAGE, "together: failed, and did not say why");
    own.pull = say_no_version;
    check_ends(&own, TRAINER_USAGE, "together: pull left version -1");
}

/* One worker, so that a version is what the test knows. */
static void check_version(struct trainer_strategy own, long ahead, const char *words) {
    own.argument = &ahead;
    own.pull = say_version_ahead;
    struct trainer_training *training = open_training("cpu:0", &own);
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_USAGE, words);
    trainer_training_close(training);
}

static void test_versions(void) {
    struct trainer_strategy own = in_place;
    own.push = apply_ahead;
    check_version(own, 1, "in-place: pull left version 1, expected at most 0 of the weights");
    check_version(own, 1000000000000, "in-place: pull left version 1000000000000, expected at most 0");
    own.rounds = true;
    check_version(own, 2, "in-place: pull left version 2, expected at most 1 of the weights");
    check_version(own, 1, "in-place: found a gradient of version 1 of the weights, expected at most 0");
    own = served;
    own.rounds = true;
    check_version(own, 1, "served: found a gradient of version 1 of the weights, expected at most 0");
}

/* --- what is called in the wrong place --- */

static int misuse_in_push(void *argument, const struct trainer_exchange *at, struct trainer_error *why) {
    (void)argument, (void)why;
    REFUSED(trainer_shard_post(at, &error), TRAINER_USAGE, "without servers");
    REFUSED(trainer_shard_read(at, &error), TRAINER_USAGE, "found push");
    REFUSED(trainer_shard_await(at, 0, 0, &error), TRAINER_USAGE, "found push");
    REFUSED(trainer_shard_done(at, 0, 0, &error), TRAINER_USAGE, "found push");
    REFUSED(trainer_shard_step_share(at, 0, 1, &error), TRAINER_USAGE, "found push");
    REFUSED(trainer_barrier_wait(at, 0, 0, &error), TRAINER_USAGE, "found push");
    REFUSED(trainer_barrier_arrive(at, 2, 0, &error), TRAINER_USAGE, "found barrier 2 of 2");
    GOOD(trainer_shard_contribute(at, &error));
    REFUSED(trainer_shard_apply(at, &error), TRAINER_USAGE, "given before");
    return trainer_barrier_arrive(at, CONTRIBUTED, at->step, &error);
}

static int misuse_in_pull(void *argument, const struct trainer_exchange *at, long *version,
                          struct trainer_error *why) {
    int arrived;
    REFUSED(trainer_shard_contribute(at, &error), TRAINER_USAGE, "no gradient in pull");
    REFUSED(trainer_shard_apply(at, &error), TRAINER_USAGE, "no gradient in pull");
    REFUSED(trainer_shard_read(at, &error), TRAINER_USAGE, "without own_weights");
    REFUSED(trainer_shard_await(at, 1, 0, &error), TRAINER_USAGE, "found worker 1, expected -1 to 0");
    REFUSED(trainer_shard_step_share(at, 1, 1, &error), TRAINER_USAGE, "share 1 of 1");
    REFUSED(trainer_shard_done(at, -1, 0, &error), TRAINER_USAGE, "found worker -1, expected 0 to 0");
    if (at->step == 0) REFUSED(trainer_shard_done(at, 0, 0, &error), TRAINER_USAGE, "contributed nothing");
    if (at->step == 2) {
        REFUSED(trainer_shard_done(at, 0, -1000000, &error), TRAINER_USAGE,
                "found version -1000000, expected 1 to 1");
        REFUSED(trainer_shard_done(at, 0, 2, &error), TRAINER_USAGE, "found version 2, expected 1 to 1");
    }
    REFUSED(trainer_barrier_wait(at, -1, 0, &error), TRAINER_USAGE, "found barrier -1 of 2");
    CHECK(!trainer_barrier_is_open(at, 9, 0) && !trainer_barrier_has(at, 9, 0, 0) &&
              !trainer_barrier_has(at, 0, 7, 0) && trainer_barrier_rank(at, 9, 0, 0, &arrived) == 0 &&
              arrived == 0,
          "a barrier that is not there");
    return step_together(argument, at, version, why);
}

/* One worker, so that the error of the tests is one thread's. */
static void test_misuse(void) {
    struct trainer_strategy own = together;
    own.push = misuse_in_push;
    own.pull = misuse_in_pull;
    struct trainer_training *training = open_training("cpu:0", &own);
    GOOD(trainer_training_run(training, NULL, NULL));
    trainer_training_close(training);
}

static void test_refusals(void) {
    static const char *const nine[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", NULL};
    struct trainer_training *training = open_training("cpu:0", NULL);
    struct trainer_strategy own = together;
    const char *const names[] = {NULL, "", "Capital", "with:colon", "of-more-than-thirty-one-letters-"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        own.name = names[i];
        REFUSED(trainer_training_strategy(training, &own, &error), TRAINER_USAGE, "expected 1 to 31");
    }
    own.name = "sync";
    REFUSED(trainer_training_strategy(training, &own, &error), TRAINER_USAGE, "one of trainer's own");
    own = together;
    own.rounds = false;
    REFUSED(trainer_training_strategy(training, &own, &error), TRAINER_USAGE, "merged without rounds");
    own = served;
    own.own_weights = false;
    REFUSED(trainer_training_strategy(training, &own, &error), TRAINER_USAGE, "servers without own_weights");
    own.push = NULL;
    REFUSED(trainer_training_strategy(training, &own, &error), TRAINER_USAGE, "found no push");
    own = together;
    own.pull = NULL;
    REFUSED(trainer_training_strategy(training, &own, &error), TRAINER_USAGE, "found no pull");
    own = together;
    own.barriers = nine;
    REFUSED(trainer_training_strategy(training, &own, &error), TRAINER_USAGE, "more than 8 barriers");
    GOOD(trainer_training_set(training, "strategy", "sync", &error));
    GOOD(trainer_training_strategy(training, &together, &error));
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_USAGE, "found together of the program too");
    trainer_training_close(training);
}

int main(void) {
    make_examples();
    test_same_as_built_in();
    test_several_workers();
    test_two_of_a_name();
    test_ends();
    test_versions();
    test_misuse();
    test_refusals();
    return check_end();
}
