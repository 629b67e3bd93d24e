/* Workers that are asked to go, at moments drawn by seed, in whole simulated clusters: under every strategy,
 * with one parameter server and with two. All end well, whatever --on-loss says, and every batch is computed
 * once, by those who are still there. Where all go, every server has come as far as the others: the run ends
 * for want of workers, and for nothing else. */
#include "../simulated_cluster.h"

enum { WORKERS = 3, EPOCHS = 6, BATCHES = 12 /* of an epoch of iris */ };

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};
/* Here they are asked while they wait: for a number, for weights, for those of the second one. */
static const struct simulated_network slow = {.latency_s = 0.2, .jitter_s = 0.4, .bytes_per_s = 1e8};
static int left_early, left_all;

static void check(const struct simulated_cluster *all, int leavers) {
    const struct scenario *scenario = &all->scenario;
    const struct summary *summary = &all->processes[0].result.summary;
    const struct run_result *result = &all->processes[0].result;
    int left = 0, lost = 0;
    char name[100];
    snprintf(name, sizeof name, "%s, %d ps, seed %d", scenario->strategy, scenario->servers,
             (int)scenario->seed);
    for (int i = 0; i < all->count; i++) {
        const struct process *process = &all->processes[i];
        CHECK(process->error.code == OK, "%s: %s: %s", name, process->name, process->error.words);
        left += process->finish.left;
    }
    CHECK(left <= leavers, "%s: %d have left, %d were asked to", name, left, leavers);
    left_early += left;
    if (all->processes[0].error.code != OK) return;
    for (int w = 0; w < WORKERS; w++) lost += result->workers[w].lost;
    CHECK(lost == 0 && summary->lost_workers == 0 && summary->lost_batches == 0,
          "%s: %d workers and %ld batches are lost", name, summary->lost_workers, summary->lost_batches);
    CHECK(summary->steps == EPOCHS * BATCHES && summary->examples == 10 * summary->steps,
          "%s: %ld steps, %lld examples, expected %d steps", name, summary->steps, summary->examples,
          EPOCHS * BATCHES);
}

/* One or two of them go; the first batches come some 20 ms after the start, or 4 s. */
static void run_one(const char *strategy, int servers, uint64_t seed) {
    static struct simulated_cluster all;
    const bool is_slow = seed % 2 == 0;
    const struct scenario scenario = {.strategy = strategy,
                                      .servers = servers,
                                      .workers = WORKERS,
                                      .seed = seed,
                                      .network = is_slow ? slow : network,
                                      .settings = {{"epochs", "6"}, {"on-loss", "stop"}}};
    const int leavers = 1 + (int)(rng_mix(seed, 1) % 2);
    cluster_start(&all, &scenario);
    for (int l = 0; l < leavers; l++) {
        const int worker = (int)((rng_mix(seed, 2) + (uint64_t)l) % WORKERS);
        world_sleep(all.world,
                    (is_slow ? 12.0 : 0.3) * (double)(rng_mix(seed, 3 + (uint64_t)l) % 1000) / 1e3);
        world_dismiss(all.processes[servers + worker].world);
    }
    cluster_join(&all);
    check(&all, leavers);
    cluster_close(&all);
}

static void run_all(const char *strategy, int servers, uint64_t seed) {
    static struct simulated_cluster all;
    const struct scenario scenario = {.strategy = strategy,
                                      .servers = servers,
                                      .workers = WORKERS,
                                      .seed = seed,
                                      .network = network,
                                      .settings = {{"epochs", "32"}}};
    cluster_start(&all, &scenario);
    cluster_await_training(&all);
    world_sleep(all.world, 0.3 + 0.4 * (double)(rng_mix(seed, 1) % 1000) / 1e3);
    for (int w = 0; w < WORKERS; w++) world_dismiss(all.processes[servers + w].world);
    cluster_join(&all);
    const struct error *error = &all.processes[0].error;
    const bool gone = strstr(error->words, "every worker was lost or has left") != NULL;
    CHECK(error->code == OK || gone, "%s, %d ps, seed %d: %s", strategy, servers, (int)seed, error->words);
    left_all += gone;
    cluster_close(&all);
}

/* Who drops gradients, or chooses those of an update, decides in one place. */
static bool has_parts(const struct strategy *strategy) {
    struct choice choice = {0};
    struct error error = {0};
    CHECK(plugin_choose(&choice, &strategy_kind, strategy->plugin.name, &error) == OK, "%s", error.words);
    const struct traits *traits = strategy_traits(strategy, choice.settings);
    return !traits->drops && !traits->joint;
}

int main(void) {
    for (int s = 0; strategies[s]; s++) {
        const char *strategy = strategies[s]->plugin.name;
        for (uint64_t seed = 1; seed <= 6; seed++) {
            run_one(strategy, 1, seed + 10 * (uint64_t)s);
            if (has_parts(strategies[s])) run_one(strategy, 2, seed + 1000 + 10 * (uint64_t)s);
            if (seed == 1)
                run_all(strategy, has_parts(strategies[s]) ? 2 : 1, seed + 2000 + 10 * (uint64_t)s);
        }
    }
    CHECK(left_early > 30, "only %d have left before the end", left_early);
    CHECK(left_all > 5, "all have left only %d times", left_all);
    return check_end();
}
