/* What is kept when a run of several parameter servers ends by a failure, in the simulated world: where every
 * server is there still, a checkpoint of the last update that all have made, which the words name. Under sync
 * it goes on to the bits of a run that nobody disturbed. Of mirrored processes nothing is kept: one that is
 * killed takes its slice along. */
#include "../simulated_cluster.h"

enum { WORKERS = 3, SEEDS = 6, EPOCHS = 32, BATCHES = 12 /* of an epoch */ };
#define EPOCHS_TEXT "32"

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};

struct kept {
    long update; /* that the words say; -1: none */
    long most;   /* in the rows of steps.csv */
    char path[128];
};

static struct kept kept_by(const struct simulated_cluster *all) {
    const struct process *leader = &all->processes[0];
    struct kept kept = {.update = -1};
    char *data;
    size_t bytes;
    const char *said = strstr(leader->error.words, "to go on from update ");
    if (said) sscanf(said, "to go on from update %ld", &kept.update);
    snprintf(kept.path, sizeof kept.path, "%s/%s", all->folder, leader->name);
    cluster_file(all, "steps.csv", &data, &bytes);
    for (const char *line = data ? strchr(data, '\n') : NULL; line && line[1];
         line = strchr(line + 1, '\n')) {
        long update;
        if (sscanf(line + 1,
                   "%*f,%*d,%*[^,],%*d,%*d,%*[^,],%*[^,],%*d,%*[^,],%*[^,],%*[^,],%*[^,],%*[^,],%*[^,],%ld",
                   &update) == 1 &&
            update > kept.most)
            kept.most = update;
    }
    memory_free(data);
    return kept;
}

static uint64_t weights_of_one_process(void) {
    static struct simulated_cluster all;
    static uint64_t hash;
    if (hash != 0) return hash;
    const struct scenario alone = {
        .strategy = "sync", .servers = -1, .workers = WORKERS, .settings = {{"epochs", EPOCHS_TEXT}}};
    cluster_start(&all, &alone);
    cluster_join(&all);
    CHECK(all.processes[0].error.code == OK, "%s", all.processes[0].error.words);
    hash = cluster_hash_weights(&all);
    cluster_close(&all);
    return hash;
}

static void go_on(const struct scenario *scenario, const struct kept *kept) {
    static struct simulated_cluster all;
    struct scenario again = *scenario;
    again.own[0].name = "resume";
    again.own[0].value = kept->path;
    cluster_start(&all, &again);
    cluster_join(&all);
    for (int i = 0; i < all.count; i++)
        CHECK(all.processes[i].error.code == OK, "%s: %s", all.processes[i].name,
              all.processes[i].error.words);
    const struct summary *summary = &all.processes[0].result.summary;
    CHECK(summary->examples == 10 * BATCHES * EPOCHS, "%lld examples", summary->examples);
    if (strcmp(scenario->strategy, "sync") == 0 && !scenario->settings[2][0]) /* all from the start */
        CHECK(cluster_hash_weights(&all) == weights_of_one_process(),
              "from update %ld: not the bits of a run that nobody disturbed", kept->update);
    cluster_close(&all);
}

/* What one of the workers is killed in, or fails in, at a moment that the seed draws. */
struct scene {
    const char *strategy;
    int servers;
    bool fails;
    const char *workers; /* --workers; NULL: all */
    int victim;          /* among the workers; -1: in turn */
};

/* An error of the device is known to the leader alone; that of a peer to all. */
static void check_ends(const struct simulated_cluster *all, const struct scene *scene, const char *name) {
    CHECK(!world_stopped(all->world), "%s: threads were stuck", name);
    for (int i = 0; i < all->count; i++) {
        const struct process *process = &all->processes[i];
        const int expected = scene->fails && i == 0 ? ERROR_DEVICE : ERROR_PEER;
        if (process->struck) continue;
        CHECK(process->ended && process->error.code == expected, "%s: %s: code %d, \"%s\"", name,
              process->name, process->error.code, process->error.words);
    }
}

