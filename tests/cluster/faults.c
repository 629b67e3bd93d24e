/* Clusters in the simulated world while things go wrong, by seed: which cluster, which strategy, what happens
 * when. Machines are killed, some come again, workers are told to go; some are cut off and slowed down;
 * pieces get lost, or arrive damaged; a disk takes nothing any more. Whatever happens,
 *
 *   every process ends, none of them later than its timeouts allow, and no thread is stuck;
 *   every end is named: a code, and one line that says what happened, and to whom; where a single thing
 *   happens, to whom it did;
 *   a run that ended well has trained on no example more than there are; and if nobody was lost, on all of
 *   them, with one update per step where each gradient is an update of its own, and under sync with the bits
 *   of one process; where nothing is worse than what the timeouts allow, all end well, and nobody is lost.
 *
 * Most clusters are begun by some of their workers; others come while it runs, and who was killed comes
 * again: there every batch is in one row of steps.csv, each worker's steps have no gap, and a round of sync
 * has the gradients of all that were there. With --share in some of those of sync every example is in a row.
 *
 * SEEDS=N: so many instead of what fits into the tests of every change; FIRST=N: from that one; TELL=1: all
 * are printed. `make faults SEEDS=N` is the long form. What a seed draws is a schedule, as text, which a seed
 * that fails prints and TELL=FILE writes of the last one; FAULTS=FILE: that of a file instead of seeds.
 * tests/real_faults.py drives real processes by such a file. */
#include "../fault_plan.h"
#include "../joined.h"

enum { FEW = 200 };

/* --- what goes wrong meanwhile --- */

struct trouble {
    struct simulated_cluster *all;
    struct misfortune misfortune;
    struct world_thread *thread;
};

/* Another process with the same place, which knows nothing of the first. */
static void begin_again(struct simulated_cluster *all, int index) {
    const enum cluster_role role = all->processes[index].cluster.role;
    struct process *process = &all->processes[all->count];
    add_process(all, role, all->processes[index].cluster.task);
    process->begins_s = world_now(all->world);
    snprintf(process->name + strlen(process->name), sizeof process->name - strlen(process->name), " again");
    start_process(process);
}

/* What is written there from now on is an error. */
static void take_disk(const struct simulated_cluster *all) {
    char from[128], to[128];
    if (all->processes[0].ended) return;
    snprintf(from, sizeof from, "%s/%s", all->folder, all->processes[0].name);
    snprintf(to, sizeof to, "%s/away", all->folder);
    rename(from, to);
}

