/* Several strategies in one run, one after the other: every pair of the registered ones, in the simulated
 * world. A change is what resuming under the other strategy would be, with everything still open: so, where
 * neither depends on who is faster, it leaves the same bits; nowhere is a batch lost or computed twice; the
 * schedule goes on where it was; whoever is lost stays lost; and processes of a cluster change together. */
#include <math.h>

#include "../../src/store/phases.h"
#include "../harness.h"
#include "../simulated_cluster.h"

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};

enum { TEXT = 400, ROWS = 4096 };

/* What a run leaves. */
struct left {
    char *model, *steps;
    size_t model_bytes, steps_bytes;
    struct summary summary; /* its texts and lists are gone */
};

/* Into one that stays open, so that another can go on in its folder. */
static void run_open_scenario(struct simulated_cluster *all, const struct scenario *scenario,
                              struct left *left) {
    *left = (struct left){0};
    cluster_start(all, scenario);
    cluster_join(all);
    for (int i = 0; i < all->count; i++)
        CHECK(all->processes[i].error.code == OK, "%s, %d ps, %d workers: %s: %s", scenario->strategy,
              scenario->servers, scenario->workers, all->processes[i].name, all->processes[i].error.words);
    left->summary = all->processes[0].result.summary;
    cluster_file(all, "model.safetensors", &left->model, &left->model_bytes);
    cluster_file(all, "steps.csv", &left->steps, &left->steps_bytes);
}

static struct left run_scenario(const struct scenario *scenario) {
    static struct simulated_cluster all;
    struct left left;
    run_open_scenario(&all, scenario, &left);
    cluster_close(&all);
    return left;
}

static void free_left(struct left *left) {
    memory_free(left->model);
    memory_free(left->steps);
}

/* The weights are behind the header, which has the settings and the day. */
static bool same_weights(const struct left *a, const struct left *b) {
    uint64_t headers[2];
    if (a->model_bytes < 8 || b->model_bytes < 8) return false;
    memcpy(&headers[0], a->model, 8);
    memcpy(&headers[1], b->model, 8);
    const size_t bytes = a->model_bytes - 8 - headers[0];
    return bytes > 0 && bytes == b->model_bytes - 8 - headers[1] &&
           memcmp(a->model + 8 + headers[0], b->model + 8 + headers[1], bytes) == 0;
}

/* --- steps.csv --- */

struct row {
    double time_s, rate;
    int worker, epoch;
    long step, update;
};

static struct row rows[ROWS];

static int column_of(const char *header, const char *name) {
    int column = 0;
    const size_t length = strlen(name);
    for (const char *at = header; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL, column++)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\n')) return column;
    CHECK(false, "steps.csv has no column %s", name);
    return 0;
}

static double field(const char *line, int column) {
    for (; column > 0; column--) line = strchr(line, ',') + 1;
    return strtod(line, NULL);
}

/* Into rows[]; returns how many. */
static int read_rows(const struct left *left) {
    const int time = column_of(left->steps, "time_s"), rate = column_of(left->steps, "learning_rate"),
              worker = column_of(left->steps, "worker"), epoch = column_of(left->steps, "epoch"),
              step = column_of(left->steps, "step"), update = column_of(left->steps, "update");
    int count = 0;
    for (const char *line = strchr(left->steps, '\n') + 1; *line && count < ROWS;
         line = strchr(line, '\n') + 1)
        rows[count++] = (struct row){.time_s = field(line, time),
                                     .rate = field(line, rate),
                                     .worker = (int)field(line, worker),
                                     .epoch = (int)field(line, epoch),
                                     .step = (long)field(line, step),
                                     .update = (long)field(line, update)};
    return count;
}

/* --- all pairs --- */

struct named {
    char text[128];
    const struct traits *traits;
};

static struct named all_of[64];
static int all_count;

static void note(const char *text, const struct strategy *strategy, void *argument) {
    struct choice choice;
    struct error error = {0};
    (void)argument;
    CHECK(plugin_choose(&choice, &strategy_kind, text, &error) == OK, "%s", error.words);
    snprintf(all_of[all_count].text, sizeof all_of->text, "%s", text);
    all_of[all_count++].traits = strategy_traits(strategy, choice.settings);
}

