/* A training that diverges, under every strategy and in both worlds: a gradient that is not finite is never
 * applied, though its loss is finite; a loss far above that of guessing ends the run, but only when it stays
 * there. */
#include "../../src/base/finite.h"
#include "../harness.h"

enum { BAD_BATCH = 20, LAST_BAD = 2 * HOPELESS_STEPS };

static struct rig_settings usual(const char *strategy, bool simulated, rig_formula *formula) {
    return (struct rig_settings){.strategy = strategy,
                                 .optimizer = "momentum:rate=0.1",
                                 .workers = 3,
                                 .shards = 2,
                                 .slots = 2,
                                 .batches = 60,
                                 .block = 37,
                                 .simulated = simulated,
                                 .seed = 9,
                                 .average = 0.9,
                                 .formula = formula};
}

/* One number of the gradient of one batch is bad, each time another kind and at another place. */
static float bad_number;
static size_t bad_place;

static int formula_bad(struct rig *rig, int worker, long number, float *weights, float *gradient, float *loss,
                       struct error *error) {
    RETURN_IF(formula_blocks(rig, worker, number, weights, gradient, loss, error));
    if (number == BAD_BATCH) gradient[bad_place] = bad_number;
    return OK;
}

static void check_gradient(const char *text, const struct strategy *strategy, void *argument) {
    static const float bad[] = {(float)NAN, INFINITY, -INFINITY};
    (void)strategy, (void)argument;
    for (int run = 0; run < 6; run++) {
        static struct rig rig;
        const struct rig_settings settings = usual(text, run % 2 == 0, formula_bad);
        bad_number = bad[run / 2];
        bad_place = (size_t)(run * 29) % 37; /* of the first range, block0 */
        CHECK(rig_run(&rig, &settings, false) == ERROR_DIVERGED, "%s: %s", text, rig.error.words);
        CHECK(strstr(rig.error.words, "the gradient of block0 is not finite at step ") &&
                  strstr(rig.error.words, "was not applied"),
              "%s: words are \"%s\"", text, rig.error.words);
        for (int v = 0; v < rig.store.host.count; v++)
            CHECK(all_finite(rig.store.host.vector[v].at, rig.layout.floats), "%s: \"%s\" is not finite",
                  text, rig.store.host.vector[v].name);
        rig_close(&rig);
    }
}

/* --- losses --- */

static const double guess = 2.0;
static int bad_steps; /* of each worker, from its tenth on */

static int formula_high(struct rig *rig, int worker, long number, float *weights, float *gradient,
                        float *loss, struct error *error) {
    const long step = atomic_load(&rig->computed[worker]);
    RETURN_IF(formula_blocks(rig, worker, number, weights, gradient, loss, error));
    *loss = step > 10 && step <= 10 + bad_steps ? (float)(HOPELESS_TIMES * 2.1 * guess) : 2.1f;
    return OK;
}

static void check_high(const char *text, const struct strategy *strategy, void *argument) {
    (void)strategy, (void)argument;
    for (int long_enough = 0; long_enough < 2; long_enough++) {
        static struct rig rig;
        struct rig_settings settings = usual(text, true, formula_high);
        settings.batches = 3 * LAST_BAD;
        settings.guess_loss = guess;
        bad_steps = HOPELESS_STEPS - 1 + long_enough;
        const int code = rig_run(&rig, &settings, false);
        CHECK(code == (long_enough ? ERROR_DIVERGED : OK), "%s, %d bad steps: code %d, %s", text, bad_steps,
              code, rig.error.words);
        if (long_enough)
            CHECK(
                strstr(rig.error.words, ": the loss is 4200 at step 110, over 1000 times what it began with"),
                "%s: words are \"%s\"", text, rig.error.words);
        rig_close(&rig);
    }
}

/* What a loss is compared with: the first one, or that of guessing where that is more. */
static void check_rule(void) {
    struct training_settings settings = {.guess_loss = 2.0};
    CHECK(!training_is_hopeless(&settings, 1.0, 2000.0) && training_is_hopeless(&settings, 1.0, 2001.0),
          "a loss is not compared with that of guessing");
    CHECK(!training_is_hopeless(&settings, 3.0, 2001.0) && training_is_hopeless(&settings, 3.0, 3001.0),
          "a loss is not compared with the first");
    CHECK(training_is_hopeless(&settings, (double)NAN, 2001.0), "there is no first loss");
    settings.guess_loss = 0.0;
    CHECK(!training_is_hopeless(&settings, 1.0, 1e30), "a formula has no loss of guessing");
}

/* Sums of finite numbers may be infinite, and every place is looked at. */
static void check_finite(void) {
    float values[100];
    for (size_t i = 0; i < 100; i++) values[i] = 3e38f;
    CHECK(all_finite(values, 100), "finite numbers with an infinite sum");
    CHECK(all_finite(values, 0), "no numbers");
    for (size_t floats = 1; floats <= 100; floats++)
        for (int kind = 0; kind < 3; kind++) {
            for (size_t i = 0; i < floats; i++) values[i] = i % 2 ? -1.0f : 1.0f;
            CHECK(all_finite(values, floats), "%zu numbers", floats);
            for (size_t at = 0; at < floats; at++) {
                const float kept = values[at];
                values[at] = kind == 0 ? (float)NAN : kind == 1 ? INFINITY : -INFINITY;
                CHECK(!all_finite(values, floats), "%g at %zu of %zu", (double)values[at], at, floats);
                values[at] = kept;
            }
        }
}

int main(void) {
    check_finite();
    check_rule();
    each_strategy(check_gradient, NULL);
    each_strategy(check_high, NULL);
    return check_end();
}
