/* The store's arithmetic on a GPU: the same bits as on the CPU, wherever a number is made of few; and every
 * optimizer's formula, by which a GPU steps, against its own step. */
#include <math.h>
#include <string.h>

#include "../cuda/gpu.h"
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/store/optimizer.h"
#include "check.h"
#include "gpu_control.h"

extern const struct backend gpu_backend;
static const struct device gpu = {.backend = &gpu_backend, .name = "gpu:0", .threads = 1};

enum { FLOATS = 1003, VECTORS = 5, UPDATES = 4 }; /* weights, gradient, two moments, average */

static void random_vector(float *out, size_t floats, uint64_t seed) {
    for (size_t i = 0; i < floats; i++) out[i] = 2.0f * rng_unit(rng_philox(seed, 0, i).word[0]) - 1.0f;
}

/* The vectors of a run on the CPU and on the GPU, and a witness. */
struct rig {
    float here[VECTORS][FLOATS], there[VECTORS][FLOATS];
    float *on[VECTORS];
    double *witness;
};

static int open_rig(struct rig *rig, struct error *error) {
    *rig = (struct rig){0};
    for (int v = 0; v < VECTORS; v++) {
        random_vector(rig->here[v], FLOATS, (uint64_t)v);
        if (v == 2 || v == 3)
            for (size_t i = 0; i < FLOATS; i++) rig->here[v][i] = 0.0f;
        RETURN_IF(gpu_allocate(&gpu, (void **)&rig->on[v], sizeof rig->here[v], "vector", error));
        RETURN_IF(gpu_transfer(&gpu, rig->on[v], rig->here[v], sizeof rig->here[v], error));
    }
    return gpu_allocate(&gpu, (void **)&rig->witness, sizeof(double), "witness", error);
}

static void close_rig(struct rig *rig) {
    for (int v = 0; v < VECTORS; v++) gpu_release(&gpu, rig->on[v]);
    gpu_release(&gpu, rig->witness);
}

/* All vectors back; how many numbers differ in a bit. */
static size_t differences(struct rig *rig, struct error *error) {
    size_t wrong = 0;
    for (int v = 0; v < VECTORS; v++) {
        if (gpu_transfer(&gpu, rig->there[v], rig->on[v], sizeof rig->there[v], error)) return FLOATS;
        for (size_t i = 0; i < FLOATS; i++) wrong += memcmp(&rig->there[v][i], &rig->here[v][i], 4) != 0;
    }
    return wrong;
}

static struct update_window window_of(const struct rig *rig, int moments, bool average, bool witness) {
    return (struct update_window){
        .floats = FLOATS,
        .weights = rig->on[0],
        .gradient = rig->on[1],
        .moments = {moments > 0 ? rig->on[2] : NULL, moments > 1 ? rig->on[3] : NULL},
        .average = average ? rig->on[4] : NULL,
        .witness = witness ? rig->witness : NULL};
}

/* Steps on both sides, with and without decay. */
static void check_optimizer(const struct optimizer *optimizer, float decay, bool average) {
    static struct rig rig;
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, (const void *const *)optimizers, "optimizer", optimizer->plugin.name,
                        &error) == OK,
          "%s", error.words);
    int code = open_rig(&rig, &error);
    for (long number = 1; number <= UPDATES && code == OK; number++) {
        const float rate = 0.1f / (float)number, towards = update_average_rate(0.9, number);
        const struct step step = {.floats = FLOATS,
                                  .weights = rig.here[0],
                                  .gradient = rig.here[1],
                                  .moments = {rig.here[2], rig.here[3]},
                                  .rate = rate,
                                  .decay = decay,
                                  .update = number};
        struct update update = {.rate = rate, .decay = decay, .towards = towards};
        const struct update_window window = window_of(&rig, optimizer->moments, average, true);
        optimizer->step(choice.settings, &step);
        for (size_t i = 0; i < FLOATS && average; i++)
            rig.here[4][i] = update_average(rig.here[4][i], rig.here[0][i], towards);
        optimizer->formula(choice.settings, &update, number);
        CHECK(!(update.rate < rate || update.rate > rate || update.decay < decay || update.decay > decay),
              "%s: the formula changes what is the caller's", optimizer->plugin.name);
        code = gpu_vectors.update(&gpu, &update, &window, &error);
        if (code == OK)
            CHECK(differences(&rig, &error) == 0, "%s, decay %g, update %ld: other bits",
                  optimizer->plugin.name, (double)decay, number);
    }
    double witness = 0.0;
    if (code == OK) code = gpu_transfer(&gpu, &witness, rig.witness, sizeof witness, &error);
    CHECK(code == OK && witness == UPDATES, "%s: witness %g, %s", optimizer->plugin.name, witness,
          error.words);
    close_rig(&rig);
}

static void test_optimizers(void) {
    int with = 0;
    for (int i = 0; optimizers[i]; i++) {
        if (!optimizers[i]->formula) continue;
        with++;
        check_optimizer(optimizers[i], 0.0f, false);
        check_optimizer(optimizers[i], 0.01f, true);
    }
    CHECK(with == 5, "%d optimizers step on a GPU", with);
}

