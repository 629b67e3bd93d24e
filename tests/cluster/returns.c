/* Clusters with --restart-wait in the simulated world, by seed: any process is killed and begins again with
 * the same command, or stands still for longer than the others wait for it; up to three times, also while the
 * others still wait. The first time is after the first checkpoint. Whatever is drawn,
 *
 *   every process but those that were killed ends well, or is named as one that came when all was over, and
 * no thread is stuck; what is trained in the end is all examples, once: one update per step where the
 * strategy has no rounds and drops nothing; and under sync, or where one worker steps alone, the bits of a
 * run that nobody disturbed. A gradient of an earlier session that were applied would be another update, and
 * other bits.
 *
 * A machine that is killed stays on its disk as it was: what its threads, which are not stopped in this
 * world, write later is undone. SEEDS=N: so many; FIRST=N: from that one. `make faults SEEDS=N` is the long
 * form. */
#include "../simulated_cluster.h"

#include "../../src/store/strategy.h"

enum { FEW = 40, WORKERS_MOST = 4, FAULTS_MOST = 3, EXAMPLES = 8 * 120, BATCH = 10 };

#define TIMEOUT_S 20.0
#define WAIT_S 300.0 /* --restart-wait */

struct misfortune {
    bool stops; /* it stands still: from elsewhere, it is cut off; else it is killed and begins again */
    int process;
    double at_s, for_s; /* after the first checkpoint, or after the one before */
};

struct plan {
    struct scenario scenario;
    struct misfortune list[FAULTS_MOST];
    int count;
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
    while (pick(rng, 2) == 0) {
        const struct strategy *strategy = strategies[pick(rng, count)];
        struct choice choice;
        struct error error = {0};
        if (plugin_choose(&choice, &strategy_kind, strategy->plugin.name, &error) != OK) continue;
        const struct traits *traits = strategy_traits(strategy, choice.settings);
        if (parts < 2 || (!traits->drops && !traits->joint)) return strategy->plugin.name;
    }
    return "sync";
}

static struct plan plan_of(uint64_t seed) {
    struct plan plan = {0};
    struct rng rng;
    rng_start(&rng, seed, 78);
    const int servers = pick(&rng, 4), workers = 1 + pick(&rng, WORKERS_MOST);
    plan.scenario = (struct scenario){
        .strategy = pick_strategy(&rng, servers > 0 ? servers : workers),
        .servers = servers,
        .workers = workers,
        .seed = seed,
        .encrypted = TRAINER_TLS && seed % 8 == 3,
        .network = {.latency_s = between(&rng, 1e-4, 2e-3), .jitter_s = between(&rng, 0.0, 2e-3)},
        .settings = {{"on-loss", "stop"},
                     {"restart-wait", "300"},
                     {"checkpoint-every", "0.02"},
                     {"epochs", "8"},
                     {"start-timeout", "300"}}};
    plan.count = 1 + pick(&rng, FAULTS_MOST);
    for (int i = 0; i < plan.count; i++) {
        struct misfortune *one = &plan.list[i];
        one->stops = pick(&rng, 4) == 0;
        one->process = pick(&rng, servers > 0 && pick(&rng, 2) ? servers : servers + workers);
        one->at_s = between(&rng, 0.0, i == 0 ? 0.05 : 3.0);
        one->for_s = one->stops ? between(&rng, 1.0, 5.0) * TIMEOUT_S : between(&rng, 0.1, 5.0);
    }
    return plan;
}

/* --- what goes wrong meanwhile --- */

/* The process that has this place now. */
static struct process *newest(struct simulated_cluster *all, int place) {
    const struct process *first = &all->processes[place];
    int index = place;
    for (int i = place + 1; i < all->count; i++)
        if ((all->processes[i].cluster.role == CLUSTER_PS) == (first->cluster.role == CLUSTER_PS) &&
            all->processes[i].cluster.task == first->cluster.task)
            index = i;
    return &all->processes[index];
}

/* What the leader leaves. */
static void file_of(const struct simulated_cluster *all, const char *name, char path[256]) {
    snprintf(path, 256, "%s/%s/%s", all->folder, all->scenario.servers > 0 ? "ps-0" : "worker-0", name);
}

static bool has_file(const struct simulated_cluster *all, const char *name) {
    char path[256];
    file_of(all, name, path);
    return file_exists(path);
}

