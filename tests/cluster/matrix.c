/* Every strategy over every kind of link, with one parameter server, with three, and mirrored: all end well,
 * every batch is counted, and what is repeatable leaves the bits of one process. The links: TCP in clear,
 * TLS, shared memory, UCX; and those of the simulated network, in clear and under TLS.
 *
 * MATRIX=1: with more numbers of workers, each with settings of its own, instead of what fits into the tests
 * of every change. */
#include "../simulated_cluster.h"

#include "../../src/store/strategy.h"
#include "../../src/world/endpoint_parts.h"
#include "../../src/world/ucx.h"

enum { EXAMPLES = 120, EPOCHS = 2, BATCH = 10 };

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};

struct way {
    const char *words;
    const struct link_kind *link;
    bool real;
};

static const struct way ways[] = {
#if TRAINER_UCX
    {"ucx", &link_ucx, true},
#endif
#if TRAINER_TLS
    {"tls", &link_tls, true}, {"tls, simulated", &link_tls, false},
#endif
    {"tcp", &link_tcp, true}, {"tcp, simulated", &link_tcp, false}, {"shared memory", &link_shm, true},
};

/* What a run is to be, beside how its bytes move. */
struct variant {
    const char *strategy;
    const struct traits *traits;
    int workers;
    const char *setting, *value; /* NULL: none */
};

static bool is_ucx(const struct way *way) {
    return strcmp(way->words, "ucx") == 0;
}

/* Its library may be missing where its headers are not. */
static bool ucx_is_here(void) {
    struct error error = {0};
    struct world *world = NULL;
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    const bool here = ucx_use(world, true, &error) == OK;
    world_close(world);
    return here;
}

static struct scenario scenario_of(const struct variant *variant, int servers) {
    return (struct scenario){
        .strategy = variant->strategy,
        .servers = servers,
        .workers = variant->workers,
        .seed = 1 + (uint64_t)servers,
        .network = network,
        .settings = {{"dataset", "iris"}, {"model", "mlp:hidden=8"}, {variant->setting, variant->value}}};
}

static uint64_t run_alone(const struct variant *variant) {
    static struct simulated_cluster all;
    const struct scenario scenario = scenario_of(variant, -1);
    cluster_start(&all, &scenario);
    cluster_join(&all);
    CHECK(all.processes[0].error.code == OK, "%s", all.processes[0].error.words);
    const uint64_t hash = cluster_hash_weights(&all);
    cluster_close(&all);
    return hash;
}

/* Workers that came over shared memory. One that looks for it a moment before it is there comes over TCP. */
static int shared;
static bool with_ucx;

/* What the leader speaks over, as its peers are named; and whether all have a key. The world that mirrored
 * processes meet in has gone with them. */
static void check_link(const char *words, const struct way *way, const struct simulated_cluster *all) {
    const struct run_result *result = &all->processes[0].result;
    if (all->scenario.servers == 0) return;
    for (int i = 0; i < all->count; i++)
        CHECK((endpoint_tls(all->processes[i].world) != NULL) == way->link->encrypts, "%s: %s", words,
              all->processes[i].name);
    for (int w = 0; w < result->summary.workers; w++) {
        const bool shares = strstr(result->workers[w].name, "(process ") != NULL;
        CHECK(!shares || way->link == &link_shm, "%s: %s is not of this link", words,
              result->workers[w].name);
        shared += shares;
    }
}

static void check_counts(const char *words, const struct traits *traits, const struct process *leader) {
    const struct summary *summary = &leader->result.summary;
    const struct finish *finish = &leader->finish;
    const bool serves = leader->cluster.role == CLUSTER_PS;
    const long long examples = serves ? summary->examples : finish->examples;
    const long steps = serves ? summary->steps : finish->steps;
    const long updates = serves ? summary->updates : finish->version;
    CHECK(examples == EXAMPLES * EPOCHS, "%s: %lld examples, expected %d", words, examples,
          EXAMPLES * EPOCHS);
    CHECK(steps == EXAMPLES * EPOCHS / BATCH, "%s: %ld steps", words, steps);
    CHECK(traits->rounds || traits->drops || updates == steps, "%s: %ld updates of %ld steps", words, updates,
          steps);
}

