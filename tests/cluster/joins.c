/* Workers that come late and workers that come again, in whole simulated clusters: under every strategy, in
 * clear and compressed, one worker begins, another one comes while it trains, the first is killed, and
 * another process takes its place. All batches are there once, every worker's steps without a gap, and who
 * joins goes on from the weights of the moment. And who is not let in: for a place that is held, with several
 * devices, into a cluster that nobody can join. */
#include "../joined.h"

enum { WORKERS = 3, EPOCHS = 40, BATCHES = 12 /* of an epoch of iris */ };

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};

static struct scenario scenario_of(const char *strategy, const char *range) {
    return (struct scenario){.strategy = strategy,
                             .servers = 1,
                             .workers = WORKERS,
                             .seed = 7,
                             .network = network,
                             .settings = {{"epochs", "40"}, {"workers", range}}};
}

/* Another process in a worker's place. */
static struct process *come_again(struct simulated_cluster *all, int worker) {
    struct process *process = &all->processes[all->count];
    add_process(all, worker == 0 ? CLUSTER_CHIEF : CLUSTER_WORKER, worker);
    process->begins_s = 0.0;
    start_process(process);
    return process;
}

/* The loss of a worker's step as the table has it; what the first weights would have is far more by then. */
static double loss_at(const struct simulated_cluster *all, int worker, long step) {
    char *data;
    size_t bytes;
    double found = NAN;
    cluster_file(all, "steps.csv", &data, &bytes);
    for (const char *line = data ? strchr(data, '\n') : NULL; line && line[1];
         line = strchr(line + 1, '\n')) {
        int w;
        long s;
        double loss;
        if (sscanf(line + 1, "%*[^,],%d,%*[^,],%*[^,],%ld,%lf", &w, &s, &loss) == 3 && w == worker &&
            s == step)
            found = loss;
    }
    memory_free(data);
    return found;
}

static void check_joins(const struct simulated_cluster *all, const char *name) {
    const struct summary *summary = &all->processes[0].result.summary;
    const double first = loss_at(all, 1, 1);
    CHECK(summary->join_count == 3, "%s: %d have joined, expected 3", name, summary->join_count);
    CHECK(summary->lost_workers == 1 && summary->lost_batches <= 2, "%s: %d lost, with %ld batches", name,
          summary->lost_workers, summary->lost_batches);
    for (int j = 0; j < summary->join_count; j++) {
        const struct summary_join *join = &summary->joins[j];
        const double loss = loss_at(all, join->worker, join->step);
        CHECK(join->worker == (j == 0   ? 2
                               : j == 1 ? 0
                                        : 1),
              "%s: worker %d joins as number %d", name, join->worker, j);
        CHECK((join->step > 1) == (join->worker == 1), "%s: worker %d joins with its step %ld", name,
              join->worker, join->step);
        CHECK(loss < 0.8 * first, "%s: worker %d joins with a loss of %g, the first was %g", name,
              join->worker, loss, first);
    }
}

/* Worker 1 begins; 2 and 0 come; 1 is killed, and comes again. */
static void run_one(const char *text, const struct traits *traits, const char *compress) {
    static struct simulated_cluster all;
    struct scenario scenario = scenario_of(text, "1..3");
    char name[200];
    snprintf(name, sizeof name, "%s%s", text, compress ? ", compressed" : "");
    if (compress) scenario.settings[2][0] = "compress", scenario.settings[2][1] = compress;
    scenario.own[1].begins_s = 0.4;
    scenario.own[3].begins_s = 0.2;
    const int failures = check_failures;
    cluster_start(&all, &scenario);
    world_sleep(all.world, 0.6);
    simulated_kill(all.processes[2].world);
    struct process *again = come_again(&all, 1);
    cluster_join(&all);
    for (int i = 0; i < all.count; i++)
        CHECK(i == 2 || all.processes[i].error.code == OK, "%s: %s: %s", name, all.processes[i].name,
              all.processes[i].error.words);
    CHECK(again->finish.epochs > EPOCHS - 1, "%s: %g epochs", name, again->finish.epochs);
    if (check_failures == failures) joined_check(&all, traits, EPOCHS, BATCHES);
    if (check_failures == failures) check_joins(&all, name);
    cluster_close(&all);
}

static void every_strategy(void) {
    for (int s = 0; strategies[s]; s++) {
        struct choice choice = {0};
        struct error error = {0};
        const char *name = strategies[s]->plugin.name;
        CHECK(plugin_choose(&choice, &strategy_kind, name, &error) == OK, "%s", error.words);
        const struct traits *traits = strategy_traits(strategy_of(&choice), choice.settings);
        run_one(name, traits, NULL);
        if (strcmp(name, "sync") == 0 || strcmp(name, "async-locked") == 0)
            run_one(name, traits, "top-k:share=0.1");
    }
}

int main(void) {
    every_strategy();
    return check_end();
}
