/* Clusters in the simulated world while things go wrong, by seed: which cluster, which strategy, what happens
 * when. Machines are killed, cut off and slowed down, and pieces get lost. Whatever happens,
 *
 *   every process ends, none of them later than its timeouts allow, and no thread is stuck;
 *   every end is named: a code, and one line that says what happened;
 *   a run that ended well has trained on no example more than there are;
 *   where nothing is worse than what the timeouts allow, all end well. With parameter servers it has then
 *   trained on all examples, with one update per step where the strategy has no rounds and drops nothing, and
 *   sync has the bits of one process.
 *
 * SEEDS=N: so many instead of a few; FIRST=N: from that one, as a failure prints it; TELL=1: all are printed.
 * `make faults SEEDS=N` is the long form. */
#include "../simulated_cluster.h"

#include "../../src/base/rng.h"
#include "../../src/store/strategy.h"

enum { FEW = 30, WORKERS_MOST = 4, FAULTS_MOST = 3, EXAMPLES = 240 };

#define TIMEOUT_S 20.0
#define START_S 60.0
/* When faults happen: from before the first hello to after most of the training. */
#define LATEST_S 0.15

enum what { KILL, CUT_ONE, CUT_OFF, SLOW, LOSSY, WHATS };
static const char *const what_words[WHATS] = {"killed", "cut from another", "cut off", "slow", "with losses"};

struct misfortune {
    enum what what;
    int process, other;
    double at_s, for_s; /* INFINITY: for good */
};

struct plan {
    struct scenario scenario;
    struct misfortune list[FAULTS_MOST];
    int count;
    bool harmless; /* nothing that lasts longer than is waited for */
};

static int pick(struct rng *rng, int count) {
    return (int)rng_below(rng, (uint32_t)count);
}

static double between(struct rng *rng, double least, double most) {
    return least + (most - least) * (double)rng_uniform(rng);
}

static const char *pick_strategy(struct rng *rng, int parts) {
    int count = 0;
    while (strategies[count]) count++;
    while (true) {
        const struct strategy *strategy = strategies[pick(rng, count)];
        struct choice choice;
        struct error error = {0};
        if (plugin_choose(&choice, &strategy_kind, strategy->plugin.name, &error) != OK) continue;
        if (parts < 2 || !strategy_traits(strategy, choice.settings)->drops) return strategy->plugin.name;
    }
}

static struct plan plan_of(uint64_t seed) {
    struct plan plan = {.harmless = true};
    struct rng rng;
    rng_start(&rng, seed, 77);
    const int servers = pick(&rng, 4), workers = 1 + pick(&rng, WORKERS_MOST);
    const int processes = servers + workers;
    plan.scenario =
        (struct scenario){.strategy = pick_strategy(&rng, servers > 0 ? servers : workers),
                          .servers = servers,
                          .workers = workers,
                          .seed = seed,
                          .network = {.latency_s = between(&rng, 0.0, 2e-3),
                                      .jitter_s = between(&rng, 0.0, 2e-3),
                                      .bytes_per_s = pick(&rng, 2) ? between(&rng, 1e6, 1e9) : 0.0},
                          .settings = {{"on-loss", pick(&rng, 2) ? "continue" : "stop"}}};
    plan.count = pick(&rng, FAULTS_MOST + 1);
    for (int i = 0; i < plan.count; i++) {
        struct misfortune *one = &plan.list[i];
        one->what = (enum what)pick(&rng, WHATS);
        one->process = pick(&rng, processes);
        one->other = pick(&rng, processes);
        one->at_s = between(&rng, 0.0, LATEST_S);
        one->for_s = pick(&rng, 3) ? between(&rng, 0.0, 0.5 * TIMEOUT_S / FAULTS_MOST) : INFINITY;
        const bool cuts = one->what == CUT_ONE || one->what == CUT_OFF;
        if (one->what == KILL || (cuts && isinf(one->for_s))) plan.harmless = false;
    }
    return plan;
}

/* --- what goes wrong meanwhile --- */

struct trouble {
    struct simulated_cluster *all;
    struct misfortune misfortune;
    struct world_thread *thread;
};

static void set_trouble(const struct trouble *trouble, bool on) {
    struct simulated_cluster *all = trouble->all;
    const struct misfortune *one = &trouble->misfortune;
    struct world *machine = all->processes[one->process].world;
    struct simulated_network network = all->scenario.network;
    network.loss = on ? 0.3 : 0.0;
    switch (one->what) {
    case KILL:
        if (on) simulated_kill(machine);
        break;
    case CUT_ONE:
        simulated_cut(machine, all->processes[one->other].world, on);
        break;
    case CUT_OFF:
        for (int i = 0; i < all->count; i++) simulated_cut(machine, all->processes[i].world, on);
        break;
    case SLOW:
        simulated_slow(machine, on ? 50.0 : 1.0);
        break;
    case LOSSY:
        simulated_set_network(all->world, &network);
        break;
    case WHATS:
        break;
    }
}

static void trouble_body(void *argument) {
    const struct trouble *trouble = argument;
    world_sleep(trouble->all->world, trouble->misfortune.at_s);
    set_trouble(trouble, true);
    if (isinf(trouble->misfortune.for_s)) return;
    world_sleep(trouble->all->world, trouble->misfortune.for_s);
    set_trouble(trouble, false);
}

/* --- how it ended --- */