static void run_over(const struct way *way, const struct variant *variant, int servers, uint64_t expected) {
    static struct simulated_cluster all;
    struct scenario scenario = scenario_of(variant, servers);
    char words[160];
    scenario.real = way->real;
    scenario.encrypted = way->link->encrypts;
    scenario.tcp_alone = way->link != &link_shm && !is_ucx(way);
    scenario.ucx = is_ucx(way);
    snprintf(words, sizeof words, "%s over %s, %d ps, %d workers%s%s", variant->strategy, way->words, servers,
             variant->workers, variant->value ? ", " : "", variant->value ? variant->value : "");
    if (getenv("TELL")) fprintf(stderr, "%s\n", words);
    cluster_start(&all, &scenario);
    cluster_join(&all);
    for (int i = 0; i < all.count; i++)
        CHECK(all.processes[i].ended && all.processes[i].error.code == OK, "%s: %s: %d %s", words,
              all.processes[i].name, all.processes[i].error.code, all.processes[i].error.words);
    if (all.processes[0].error.code == OK) {
        check_link(words, way, &all);
        check_counts(words, variant->traits, &all.processes[0]);
        CHECK(!variant->traits->repeatable || cluster_hash_weights(&all) == expected,
              "%s: not the bits of one process", words);
    }
    cluster_close(&all);
}

/* Where so many weights move that they do while workers compute, memory that is shared has no part in it; of
 * the others one of each world says it, unless all are asked for. */
static bool is_left_out(const struct way *way, const struct variant *variant, int servers) {
    const bool large = variant->setting && strcmp(variant->setting, "model") == 0;
    return large && !getenv("MATRIX") && (way->link != &link_tcp || servers == 0);
}

/* Which gradients make an update is decided in one place, and which one is late: there is one parameter
 * server. */
static void run_variant(const struct variant *variant) {
    static const int servers[] = {1, 3, 0};
    const uint64_t expected = variant->traits->repeatable ? run_alone(variant) : 0;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t s = 0; s < sizeof servers / sizeof *servers; s++)
            if ((with_ucx || !is_ucx(&ways[w])) && !is_left_out(&ways[w], variant, servers[s]) &&
                (servers[s] == 1 || (!variant->traits->drops && !variant->traits->joint)))
                run_over(&ways[w], variant, servers[s], expected);
}

int main(void) {
    static const char *const more[][2] = {{NULL, NULL},
                                          {"shards", "3"},
                                          {"optimizer", "adam:rate=0.01"},
                                          {"data-sharding", "split"},
                                          {"average", "0.9"}};
    with_ucx = ucx_is_here();
    const bool whole = getenv("MATRIX") != NULL;
    for (int s = 0; strategies[s]; s++) {
        struct choice choice;
        struct error error = {0};
        struct variant variant = {.strategy = strategies[s]->plugin.name, .workers = 2};
        CHECK(plugin_choose(&choice, &strategy_kind, variant.strategy, &error) == OK, "%s", error.words);
        variant.traits = strategy_traits(strategies[s], choice.settings);
        run_variant(&variant);
        for (variant.workers = 1; whole && variant.workers <= 4; variant.workers++)
            for (size_t m = 0; m < sizeof more / sizeof *more; m++) {
                variant.setting = more[m][0];
                variant.value = more[m][1];
                run_variant(&variant);
            }
        /* So many weights that they move while workers compute. */
        variant.workers = 2;
        variant.setting = "model";
        variant.value = "mlp:hidden=1500-180";
        if (whole || strcmp(variant.strategy, "sync") == 0) run_variant(&variant);
    }
    CHECK(shared > 0, "nobody shares memory");
    return check_end();
}
