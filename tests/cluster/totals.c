/* --batch-total, and --share, in whole simulated clusters whose workers come, go and come again.
 * Under `sync` every update has as many examples, whoever is there, and the weights are those of one worker
 * that takes them all, as far as rounding allows, with one parameter server and with several. Where somebody
 * leaves, what it had not computed makes an update of its own, and no example is missing; where somebody is
 * killed, only what it had in hand is. With --share a round has the batches of who is there, in parts of
 * their weights. */
#include <math.h>

#include "../simulated_cluster.h"

enum { WORKERS = 3, EPOCHS = 40, EXAMPLES = 120 /* of iris */, UPDATES = 4096 };

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};

static struct scenario scenario_of(const char *strategy, int servers, const char *total) {
    return (struct scenario){
        .strategy = strategy,
        .servers = servers,
        .workers = WORKERS,
        .seed = 7,
        .network = network,
        .settings = {{"epochs", "40"}, {"workers", "1..3"}, {"batch-total", total}, {"log-every", "1"}}};
}

/* What steps.csv has. */
struct rows {
    long in_update[UPDATES]; /* examples of each, from 1 */
    long sizes[1000];        /* rows with so many examples */
    long examples, count;
    struct {
        int examples;
        long update;
    } row[UPDATES];
};

static void read_rows(const struct simulated_cluster *all, struct rows *rows) {
    char *data;
    size_t bytes;
    memset(rows, 0, sizeof *rows);
    cluster_file(all, "steps.csv", &data, &bytes);
    for (const char *line = data ? strchr(data, '\n') : NULL; line && line[1];
         line = strchr(line + 1, '\n')) {
        int examples;
        long update;
        const int fields = sscanf(line + 1,
                                  "%*[^,],%*[^,],%*[^,],%*[^,],%*[^,],%*[^,],%*[^,],%d,%*[^,],%*[^,],%*[^,],"
                                  "%*[^,],%*[^,],%*[^,],%ld",
                                  &examples, &update);
        const bool read = fields == 2 && examples > 0 && examples < 1000 && update >= 0 && update < UPDATES &&
                          rows->count < UPDATES;
        CHECK(read, "steps.csv: \"%.60s\"", line + 1);
        if (!read) break;
        rows->in_update[update] += examples;
        rows->sizes[examples]++;
        rows->examples += examples;
        rows->row[rows->count].examples = examples;
        rows->row[rows->count++].update = update;
    }
    memory_free(data);
}

static void check_ended(const struct simulated_cluster *all, const char *name, const struct process *killed) {
    for (int i = 0; i < all->count; i++)
        CHECK(&all->processes[i] == killed || all->processes[i].error.code == OK, "%s: %s: %s", name,
              all->processes[i].name, all->processes[i].error.words);
}

/* The numbers in model.safetensors. */
static const float *weights_of(const struct simulated_cluster *all, char **data, size_t *count) {
    size_t bytes;
    uint64_t header = 0;
    cluster_file(all, "model.safetensors", data, &bytes);
    if (*data) memcpy(&header, *data, sizeof header);
    *count = *data ? (bytes - 8 - (size_t)header) / sizeof(float) : 0;
    return *data ? (const float *)(const void *)(*data + 8 + header) : NULL;
}

/* --- sync: who joins changes nothing in the updates --- */

static void check_joins(const char *total, int servers) {
    static struct simulated_cluster all, alone;
    static struct rows rows;
    struct scenario scenario = scenario_of("sync", servers, total);
    const long whole = strtol(total, NULL, 10), updates = (EPOCHS * EXAMPLES + whole - 1) / whole;
    scenario.settings[4][0] = "schedule", scenario.settings[4][1] = "cosine";
    scenario.own[servers].absent = scenario.own[servers + 2].absent = true;
    cluster_start(&all, &scenario);
    cluster_await_training(&all);
    cluster_start_late(&all, servers + 2, 0.2);
    cluster_start_late(&all, servers, 0.2);
    cluster_join(&all);
    check_ended(&all, total, NULL);
    const struct summary *summary = &all.processes[0].result.summary;
    CHECK(summary->join_count == 2, "%s: %d have joined, expected 2", total, summary->join_count);
    CHECK(summary->updates == updates && summary->examples == updates * whole,
          "%s: %ld updates and %lld examples, expected %ld updates", total, summary->updates,
          summary->examples, updates);
    read_rows(&all, &rows);
    for (long u = 1; u <= updates; u++)
        CHECK(rows.in_update[u] == whole, "%s: update %ld has %ld examples", total, u, rows.in_update[u]);
    CHECK(rows.sizes[whole] > 0 && rows.sizes[whole / 2] > 0 && rows.sizes[whole / 3] > 0,
          "%s: %ld, %ld and %ld steps of one, two and three workers", total, rows.sizes[whole],
          rows.sizes[whole / 2], rows.sizes[whole / 3]);
    scenario.servers = -1;
    scenario.workers = 1;
    memset(scenario.own, 0, sizeof scenario.own);
    scenario.settings[1][0] = "seed", scenario.settings[1][1] = "1";
    cluster_start(&alone, &scenario);
    cluster_join(&alone);
    CHECK(alone.processes[0].error.code == OK, "%s: %s", total, alone.processes[0].error.words);
    char *one, *other;
    size_t count, others;
    const float *w = weights_of(&all, &one, &count), *v = weights_of(&alone, &other, &others);
    double far = 0.0;
    CHECK(count == others && count > 100, "%s: %zu weights, and %zu", total, count, others);
    for (size_t i = 0; i < count && count == others; i++) far = fmax(far, fabs((double)w[i] - (double)v[i]));
    CHECK(far < 1e-4, "%s: the weights are %g from those of one worker", total, far);
    memory_free(one);
    memory_free(other);
    cluster_close(&alone);
    cluster_close(&all);
}

