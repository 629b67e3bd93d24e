/* Whole clusters in the simulated world: hello, handshake, heartbeats and the training, with one parameter
 * server, with several, and mirrored. All processes end well; under sync the weights have the bits of one
 * process; and the same seed gives the same run, with the times of every step. */
#include "../simulated_cluster.h"

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};

/* What a run leaves. */
struct left {
    char *model, *steps;
    size_t model_bytes, steps_bytes;
    double seconds;
    double compute_s, push_s; /* of all workers */
    long updates;
    long long received; /* by the parameter server from its workers, in bytes */
};

static struct left run_scenario(const struct scenario *scenario) {
    static struct simulated_cluster all;
    struct left left = {0};
    cluster_start(&all, scenario);
    cluster_join(&all);
    for (int i = 0; i < all.count; i++)
        CHECK(all.processes[i].error.code == OK, "%s, %d ps, %d workers, seed %d: %s: %s", scenario->strategy,
              scenario->servers, scenario->workers, (int)scenario->seed, all.processes[i].name,
              all.processes[i].error.words);
    left.seconds = world_now(all.world);
    const struct summary *summary = &all.processes[0].result.summary;
    const double all_s = summary->train_seconds * summary->workers;
    left.compute_s = summary->compute_share * all_s;
    left.push_s = summary->push_share * all_s;
    left.updates = summary->updates;
    left.received = summary->wire_received;
    cluster_file(&all, "model.safetensors", &left.model, &left.model_bytes);
    cluster_file(&all, "steps.csv", &left.steps, &left.steps_bytes);
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

static void test_bits_of_one_process(int workers) {
    const struct scenario alone = {.strategy = "sync", .servers = -1, .workers = workers, .seed = 1};
    struct left expected = run_scenario(&alone);
    for (int servers = 0; servers <= 3; servers++) {
        const struct scenario scenario = {.strategy = "sync",
                                          .servers = servers,
                                          .workers = workers,
                                          .seed = 10 + (uint64_t)servers,
                                          .network = network};
        struct left found = run_scenario(&scenario);
        CHECK(same_weights(&found, &expected), "%d ps, %d workers: not the bits of one process", servers,
              workers);
        CHECK(found.seconds > 0.01 && found.seconds < 10.0, "%d ps, %d workers: %g s", servers, workers,
              found.seconds);
        free_left(&found);
    }
    free_left(&expected);
}

/* Gradients of several batches in one step: a worker whose batch is in four parts leaves the bits of four
 * workers that step in sync, each with a part; under every strategy that is serial training where there is
 * one worker, so one after the other too. */
static void test_parts(const char *optimizer, const char *average) {
    const struct scenario apart = {.strategy = "sync",
                                   .servers = -1,
                                   .workers = 4,
                                   .seed = 2,
                                   .settings = {{"optimizer", optimizer}, {"average", average}}};
    struct left expected = run_scenario(&apart);
    for (int real = 0; real < 2; real++)
        for (int servers = -1; servers <= 1; servers++) {
            const struct scenario parts = {
                .strategy = servers == 0 ? "sync" : "sync until epoch 1; async-apply",
                .servers = servers,
                .workers = 1,
                .seed = 20 + (uint64_t)servers,
                .network = network,
                .real = real,
                .settings = {
                    {"optimizer", optimizer}, {"average", average}, {"batch", "40"}, {"microbatches", "4"}}};
            struct left found = run_scenario(&parts);
            CHECK(same_weights(&found, &expected), "%s, %s, %d ps: four parts are not as four workers",
                  optimizer, real ? "real" : "simulated", servers);
            CHECK(servers == 0 || found.updates == expected.updates, "%s, %d ps: %ld updates, expected %ld",
                  optimizer, servers, found.updates, expected.updates);
            free_left(&found);
        }
    free_left(&expected);
}

/* The parts are added up where they are computed: a gradient goes over the wire for each batch, not for each
 * part. */
static void test_bytes_of_parts(void) {
    struct scenario scenario = {.strategy = "sync",
                                .servers = 1,
                                .workers = 2,
                                .seed = 4,
                                .network = network,
                                .settings = {{"epochs", "4"}, {"batch", "5"}}};
    struct left each = run_scenario(&scenario);
    scenario.settings[1][1] = "20";
    scenario.settings[2][0] = "microbatches";
    scenario.settings[2][1] = "4";
    struct left parts = run_scenario(&scenario);
    CHECK(each.updates == 4 * parts.updates && parts.received > 0 && each.received == 4 * parts.received,
          "%ld updates with %lld bytes, in four parts %ld with %lld", each.updates, each.received,
          parts.updates, parts.received);
    free_left(&each);
    free_left(&parts);
}

/* Here computing takes no time at all: what passes is the wire's, and --slow has nothing to slow down. */
static void test_wire(int servers) {
    struct scenario scenario = {
        .strategy = "sync", .servers = servers, .workers = 2, .seed = 3, .network = {.latency_s = 1e-3}};
    struct left fast = run_scenario(&scenario);
    scenario.settings[0][0] = "slow";
    scenario.settings[0][1] = "cpu:0=8x";
    struct left slow = run_scenario(&scenario);
    CHECK(fast.compute_s < 1e-9 && fast.push_s >= 2.0 * (double)fast.updates * 1e-3,
          "%d ps, %ld updates: %g s of computing, %g of push", servers, fast.updates, fast.compute_s,
          fast.push_s);
    CHECK(slow.seconds == fast.seconds && same_weights(&slow, &fast), "%d ps: %g s, with --slow %g s",
          servers, fast.seconds, slow.seconds);
    free_left(&fast);
    free_left(&slow);
}

/* An asynchronous strategy, whose every step depends on who was faster. */
static void test_seeds(int servers) {
    struct scenario scenario = {
        .strategy = "async-apply", .servers = servers, .workers = 3, .seed = 5, .network = network};
    struct left first = run_scenario(&scenario), second = run_scenario(&scenario);
    scenario.seed = 6;
    struct left other = run_scenario(&scenario);
    CHECK(first.seconds == second.seconds && same_weights(&first, &second) &&
              first.steps_bytes == second.steps_bytes &&
              memcmp(first.steps, second.steps, first.steps_bytes) == 0,
          "%d ps: the same seed, another run: %.9f s, %.9f s", servers, first.seconds, second.seconds);
    CHECK(first.seconds != other.seconds && !same_weights(&first, &other),
          "%d ps: another seed, the same run", servers);
    free_left(&first);
    free_left(&second);
    free_left(&other);
}

int main(void) {
    test_bits_of_one_process(1);
    test_bits_of_one_process(3);
    test_parts("momentum:rate=0.1", "0");
    test_parts("muon:rate=0.02", "0.9");
    test_bytes_of_parts();
    for (int servers = 0; servers <= 2; servers++) test_wire(servers);
    test_seeds(1);
    test_seeds(2);
    test_seeds(0);
    return check_end();
}
