/* adasync against its own serial form, to the bit: updates with the mean of the first K gradients, whatever
 * their age; K as the loss has it; and who waits for whom. */
#include "../../src/store/quorum.h"
#include "../by_hand.h"

enum { MOST = 5 };

/* The first losses are 16 on average, then some are more, then it is less and less. */
static float loss_of(long number, int workers) {
    if (number < 2L * workers) return number % 2 ? 18.0f : 14.0f;
    return number < 3L * workers ? 40.0f : fmaxf(1.25f, 16.0f - 0.5f * (float)(number - workers));
}

static int formula_falling(struct rig *rig, int worker, long number, float *weights, float *gradient,
                           float *loss, struct error *error) {
    const int code = formula_mixed(rig, worker, number, weights, gradient, loss, error);
    *loss = loss_of(number, rig->settings.workers);
    return code;
}

static struct rig_settings usual(const char *text, int workers, uint64_t seed) {
    return (struct rig_settings){.strategy = text,
                                 .optimizer = "momentum:rate=0.1",
                                 .schedule = "cosine",
                                 .workers = workers,
                                 .shards = 3,
                                 .batches = 90,
                                 .block = 61,
                                 .simulated = true,
                                 .seed = seed,
                                 .formula = formula_falling};
}

/* A plain form of the strategy. */
static struct {
    float weights[BY_HAND_FLOATS], moments[2][BY_HAND_FLOATS], gradients[MOST][BY_HAND_FLOATS];
    bool there[MOST]; /* whose gradient waits for the update */
    long read[MOST];  /* the version of the weights that it is of */
    int arrived, needed;
    long version, updates, seen;
    double first, recent;
} plain;

static void update(const struct rig *rig, int workers) {
    static float mean[BY_HAND_FLOATS];
    bool begun = false;
    for (int w = 0; w < workers; w++) {
        const long age = plain.version - plain.read[w];
        float share = 4.0f / (4.0f * (float)plain.arrived);
        if (rig->settings.divides && age > 1) share *= 1.0f / (float)age;
        for (size_t i = 0; plain.there[w] && i < rig->layout.floats; i++)
            mean[i] = begun ? mean[i] + share * plain.gradients[w][i] : share * plain.gradients[w][i];
        begun = begun || plain.there[w];
        plain.there[w] = false;
    }
    by_hand_step(rig, plain.weights, (float *const[2]){plain.moments[0], plain.moments[1]}, mean,
                 plain.version + 1);
    plain.version += plain.arrived;
    plain.arrived = 0;
    plain.updates++;
}

static void adapt(int k, int workers, double loss) {
    plain.seen++;
    const double last = plain.seen < 2 * workers ? (double)plain.seen : 2.0 * workers;
    if (plain.seen <= workers) plain.first += (loss - plain.first) / (double)plain.seen;
    plain.recent += (loss - plain.recent) / last;
    if (plain.seen < workers) return;
    const int wanted = (int)(k * sqrt(plain.first / plain.recent));
    const int most = k > workers ? k : workers;
    plain.needed = wanted < k ? k : wanted > most ? most : wanted;
}

static void check_against_serial(int workers, int k, bool adapts, bool divides, uint64_t seed) {
    static struct rig rig;
    struct gradient *in_hand[MOST] = {NULL};
    char text[60];
    struct rng rng;
    long number = 0, stalest = 0;
    snprintf(text, sizeof text, "adasync:k=%d,adapt=%s", k, adapts ? "loss" : "none");
    struct rig_settings settings = usual(text, workers, seed);
    settings.divides = divides;
    by_hand_open(&rig, &settings);
    rng_start(&rng, seed, 5);
    memset(&plain, 0, sizeof plain);
    plain.needed = k;
    while (number < 90) {
        const int w = (int)rng_below(&rng, (uint32_t)workers);
        float loss;
        if (plain.there[w]) continue; /* it waits */
        if (!in_hand[w]) {
            in_hand[w] = by_hand_compute(&rig, w, number);
            formula_mixed(&rig, w, number, plain.weights, plain.gradients[w], &loss, &rig.error);
            CHECK(by_hand_same(&rig, plain.weights, by_hand_side(&rig, w)->weights) &&
                      in_hand[w]->version[0] == plain.version,
                  "%s, %d workers: worker %d has other weights", text, workers, w);
            number++;
            continue;
        }
        const long age = plain.version - in_hand[w]->version[0];
        if (age > stalest) stalest = age;
        if (adapts) adapt(k, workers, (double)in_hand[w]->loss);
        by_hand_send(&rig, in_hand[w]);
        in_hand[w] = NULL;
        plain.there[w] = true;
        plain.read[w] = plain.version - age;
        plain.arrived++;
        if (plain.arrived >= plain.needed || plain.arrived == workers) update(&rig, workers);
        CHECK(atomic_load(&rig.store.shards[2].version) == plain.version,
              "%s, %d workers: version %ld, expected %ld after %ld updates", text, workers,
              atomic_load(&rig.store.shards[2].version), plain.version, plain.updates);
        CHECK(store_updates(&rig.store) == plain.updates, "%s, %d workers: %ld updates, expected %ld", text,
              workers, store_updates(&rig.store), plain.updates);
    }
    CHECK(by_hand_same(&rig, plain.weights, rig.store.weights), "%s, %d workers: other weights", text,
          workers);
    CHECK(k >= workers ? stalest == 0 : stalest > 0, "%s, %d workers: the stalest gradient was %ld old", text,
          workers, stalest);
    if (adapts && workers == 4)
        CHECK(plain.needed == (k == 1 ? 3 : k > 4 ? k : 4), "%s: K came to %d", text, plain.needed);
    by_hand_close(&rig);
}

/* Of three workers one is six times as slow: with K=2 the others go on without it, and with K=3 they do not.
 */
static void check_slow(int k) {
    static struct rig rig;
    char text[60];
    snprintf(text, sizeof text, "adasync:k=%d,adapt=none", k);
    struct rig_settings settings = usual(text, 3, 7);
    settings.together = true;
    settings.slowness[2] = 6.0;
    CHECK(rig_run(&rig, &settings, true) == OK, "%s: %s", text, rig.error.words);
    const long slow = training_totals(&rig.training, 2)->steps;
    CHECK(k == 3 ? slow >= 29 && slow <= 31 : slow >= 6 && slow <= 12,
          "%s: the slow worker took %ld steps of 90", text, slow);
    CHECK(store_dropped(&rig.store) == 0 && store_version(&rig.store) == 90, "%s: version %ld, %ld dropped",
          text, store_version(&rig.store), store_dropped(&rig.store));
    rig_close(&rig);
}

/* In a training K follows the loss of its workers' batches. */
static void check_adapted(void) {
    static struct rig rig;
    const struct rig_settings settings = usual("adasync", 4, 8);
    CHECK(rig_run(&rig, &settings, false) == OK, "%s", rig.error.words);
    for (int s = 0; s < settings.shards; s++) {
        const struct quorum *quorum = rig.store.shards[s].state;
        CHECK(atomic_load(&quorum->needed) == 3, "shard %d: K came to %d", s, atomic_load(&quorum->needed));
    }
    rig_close(&rig);
}

int main(void) {
    for (int workers = 1; workers <= MOST; workers++)
        for (int k = 1; k <= MOST; k++)
            for (int i = 0; i < 4; i++)
                check_against_serial(workers, k, i % 2, i / 2, (uint64_t)(workers * 100 + k * 10 + i));
    check_slow(2);
    check_slow(3);
    check_adapted();
    return check_end();
}