/* Its bits do not depend on who was faster. */
static bool is_exact(const struct traits *traits, int workers) {
    return traits->repeatable || (workers == 1 && traits->own_update_in_reply);
}

typedef void pair_check(const struct named *a, const struct named *b, int number);

static void each_pair(pair_check *check) {
    for (int a = 0; a < all_count; a++)
        for (int b = 0; b < all_count; b++) check(&all_of[a], &all_of[b], a * all_count + b);
}

/* Half of the pairs, in which each strategy is first, and second, with half of the others. */
static bool is_even(const struct named *a, const struct named *b) {
    return ((a - all_of) + (b - all_of)) % 2 == 0;
}

static const char *pair_text(const struct named *a, const char *until, const struct named *b) {
    static char text[TEXT];
    snprintf(text, sizeof text, "%s until %s; %s", a->text, until, b->text);
    return text;
}

/* The pair in one run, and as two, of which the second is resumed under the other strategy. */
static void check_like_resuming(const struct named *a, const struct named *b, int workers,
                                const char *sharding) {
    static struct simulated_cluster first, second;
    struct scenario scenario = {.strategy = pair_text(a, "epoch 1", b), .servers = -1, .workers = workers};
    char folder[128];
    struct left whole, part, rest;
    scenario.settings[0][0] = "schedule";
    scenario.settings[0][1] = "cosine";
    scenario.settings[1][0] = "optimizer";
    scenario.settings[1][1] = "adam:rate=0.01";
    scenario.settings[2][0] = "average";
    scenario.settings[2][1] = "0.9";
    scenario.settings[4][0] = "data-sharding";
    scenario.settings[4][1] = sharding;
    scenario.settings[3][0] = "stop-after";
    scenario.settings[3][1] = "0";
    whole = run_scenario(&scenario);
    scenario.strategy = a->text;
    scenario.settings[3][1] = "1";
    run_open_scenario(&first, &scenario, &part);
    snprintf(folder, sizeof folder, "%s/%s", first.folder, first.processes[0].name);
    scenario.strategy = b->text;
    scenario.settings[3][0] = "resume";
    scenario.settings[3][1] = folder;
    run_open_scenario(&second, &scenario, &rest);
    CHECK(same_weights(&whole, &rest), "%s until epoch 1; %s, %d workers: not the bits of two runs", a->text,
          b->text, workers);
    CHECK(!same_weights(&whole, &part), "%s: the second epoch changed nothing", a->text);
    CHECK(whole.summary.updates == rest.summary.updates && whole.summary.steps == rest.summary.steps,
          "%s until epoch 1; %s: %ld updates in %ld steps, as two runs %ld in %ld", a->text, b->text,
          whole.summary.updates, whole.summary.steps, rest.summary.updates, rest.summary.steps);
    cluster_close(&second);
    cluster_close(&first);
    free_left(&whole);
    free_left(&part);
    free_left(&rest);
}

static void check_bits(const struct named *a, const struct named *b, int number) {
    static const char *const shardings[] = {"shared", "split", "all"};
    for (int workers = 1; workers <= 3; workers += 2)
        if (is_exact(a->traits, workers) && is_exact(b->traits, workers))
            check_like_resuming(a, b, workers, shardings[number % 3]);
}

/* Of iris: examples to train on, in batches of 10. */
enum { BATCH = 10 };

/* Updates that so many batches make. */
static long updates_of(const struct traits *traits, long batches, int workers) {
    return traits->merged ? (batches + workers - 1) / workers : batches;
}

/* Halfway through the run: how far the rate had come down before, and where it went on from. */
struct halfway {
    double before, after, last;
};