/* A disk as it was at that moment. */
struct disk {
    char *checkpoint; /* owned */
    size_t bytes;
};

static void keep_disk(const struct simulated_cluster *all, struct disk *disk) {
    char path[256];
    struct error error = {0};
    file_of(all, "checkpoint/state.safetensors", path);
    CHECK(file_read(path, 1 << 22, &disk->checkpoint, &disk->bytes, &error) == OK, "%s", error.words);
}

static void restore_disk(const struct simulated_cluster *all, struct disk *disk) {
    char path[256];
    file_of(all, "model.safetensors", path);
    remove(path);
    file_of(all, "checkpoint/state.safetensors", path);
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite(disk->checkpoint, 1, disk->bytes, file) == disk->bytes, "%s", path);
    if (file) fclose(file);
    memory_free(disk->checkpoint);
}

/* False: the run is over, as far as others can see. */
static bool strike(struct simulated_cluster *all, const struct misfortune *one) {
    struct process *process = newest(all, one->process);
    const bool leads = one->process == 0;
    struct disk disk = {0};
    if (process->ended || has_file(all, "model.safetensors")) return false;
    if (leads) keep_disk(all, &disk);
    process->struck = true;
    simulated_kill(process->world);
    world_sleep(all->world, one->for_s);
    while (!process->ended && leads) world_sleep(all->world, 0.01); /* it has the folder still */
    if (leads) restore_disk(all, &disk);
    struct process *again = &all->processes[all->count];
    add_process(all, process->cluster.role, process->cluster.task);
    again->begins_s = 0.0;
    snprintf(again->name + strlen(again->name), sizeof again->name - strlen(again->name), " again");
    start_process(again);
    return true;
}

static void stand_still(struct simulated_cluster *all, const struct misfortune *one) {
    struct world *machine = newest(all, one->process)->world;
    const int count = all->count;
    for (int i = 0; i < count; i++) simulated_cut(machine, all->processes[i].world, true);
    world_sleep(all->world, one->for_s);
    for (int i = 0; i < count; i++) simulated_cut(machine, all->processes[i].world, false);
}

/* Whether one was killed. */
static bool disturb(struct simulated_cluster *all, const struct plan *plan) {
    bool killed = false;
    while (!has_file(all, "checkpoint/state.safetensors") && !all->processes[0].ended)
        world_sleep(all->world, 1e-3);
    for (int i = 0; i < plan->count; i++) {
        const struct misfortune *one = &plan->list[i];
        world_sleep(all->world, one->at_s);
        if (one->stops)
            stand_still(all, one);
        else
            killed = strike(all, one) || killed;
    }
    return killed;
}

/* --- how it ended --- */

static uint64_t weights_of_one_process(const char *strategy, int workers) {
    static struct simulated_cluster all;
    const struct scenario alone = {
        .strategy = strategy, .servers = -1, .workers = workers, .settings = {{"epochs", "8"}}};
    cluster_start(&all, &alone);
    cluster_join(&all);
    CHECK(all.processes[0].error.code == OK, "%s", all.processes[0].error.words);
    const uint64_t hash = cluster_hash_weights(&all);
    cluster_close(&all);
    return hash;
}

static void check_done(struct simulated_cluster *all, const struct plan *plan) {
    const struct process *leader = newest(all, 0);
    const bool serves = leader->cluster.role == CLUSTER_PS;
    const struct summary *summary = &leader->result.summary;
    const long updates = serves ? summary->updates : leader->finish.version,
               steps = serves ? summary->steps : leader->finish.steps;
    const long long examples = serves ? summary->examples : leader->finish.examples;
    const char *name = plan->scenario.strategy;
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &strategy_kind, name, &error) == OK, "%s", error.words);
    const struct traits *traits = strategy_traits(strategy_of(&choice), choice.settings);
    CHECK(examples == EXAMPLES, "%lld examples, expected %d", examples, EXAMPLES);
    CHECK(traits->rounds || traits->drops || (updates == steps && steps == EXAMPLES / BATCH),
          "%ld updates of %ld steps, expected %d", updates, steps, EXAMPLES / BATCH);
    if (strcmp(name, "sync") == 0 || (strcmp(name, "async-apply") == 0 && plan->scenario.workers == 1))
        CHECK(cluster_hash_weights(all) == weights_of_one_process(name, plan->scenario.workers),
              "not the bits of one process");
}

