/* Workers that join, at the training alone: under every strategy two of four begin, two come at a pause, one
 * is lost, and comes again at the next. Every batch is computed once, but the one in the hands of the lost.
 * The gradient of a worker is 1 in its own block, so the weights show what each has added: under a strategy
 * that makes means a K-th of each of its steps where K workers were there, and where each gradient is applied
 * by itself as many as it took steps. */
#include "../harness.h"

enum { WORKERS = 4, BATCHES = 400 };

static float block_of(const struct rig *rig, int worker) {
    return rig->store.weights[rig->ranges[worker].begin];
}

/* One segment, which is stopped after a while; the version at its end. */
static long go(struct rig *rig, double seconds) {
    sampler_set_limit(&rig->sampler, 0);
    training_go(&rig->training);
    training_wait(&rig->training, seconds);
    sampler_stop(&rig->sampler);
    while (!training_wait(&rig->training, 1.0)) {
    }
    CHECK(!training_failed(&rig->training), "it failed");
    CHECK(rig_note_losses(rig) == OK, "%s", rig->error.words);
    return store_version(&rig->store);
}

/* Of the weights, while nobody was lost: `here` of updates in which a worker's gradient has counted. */
static void check_means(const char *text, const struct rig *rig, const double *here) {
    for (int w = 0; w < WORKERS; w++)
        CHECK((double)block_of(rig, w) == -here[w], "%s: block %d is %g, expected %g", text, w,
              (double)block_of(rig, w), -here[w]);
}

static void check_steps(const char *text, const struct rig *rig) {
    for (int w = 0; w < WORKERS; w++)
        CHECK((long)-block_of(rig, w) == training_totals(&rig->training, w)->steps,
              "%s: block %d is %g after %ld steps", text, w, (double)block_of(rig, w),
              training_totals(&rig->training, w)->steps);
}

static void check_batches(const char *text, const struct rig *rig) {
    long missing = 0, twice = 0;
    for (int b = 0; b < BATCHES; b++) {
        missing += rig->seen_batches[b] == 0;
        twice += rig->seen_batches[b] > 1;
    }
    CHECK(missing == rig->sampler.in_flight && missing <= 1 && twice == 0,
          "%s: %ld batches were not computed, %ld more than once, %ld were lost", text, missing, twice,
          rig->sampler.in_flight);
}

static void check_strategy(const char *text, const struct strategy *strategy, void *argument) {
    static struct rig rig;
    const struct rig_settings settings = {.strategy = text,
                                          .optimizer = "sgd:rate=1",
                                          .workers = WORKERS,
                                          .shards = 2,
                                          .slots = 2,
                                          .batches = BATCHES,
                                          .block = 24,
                                          .simulated = true,
                                          .seed = 3,
                                          .absent = 2,
                                          .go_on = true,
                                          .fail = "worker:1@step:45",
                                          .formula = formula_blocks};
    double here[WORKERS] = {0};
    int joined = 0;
    (void)argument;
    CHECK(rig_open(&rig, &settings) == OK, "%s: %s", text, rig.error.words);
    if (check_failures > 0) return;
    const struct traits *traits = strategy_traits(strategy, rig.strategy.settings);
    const bool means = traits->rounds && traits->merged && !traits->drops && !traits->own_weights;
    const long alone = go(&rig, 0.05);
    for (int w = 0; w < 2; w++) here[w] += 0.5 * (double)alone;
    if (means) check_means(text, &rig, here);
    CHECK(rig.computed[2] == 0 && rig.computed[3] == 0, "%s: who is absent computes", text);
    CHECK(rig_join(&rig, &joined) == OK && joined == 2, "%s: %d joined, %s", text, joined, rig.error.words);
    const long together = go(&rig, 0.04) - alone;
    for (int w = 0; w < WORKERS; w++) here[w] += 0.25 * (double)together;
    if (means) check_means(text, &rig, here);
    for (int w = 0; w < WORKERS; w++)
        CHECK(rig.computed[w] > 2, "%s: worker %d computes %ld batches", text, w, rig.computed[w]);
    for (int segments = 0; segments < 50 && !rig.lost[1]; segments++) go(&rig, 0.05);
    CHECK(rig.lost[1], "%s: worker 1 was not lost", text);
    CHECK(rig_join(&rig, &joined) == OK && joined == 1, "%s: %d joined, %s", text, joined, rig.error.words);
    rig.training.settings.faults.count = 0;
    const long before = rig.computed[1];
    CHECK(rig_go_through(&rig) == OK && training_end(&rig.training, &rig.error) == OK, "%s: %s", text,
          rig.error.words);
    CHECK(rig.computed[1] > before, "%s: who came again computes nothing", text);
    check_batches(text, &rig);
    if (!traits->rounds && !traits->drops && !traits->merged && !traits->conserved &&
        !strstr(text, "adasync") && !strstr(text, "dc-asgd"))
        check_steps(text, &rig);
    rig_close(&rig);
}

int main(void) {
    each_strategy(check_strategy, NULL);
    return check_end();
}