static struct halfway look_at_rates(int count) {
    struct halfway rates = {.before = 1.0, .last = 1.0};
    for (int i = 0; i < count; i++) {
        const double rate = rows[i].rate;
        if (rows[i].epoch <= 2) rates.before = fmin(rates.before, rate);
        if (rows[i].epoch > 2) rates.after = fmax(rates.after, rate);
        rates.last = fmin(rates.last, rate);
    }
    return rates;
}

/* An update is of one gradient, or of one of each worker. */
static bool counts_all(const struct named *of) {
    return !of->traits->drops && strncmp(of->text, "adasync", 7) != 0;
}

/* Nothing is lost, each worker's steps are counted on, and a cosine is halfway down halfway through, whatever
 * makes an update. */
static void check_whole(const struct named *a, const struct named *b, int number) {
    enum { WORKERS = 2 };
    struct scenario scenario = {.strategy = pair_text(a, "epoch 2", b),
                                .servers = -1,
                                .workers = WORKERS,
                                .seed = (uint64_t)number,
                                .settings = {{"epochs", "4"}, {"schedule", "cosine"}}};
    char text[TEXT];
    snprintf(text, sizeof text, "%s", scenario.strategy);
    struct left left = run_scenario(&scenario);
    const long batches = (long)(left.summary.examples / BATCH);
    const int count = read_rows(&left);
    long steps[WORKERS] = {0};
    CHECK(batches > 40 && count == batches && left.summary.steps == batches,
          "%s: %d rows of %ld steps in %ld batches", text, count, left.summary.steps, batches);
    for (int i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        CHECK(row->step == ++steps[row->worker], "%s: row %d of worker %d is its step %ld, expected %ld",
              text, i, row->worker, row->step, steps[row->worker]);
    }
    const struct halfway rates = look_at_rates(count);
    CHECK((a == b && a->traits->drops) || fabs(rates.after - 0.05) < 0.02,
          "%s: the rate goes on at %g halfway", text, rates.after);
    CHECK(a->traits->drops || fabs(rates.before - 0.05) < 0.03, "%s: the rate has come down to %g halfway",
          text, rates.before);
    CHECK(b->traits->drops || rates.last < 0.005, "%s: the rate ends at %g", text, rates.last);
    if (counts_all(a) && counts_all(b)) {
        const long first = updates_of(a->traits, batches / 2, WORKERS),
                   expected = first + updates_of(b->traits, batches - batches / 2, WORKERS);
        CHECK(labs(left.summary.updates - expected) <= 1, "%s: %ld updates, expected %ld", text,
              left.summary.updates, expected);
    }
    free_left(&left);
}

/* --- over the bridge --- */

static int two_epochs; /* batches */

static void count_batches(void) {
    const struct scenario scenario = {.strategy = "sync", .servers = -1, .workers = 1};
    struct left left = run_scenario(&scenario);
    two_epochs = read_rows(&left);
    CHECK(two_epochs > 20, "%d batches", two_epochs);
    free_left(&left);
}

/* Processes change together, and where nothing depends on who is faster, to the bits of one process. */
static void check_cluster(const struct named *a, const struct named *b, int number) {
    struct scenario scenario = {.strategy = pair_text(a, "epoch 1", b),
                                .servers = number % 3,
                                .workers = 2,
                                .seed = (uint64_t)number,
                                .network = network};
    const bool drops = a->traits->drops || b->traits->drops || a->traits->joint || b->traits->joint,
               exact = is_exact(a->traits, 2) && is_exact(b->traits, 2);
    if (!exact && !is_even(a, b)) return;
    if (drops) scenario.servers = 1;
    if (exact) scenario.servers = 0;
    for (; scenario.servers <= (exact ? 2 : number % 3); scenario.servers++) {
        struct left left = run_scenario(&scenario);
        const int count = read_rows(&left);
        CHECK(count == two_epochs, "%s, %d ps: %d steps, expected %d", scenario.strategy, scenario.servers,
              count, two_epochs);
        if (exact) {
            struct scenario alone = scenario;
            alone.servers = -1;
            struct left expected = run_scenario(&alone);
            CHECK(same_weights(&left, &expected), "%s, %d ps: not the bits of one process", scenario.strategy,
                  scenario.servers);
            free_left(&expected);
        }
        free_left(&left);
        if (drops) return;
    }
}