/* One that was killed or cut off when everything was computed finds nobody any more. */
static bool may_miss_the_end(struct simulated_cluster *all, const struct process *process) {
    const struct process *leader = newest(all, 0);
    return process->error.code == ERROR_PEER && leader->ended && leader->error.code == OK &&
           process->ended_s > leader->ended_s;
}

static void check_ends(struct simulated_cluster *all, const struct plan *plan) {
    const struct process *leader = newest(all, 0);
    CHECK(!world_stopped(all->world), "threads were stuck");
    for (int i = 0; i < all->count; i++) {
        const struct process *process = &all->processes[i];
        CHECK(process->ended, "%s has not ended", process->name);
        CHECK(process->struck || process->error.code == OK || may_miss_the_end(all, process),
              "%s: code %d, \"%s\"", process->name, process->error.code, process->error.words);
    }
    if (leader->error.code == OK) check_done(all, plan);
}

static void tell(const struct simulated_cluster *all, const struct plan *plan) {
    const struct scenario *scenario = &plan->scenario;
    fprintf(stderr, "FIRST=%llu SEEDS=1: %s, %d parameter servers, %d workers\n",
            (unsigned long long)scenario->seed, scenario->strategy, scenario->servers, scenario->workers);
    for (int i = 0; i < plan->count; i++)
        fprintf(stderr, "  %s %s after %g s, for %g s\n", all->processes[plan->list[i].process].name,
                plan->list[i].stops ? "stands still" : "is killed", plan->list[i].at_s, plan->list[i].for_s);
    for (int i = 0; i < all->count; i++)
        fprintf(stderr, "  %s ended at %.3f s: %d %s\n", all->processes[i].name, all->processes[i].ended_s,
                all->processes[i].error.code, all->processes[i].error.words);
}

static bool test_seed(uint64_t seed) {
    static struct simulated_cluster all;
    const struct plan plan = plan_of(seed);
    const int failures = check_failures;
    cluster_start(&all, &plan.scenario);
    const bool killed = disturb(&all, &plan);
    cluster_join(&all);
    check_ends(&all, &plan);
    if (check_failures != failures) tell(&all, &plan);
    cluster_close(&all);
    return killed;
}

/* A worker has been let in by the second parameter server, which is lost then, and not yet by the first: it
 * waits for both. */
static void test_let_in_by_one(double cut_s) {
    static struct simulated_cluster all;
    const struct scenario scenario = {
        .strategy = "sync",
        .servers = 2,
        .workers = 2,
        .seed = 4,
        .network = {.latency_s = 0.05},
        .settings = {{"epochs", "1"}, {"restart-wait", "30"}, {"checkpoint-every", "0.02"}}};
    cluster_start(&all, &scenario);
    world_sleep(all.world, cut_s);
    simulated_cut(all.processes[0].world, all.processes[2].world, true);
    world_sleep(all.world, 1.0);
    strike(&all, &(struct misfortune){.process = 1, .for_s = 0.5});
    simulated_cut(all.processes[0].world, all.processes[2].world, false);
    cluster_join(&all);
    for (int i = 0; i < all.count; i++)
        CHECK(all.processes[i].struck || all.processes[i].error.code == OK, "let in by one, %g s: %s: %s",
              cut_s, all.processes[i].name, all.processes[i].error.words);
    cluster_close(&all);
}

/* What the long form has found: a batch in hand that was left out; a process that refused for good
 * when it had only lost another one; one that welcomed its workers, went, and was met again without them. */
static const uint64_t found[] = {3022, 1646, 3117};

int main(void) {
    const uint64_t first = number_of("FIRST", 1), seeds = number_of("SEEDS", FEW);
    uint64_t killed = 0, runs = 0;
    for (int i = 4; i < 12; i++) test_let_in_by_one(0.02 * i);
    for (size_t i = 0; !getenv("SEEDS") && i < sizeof found / sizeof *found; i++) test_seed(found[i]);
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        if (!is_chosen(seed)) continue;
        killed += test_seed(seed);
        runs++;
    }
    CHECK(runs < 10 || 3 * killed > runs, "killed in %llu of %llu runs", (unsigned long long)killed,
          (unsigned long long)runs);
    return check_end();
}
