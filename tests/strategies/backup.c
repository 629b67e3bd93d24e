/* backup: what its promises do not say: without backups it goes through the rounds of sync, and two shards at
 * which other gradients were late do not lock two workers out. */
#include "../harness.h"

static struct rig_settings usual(bool simulated, int workers, int shards, const char *strategy) {
    return (struct rig_settings){.strategy = strategy,
                                 .optimizer = "sgd:rate=1",
                                 .workers = workers,
                                 .shards = shards,
                                 .block = 61,
                                 .simulated = simulated,
                                 .seed = (uint64_t)(workers * 100 + shards),
                                 .together = true,
                                 .formula = formula_blocks};
}

/* --- backup that goes on without nobody is sync: nothing is late, and all wait for all, also after a pause
 * --- */

static void check_no_backups(void) {
    enum { ROUNDS = 40 };
    static const int worker_counts[] = {1, 2, 3, 5, 8};
    for (int simulated = 0; simulated < 2; simulated++)
        for (size_t w = 0; w < sizeof worker_counts / sizeof *worker_counts; w++)
            for (int pauses = 0; pauses < 2; pauses++) {
                static struct rig rig;
                struct rig_settings settings = usual(simulated, worker_counts[w], 3, "backup:backups=0");
                settings.batches = ROUNDS * settings.workers;
                CHECK(rig_run(&rig, &settings, pauses) == OK, "%d workers: %s", settings.workers,
                      rig.error.words);
                /* A worker is assigned its next batch before the round in hand is over, so where steps are
                 * not equally long, and at a stop, one may have had a batch more than another at the end. */
                const int more = !simulated + 2 * pauses;
                for (int s = 0; s < settings.shards; s++) {
                    const long version = atomic_load(&rig.store.shards[s].version);
                    CHECK(version >= ROUNDS && version <= ROUNDS + more,
                          "%s world, %d workers: shard %d went through %ld rounds, expected %d",
                          simulated ? "simulated" : "real", settings.workers, s, version, ROUNDS);
                }
                CHECK(store_dropped(&rig.store) == 0, "%d workers: %ld gradients were dropped",
                      settings.workers, store_dropped(&rig.store));
                rig_close(&rig);
            }
}

/* --- worker 2 rests; worker 0's gradient is late at shard 0, worker 1's at shard 1: each waits for the other
 * --- */

enum { ROUND = 5 };

struct visitor {
    struct rig *rig;
    int worker;
    float *values; /* [layout floats] */
    int code;
    struct error error;
};

static struct worker_side *side_of(const struct visitor *visitor) {
    return &visitor->rig->training.workers[visitor->worker].side;
}

/* Sends a gradient that was computed on the round's weights of one shard and on older ones of the other. */
static void send_half_late(struct visitor *visitor) {
    struct rig *rig = visitor->rig;
    struct worker_side *side = side_of(visitor);
    struct gradient *gradient = store_gradient(&rig->store, visitor->worker, 0);
    gradient->values = visitor->values;
    gradient->examples = 4;
    for (int s = 0; s < 2; s++)
        gradient->version[s] = side->version[s] = s == visitor->worker ? ROUND - 1 : ROUND;
    visitor->code = strategy_send_all(side, gradient, &visitor->error);
    store_release(&rig->store, gradient);
}

static void take_and_rest(void *argument) {
    struct visitor *visitor = argument;
    visitor->code = strategy_take_all(side_of(visitor), &visitor->error);
    if (visitor->code == OK) visitor->code = strategy_rest_all(side_of(visitor), &visitor->error);
}

static void check_two_shards(uint64_t seed) {
    static struct rig rig;
    static float values[2][4096];
    struct rig_settings settings = usual(true, 3, 2, "backup:backups=1");
    struct visitor visitors[2], resting = {.rig = &rig, .worker = 2};
    struct world_thread *threads[2];
    settings.seed = seed;
    settings.batches = 12;
    CHECK(rig_open(&rig, &settings) == OK, "%s", rig.error.words);
    store_set_version(&rig.store, ROUND);
    CHECK(strategy_rest_all(side_of(&resting), &resting.error) == OK, "%s", resting.error.words);
    for (int w = 0; w < 2; w++) {
        visitors[w] = (struct visitor){.rig = &rig, .worker = w, .values = values[w]};
        send_half_late(&visitors[w]);
        CHECK(visitors[w].code == OK, "%s", visitors[w].error.words);
    }
    CHECK(rig.store.shards[0].tallies[0].dropped == 1 && rig.store.shards[1].tallies[1].dropped == 1 &&
              store_dropped(&rig.store) == 2,
          "%ld gradients were late", store_dropped(&rig.store));
    for (int w = 0; w < 2; w++)
        CHECK(world_spawn(rig.world, "visitor", NULL, take_and_rest, &visitors[w], &threads[w], &rig.error) ==
                  OK,
              "%s", rig.error.words);
    for (int w = 0; w < 2; w++) {
        world_join(threads[w]);
        CHECK(visitors[w].code == OK, "seed %d: %s", (int)seed, visitors[w].error.words);
    }
    CHECK(world_now(rig.world) < 1.0, "it took %g s", world_now(rig.world));
    for (int s = 0; s < 2; s++)
        CHECK(atomic_load(&rig.store.shards[s].version) == ROUND + 1, "shard %d is at version %ld", s,
              atomic_load(&rig.store.shards[s].version));
    CHECK(training_end(&rig.training, &rig.error) == OK, "%s", rig.error.words);
    rig_close(&rig);
}

int main(void) {
    check_no_backups();
    for (uint64_t seed = 1; seed <= 20; seed++) check_two_shards(seed);
    return check_end();
}