static void set_trouble(const struct trouble *trouble, bool on) {
    struct simulated_cluster *all = trouble->all;
    const struct misfortune *one = &trouble->misfortune;
    struct world *machine = all->processes[one->process].world;
    struct simulated_network network = all->scenario.network;
    network.loss = on && one->what == LOSSY ? 0.3 : 0.0;
    network.damage = on && one->what == DAMAGE ? 0.005 : 0.0;
    switch (one->what) {
    case KILL:
        if (on) simulated_kill(machine);
        break;
    case RETURN:
        if (on)
            simulated_kill(machine);
        else
            begin_again(all, one->process);
        break;
    case CUT_ONE:
        simulated_cut(machine, all->processes[one->other].world, on);
        break;
    case CUT_OFF:
    case STOP:
        for (int i = 0; i < all->count; i++) simulated_cut(machine, all->processes[i].world, on);
        break;
    case LEAVE:
        if (on) world_dismiss(machine);
        break;
    case PARTITION: /* those before it, and it with those behind */
        for (int a = 0; a < one->process; a++)
            for (int b = one->process; b < all->count; b++)
                simulated_cut(all->processes[a].world, all->processes[b].world, on);
        break;
    case SLOW:
        simulated_slow(machine, on ? 50.0 : 1.0);
        break;
    case DISK:
        if (on) take_disk(all);
        break;
    case LOSSY:
    case DAMAGE:
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
/* Somebody, or a file. */
static bool is_named(const char *words) {
    return strstr(words, "127.0.0.1:") || strstr(words, "worker ") || strstr(words, "parameter server") ||
           strstr(words, "process ") || strstr(words, "simulated-") || strstr(words, "port ");
}

/* A worker that comes late may find that all is done, also while it is cut off, when nobody can tell it; or
 * wait in vain for somebody who is not there any more. */
static bool came_too_late(const struct plan *plan, const struct simulated_cluster *all,
                          const struct process *process) {
    const char *words = process->error.words;
    const struct process *leader = &all->processes[0];
    const bool untold = strstr(words, "bytes of a welcome were received") && leader->error.code == OK &&
                        leader->ended_s < process->ended_s;
    return plan->least > 0 && process->cluster.role != CLUSTER_PS && process->error.code == ERROR_PEER &&
           (untold || strstr(words, "the training is over") ||
            process->ended_s >= process->begins_s + START_S - 1.0);
}

/* Whether what happens, happens to this process, or to the connection of two that it is one of. */
static bool is_struck(const struct misfortune *one, int index) {
    return one->what == LOSSY || one->what == DAMAGE || one->what == PARTITION || one->process == index ||
           (one->what == CUT_ONE && one->other == index) || (one->what == DISK && index == 0);
}

/* By its address, or by its number. */
static bool is_called(const char *words, const struct simulated_cluster *all, int index) {
    char address[NAME], name[NAME];
    const int worker = index - all->scenario.servers;
    address_of(all, index, address);
    snprintf(name, sizeof name, "worker %d ", worker);
    return strstr(words, address) || (worker >= 0 && strstr(words, name));
}

/* Where one thing happens, the others name whom it has happened to, and not whom that one has stopped. Before
 * the training begins they name who is not there, or has gone again: those may have done so for that. */
static void check_blame(const struct plan *plan, const struct simulated_cluster *all, int index) {
    const struct error *error = &all->processes[index].error;
    const int began = all->scenario.servers + all->scenario.workers; /* behind them: who came again */
    if (index >= began || plan->count != 1 || plan->least > 0 || error->code != ERROR_PEER ||
        is_struck(&plan->list[0], index))
        return;
    bool blames = strstr(error->words, "every worker was lost") || strstr(error->words, "gave up after") ||
                  strstr(error->words, "has gone before the training began");
    for (int i = 0; i < all->count; i++)
        blames = blames || (is_struck(&plan->list[0], i) && is_called(error->words, all, i));
    CHECK(blames, "%s blames nobody whom anything happened to: \"%s\"", all->processes[index].name,
          error->words);
}

static void check_end_of(const struct plan *plan, const struct process *process) {
    const struct error *error = &process->error;
    CHECK(process->ended, "%s has not ended", process->name);
    CHECK(error->code == OK || (is_named(error->words) && !strchr(error->words, '\n')), "%s: code %d, \"%s\"",
          process->name, error->code, error->words);
    CHECK(error->code == OK || error->code == ERROR_PEER || error->code == ERROR_DEVICE ||
              (error->code == ERROR_FILE && plan->without_disk),
          "%s: code %d, \"%s\"", process->name, error->code, error->words);
    CHECK(!strstr(error->words, " cpu:0): 127.0.0.1:"), "%s: an address twice, \"%s\"", process->name,
          error->words);
    /* All come; one waits in vain, three times its timeout where it waits for who waits itself; a last word.
     */
    const double latest = process->begins_s + START_S + TIMEOUT_S + 2.0 * 3.0 * 4.0 / 3.0 * TIMEOUT_S;
    CHECK(process->ended_s < latest, "%s ended after %g s, \"%s\"", process->name, process->ended_s,
          error->words);
}

static uint64_t weights_of_one_process(const char *strategy, int workers, bool large) {
    static struct simulated_cluster all;
    static uint64_t known[2][2][WORKERS_MOST + 1];
    uint64_t *hash = &known[strcmp(strategy, "sync") == 0][large][workers];
    if (*hash) return *hash;
    const struct scenario alone = {.strategy = strategy,
                                   .servers = -1,
                                   .workers = workers,
                                   .settings = {{large ? "model" : NULL, large_model}}};
    cluster_start(&all, &alone);
    cluster_join(&all);
    CHECK(all.processes[0].error.code == OK, "%s", all.processes[0].error.words);
    *hash = cluster_hash_weights(&all);
    cluster_close(&all);
    return *hash;
}

/* What a run that ended well has done. */
struct done {
    long updates, steps;
    long long examples;
    int lost;
};

static struct done done_by(const struct simulated_cluster *all) {
    const struct summary *summary = &all->processes[0].result.summary;
    return (struct done){summary->updates, summary->steps, summary->examples, summary->lost_workers};
}

static int epochs_of(const struct plan *plan) {
    return plan->least > 0 ? EPOCHS_JOINED : EPOCHS;
}

static void check_done(const struct plan *plan, const struct simulated_cluster *all,
                       const struct done *done) {
    struct choice choice;
    struct error error = {0};
    if (plugin_choose(&choice, &strategy_kind, plan->scenario.strategy, &error) != OK) return;
    const struct traits *traits = strategy_traits(strategy_of(&choice), choice.settings);
    const int expected = BATCH * BATCHES * epochs_of(plan);
    /* A part that begins before the end goes over it. */
    const int most = expected + (plan->shares ? BATCH * plan->scenario.workers : 0);
    CHECK(done->examples <= most, "%lld examples of %d", done->examples, expected);
    CHECK(!plan->harmless || done->lost == 0, "%d lost", done->lost);
    if (plan->shares && !plan->without_disk)
        joined_check_parts(all, traits);
    else if (plan->least > 0 && !plan->without_disk)
        joined_check(all, traits, EPOCHS_JOINED, BATCHES);
    CHECK(traits->rounds || traits->drops || traits->joint || done->updates == done->steps,
          "%ld updates of %ld steps", done->updates, done->steps);
    CHECK(done->updates <= done->steps, "%ld updates of %ld steps", done->updates, done->steps);
    if (done->lost > 0) return;
    CHECK(done->examples >= expected && (plan->shares || done->examples == expected),
          "%lld examples, expected %d", done->examples, expected);
    const char *strategy = plan->scenario.strategy;
    /* Where the weights were; with whom they were made. */
    if (plan->without_disk || plan->least > 0 || plan->leaves) return;
    if (strcmp(strategy, "sync") == 0 || strcmp(strategy, "local-sgd") == 0)
        CHECK(cluster_hash_weights(all) ==
                  weights_of_one_process(strategy, plan->scenario.workers, plan->large),
              "not the bits of one process");
}

static void check_ends(const struct plan *plan, const struct simulated_cluster *all) {
    const struct process *first = &all->processes[0];
    CHECK(!world_stopped(all->world), "threads were stuck");
    for (int i = 0; i < all->count; i++) {
        check_end_of(plan, &all->processes[i]);
        check_blame(plan, all, i);
        CHECK(!plan->harmless || all->processes[i].error.code == OK ||
                  came_too_late(plan, all, &all->processes[i]),
              "%s: \"%s\"", all->processes[i].name, all->processes[i].error.words);
    }
    if (first->error.code != OK) return;
    const struct done done = done_by(all);
    check_done(plan, all, &done);
}

/* TELL: 1, or a file. */
static void tell(const struct simulated_cluster *all, const struct plan *plan, bool failed) {
    const char *where = getenv("TELL");
    FILE *file = where && strcmp(where, "1") != 0 ? fopen(where, "w") : NULL;
    if (file) put_plan(file, plan);
    if (file) fclose(file);
    if (!failed && (!where || file)) return;
    fprintf(stderr, "# FIRST=%llu SEEDS=1 make faults\n", (unsigned long long)plan->scenario.seed);
    put_plan(stderr, plan);
    for (int i = 0; i < all->count; i++)
        fprintf(stderr, "# %s ended at %.3f s: %d %s\n", all->processes[i].name, all->processes[i].ended_s,
                all->processes[i].error.code, all->processes[i].error.words);
}

/* How the leader, or the chief, has ended, and when. */
struct end {
    struct error error;
    double at_s;
};

static struct end run_plan(const struct plan *drawn) {
    static struct simulated_cluster all;
    struct plan plan = through_text(drawn);
    struct trouble troubles[FAULTS_MOST];
    struct error error = {0};
    const int failures = check_failures;
    type_plan(&plan);
    cluster_start(&all, &plan.scenario);
    for (int i = 0; i < plan.count; i++) {
        troubles[i] = (struct trouble){.all = &all, .misfortune = plan.list[i]};
        CHECK(world_spawn(all.world, "trouble", NULL, trouble_body, &troubles[i], &troubles[i].thread,
                          &error) == OK,
              "%s", error.words);
    }
    for (int i = 0; i < plan.count; i++) world_join(troubles[i].thread); /* some have come again then */
    cluster_join(&all);
    check_ends(&plan, &all);
    tell(&all, &plan, check_failures != failures);
    const struct end end = {all.processes[0].error, all.processes[0].ended_s};
    cluster_close(&all);
    return end;
}

static void test_seed(uint64_t seed, const struct joined_by *joined) {
    const struct plan plan = plan_of(seed, joined);
    run_plan(&plan);
}

static void test_file(const char *path) {
    FILE *file = fopen(path, "r");
    CHECK(file, "%s cannot be read", path);
    if (!file) return;
    const struct plan plan = get_plan(file);
    fclose(file);
    run_plan(&plan);
}

/* Those which have failed once, as none of the first do; as they were drawn then. */
static const struct {
    uint64_t seed;
    struct joined_by joined;
} found[] = {{386, {1, 1}},
             {523, {1, 1}},
             {1068, {1, 1}},
             {1102, {1, 1}},
             {1624, {1, 1}},
             {1775, {1, 1}},
             {2544, {1, 1}},
             {3263, {1, 1}},
             {5092, {1, 1}},
             {1440, {1, SERVERS_MOST}},
             {1504, {0, SERVERS_MOST}}};

/* A worker cannot be heard by one of three servers any more; others wait to join, so all pause. What that
 * server says of it lets the others go on, before the worker's own wait is over, or theirs for the leader;
 * with some seeds the third server has it still when they do. */
static void lose_at_one(unsigned seed) {
    char text[1000];
    snprintf(text, sizeof text,
             "seed %u\nstrategy async-apply\nservers 3\nworkers 8\non-loss continue\nencrypted 0\n"
             "latency 0.00071400308609008791\njitter 0.001899944305419922\nbytes-per-second 0\nleast 6\n"
             "late worker-0 at 0.068234348297119149\nlate worker-1 at 0.36659674644470219\n"
             "late worker-2 at 0.26030521392822265\nlate worker-3 at 0.069114923477172852\n"
             "late worker-5 at 0.076166963577270513\n"
             "fault cut ps-1 worker-3 at 0.2634459972381592 for inf\n"
             "fault cut worker-5 worker-1 at 0.57716050148010256 for 2.7780016263326011\n",
             seed);
    FILE *file = fmemopen(text, strlen(text), "r");
    const struct plan plan = get_plan(file);
    fclose(file);
    const struct end end = run_plan(&plan);
    CHECK(end.error.code == OK && end.at_s < 1.5 * TIMEOUT_S, "seed %u: after %g s: %s", seed, end.at_s,
          end.error.words);
}

int main(void) {
    if (getenv("FAULTS")) test_file(getenv("FAULTS"));
    if (getenv("FAULTS")) return check_end();
    const uint64_t first = number_of("FIRST", 1), seeds = number_of("SEEDS", FEW);
    for (uint64_t seed = first; seed < first + seeds; seed++)
        if (is_chosen(seed)) test_seed(seed, &all_joined);
    for (size_t s = 0; !getenv("SEEDS") && s < sizeof found / sizeof *found; s++)
        test_seed(found[s].seed, &found[s].joined);
    for (unsigned seed = 1; !getenv("SEEDS") && seed <= 6; seed++) lose_at_one(seed);
    return check_end();
}