/* Whether all that was learnt is kept; then the run goes on from there. */
static bool run_one(const struct scene *scene, uint64_t seed) {
    static struct simulated_cluster all;
    struct scenario scenario = {.strategy = scene->strategy,
                                .servers = scene->servers,
                                .workers = WORKERS,
                                .seed = seed,
                                .network = network,
                                .settings = {{"epochs", EPOCHS_TEXT}, {"on-loss", "stop"}}};
    if (scene->workers) scenario.settings[2][0] = "workers";
    if (scene->workers) scenario.settings[2][1] = scene->workers;
    const struct scenario undisturbed = scenario;
    const int victim = scene->victim >= 0 ? scene->victim : (int)(seed % WORKERS);
    char fails[40], name[100];
    snprintf(fails, sizeof fails, "worker:%d@step:%d", victim, 5 + (int)seed);
    snprintf(name, sizeof name, "%s, %d servers, worker %d %s, seed %d", scene->strategy, scene->servers,
             victim, scene->fails ? "fails" : "is killed", (int)seed);
    if (scene->fails) scenario.own[0].name = "fail";
    if (scene->fails) scenario.own[0].value = fails;
    cluster_start(&all, &scenario);
    cluster_await_training(&all);
    if (!scene->fails) {
        struct process *struck = &all.processes[scene->servers + victim];
        world_sleep(all.world, 0.2 + 0.1 * (double)(rng_mix(seed, 1) % 1000) / 1e3);
        simulated_kill(struck->world);
        struck->struck = true;
    }
    cluster_join(&all);
    check_ends(&all, scene, name);
    const struct kept kept = kept_by(&all);
    CHECK(kept.update <= kept.most, "%s: from update %ld of %ld", name, kept.update, kept.most);
    if (kept.update > 0) go_on(&undisturbed, &kept);
    cluster_close(&all);
    return kept.update > 0 && kept.update == kept.most;
}

static int often; /* percent of the seeds, at least, where it is a matter of chance */

/* How often, in percent of the seeds. */
static int kept_of(const struct scene *scene) {
    int kept = 0, runs = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        if (!is_chosen(seed)) continue;
        kept += run_one(scene, seed);
        runs++;
    }
    return 100 * kept / runs;
}

/* Who is killed while its gradient goes out may have stepped some slices and not others: that is no state of
 * a run under sync, and is not kept. Nothing is computed here for long, so that is often so. */
static void test_servers(const char *strategy, int servers) {
    const struct scene killed = {.strategy = strategy, .servers = servers, .victim = -1};
    const struct scene failing = {.strategy = strategy, .servers = servers, .fails = true, .victim = -1};
    const bool rounds = strcmp(strategy, "sync") == 0;
    const int least = servers == 1 ? 100 : rounds ? often : 2 * often;
    int kept = kept_of(&killed);
    CHECK(kept >= least, "%s, %d servers, a worker is killed: kept %d %% of the time", strategy, servers,
          kept);
    kept = kept_of(&failing);
    CHECK(kept == 100, "%s, %d servers, a worker fails: kept %d %% of the time", strategy, servers, kept);
}

static void test_mirrored(void) {
    const struct scene holds = {.strategy = "sync", .victim = 1};
    const struct scene guest = {.strategy = "sync", .workers = "2..3", .victim = 2};
    int kept = kept_of(&holds);
    CHECK(kept == 0, "who had a slice is killed: kept %d %% of the time", kept);
    kept = kept_of(&guest);
    CHECK(kept == 0, "who had none is killed: kept %d %% of the time", kept);
}

int main(void) {
    often = number_of("EVERY", 1) == 1 ? 15 : 0; /* of few seeds nothing can be said */
    for (int servers = 1; servers <= 3; servers++) {
        test_servers("sync", servers);
        test_servers("async-apply", servers);
    }
    test_mirrored();
    return check_end();
}
