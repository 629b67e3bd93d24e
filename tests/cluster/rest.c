/* What is kept when a run of several parameter servers, or of mirrored processes, ends by a failure, in the
 * simulated world: where everybody who has a slice is there still, a checkpoint of the last update that all
 * have made, which the words name. Under sync it goes on to the bits of a run that nobody disturbed. Who is
 * killed takes its slice along, and then nothing is kept. */
#include "../simulated_cluster.h"

enum { WORKERS = 3, SEEDS = 6, EPOCHS = 32, BATCHES = 12 /* of an epoch */, LOCAL_STEPS = 8 };
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
    CHECK(summary->examples == 10 * BATCHES * EPOCHS && summary->steps == BATCHES * EPOCHS,
          "%s: %lld examples, %ld steps", scenario->strategy, summary->examples, summary->steps);
    if (strcmp(scenario->strategy, "ssp") == 0 || strcmp(scenario->strategy, "async-apply") == 0)
        CHECK(summary->updates == summary->steps, "%s, from update %ld: %ld updates of %ld steps",
              scenario->strategy, kept->update, summary->updates, summary->steps);
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
    bool slow;           /* the leader is far away */
    const char *workers; /* --workers; NULL: all */
    int victim;          /* among the workers; -1: in turn */
};

/* An error of the device is known to the leader alone; that of a peer to all, who say whose it is. */
static void check_ends(const struct simulated_cluster *all, const struct scene *scene, int victim,
                       const char *name) {
    char who[20];
    snprintf(who, sizeof who, "worker %d (", victim);
    CHECK(!world_stopped(all->world), "%s: threads were stuck", name);
    for (int i = 0; i < all->count; i++) {
        const struct process *process = &all->processes[i];
        const int expected = scene->fails && i == 0 ? ERROR_DEVICE : ERROR_PEER;
        if (process->struck) continue;
        CHECK(process->ended && process->error.code == expected &&
                  (strstr(process->error.words, who) || (scene->fails && i > 0)),
              "%s: %s: code %d, \"%s\"", name, process->name, process->error.code, process->error.words);
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
    if (scene->slow) simulated_slow(all.processes[0].world, 5.0);
    if (!scene->fails) {
        struct process *struck = &all.processes[scene->servers + victim];
        world_sleep(all.world, 0.2 + 0.1 * (double)(rng_mix(seed, 1) % 1000) / 1e3);
        simulated_kill(struck->world);
        struck->struck = true;
    }
    cluster_join(&all);
    check_ends(&all, scene, victim, name);
    const struct kept kept = kept_by(&all);
    /* The leader's last round may be undone. */
    const int round = strcmp(scene->strategy, "sync") == 0        ? 1
                      : strcmp(scene->strategy, "local-sgd") == 0 ? LOCAL_STEPS
                                                                  : 0;
    CHECK(kept.update <= kept.most, "%s: from update %ld of %ld", name, kept.update, kept.most);
    if (kept.update > 0) go_on(&undisturbed, &kept);
    cluster_close(&all);
    return kept.update > 0 && kept.update >= kept.most - round;
}

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

static void check_kept(struct scene scene, int expected) {
    const int kept = kept_of(&scene);
    CHECK(kept == expected, "%s, %d servers, %s: kept %d %% of the time", scene.strategy, scene.servers,
          scene.fails ? "a worker fails" : "a worker is killed", kept);
}

/* Of this seed the last gradient comes to the leader and to the first of two followers. The leader goes back
 * to where the second is, and then the first does. */
static void slow_leader(void) {
    const struct scene scene = {"sync", 3, .slow = true, .victim = -1};
    CHECK(run_one(&scene, 15), "three slices, of which two had one update more");
}

int main(void) {
    static const char *const several[] = {"sync", "local-sgd", "async-apply"};
    const int fewest = number_of("EVERY", 1) > 1 ? 3 : 1; /* under sanitizers, where all take long */
    for (int servers = fewest; servers <= 3; servers++)
        for (int s = 0; s < 3; s++)
            for (int fails = 0; fails <= 1; fails++)
                check_kept((struct scene){several[s], servers, .fails = fails == 1, .victim = -1}, 100);
    check_kept((struct scene){"ssp", 2, .victim = -1}, 100);
    check_kept((struct scene){"sync", .fails = true, .victim = -1}, 100);
    check_kept((struct scene){"sync", .workers = "2..3", .victim = 2}, 100); /* who has no slice */
    check_kept((struct scene){"sync", .victim = 1}, 0);
    slow_leader();
    return check_end();
}