/* --- every strategy: who leaves, and who is killed --- */

static void check_sizes(const char *name, const struct rows *rows, long whole) {
    long others = rows->count;
    for (long workers = 1; workers <= WORKERS; workers++) {
        others -= rows->sizes[whole / workers];
        if (whole % workers != 0) others -= rows->sizes[whole / workers + 1];
        CHECK(rows->sizes[whole / workers] > 0, "%s: no batch of %ld workers", name, workers);
    }
    CHECK(others == 0, "%s: %ld batches have another size", name, others);
}

/* Worker 2 begins, the others come; one goes, by request or by force, and comes again. */
static void play_departure(struct simulated_cluster *all, struct scenario *scenario, bool killed,
                           const char *name, struct rows *rows) {
    const int servers = scenario->servers;
    struct process *const goes = &all->processes[servers + 1];
    scenario->own[servers].absent = scenario->own[servers + 1].absent = true;
    cluster_start(all, scenario);
    cluster_await_training(all);
    cluster_start_late(all, servers + 1, 0.1);
    cluster_start_late(all, servers, 0.1);
    world_sleep(all->world, 0.2 + 1e-3 * (double)(rng_mix(scenario->seed, 5) % 32));
    if (killed)
        simulated_kill(goes->world);
    else
        world_dismiss(goes->world);
    world_sleep(all->world, 0.1);
    come_again(all, 1);
    cluster_join(all);
    check_ended(all, name, killed ? goes : NULL);
    const struct summary *summary = &all->processes[0].result.summary;
    read_rows(all, rows);
    CHECK(summary->join_count == 3 && summary->lost_workers == (killed ? 1 : 0), "%s: %d joined, %d lost",
          name, summary->join_count, summary->lost_workers);
    CHECK(rows->examples == summary->examples && rows->count == summary->steps,
          "%s: %ld examples in %ld rows, %lld in %ld steps", name, rows->examples, rows->count,
          summary->examples, summary->steps);
}

static void check_departures(const char *strategy, const struct traits *traits, int servers,
                             const char *total, bool killed, uint64_t seed, const char *compress) {
    static struct simulated_cluster all;
    static struct rows rows;
    struct scenario scenario = scenario_of(strategy, servers, total);
    const long whole = strtol(total, NULL, 10);
    char name[200];
    snprintf(name, sizeof name, "%s, %d ps, %s, %s, seed %d", strategy, servers, total,
             killed ? "killed" : "left", (int)seed);
    scenario.seed = seed;
    if (compress) scenario.settings[4][0] = "compress", scenario.settings[4][1] = compress;
    play_departure(&all, &scenario, killed, name, &rows);
    const struct summary *summary = &all.processes[0].result.summary;
    CHECK(killed ? summary->lost_batches <= 1 : summary->lost_batches == 0, "%s: %ld batches were lost", name,
          summary->lost_batches);
    const long missing = EPOCHS * EXAMPLES - rows.examples, lost = killed ? whole : 0;
    CHECK(missing <= lost && missing > -2 * whole, "%s: %ld examples are missing", name, missing);
    check_sizes(name, &rows, whole);
    if (traits->rounds && traits->merged && !traits->drops && !traits->own_weights) {
        long smaller = 0;
        for (long u = 1; u <= summary->updates; u++) {
            CHECK(rows.in_update[u] > 0 && rows.in_update[u] <= whole, "%s: update %ld has %ld examples",
                  name, u, rows.in_update[u]);
            smaller += rows.in_update[u] < whole;
        }
        CHECK(smaller <= 4, "%s: %ld updates of %ld have fewer examples", name, smaller, summary->updates);
    }
    cluster_close(&all);
}

