/* A schedule of faults: which cluster of simulated_cluster.h, which strategy, who comes when, what goes wrong
 * when. Drawn from a seed; written as text to the last bit, and read again. tests/cluster/faults.c plays it.
 */
#ifndef TRAINER_TESTS_FAULT_PLAN_H
#define TRAINER_TESTS_FAULT_PLAN_H

#include "../src/base/rng.h"
#include "../src/base/text.h"
#include "../src/store/strategy.h"
#include "simulated_cluster.h"

enum { SERVERS_MOST = 3, WORKERS_MOST = 8, FAULTS_MOST = 3 };
enum { LARGE = 67 /* of so many seeds, one */ };
enum { BATCH = 10, BATCHES = 12 /* of an epoch */, EPOCHS = 2, EPOCHS_JOINED = 16 };

#define TIMEOUT_S 20.0
#define START_S 60.0
/* When faults happen: from before the first hello to after most of the training. */
#define LATEST_S 0.15
/* Likewise where workers join, whose runs are longer. */
#define LATEST_JOINED_S 0.8

/* A process that stands still looks from elsewhere as one that is cut off: here they are the same. */
enum what { KILL, RETURN, CUT_ONE, CUT_OFF, SLOW, LOSSY, DAMAGE, DISK, STOP, PARTITION, LEAVE, WHATS };
static const char *const what_words[WHATS] = {"kill",   "return", "cut",  "cut-off",   "slow", "lossy",
                                              "damage", "disk",   "stop", "partition", "leave"};

struct misfortune {
    enum what what;
    int process, other;
    double at_s, for_s; /* INFINITY: for good */
};

struct plan {
    struct scenario scenario;
    struct misfortune list[FAULTS_MOST];
    int count;
    int least; /* workers that begin, and others join them; 0: nobody does */
    double late_s[WORKERS_MOST];
    char range[24];
    bool shares; /* parts of different sizes */
    char share[24];
    bool large; /* the network: its weights and gradients move while workers compute */
    bool without_disk;
    bool leaves;   /* a worker is told to go */
    bool harmless; /* nothing that lasts longer than is waited for */
};

static inline int pick(struct rng *rng, int count) {
    return (int)rng_below(rng, (uint32_t)count);
}

static inline double between(struct rng *rng, double least, double most) {
    return least + (most - least) * (double)rng_uniform(rng);
}

/* Those whose bits are known more often: they show more. */
static const char *pick_strategy(struct rng *rng, int parts) {
    int count = 0;
    const int known = pick(rng, 6);
    if (known < 3) return known == 0 ? "local-sgd" : "sync";
    while (strategies[count]) count++;
    while (true) {
        const struct strategy *strategy = strategies[pick(rng, count)];
        struct choice choice;
        struct error error = {0};
        if (plugin_choose(&choice, &strategy_kind, strategy->plugin.name, &error) != OK) continue;
        const struct traits *traits = strategy_traits(strategy, choice.settings);
        if (parts < 2 || (!traits->drops && !traits->joint)) return strategy->plugin.name;
    }
}

/* What may come of it. */
static inline void judge(struct plan *plan) {
    plan->harmless = true;
    for (int i = 0; i < plan->count; i++) {
        const struct misfortune *one = &plan->list[i];
        const bool cuts =
            one->what == CUT_ONE || one->what == CUT_OFF || one->what == STOP || one->what == PARTITION;
        if (one->what == DISK) { /* a pause for a checkpoint is a round of local-sgd */
            plan->without_disk = true;
            plan->scenario.settings[1][0] = "checkpoint-every";
            plan->scenario.settings[1][1] = "0.02";
        }
        plan->leaves = plan->leaves || one->what == LEAVE;
        if (one->what == KILL || one->what == RETURN || one->what == DAMAGE || one->what == LEAVE ||
            one->what == DISK || (cuts && isinf(one->for_s)))
            plan->harmless = false;
    }
}

/* Of clusters that workers join: 0 servers are mirrored ones. */
struct joined_by {
    int servers_least, servers_most;
};
static const struct joined_by all_joined = {0, SERVERS_MOST};

/* Who comes late, and who comes again soon. Drawn apart: all else is as it would be without. */
static inline void draw_joins(struct plan *plan, uint64_t seed, const struct joined_by *joined) {
    struct rng rng;
    const int servers = plan->scenario.servers;
    rng_start(&rng, seed, 78);
    if (servers < joined->servers_least || servers > joined->servers_most || pick(&rng, 5) == 0) return;
    plan->least = 1 + pick(&rng, plan->scenario.workers);
    for (int w = 0; w < plan->scenario.workers; w++)
        plan->late_s[w] = pick(&rng, 2) ? between(&rng, 0.0, LATEST_JOINED_S) : 0.0;
    for (int i = 0; i < plan->count; i++) {
        struct misfortune *one = &plan->list[i];
        one->at_s *= LATEST_JOINED_S / LATEST_S;
        if (one->what == KILL && one->process > 0 && pick(&rng, 2)) one->what = RETURN;
        if (one->what == RETURN) one->for_s = between(&rng, 0.0, LATEST_JOINED_S / 2.0);
    }
}

