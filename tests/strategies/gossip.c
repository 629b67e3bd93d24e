/* gossip against its own serial form, to the bit: gradients that are applied to models which others have met
 * meanwhile, pairs that take their mean, and the mean of all at a pause; and nobody waits. */
#include "../by_hand.h"

enum { MOST = 4 };

static float models[MOST][BY_HAND_FLOATS], moments[2][MOST][BY_HAND_FLOATS],
    gradient_of[MOST][BY_HAND_FLOATS];

/* The worker that `self` meets before its step `step`, of those that have begun. */
static int other_of(int self, long step, const bool *begun, int workers) {
    int others[MOST], count = 0;
    for (int w = 0; w < workers; w++)
        if (w != self && begun[w]) others[count++] = w;
    if (count == 0) return -1;
    return others[rng_philox(1, (uint64_t)self, (uint64_t)step).word[0] % (uint32_t)count];
}

static void take_mean(float (*vectors)[BY_HAND_FLOATS], int workers, size_t floats) {
    for (size_t i = 0; i < floats; i++) {
        float sum = vectors[0][i];
        for (int w = 1; w < workers; w++) sum += vectors[w][i];
        sum *= 1.0f / (float)workers;
        for (int w = 0; w < workers; w++) vectors[w][i] = sum;
    }
}

struct resting {
    struct rig *rig;
    int worker;
    struct world_thread *thread;
};

static void rest(void *argument) {
    const struct resting *resting = argument;
    struct error error = {0};
    CHECK(strategy_rest_all(by_hand_side(resting->rig, resting->worker), &error) == OK, "%s", error.words);
}

static void rest_all(struct rig *rig, int workers) {
    struct resting list[MOST];
    for (int w = 0; w < workers; w++) {
        list[w] = (struct resting){.rig = rig, .worker = w};
        CHECK(world_spawn(rig->world, "resting", NULL, rest, &list[w], &list[w].thread, &rig->error) == OK,
              "%s", rig->error.words);
    }
    for (int w = 0; w < workers; w++) world_join(list[w].thread);
}

static void check_against_serial(int workers, int every, const char *optimizer, uint64_t seed) {
    static struct rig rig;
    struct gradient *in_hand[MOST] = {NULL};
    bool begun[MOST] = {false};
    long since[MOST] = {0}, number = 0, applied = 0, met = 0;
    char text[60];
    struct rng rng;
    snprintf(text, sizeof text, "gossip:every=%d", every);
    const struct rig_settings settings = {.strategy = text,
                                          .optimizer = optimizer,
                                          .schedule = "cosine",
                                          .workers = workers,
                                          .shards = 3,
                                          .batches = 80,
                                          .block = 61,
                                          .simulated = true,
                                          .seed = seed,
                                          .formula = formula_mixed};
    by_hand_open(&rig, &settings);
    rng_start(&rng, seed, 6);
    memset(models, 0, sizeof models);
    memset(moments, 0, sizeof moments);
    for (int pause = 1; pause <= 2; pause++) {
        while (applied < 40L * pause || in_hand[0] || in_hand[1] || in_hand[2] || in_hand[3]) {
            const int w = (int)rng_below(&rng, (uint32_t)workers);
            float loss;
            if (!in_hand[w] && applied >= 40L * pause) continue;
            if (!in_hand[w]) {
                begun[w] = true;
                const int other =
                    since[w] >= every ? other_of(w, by_hand_side(&rig, w)->step, begun, workers) : -1;
                for (size_t i = 0; other >= 0 && i < rig.layout.floats; i++)
                    models[w][i] = models[other][i] =
                        0.5f * (models[w < other ? w : other][i] + models[w < other ? other : w][i]);
                if (other >= 0) since[w] = 0;
                met += other >= 0;
                formula_mixed(&rig, w, number, models[w], gradient_of[w], &loss, &rig.error);
                in_hand[w] = by_hand_compute(&rig, w, number++);
                continue;
            }
            by_hand_step(&rig, models[w], (float *const[2]){moments[0][w], moments[1][w]}, gradient_of[w],
                         ++applied);
            by_hand_send(&rig, in_hand[w]);
            in_hand[w] = NULL;
            since[w]++;
        }
        rest_all(&rig, workers);
        take_mean(models, workers, rig.layout.floats);
        for (int m = 0; m < 2; m++) take_mean(moments[m], workers, rig.layout.floats);
        for (int w = 0; w < workers; w++) since[w] = 0;
        for (int w = 0; w < workers; w++) begun[w] = true;
        CHECK(by_hand_same(&rig, models[0], rig.store.weights), "%s, %d workers, %s, pause %d: other weights",
              text, workers, optimizer, pause);
        for (int m = 0; m < optimizer_of(&rig.optimizer)->moments; m++)
            CHECK(by_hand_same(&rig, moments[m][0], rig.store.host.vector[1 + m].at),
                  "%s, %d workers, %s, pause %d: another optimizer state", text, workers, optimizer, pause);
    }
    CHECK(workers == 1 || met > 5, "%s: %ld meetings", text, met);
    CHECK(store_version(&rig.store) == applied, "%s: version %ld after %ld steps", text,
          store_version(&rig.store), applied);
    by_hand_close(&rig);
}