/* Where nobody can join, the others keep their parts, 4 + 3 + 3, and compute what is left of who has gone. */
static void check_fixed(const char *strategy, int servers, uint64_t seed) {
    static struct simulated_cluster all;
    static struct rows rows;
    struct scenario scenario = scenario_of(strategy, servers, "10");
    char name[200];
    snprintf(name, sizeof name, "%s, %d ps, seed %d", strategy, servers, (int)seed);
    scenario.seed = seed;
    scenario.settings[0][1] = "12";
    scenario.settings[1][0] = "on-loss", scenario.settings[1][1] = "stop";
    cluster_start(&all, &scenario);
    world_sleep(all.world, 0.05 + 1e-3 * (double)(rng_mix(seed, 5) % 64));
    world_dismiss(all.processes[servers + (int)(seed % WORKERS)].world);
    cluster_join(&all);
    check_ended(&all, name, NULL);
    const struct summary *summary = &all.processes[0].result.summary;
    read_rows(&all, &rows);
    CHECK(all.processes[servers + (int)(seed % WORKERS)].finish.left, "%s: nobody has left", name);
    CHECK(summary->lost_batches == 0 && rows.examples == summary->examples &&
              rows.examples >= 12 * EXAMPLES && rows.examples < 12 * EXAMPLES + 10,
          "%s: %ld examples in the rows of %lld, %ld batches lost", name, rows.examples, summary->examples,
          summary->lost_batches);
    CHECK(rows.sizes[3] + rows.sizes[4] == rows.count, "%s: batches of other sizes", name);
    cluster_close(&all);
}

/* --- parts by weights --- */

enum { PART = 12 };

/* What the weights 1, 2 and 3 come to, of all, of two and of one. */
static bool is_part(int examples, int together) {
    static const int parts[][3] = {{6, 12, 18}, {8, 16, 0}, {6, 18, 0}, {10, 14, 0}, {12, 0, 0}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const int *p = parts[i];
        if (p[0] + p[1] + p[2] == together && (examples == p[0] || examples == p[1] || examples == p[2]))
            return true;
    }
    return false;
}

static void check_weights(const char *strategy, int servers, bool killed, uint64_t seed) {
    static struct simulated_cluster all;
    static struct rows rows;
    struct scenario scenario = scenario_of(strategy, servers, "0");
    char name[200];
    snprintf(name, sizeof name, "--share=1,2,3, %s, %d ps, %s, seed %d", strategy, servers,
             killed ? "killed" : "left", (int)seed);
    scenario.seed = seed;
    scenario.settings[2][0] = "share", scenario.settings[2][1] = "1,2,3";
    scenario.settings[4][0] = "batch", scenario.settings[4][1] = "12";
    play_departure(&all, &scenario, killed, name, &rows);
    const long missing = EPOCHS * EXAMPLES - rows.examples;
    CHECK(missing <= (killed ? 18 : 0) && missing > -2 * WORKERS * PART, "%s: %ld examples are missing", name,
          missing);
    CHECK(rows.sizes[12] > 0 && rows.sizes[6] > 0 && rows.sizes[18] > 0,
          "%s: steps of 12, 6 and 18: %ld %ld %ld", name, rows.sizes[12], rows.sizes[6], rows.sizes[18]);
    long others = 0; /* what is left of who has gone */
    for (long r = 0; r < rows.count; r++)
        others += !is_part(rows.row[r].examples, (int)rows.in_update[rows.row[r].update]);
    const bool drops = strcmp(strategy, "sync") != 0; /* then an update has less than a round */
    CHECK(drops || others <= 6, "%s: %ld batches of %ld are of another size", name, others, rows.count);
    cluster_close(&all);
}

static void every_strategy(void) {
    for (int s = 0; strategies[s]; s++) {
        struct choice choice = {0};
        struct error error = {0};
        const char *name = strategies[s]->plugin.name;
        CHECK(plugin_choose(&choice, &strategy_kind, name, &error) == OK, "%s", error.words);
        const struct traits *traits = strategy_traits(strategy_of(&choice), choice.settings);
        const bool plain = !traits->weighs && (traits->merged || traits->own_moments || traits->joint);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            if (!is_chosen(seed + (uint64_t)s)) continue;
            const int servers = most_servers(traits) > 1 ? (int)seed : 1;
            check_departures(name, traits, servers, "12", false, seed, NULL);
            check_departures(name, traits, servers, "12", true, seed, NULL);
            if (!plain) check_departures(name, traits, servers, "10", seed % 2 == 0, seed, NULL);
            if (strcmp(name, "sync") == 0 || strcmp(name, "async-locked") == 0)
                check_departures(name, traits, servers, "10", seed % 2 == 1, seed, "top-k:share=0.1");
        }
    }
}

int main(void) {
    check_joins("12", 1);
    check_joins("10", 2);
    check_joins("36", 3);
    every_strategy();
    for (uint64_t seed = 1; seed <= 4; seed++)
        if (is_chosen(seed))
            check_weights(seed == 4 ? "backup:backups=1" : "sync", 1 + (int)(seed % 2), seed % 3 == 1, seed);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        if (!is_chosen(seed)) continue;
        check_fixed("sync", 1 + (int)(seed % 2), seed);
        check_fixed("async-lockfree", 1 + (int)(seed % 2), seed);
    }
    return check_end();
}