/* Statistics, frozen weights, and steps by atomic additions. */
static void test_other_rules(void) {
    static struct rig rig;
    struct error error = {0};
    struct update update = {.rule = UPDATE_SUBTRACT, .rate = 9.0f, .decay = 9.0f, .towards = 0.25f};
    int code = open_rig(&rig, &error);
    struct update_window window = window_of(&rig, 0, true, false);
    if (code == OK) code = gpu_vectors.update(&gpu, &update, &window, &error);
    for (size_t i = 0; i < FLOATS; i++) {
        rig.here[0][i] -= rig.here[1][i];
        rig.here[4][i] = update_average(rig.here[4][i], rig.here[0][i], 0.25f);
    }
    CHECK(code == OK && differences(&rig, &error) == 0, "a statistic: %s", error.words);
    update.rule = UPDATE_NONE;
    if (code == OK) code = gpu_vectors.update(&gpu, &update, &window, &error);
    for (size_t i = 0; i < FLOATS; i++)
        rig.here[4][i] = update_average(rig.here[4][i], rig.here[0][i], 0.25f);
    CHECK(code == OK && differences(&rig, &error) == 0, "frozen weights: %s", error.words);

    update = (struct update){.rule = UPDATE_SGD, .rate = 0.5f};
    window = window_of(&rig, 0, false, true);
    window.atomic = 1;
    for (int i = 0; i < 3 && code == OK; i++) code = gpu_vectors.update(&gpu, &update, &window, &error);
    for (size_t i = 0; i < FLOATS; i++)
        for (int k = 0; k < 3; k++) {
            const float after =
                update_sgd(rig.here[0][i], update_decayed(rig.here[1][i], rig.here[0][i], 0.0f), 0.5f);
            rig.here[0][i] += after - rig.here[0][i];
        }
    double witness = 0.0;
    if (code == OK) code = gpu_transfer(&gpu, &witness, rig.witness, sizeof witness, &error);
    CHECK(code == OK && differences(&rig, &error) == 0 && witness == 3.0, "atomic: witness %g, %s", witness,
          error.words);
    window.floats = 0;
    CHECK(gpu_vectors.update(&gpu, &update, &window, &error) == OK, "no floats: %s", error.words);
    close_rig(&rig);
}

/* As the store adds laid gradients up: in order, the first not added to anything. */
static void check_mean(int count) {
    static struct rig rig;
    struct error error = {0};
    const float *values[64];
    float weight[64];
    int code = open_rig(&rig, &error);
    for (int k = 0; k < count; k++) {
        values[k] = rig.on[k % 4 ? 1 : 4];
        weight[k] = (float)(k + 1) / 7.0f;
    }
    if (code == OK) code = gpu_vectors.mean(&gpu, values, weight, count, FLOATS, rig.on[0], &error);
    for (size_t i = 0; i < FLOATS; i++)
        for (int k = 0; k < count; k++) {
            const float value = rig.here[k % 4 ? 1 : 4][i];
            rig.here[0][i] = k == 0 ? weight[k] * value : rig.here[0][i] + weight[k] * value;
        }
    CHECK(code == OK && differences(&rig, &error) == 0, "mean of %d: %s", count, error.words);
    close_rig(&rig);
}

/* Squares of whole numbers are exact in any order; of others they agree to double's precision. */
static void check_squares(size_t floats, bool whole) {
    struct error error = {0};
    float *values = NULL, *on = NULL;
    double expected = 0.0, found = -1.0, again = -1.0;
    int code = memory_zeroed((void **)&values, floats, sizeof *values, "values", &error);
    if (code == OK) code = gpu_allocate(&gpu, (void **)&on, floats * sizeof *values, "values", &error);
    for (size_t i = 0; i < floats && code == OK; i++) {
        const uint32_t word = rng_philox(8, 0, i).word[0];
        values[i] = whole ? (float)(word % 1999) - 999.0f : rng_unit(word);
        expected += (double)values[i] * (double)values[i];
    }
    if (code == OK) code = gpu_transfer(&gpu, on, values, floats * sizeof *values, &error);
    if (code == OK) code = gpu_vectors.squares(&gpu, on, floats, &found, &error);
    if (code == OK) code = gpu_vectors.squares(&gpu, on, floats, &again, &error);
    CHECK(code == OK && fabs(found - expected) <= (whole ? 0.0 : 1e-12) * expected && again == found,
          "%zu squares: %.17g and %.17g, expected %.17g; %s", floats, found, again, expected, error.words);
    gpu_release(&gpu, on);
    memory_free(values);
}

static void test_scale(void) {
    static struct rig rig;
    struct error error = {0};
    int code = open_rig(&rig, &error);
    if (code == OK) code = gpu_vectors.scale(&gpu, rig.on[0] + 16, FLOATS - 16 - 1, 0.3f, &error);
    for (size_t i = 16; i < FLOATS - 1; i++) rig.here[0][i] *= 0.3f;
    CHECK(code == OK && differences(&rig, &error) == 0, "scale: %s", error.words);
    close_rig(&rig);
}

int main(void) {
    struct error error = {0};
    gpu_or_skip();
    CHECK(gpu_open(&gpu, &error) == OK, "%s", error.words);
    if (error.code != OK) return check_end();
    test_optimizers();
    test_other_rules();
    for (int count = 1; count <= 64; count += count < 4 ? 1 : 30) check_mean(count);
    const size_t sizes[] = {0, 1, 127, 128, 129, 16384, 16385, 100003};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int whole = 0; whole < 2; whole++) check_squares(sizes[i], whole == 1);
    test_scale();
    gpu_close(&gpu);
    CHECK(standin_open(NULL) == 0, "%d things are left", standin_open(NULL));
    return check_end();
}
