/* The store's arithmetic on a GPU: the same bits as on the CPU, wherever a number is made of few; and every
 * optimizer's formula, by which a GPU steps, against its own step. */
#include <math.h>
#include <string.h>

#include "../../cuda/gpu.h"
#include "../../src/base/memory.h"
#include "../../src/base/rng.h"
#include "../../src/store/optimizer.h"
#include "../check.h"
#include "../gpu_control.h"

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

/* The slice of all floats, with the first gradient alone. */
static struct update_slice slice_of(const struct rig *rig, struct state *state, int moments, bool average,
                                    bool witness) {
    *state = (struct state){.count = 1, .vector = {{"", rig->on[0]}}};
    for (int m = 0; m < moments; m++) state->vector[state->count++].at = rig->on[2 + m];
    return (struct update_slice){.end = FLOATS,
                                 .state = state,
                                 .average = average ? rig->on[4] : NULL,
                                 .count = 1,
                                 .gradients = (const float *const *)&rig->on[1],
                                 .witness = witness ? rig->witness : NULL};
}

/* Steps on both sides, with and without decay. */
static void check_optimizer(const struct optimizer *optimizer, float decay, bool average) {
    static struct rig rig;
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &optimizer_kind, optimizer->plugin.name, &error) == OK, "%s", error.words);
    int code = open_rig(&rig, &error);
    for (long number = 1; number <= UPDATES && code == OK; number++) {
        float *const moments[] = {rig.here[2], rig.here[3]};
        struct update update = optimizer_update(&choice, number);
        update.rate = 0.1f / (float)number;
        update.decay = decay;
        update.towards = update_average_rate(0.9, number);
        struct state state;
        const struct update_slice slice = slice_of(&rig, &state, optimizer->moments, average, true);
        update.step(&update, FLOATS, rig.here[0], moments, rig.here[1]);
        for (size_t i = 0; i < FLOATS && average; i++)
            rig.here[4][i] = update_average(rig.here[4][i], rig.here[0][i], update.towards);
        code = gpu_vectors.update(&gpu, &update, &slice, &error);
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

static void step_window(struct rig *rig, struct update own, const struct update_window *window) {
    const size_t begin = window->begin, floats = window->end - begin;
    float *const weights = rig->here[0] + begin, *const average = rig->here[4] + begin;
    const float *const gradient = rig->here[1] + begin;
    float *const moments[] = {rig->here[2] + begin};
    own.rate = window->rate;
    own.decay = window->decay;
    own.weight_decay = window->weight_decay;
    if (window->rule >= 0) own.step(&own, floats, weights, moments, gradient);
    for (size_t i = 0; i < floats; i++) {
        if (window->rule == UPDATE_SUBTRACT) weights[i] -= gradient[i];
        average[i] = update_average(average[i], weights[i], own.towards);
    }
}

/* Several windows in one launch are what they are one by one, statistics and frozen weights among them, and
 * what lies between them stays. */
static void test_windows(void) {
    static struct rig rig;
    struct choice choice;
    struct error error = {0};
    struct state state;
    double witness = 0.0;
    CHECK(plugin_choose(&choice, &optimizer_kind, "momentum", &error) == OK, "%s", error.words);
    int code = open_rig(&rig, &error);
    struct update update = optimizer_update(&choice, 1);
    update.towards = 0.25f;
    const struct update_window windows[] = {
        {0, 48, update.rule, 0.5f, 0.0f, 0.25f},     {48, 64, update.rule, 0.25f, 0.125f, 0.0f},
        {64, 80, UPDATE_SUBTRACT, 9.0f, 9.0f, 0.0f}, {96, 97, update.rule, 2.0f, 0.0f, 0.0f},
        {112, 128, UPDATE_NONE, 9.0f, 9.0f, 0.0f},   {128, FLOATS, update.rule, 0.125f, 0.5f, 0.5f}};
    const int count = (int)(sizeof windows / sizeof *windows);
    const struct update_slice slice = slice_of(&rig, &state, 1, true, true);
    for (int w = 0; w < count; w++) step_window(&rig, update, &windows[w]);
    if (code == OK) code = gpu_vectors.update_windows(&gpu, &update, &slice, windows, count, &error);
    if (code == OK) CHECK(differences(&rig, &error) == 0, "windows: other bits");
    if (code == OK) code = gpu_transfer(&gpu, &witness, rig.witness, sizeof witness, &error);
    CHECK(code == OK && witness == 1.0, "windows: witness %g, %s", witness, error.words);
    close_rig(&rig);
}

static void test_optimizers(void) {
    int count = 0;
    for (; optimizers[count]; count++) {
        CHECK(optimizers[count]->moments <= VECTORS - 3, "%s: more vectors of state than are tested",
              optimizers[count]->plugin.name);
        check_optimizer(optimizers[count], 0.0f, false);
        check_optimizer(optimizers[count], 0.01f, true);
    }
    CHECK(count == 6, "%d optimizers step on a GPU", count);
    struct error error = {0};
    const struct update unknown = {.rule = count};
    const struct state state = {.count = 1, .vector = {{"", NULL}}};
    const float *const none = NULL;
    const struct update_slice one = {.end = 1, .state = &state, .count = 1, .gradients = &none};
    CHECK(gpu_vectors.update(&gpu, &unknown, &one, &error) == ERROR_DEVICE, "a formula that is not there");
}

/* Statistics, frozen weights, and steps by atomic additions. */
static void test_other_rules(void) {
    static struct rig rig;
    struct error error = {0};
    struct update update = {.rule = UPDATE_SUBTRACT, .rate = 9.0f, .decay = 9.0f, .towards = 0.25f};
    int code = open_rig(&rig, &error);
    struct state state;
    struct update_slice slice = slice_of(&rig, &state, 0, true, false);
    if (code == OK) code = gpu_vectors.update(&gpu, &update, &slice, &error);
    for (size_t i = 0; i < FLOATS; i++) {
        rig.here[0][i] -= rig.here[1][i];
        rig.here[4][i] = update_average(rig.here[4][i], rig.here[0][i], 0.25f);
    }
    CHECK(code == OK && differences(&rig, &error) == 0, "a statistic: %s", error.words);
    update.rule = UPDATE_NONE;
    if (code == OK) code = gpu_vectors.update(&gpu, &update, &slice, &error);
    for (size_t i = 0; i < FLOATS; i++)
        rig.here[4][i] = update_average(rig.here[4][i], rig.here[0][i], 0.25f);
    CHECK(code == OK && differences(&rig, &error) == 0, "frozen weights: %s", error.words);

    struct choice choice;
    CHECK(plugin_choose(&choice, &optimizer_kind, "sgd", &error) == OK, "%s", error.words);
    update = optimizer_update(&choice, 1);
    update.rate = 0.5f;
    slice = slice_of(&rig, &state, 0, false, true);
    slice.atomic = 1;
    for (int i = 0; i < 3 && code == OK; i++) code = gpu_vectors.update(&gpu, &update, &slice, &error);
    for (size_t i = 0; i < FLOATS; i++)
        for (int k = 0; k < 3; k++) {
            const float after = rig.here[0][i] - 0.5f * (rig.here[1][i] + 0.0f * rig.here[0][i]);
            rig.here[0][i] += after - rig.here[0][i];
        }
    double witness = 0.0;
    if (code == OK) code = gpu_transfer(&gpu, &witness, rig.witness, sizeof witness, &error);
    CHECK(code == OK && differences(&rig, &error) == 0 && witness == 3.0, "atomic: witness %g, %s", witness,
          error.words);
    slice.end = 0;
    CHECK(gpu_vectors.update(&gpu, &update, &slice, &error) == OK, "no floats: %s", error.words);
    close_rig(&rig);
}

/* Numbers of a gradient that are not finite: their weights, moments and average keep their bits, the others
 * are stepped, and the next finish says so, once. */
static void check_refused(const struct optimizer *optimizer) {
    static const size_t places[] = {0, 500, FLOATS - 1};
    static const float bad[] = {(float)NAN, INFINITY, -INFINITY};
    static struct rig rig;
    float kept[3][VECTORS];
    struct choice choice;
    struct state state;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &optimizer_kind, optimizer->plugin.name, &error) == OK, "%s", error.words);
    int code = open_rig(&rig, &error);
    for (int k = 0; k < 3; k++) rig.here[1][places[k]] = bad[k];
    if (code == OK) code = gpu_transfer(&gpu, rig.on[1], rig.here[1], sizeof rig.here[1], &error);
    struct update update = optimizer_update(&choice, 1);
    update.rate = 0.1f;
    update.towards = 0.25f;
    const struct update_slice slice = slice_of(&rig, &state, optimizer->moments, true, false);
    float *const moments[] = {rig.here[2], rig.here[3]};
    for (int k = 0; k < 3; k++)
        for (int v = 0; v < VECTORS; v++) kept[k][v] = rig.here[v][places[k]];
    update.step(&update, FLOATS, rig.here[0], moments, rig.here[1]);
    for (size_t i = 0; i < FLOATS; i++)
        rig.here[4][i] = update_average(rig.here[4][i], rig.here[0][i], update.towards);
    for (int k = 0; k < 3; k++)
        for (int v = 0; v < VECTORS; v++) rig.here[v][places[k]] = kept[k][v];
    if (code == OK) code = gpu_vectors.update(&gpu, &update, &slice, &error);
    CHECK(code == OK, "%s", error.words);
    CHECK(gpu_backend.finish(&gpu, &error) == ERROR_DIVERGED &&
              strstr(error.words, "gpu:0: a gradient is not finite and was not applied"),
          "%s: \"%s\"", optimizer->plugin.name, error.words);
    CHECK(gpu_backend.finish(&gpu, &error) == OK, "%s: said twice", optimizer->plugin.name);
    CHECK(differences(&rig, &error) == 0, "%s: other bits", optimizer->plugin.name);
    close_rig(&rig);
}