static inline struct plan plan_of(uint64_t seed, const struct joined_by *joined) {
    struct plan plan = {0};
    struct rng rng;
    rng_start(&rng, seed, 77);
    const int servers = pick(&rng, SERVERS_MOST + 1), workers = 1 + pick(&rng, WORKERS_MOST);
    const int processes = servers + workers;
    plan.scenario =
        (struct scenario){.strategy = pick_strategy(&rng, servers > 0 ? servers : workers),
                          .servers = servers,
                          .workers = workers,
                          .seed = seed,
                          .encrypted = TRAINER_TLS && seed % 4 == 3,
                          .network = {.latency_s = between(&rng, 0.0, 2e-3),
                                      .jitter_s = between(&rng, 0.0, 2e-3),
                                      .bytes_per_s = pick(&rng, 2) ? between(&rng, 1e6, 1e9) : 0.0},
                          .settings = {{"on-loss", pick(&rng, 2) ? "continue" : "stop"}}};
    plan.count = pick(&rng, FAULTS_MOST + 1);
    for (int i = 0; i < plan.count; i++) {
        struct misfortune *one = &plan.list[i];
        one->what = (enum what)pick(&rng, STOP);
        one->process = pick(&rng, processes);
        one->other = pick(&rng, processes);
        one->at_s = between(&rng, 0.0, LATEST_S);
        one->for_s = pick(&rng, 3) ? between(&rng, 0.0, 0.5 * TIMEOUT_S / FAULTS_MOST) : INFINITY;
        if (one->what == RETURN && isinf(one->for_s)) one->for_s = 1.0;
        if (one->what == RETURN && one->process == 0) one->what = KILL; /* its folder is there already */
        if (one->what == CUT_OFF && seed % 2 == 1) one->what = STOP;
        if (one->what == CUT_OFF && (seed % 12 == 6 || seed % 12 == 8)) one->what = PARTITION;
        if (one->what == DAMAGE) one->at_s *= 0.3; /* some of it is to come while they train */
    }
    draw_joins(&plan, seed, joined);
    for (int i = 0; i < plan.count; i++) /* who holds weights is not told to go */
        if (plan.list[i].what == KILL && servers > 0 && plan.list[i].process >= servers && seed % 3 == 1)
            plan.list[i].what = LEAVE;
    plan.large = seed % LARGE == 0;
    plan.shares = seed % 2 == 0 && plan.least > 0 && strcmp(plan.scenario.strategy, "sync") == 0;
    if (plan.large && plan.scenario.network.bytes_per_s > 0.0) plan.scenario.network.bytes_per_s += 1e8;
    judge(&plan);
    return plan;
}

/* --- as text --- */

/* Its numbers to the last bit, and each process by its name. */
static inline void name_process(const struct scenario *scenario, int index, char name[NAME]) {
    const bool serves = index < scenario->servers;
    snprintf(name, NAME, "%s-%d", serves ? "ps" : "worker", serves ? index : index - scenario->servers);
}

static inline void put_plan(FILE *file, const struct plan *plan) {
    const struct scenario *scenario = &plan->scenario;
    const struct simulated_network *network = &scenario->network;
    fprintf(file, "seed %llu\nstrategy %s\nservers %d\nworkers %d\non-loss %s\nencrypted %d\n",
            (unsigned long long)scenario->seed, scenario->strategy, scenario->servers, scenario->workers,
            scenario->settings[0][1], scenario->encrypted);
    fprintf(file, "latency %.17g\njitter %.17g\nbytes-per-second %.17g\n", network->latency_s,
            network->jitter_s, network->bytes_per_s);
    if (plan->large) fprintf(file, "large 1\n");
    if (plan->shares) fprintf(file, "shares 1\n");
    if (plan->least > 0) fprintf(file, "least %d\n", plan->least);
    for (int w = 0; w < scenario->workers && plan->least > 0; w++)
        if (plan->late_s[w] > 0.0) fprintf(file, "late worker-%d at %.17g\n", w, plan->late_s[w]);
    for (int i = 0; i < plan->count; i++) {
        const struct misfortune *one = &plan->list[i];
        char name[NAME], other[NAME];
        name_process(scenario, one->process, name);
        name_process(scenario, one->other, other);
        fprintf(file, "fault %s %s %s at %.17g for %.17g\n", what_words[one->what], name, other, one->at_s,
                one->for_s);
    }
}

static inline int find_process(const struct scenario *scenario, const char *name) {
    char known[NAME];
    for (int i = 0; i < scenario->servers + scenario->workers; i++) {
        name_process(scenario, i, known);
        if (strcmp(name, known) == 0) return i;
    }
    return -1;
}

