/* Several devices that share an evaluation find what one finds, bit for bit, whoever is faster; a device that
 * fails ends it with its words, and nobody waits for it. */
#include "../../src/infer/evaluators.h"

#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/base/rng.h"
#include "../../src/graph/model.h"
#include "../check.h"

enum {
    SIDE = 8,
    PIXELS = SIDE * SIDE,
    CLASSES = 10,
    COUNT = 5 * EVALUATE_BATCH + 17,
    DEVICES = 3,
    TIMES = 8
};

static uint8_t images[COUNT * PIXELS];
static int labels[COUNT];

static struct examples first_examples(int count) {
    return (struct examples){
        .count = count,
        .features = PIXELS,
        .bytes = images,
        .scale = 1.0f / 255.0f,
        .labels = labels,
        .augment = {
            .height = SIDE, .width = SIDE, .channels = 1, .rows = SIDE, .columns = SIDE, .standardize = 1}};
}

static struct world *world;
static struct choice model;
static struct units no_units;
static struct backend failing; /* the CPU, whose gathering fails after `left` batches */
static _Atomic int left;

static int gather_some(const struct device *device, const struct examples *examples,
                       const struct indices *indices, float *out, struct error *error) {
    if (atomic_fetch_sub(&left, 1) <= 0) return error_set(error, ERROR_DEVICE, "%s is broken", device->name);
    return backends[0]->gather(device, examples, indices, out, error);
}

static void open_devices(struct device *devices, bool last_fails) {
    static const char *const names[DEVICES] = {"cpu:0", "cpu:1", "cpu:2"};
    for (int d = 0; d < DEVICES; d++) {
        devices[d] = (struct device){.threads = 1, .reference_only = true, .backend = backends[0]};
        snprintf(devices[d].name, sizeof devices[d].name, "%s", names[d]);
    }
    if (last_fails) devices[DEVICES - 1].backend = &failing;
}

static struct network_settings settings_of(void) {
    return (struct network_settings){
        .model = &model, .shape = SHAPE(SIDE, SIDE, 1), .classes = CLASSES, .seed = 1, .shards = 1};
}

static float *weights_of(const struct evaluator *evaluator) {
    struct error error = {0};
    float *weights = NULL;
    const struct layout *layout = &evaluator->pass[EVALUATE_WHOLE].network.graph.layout;
    CHECK(memory_array(&weights, layout->floats, "weights", &error) == OK, "%s", error.words);
    layout_initialize(layout, 3, weights);
    return weights;
}

static void test_same(void) {
    static const int counts[] = {1, EVALUATE_BATCH, EVALUATE_BATCH + 1, COUNT};
    const struct network_settings settings = settings_of();
    struct device devices[DEVICES];
    struct evaluator one = {0};
    struct evaluators all = {0};
    struct error error = {0};
    open_devices(devices, false);
    CHECK(evaluator_open(&one, &settings, &devices[0], &error) == OK, "%s", error.words);
    CHECK(evaluators_open(&all, world, &settings, &no_units, devices, DEVICES, &error) == OK, "%s",
          error.words);
    float *weights = weights_of(&one);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        const struct examples examples = first_examples(counts[k]);
        struct evaluation alone = {0}, shared = {0};
        CHECK(evaluator_run(&one, &examples, weights, &alone, &error) == OK, "%s", error.words);
        for (int i = 0; i < TIMES; i++) {
            CHECK(evaluators_run(&all, &examples, weights, &shared, &error) == OK, "%s", error.words);
            CHECK(memcmp(&alone, &shared, sizeof alone) == 0,
                  "%d examples: cost %.17g and score %.17g, alone %.17g and %.17g", counts[k], shared.cost,
                  shared.score, alone.cost, alone.score);
        }
    }
    memory_free(weights);
    evaluators_close(&all);
    evaluator_close(&one);
}

static void test_failure(int after) {
    const struct network_settings settings = settings_of();
    const struct examples examples = first_examples(COUNT);
    struct device devices[DEVICES];
    struct evaluators all = {0};
    struct evaluation result;
    struct error error = {0};
    open_devices(devices, true);
    CHECK(evaluators_open(&all, world, &settings, &no_units, devices, DEVICES, &error) == OK, "%s",
          error.words);
    float *weights = weights_of(&all.each[0]);
    bool failed = false;
    for (int i = 0; i < 1000 && !failed; i++) { /* the others may take all batches before it gets one */
        atomic_store(&left, after);
        failed = evaluators_run(&all, &examples, weights, &result, &error) != OK;
    }
    CHECK(failed && error.code == ERROR_DEVICE && strcmp(error.words, "cpu:2 is broken") == 0, "%d: %d %s",
          after, error.code, error.words);
    memory_free(weights);
    evaluators_close(&all);
}

int main(void) {
    struct error error = {0};
    struct rng rng;
    rng_start(&rng, 5, 0);
    for (size_t i = 0; i < sizeof images; i++) images[i] = (uint8_t)(255.0f * rng_uniform(&rng));
    for (int i = 0; i < COUNT; i++) labels[i] = (i * i + 3) % CLASSES;
    failing = *backends[0];
    failing.gather = gather_some;
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    CHECK(plugin_choose(&model, &model_kind, "cnn", &error) == OK, "%s", error.words);
    test_same();
    test_failure(0);
    test_failure(1);
    world_close(world);
    return check_end();
}