/* As the store adds contributed gradients up: in order, the first not added to anything, and more than one
 * kernel is given too; then a step with that, or the mean times a factor. */
static void check_mean(int count, bool steps) {
    enum { MOST = 200 };
    static struct rig rig;
    static float sum[FLOATS];
    struct choice choice;
    struct error error = {0};
    const float *values[MOST];
    float weight[MOST];
    const size_t begin = 16, end = FLOATS - 1;
    int code = open_rig(&rig, &error);
    for (int k = 0; k < count; k++) {
        values[k] = rig.on[k % 3 ? 1 : 3];
        weight[k] = (float)(k + 1) / 7.0f;
    }
    random_vector(rig.here[3], FLOATS, 9);
    if (code == OK) code = gpu_transfer(&gpu, rig.on[3], rig.here[3], sizeof rig.here[3], &error);
    for (size_t i = begin; i < end; i++)
        for (int k = 0; k < count; k++) {
            const float value = rig.here[k % 3 ? 1 : 3][i];
            sum[i] = k == 0 ? weight[k] * value : sum[i] + weight[k] * value;
        }
    CHECK(plugin_choose(&choice, &optimizer_kind, "sgd", &error) == OK, "%s", error.words);
    struct state state;
    struct update update = optimizer_update(&choice, 1);
    struct update_slice slice = slice_of(&rig, &state, 0, false, false);
    update.rate = 0.3f;
    slice.begin = begin;
    slice.end = end;
    slice.count = count;
    slice.gradients = values;
    slice.weight = weight;
    slice.mean = rig.on[2];
    if (code == OK && steps) code = gpu_vectors.update(&gpu, &update, &slice, &error);
    for (size_t i = begin; i < end && steps; i++) {
        rig.here[2][i] = sum[i];
        rig.here[0][i] -= 0.3f * (sum[i] + 0.0f * rig.here[0][i]);
    }
    if (code == OK && !steps)
        code = gpu_vectors.mean(&gpu, values, weight, count, begin, end, 0.3f, rig.on[0], &error);
    for (size_t i = begin; i < end && !steps; i++) rig.here[0][i] = 0.3f * sum[i];
    CHECK(code == OK && differences(&rig, &error) == 0, "mean of %d: %s", count, error.words);
    for (int k = 0; k < count && k < 2; k++) /* weight NULL: 1 each */
        sum[0] = k == 0 ? rig.here[3][20] : sum[0] + rig.here[1][20];
    if (code == OK)
        code = gpu_vectors.mean(&gpu, values, NULL, count < 2 ? count : 2, 20, 21, 1.0f, rig.on[0], &error);
    rig.here[0][20] = sum[0];
    CHECK(code == OK && differences(&rig, &error) == 0, "sum of %d: %s", count, error.words);
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

/* Whole numbers, whose squares are exact in any order: so is their length. */
static void check_unit(size_t floats, bool zero) {
    struct error error = {0};
    float *values = NULL, *found = NULL, *on = NULL;
    void *room = NULL;
    double squares = 0.0;
    int wrong = 0;
    int code = memory_zeroed((void **)&values, floats, sizeof *values, "values", &error);
    if (code == OK) code = memory_zeroed((void **)&found, floats, sizeof *found, "values", &error);
    if (code == OK) code = gpu_allocate(&gpu, (void **)&on, floats * sizeof *values, "values", &error);
    if (code == OK) code = gpu_allocate(&gpu, &room, VECTORS_ROOM, "room", &error);
    for (size_t i = 0; i < floats && code == OK; i++) {
        values[i] = zero ? 0.0f : (float)(rng_philox(9, 0, i).word[0] % 1999) - 999.0f;
        squares += (double)values[i] * (double)values[i];
    }
    if (code == OK) code = gpu_transfer(&gpu, on, values, floats * sizeof *values, &error);
    if (code == OK) code = gpu_vectors.unit(&gpu, on, floats, room, &error);
    if (code == OK) code = gpu_transfer(&gpu, found, on, floats * sizeof *values, &error);
    const float factor = (float)(1.0 / (sqrt(squares) + 1e-7));
    for (size_t i = 0; i < floats && code == OK; i++) wrong += found[i] != values[i] * factor;
    CHECK(code == OK && wrong == 0, "a unit of %zu: %d are wrong; %s", floats, wrong, error.words);
    gpu_release(&gpu, on);
    gpu_release(&gpu, room);
    memory_free(values);
    memory_free(found);
}

int main(void) {
    struct error error = {0};
    gpu_or_skip();
    CHECK(gpu_open(&gpu, &error) == OK, "%s", error.words);
    if (error.code != OK) return check_end();
    test_optimizers();
    test_windows();
    test_other_rules();
    for (int i = 0; optimizers[i]; i++) check_refused(optimizers[i]);
    static const int counts[] = {1, 2, 3, 63, 64, 65, 128, 130, 200};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int steps = 0; steps < 2; steps++) check_mean(counts[i], steps == 1);
    const size_t sizes[] = {0, 1, 127, 128, 129, 16384, 16385, 100003};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int whole = 0; whole < 2; whole++) check_squares(sizes[i], whole == 1);
    test_scale();
    for (size_t i = 1; i < sizeof sizes / sizeof *sizes; i++) check_unit(sizes[i], i == 3);
    gpu_close(&gpu);
    CHECK(standin_open(NULL) == 0, "%d things are left", standin_open(NULL));
    return check_end();
}