static inline bool get_fault(struct plan *plan, const char *line) {
    struct misfortune *one = &plan->list[plan->count];
    char what[NAME], name[NAME], other[NAME];
    if (plan->count == FAULTS_MOST ||
        sscanf(line, "%31s %31s %31s at %lf for %lf", what, name, other, &one->at_s, &one->for_s) != 5)
        return false;
    one->what = KILL;
    while (one->what < WHATS && strcmp(what_words[one->what], what) != 0) one->what++;
    one->process = find_process(&plan->scenario, name);
    one->other = find_process(&plan->scenario, other);
    plan->count++;
    return one->what < WHATS && one->process >= 0 && one->other >= 0;
}

static inline bool get_late(struct plan *plan, const char *line) {
    int worker;
    double at_s;
    const bool good =
        sscanf(line, "worker-%d at %lf", &worker, &at_s) == 2 && worker >= 0 && worker < WORKERS_MOST;
    if (good) plan->late_s[worker] = at_s;
    return good;
}

static inline bool get_line(struct plan *plan, const char *key, const char *rest) {
    struct scenario *scenario = &plan->scenario;
    if (strcmp(key, "late") == 0) return get_late(plan, rest);
    if (strcmp(key, "least") == 0) plan->least = atoi(rest);
    if (strcmp(key, "large") == 0) plan->large = atoi(rest) != 0;
    if (strcmp(key, "shares") == 0) plan->shares = atoi(rest) != 0;
    if (strcmp(key, "fault") == 0) return get_fault(plan, rest);
    if (strcmp(key, "seed") == 0) scenario->seed = strtoull(rest, NULL, 10);
    if (strcmp(key, "servers") == 0) scenario->servers = atoi(rest);
    if (strcmp(key, "workers") == 0) scenario->workers = atoi(rest);
    if (strcmp(key, "encrypted") == 0) scenario->encrypted = atoi(rest) != 0;
    if (strcmp(key, "latency") == 0) scenario->network.latency_s = strtod(rest, NULL);
    if (strcmp(key, "jitter") == 0) scenario->network.jitter_s = strtod(rest, NULL);
    if (strcmp(key, "bytes-per-second") == 0) scenario->network.bytes_per_s = strtod(rest, NULL);
    if (strcmp(key, "on-loss") == 0) {
        scenario->settings[0][0] = "on-loss";
        scenario->settings[0][1] = strcmp(rest, "stop") == 0 ? "stop" : "continue";
    }
    for (int s = 0; strcmp(key, "strategy") == 0 && strategies[s]; s++)
        if (strcmp(strategies[s]->plugin.name, rest) == 0) scenario->strategy = strategies[s]->plugin.name;
    return true;
}

static inline struct plan get_plan(FILE *file) {
    struct plan plan = {0};
    char line[256], key[NAME];
    int used = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || sscanf(line, "%31s %n", key, &used) != 1) continue;
        CHECK(get_line(&plan, key, line + used), "\"%s\", expected a line of a schedule", line);
    }
    CHECK(plan.scenario.strategy && plan.scenario.workers > 0 && plan.scenario.settings[0][1] &&
              plan.scenario.servers + plan.scenario.workers <= PROCESSES - FAULTS_MOST,
          "a schedule that says too little, or of too many processes");
    if (check_failures > 0) exit(check_end());
    judge(&plan);
    return plan;
}

/* What the text says is all there is. */
static inline struct plan through_text(const struct plan *plan) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    put_plan(file, plan);
    fclose(file);
    file = fmemopen(text, bytes, "r");
    const struct plan again = get_plan(file);
    fclose(file);
    free(text);
    return again;
}

static inline void type(struct scenario *scenario, const char *name, const char *value) {
    int free = 0;
    while (scenario->settings[free][0]) free++;
    scenario->settings[free][0] = name;
    scenario->settings[free][1] = value;
}

static const char large_model[] = "mlp:hidden=1500-180"; /* 1.1 MB */

/* What the plan's cluster is told of its network, and of who begins it; points into the plan. */
static inline void type_plan(struct plan *plan) {
    _Static_assert(EPOCHS_JOINED == 16, "as it is typed");
    if (plan->large) type(&plan->scenario, "model", large_model);
    if (plan->least == 0) return;
    snprintf(plan->range, sizeof plan->range, "%d..%d", plan->least, plan->scenario.workers);
    type(&plan->scenario, "workers", plan->range);
    type(&plan->scenario, "epochs", "16");
    struct text share = text_into(plan->share, sizeof plan->share);
    for (int w = 0; w < plan->scenario.workers; w++) text_item(&share, ",", "%d", 1 + w % 3);
    if (plan->shares) type(&plan->scenario, "share", plan->share);
    for (int w = 0; w < plan->scenario.workers; w++)
        plan->scenario.own[plan->scenario.servers + w].begins_s = plan->late_s[w];
}

#endif
