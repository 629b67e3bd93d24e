/* --staleness=divide, under every strategy. With rates that are divided by the age, the final weights tell
 * the ages: each update of a worker took 1 or a part of it from its block, in place too, where the simulated
 * world loses none; where models meet, from its own, and the store has the mean of all. Where a gradient is
 * never stale nothing changes. Models that meet count an update after its step, and others may count theirs
 * in between: so they are held to it in the simulated world. Of a mean of some, tests/strategies/adasync.c
 * has the serial form. */
#include "../harness.h"

static const int worker_counts[] = {1, 2, 3, 5, 8};

static void check(const char *text, const struct strategy *strategy, void *argument) {
    struct choice choice;
    struct error error = {0};
    (void)argument;
    plugin_choose(&choice, &strategy_kind, text, &error);
    const struct traits *traits = strategy_traits(strategy, choice.settings);
    const bool in_place = traits->steps_own && !traits->own_moments,
               meets = traits->conserved == CONSERVED_COPIES && !traits->merged;
    if (!traits->exactly_once && !in_place && !meets) return;
    if (traits->merged && traits->staleness_bound != strategy_never_stale) return;
    long stale = 0;
    for (int simulated = in_place || meets; simulated < 2; simulated++)
        for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++) {
            static struct rig rig;
            const struct rig_settings settings = {.strategy = text,
                                                  .optimizer = "sgd:rate=1",
                                                  .workers = worker_counts[w],
                                                  .shards = 2,
                                                  .slots = 2,
                                                  .batches = 43,
                                                  .block = 61,
                                                  .simulated = simulated,
                                                  .seed = (uint64_t)worker_counts[w],
                                                  .divides = true,
                                                  .formula = formula_blocks};
            CHECK(rig_run(&rig, &settings, true) == OK, "%s: %s", text, rig.error.words);
            for (int v = 0; v < settings.workers && !traits->merged; v++) {
                const size_t at = rig.ranges[v].begin;
                const int s = at < rig.store.shards[1].begin ? 0 : 1;
                const struct tally *tally = &rig.store.shards[s].tallies[v];
                double expected = 0.0;
                for (int b = 0; b < STALENESS_BINS; b++)
                    expected += (double)tally->staleness.counts[b] / (b > 1 ? b : 1);
                for (int b = 2; b < STALENESS_BINS; b++) stale += tally->staleness.counts[b];
                const double taken = -(double)rig.store.weights[at] * (meets ? settings.workers : 1);
                CHECK(fabs(expected - taken) < 1e-4,
                      "%s, %d workers: weight %zu has lost %g, by the ages of its gradients %g", text,
                      settings.workers, at, taken, expected);
            }
            rig_close(&rig);
        }
    CHECK(stale > 0 || traits->merged, "%s: nothing was ever stale: is the test awake?", text);
}

int main(void) {
    each_strategy(check, NULL);
    return check_end();
}