/* A worker nine times as slow is waited for at the pause alone; and what the quick one learns reaches it. */
static void check_nobody_waits(void) {
    static struct rig rig;
    struct rig_settings settings = {.strategy = "gossip",
                                    .optimizer = "sgd:rate=1",
                                    .workers = 2,
                                    .shards = 2,
                                    .batches = 100,
                                    .block = 61,
                                    .simulated = true,
                                    .seed = 3,
                                    .together = true,
                                    .formula = formula_blocks};
    settings.slowness[1] = 9.0;
    CHECK(rig_run(&rig, &settings, false) == OK, "%s", rig.error.words);
    const long slow = training_totals(&rig.training, 1)->steps;
    CHECK(slow >= 9 && slow <= 11, "a worker nine times as slow took %ld of 100 steps", slow);
    CHECK(rig.roster.members[0].waited_for[1] < 0.01, "it was waited for, for %g s",
          rig.roster.members[0].waited_for[1]);
    const float quick = rig.store.weights[rig.ranges[0].begin];
    CHECK(fabsf(quick + 0.5f * (float)(100 - slow)) < 1e-3f, "the mean of both is %g after %ld steps of one",
          (double)quick, 100 - slow);
    rig_close(&rig);
}

/* A worker that is lost in its first step is met by nobody after that: none of what the others learn is left
 * with it. */
static void check_lost_is_not_met(void) {
    static struct rig rig;
    const struct rig_settings settings = {.strategy = "gossip",
                                          .optimizer = "sgd:rate=1",
                                          .workers = 3,
                                          .shards = 2,
                                          .batches = 60,
                                          .block = 61,
                                          .simulated = true,
                                          .seed = 4,
                                          .go_on = true,
                                          .fail = "worker:2@step:1",
                                          .formula = formula_blocks};
    CHECK(rig_run(&rig, &settings, false) == OK, "%s", rig.error.words);
    CHECK(rig.lost[2], "worker 2 was not lost");
    for (int w = 0; w < 2; w++) {
        const float weight = rig.store.weights[rig.ranges[w].begin];
        const long steps = training_totals(&rig.training, w)->steps;
        CHECK(steps > 10 && fabsf(weight + 0.5f * (float)steps) < 1e-3f,
              "the mean of the two that are left is %g after %ld steps of worker %d", (double)weight, steps,
              w);
    }
    rig_close(&rig);
}

int main(void) {
    for (int workers = 1; workers <= MOST; workers++)
        for (int every = 1; every <= 3; every++) {
            check_against_serial(workers, every, "sgd:rate=0.1", (uint64_t)(workers + every));
            check_against_serial(workers, every, "momentum:rate=0.1", (uint64_t)(workers + 10 * every));
            check_against_serial(workers, every, "adam:rate=0.01", (uint64_t)(workers + 20 * every));
        }
    check_nobody_waits();
    check_lost_is_not_met();
    return check_end();
}
