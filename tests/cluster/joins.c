/* Workers that come late and workers that come again, in whole simulated clusters, of one parameter server,
 * of several, and mirrored: under every strategy, in clear and compressed, one or two workers begin, others
 * come while they train, one is killed, and another process takes its place. All batches are there once,
 * every worker's steps without a gap, and who joins goes on from the weights of the moment. And who is not
 * let in: for a place that is held, with several devices, into a cluster that nobody can join. */
#include "../joined.h"

enum { WORKERS = 3, EPOCHS = 40, BATCHES = 12 /* of an epoch of iris */ };

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};

static struct scenario scenario_of(const char *strategy, int servers, const char *range) {
    return (struct scenario){.strategy = strategy,
                             .servers = servers,
                             .workers = WORKERS,
                             .seed = 7,
                             .network = network,
                             .settings = {{"epochs", "40"}, {"workers", range}}};
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

/* Who is there from the start, who comes late, in this order, and who is killed and comes again. */
struct course {
    const char *range;
    int servers; /* 0: mirrored */
    int first, lates, late[2], killed;
    double pause_s; /* before each of these */
};

static void check_joins(const struct simulated_cluster *all, const struct course *course, const char *name) {
    const struct summary *summary = &all->processes[0].result.summary;
    const double first = loss_at(all, course->first, 1);
    const int expected = course->lates + 1;
    CHECK(summary->join_count == expected, "%s: %d have joined, expected %d", name, summary->join_count,
          expected);
    CHECK(summary->lost_workers == 1 && summary->lost_batches <= 2, "%s: %d lost, with %ld batches", name,
          summary->lost_workers, summary->lost_batches);
    for (int j = 0; j < summary->join_count && j < expected; j++) {
        const struct summary_join *join = &summary->joins[j];
        const double loss = loss_at(all, join->worker, join->step);
        CHECK(join->worker == (j < course->lates ? course->late[j] : course->killed),
              "%s: worker %d joins as number %d", name, join->worker, j);
        CHECK((join->step > 1) == (j == course->lates), "%s: worker %d joins with its step %ld", name,
              join->worker, join->step);
        CHECK(loss < 0.8 * first, "%s: worker %d joins with a loss of %g, the first was %g", name,
              join->worker, loss, first);
    }
}

static void run_one(const char *text, const struct traits *traits, const struct course *course,
                    const char *compress) {
    static struct simulated_cluster all;
    struct scenario scenario = scenario_of(text, course->servers, course->range);
    char name[200];
    snprintf(name, sizeof name, "%s, %d servers, %s%s", text, course->servers, course->range,
             compress ? ", compressed" : "");
    if (compress) scenario.settings[2][0] = "compress", scenario.settings[2][1] = compress;
    for (int l = 0; l < course->lates; l++) scenario.own[course->servers + course->late[l]].absent = true;
    const int failures = check_failures;
    cluster_start(&all, &scenario);
    cluster_await_training(&all);
    for (int l = 0; l < course->lates; l++)
        cluster_start_late(&all, course->servers + course->late[l], course->pause_s);
    world_sleep(all.world, course->pause_s);
    const int killed = course->servers + course->killed;
    simulated_kill(all.processes[killed].world);
    struct process *again = come_again(&all, course->killed);
    cluster_join(&all);
    for (int i = 0; i < all.count; i++)
        CHECK(i == killed || all.processes[i].error.code == OK, "%s: %s: %s", name, all.processes[i].name,
              all.processes[i].error.words);
    CHECK(again->finish.epochs > EPOCHS - 1, "%s: %g epochs", name, again->finish.epochs);
    if (check_failures == failures) joined_check(&all, traits, EPOCHS, BATCHES);
    if (check_failures == failures) check_joins(&all, course, name);
    cluster_close(&all);
}

static void every_strategy(void) {
    static const struct course courses[] = {
        {.range = "1..3", .servers = 1, .first = 1, .lates = 2, .late = {2, 0}, .killed = 1, .pause_s = 0.2},
        {.range = "1..3", .servers = 2, .first = 1, .lates = 2, .late = {2, 0}, .killed = 1, .pause_s = 0.2},
        {.range = "1..3", .servers = 3, .first = 1, .lates = 2, .late = {2, 0}, .killed = 1, .pause_s = 0.2},
        {.range = "2..3", .servers = 0, .first = 0, .lates = 1, .late = {2}, .killed = 2, .pause_s = 0.3}};
    for (int s = 0; strategies[s]; s++) {
        struct choice choice = {0};
        struct error error = {0};
        const char *name = strategies[s]->plugin.name;
        CHECK(plugin_choose(&choice, &strategy_kind, name, &error) == OK, "%s", error.words);
        const struct traits *traits = strategy_traits(strategy_of(&choice), choice.settings);
        for (size_t c = 0; c < sizeof courses / sizeof *courses; c++) {
            const int parts = courses[c].servers > 0 ? courses[c].servers : atoi(courses[c].range);
            if (parts > most_servers(traits) || !is_chosen(c + (size_t)s)) continue;
            run_one(name, traits, &courses[c], NULL);
            if (strcmp(name, "sync") == 0 || strcmp(name, "async-locked") == 0)
                run_one(name, traits, &courses[c], "top-k:share=0.1");
        }
    }
}

static void check_all_ended(const struct simulated_cluster *all, const struct process *killed,
                            const char *when) {
    for (int i = 0; i < all->count; i++)
        CHECK(&all->processes[i] == killed || all->processes[i].error.code == OK, "%s: %s: %s", when,
              all->processes[i].name, all->processes[i].error.words);
}

/* Mirrored, those who hold the weights begin, though another one is ready before them. */
static void mirrored_begin_together(void) {
    static struct simulated_cluster all;
    struct scenario scenario = scenario_of("sync", 0, "2..3");
    scenario.own[1].begins_s = 0.5;
    cluster_start(&all, &scenario);
    cluster_join(&all);
    check_all_ended(&all, NULL, "one late");
    CHECK(all.processes[0].result.summary.join_count == 0, "%d have joined, expected none",
          all.processes[0].result.summary.join_count);
    CHECK(all.processes[0].result.summary.workers == WORKERS, "%d workers",
          all.processes[0].result.summary.workers);
    cluster_close(&all);
}

/* One that holds weights goes on with them when its device is lost, and ends as the run does. */
static void weights_without_their_device(void) {
    for (int worker = 0; worker < 2; worker++) {
        static struct simulated_cluster all;
        struct scenario scenario = scenario_of("async-apply", 0, "2..3");
        char fail[32];
        snprintf(fail, sizeof fail, "worker:%d@step:20", worker);
        scenario.own[0].name = "fail", scenario.own[0].value = fail;
        cluster_start(&all, &scenario);
        cluster_join(&all);
        check_all_ended(&all, NULL, fail);
        const struct summary *summary = &all.processes[0].result.summary;
        CHECK(summary->lost_workers == 1, "%s: %d lost", fail, summary->lost_workers);
        for (int i = 0; i < all.count; i++)
            CHECK(all.processes[i].finish.test_score == summary->test_score, "%s: %s has a score of %g", fail,
                  all.processes[i].name, all.processes[i].finish.test_score);
        cluster_close(&all);
    }
}

/* Long after a process has lost its device another one is killed: that is what it ends by. */
static void killed_long_after_a_device(void) {
    static struct simulated_cluster all;
    struct scenario scenario = scenario_of("async-apply", 0, "2..3");
    scenario.settings[0][1] = "4000";
    scenario.settings[2][0] = "timeout", scenario.settings[2][1] = "1";
    scenario.own[0].name = "fail", scenario.own[0].value = "worker:1@step:20";
    cluster_start(&all, &scenario);
    cluster_await_training(&all);
    world_sleep(all.world, 5.0);
    simulated_kill(all.processes[0].world);
    cluster_join(&all);
    const struct error *error = &all.processes[1].error;
    CHECK(error->code == ERROR_PEER && strstr(error->words, "process 0 (") != NULL,
          "the process without a device: %s", error->words);
    cluster_close(&all);
}

/* One that holds weights is killed while another process waits to join: that one waits for the next session,
 * as all do. */
static void killed_while_one_waits(void) {
    for (int ms = 0; ms < 20; ms++) {
        static struct simulated_cluster all;
        char when[32];
        struct scenario scenario = scenario_of("sync", 0, "2..3");
        scenario.settings[2][0] = "restart-wait", scenario.settings[2][1] = "30";
        scenario.settings[3][0] = "checkpoint-every", scenario.settings[3][1] = "0.05";
        scenario.own[2].absent = true;
        snprintf(when, sizeof when, "killed after %d ms", ms);
        cluster_start(&all, &scenario);
        cluster_await_training(&all);
        cluster_start_late(&all, 2, 0.2);
        world_sleep(all.world, 1e-3 * ms);
        simulated_kill(all.processes[1].world);
        world_sleep(all.world, 2.0);
        come_again(&all, 1);
        cluster_join(&all);
        check_all_ended(&all, &all.processes[1], when);
        cluster_close(&all);
    }
}

static const char come_again_words[] = "is not there at every parameter server: it is to come again";

/* A newcomer that is cut from one of three parameter servers, so long after it has come. Who is told to come
 * again does. *error: how the newcomer ended; the others go on meanwhile. */
static void run_cut(double after_s, struct error *error) {
    static struct simulated_cluster all;
    struct scenario scenario = scenario_of("sync", 3, "2..3");
    scenario.network.latency_s = 20e-3; /* so that a few steps take seconds */
    scenario.own[5].absent = true;
    cluster_start(&all, &scenario);
    cluster_await_training(&all);
    struct process *const newcomer = &all.processes[5];
    struct world *const server = all.processes[1].world;
    if (after_s == 0.0) simulated_cut(newcomer->world, server, true);
    cluster_start_late(&all, 5, 0.0);
    world_sleep(all.world, after_s);
    if (after_s > 0.0) simulated_cut(newcomer->world, server, true);
    world_sleep(all.world, 6.0);
    simulated_cut(newcomer->world, server, false);
    for (int tries = 0; tries < 60 && !newcomer->ended; tries++) world_sleep(all.world, 0.1);
    if (newcomer->ended && strstr(newcomer->error.words, come_again_words)) come_again(&all, 2);
    cluster_join(&all);
    const int joined = all.processes[0].result.summary.join_count;
    for (int i = 0; i < all.count; i++)
        CHECK(i == 5 || all.processes[i].error.code == OK, "cut after %g s: %s: %s", after_s,
              all.processes[i].name, all.processes[i].error.words);
    *error = newcomer->error;
    CHECK(joined == (error->code == OK || all.count > 6), "cut after %g s: %d joined: %s", after_s, joined,
          error->words);
    cluster_close(&all);
}

/* It takes part once all servers have met it. Where one has lost it meanwhile, it is told to come again. */
static void cut_from_a_server(void) {
    struct error error;
    int refused = 0;
    run_cut(0.0, &error);
    CHECK(error.code == OK, "cut at first: %s", error.words);
    for (int ms = 10; ms <= 500 && refused == 0; ms += 10) {
        run_cut(1e-3 * ms, &error);
        refused += strstr(error.words, come_again_words) != NULL;
    }
    CHECK(refused > 0, "nobody was told to come again");
}

/* A newcomer that one server cannot hear any more, so long after it has come: that server tells the leader,
 * which, where this is before the next pause, had told it last that the place is empty. */
static void lost_to_a_server(double after_s) {
    static struct simulated_cluster all;
    struct scenario scenario = scenario_of("async-apply", 3, "2..3");
    scenario.network.latency_s = 20e-3;
    scenario.settings[0][1] = "4";
    scenario.settings[2][0] = "batch", scenario.settings[2][1] = "2"; /* an epoch takes more than a second */
    scenario.own[5].absent = true;
    cluster_start(&all, &scenario);
    cluster_await_training(&all);
    cluster_start_late(&all, 5, 0.0);
    world_sleep(all.world, after_s);
    simulated_cut(all.processes[5].world, all.processes[1].world, true);
    const double until = world_now(all.world) + 1.5 * 20.0; /* --timeout */
    cluster_join(&all);
    const struct summary *summary = &all.processes[0].result.summary;
    for (int i = 0; i < 5; i++)
        CHECK(all.processes[i].error.code == OK, "%s: %s", all.processes[i].name,
              all.processes[i].error.words);
    CHECK(summary->join_count == 1 && summary->lost_workers == 1, "%d joined, %d lost", summary->join_count,
          summary->lost_workers);
    CHECK(all.processes[0].ended_s < until, "cut after %g s: the leader ended at %g s, expected before %g s",
          after_s, all.processes[0].ended_s, until);
    cluster_close(&all);
}

int main(void) {
    every_strategy();
    mirrored_begin_together();
    weights_without_their_device();
    killed_long_after_a_device();
    killed_while_one_waits();
    cut_from_a_server();
    for (int tenths = 5; tenths <= 14; tenths += 3) lost_to_a_server(tenths / 10.0);
    return check_end();
}