static void print_plan(uint64_t seed, const struct plan *plan) {
    const struct scenario *scenario = &plan->scenario;
    fprintf(stderr, "seed %llu (FIRST=%llu SEEDS=1): %s, %d ps, %d workers, on-loss %s\n",
            (unsigned long long)seed, (unsigned long long)seed, scenario->strategy, scenario->servers,
            scenario->workers, scenario->settings[0][1]);
    for (int i = 0; i < plan->count; i++)
        fprintf(stderr, "  %.3f s, for %.3f s: process %d (or %d) is %s\n", plan->list[i].at_s,
                plan->list[i].for_s, plan->list[i].process, plan->list[i].other,
                what_words[plan->list[i].what]);
}

static void check_end_of(const struct process *process) {
    const struct error *error = &process->error;
    CHECK(process->ended, "%s has not ended", process->name);
    CHECK(error->code == OK || (error->words[0] != '\0' && !strchr(error->words, '\n')),
          "%s: code %d, \"%s\"", process->name, error->code, error->words);
    CHECK(error->code == OK || error->code == ERROR_PEER || error->code == ERROR_DEVICE,
          "%s: code %d, \"%s\"", process->name, error->code, error->words);
    /* All come; one waits in vain, three times its timeout where it waits for who waits itself; a last word.
     */
    const double latest = START_S + TIMEOUT_S + 2.0 * 3.0 * 4.0 / 3.0 * TIMEOUT_S;
    CHECK(process->ended_s < latest, "%s ended after %g s, \"%s\"", process->name, process->ended_s,
          error->words);
}

/* The weights are behind the header, which has the settings and the day. */
static uint64_t hash_weights(const struct simulated_cluster *all) {
    char *data;
    size_t bytes;
    uint64_t header = 0, hash = 0;
    cluster_file(all, "model.safetensors", &data, &bytes);
    if (bytes > 8) memcpy(&header, data, 8);
    for (size_t i = 8 + header; data && i < bytes; i++) hash = rng_mix(hash, (uint8_t)data[i]);
    memory_free(data);
    return hash;
}

static uint64_t weights_of_one_process(int workers) {
    static struct simulated_cluster all;
    static uint64_t known[WORKERS_MOST + 1];
    if (known[workers]) return known[workers];
    const struct scenario alone = {.strategy = "sync", .servers = -1, .workers = workers};
    cluster_start(&all, &alone);
    cluster_join(&all);
    CHECK(all.processes[0].error.code == OK, "%s", all.processes[0].error.words);
    known[workers] = hash_weights(&all);
    cluster_close(&all);
    return known[workers];
}

static void check_counts(const struct plan *plan, const struct process *first) {
    const struct summary *summary = &first->result.summary;
    struct choice choice;
    struct error error = {0};
    if (plugin_choose(&choice, &strategy_kind, plan->scenario.strategy, &error) != OK) return;
    const struct traits *traits = strategy_traits(strategy_of(&choice), choice.settings);
    if (!traits->rounds && !traits->drops && plan->harmless)
        CHECK(summary->updates == summary->steps, "%ld updates of %ld steps", summary->updates,
              summary->steps);
    CHECK(summary->examples <= EXAMPLES && (!plan->harmless || summary->examples == EXAMPLES),
          "%lld examples, expected %d", summary->examples, EXAMPLES);
}

static void check_ends(const struct plan *plan, const struct simulated_cluster *all) {
    const struct process *first = &all->processes[0];
    CHECK(!world_stopped(all->world), "threads were stuck");
    for (int i = 0; i < all->count; i++) {
        check_end_of(&all->processes[i]);
        CHECK(!plan->harmless || all->processes[i].error.code == OK, "%s: \"%s\"", all->processes[i].name,
              all->processes[i].error.words);
    }
    if (first->error.code != OK || plan->scenario.servers == 0) return;
    check_counts(plan, first);
    if (plan->harmless && strcmp(plan->scenario.strategy, "sync") == 0)
        CHECK(hash_weights(all) == weights_of_one_process(plan->scenario.workers),
              "not the bits of one process");
}

static void test_seed(uint64_t seed) {
    static struct simulated_cluster all;
    const struct plan plan = plan_of(seed);
    struct trouble troubles[FAULTS_MOST];
    struct error error = {0};
    const int failures = check_failures;
    cluster_start(&all, &plan.scenario);
    for (int i = 0; i < plan.count; i++) {
        troubles[i] = (struct trouble){.all = &all, .misfortune = plan.list[i]};
        CHECK(world_spawn(all.world, "trouble", NULL, trouble_body, &troubles[i], &troubles[i].thread,
                          &error) == OK,
              "%s", error.words);
    }
    cluster_join(&all);
    for (int i = 0; i < plan.count; i++) world_join(troubles[i].thread);
    check_ends(&plan, &all);
    if (check_failures != failures || getenv("TELL")) {
        print_plan(seed, &plan);
        for (int i = 0; i < all.count; i++)
            fprintf(stderr, "  %s ended at %.3f s: %d %s\n", all.processes[i].name, all.processes[i].ended_s,
                    all.processes[i].error.code, all.processes[i].error.words);
    }
    cluster_close(&all);
}

static uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && text[0] ? strtoull(text, NULL, 10) : otherwise;
}

int main(void) {
    const uint64_t first = number_of("FIRST", 1), seeds = number_of("SEEDS", FEW);
    for (uint64_t seed = first; seed < first + seeds; seed++) test_seed(seed);
    return check_end();
}