/* A cluster that is resumed behind the change, whose followers begin there, too. */
static void check_resumed_cluster(void) {
    static struct simulated_cluster first, second;
    for (int servers = 0; servers <= 2; servers++) {
        struct scenario scenario = {.strategy = "local-sgd until epoch 1; sync",
                                    .servers = servers,
                                    .workers = 2,
                                    .network = network,
                                    .settings = {{"epochs", "3"}, {"schedule", "cosine"}}};
        char folder[128];
        struct left whole = run_scenario(&scenario), part, rest;
        scenario.settings[2][0] = "stop-after";
        scenario.settings[2][1] = "2";
        run_open_scenario(&first, &scenario, &part);
        snprintf(folder, sizeof folder, "%s/%s", first.folder, first.processes[0].name);
        scenario.settings[2][0] = NULL;
        scenario.own[0].name = "resume";
        scenario.own[0].value = folder;
        run_open_scenario(&second, &scenario, &rest);
        CHECK(same_weights(&whole, &rest), "%d ps: resumed behind the change, not the same bits", servers);
        cluster_close(&second);
        cluster_close(&first);
        free_left(&whole);
        free_left(&part);
        free_left(&rest);
    }
}

/* The same seed, the same run, though every step depends on who was faster. */
static void check_seeds(void) {
    struct scenario scenario = {.strategy = "async-lockfree until epoch 1; ssp:bound=0",
                                .servers = 1,
                                .workers = 3,
                                .seed = 5,
                                .network = network};
    struct left first = run_scenario(&scenario), second = run_scenario(&scenario);
    CHECK(same_weights(&first, &second) && first.steps_bytes == second.steps_bytes &&
              memcmp(first.steps, second.steps, first.steps_bytes) == 0,
          "the same seed, another run");
    free_left(&first);
    free_left(&second);
}

/* --- losses --- */

static int lost_somebody;

/* Worker 1 of three is lost under the first strategy, at its step 3 of the run, or under the second, at step
 * 12; the others see all other batches, and it has no part in what comes. */
static void check_losses(const struct named *a, const struct named *b, int number) {
    const bool late = number % 2;
    if (is_even(a, b)) return;
    struct scenario scenario = {.strategy = pair_text(a, "epoch 2", b),
                                .servers = -1,
                                .workers = 3,
                                .seed = (uint64_t)number,
                                .settings = {{"epochs", "6"},
                                             {"on-loss", "continue"},
                                             {"fail", late ? "worker:1@step:12" : "worker:1@step:3"}}};
    char text[TEXT];
    snprintf(text, sizeof text, "%s", scenario.strategy);
    struct left left = run_scenario(&scenario);
    const int count = read_rows(&left);
    long last = 0, steps = 0;
    for (int i = 0; i < count; i++)
        if (rows[i].worker == 1) last = rows[i].step, steps++;
    const long batches = (long)(left.summary.examples / BATCH);
    if (left.summary.lost_workers == 0) { /* it never got that far */
        free_left(&left);
        return;
    }
    lost_somebody++;
    CHECK(last == (late ? 11 : 2) && steps == last, "%s: the lost worker took %ld steps, up to %ld", text,
          steps, last);
    CHECK(left.summary.lost_workers == 1 && left.summary.lost_batches <= 2 && count == batches,
          "%s: %d lost, %ld batches with them; %d rows of %ld batches", text, left.summary.lost_workers,
          left.summary.lost_batches, count, batches);
    free_left(&left);
}

int main(void) {
    each_strategy(note, NULL);
    count_batches();
    each_pair(check_bits);
    each_pair(check_whole);
    each_pair(check_cluster);
    each_pair(check_losses);
    CHECK(4 * lost_somebody > all_count * all_count, "a worker was lost in %d of %d runs", lost_somebody,
          all_count * all_count / 2);
    check_resumed_cluster();
    check_seeds();
    return check_end();
}
