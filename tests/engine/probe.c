/* The probe: its gradient is, bit for bit, that of the first examples of the set, at the weights that it was
 * given, and the same again when it is asked again. */
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/engine/probe.h"
#include "../../src/graph/model.h"
#include "../check.h"

enum { EXAMPLES = 40, FEATURES = 12, CLASSES = 3, BATCH = 16 };

static float pixels[EXAMPLES * FEATURES];
static int labels[EXAMPLES];

/* By a program that nobody but this test writes its batch into. */
static void run_by_hand(const struct network *network, const struct device *device, float *weights,
                        float *gradient) {
    struct error error = {0};
    struct program *program = NULL;
    struct arena *arena = NULL;
    CHECK(replica_compile(&program, network, device, &error) == OK &&
              arena_open(&arena, program, &error) == OK,
          "%s", error.words);
    CHECK(arena_write(arena, network->x, pixels, BATCH * FEATURES * sizeof *pixels, &error) == OK &&
              arena_write(arena, network->labels, labels, BATCH * sizeof *labels, &error) == OK &&
              program_run(program, arena, weights, gradient, &error) == OK,
          "%s", error.words);
    arena_close(arena);
    program_close(program);
}

int main(void) {
    struct device device = {.backend = backends[0], .name = "cpu:0", .threads = 1};
    struct error error = {0};
    struct choice choice;
    struct network network = {0};
    struct probe probe = {0};
    float *weights = NULL, *expected = NULL;
    device.backend->enter(&device);
    for (int i = 0; i < EXAMPLES * FEATURES; i++) pixels[i] = (float)((i * 37) % 101) / 101.0f;
    for (int i = 0; i < EXAMPLES; i++) labels[i] = i % CLASSES;
    const struct examples train = {
        .count = EXAMPLES, .features = FEATURES, .floats = pixels, .labels = labels};
    CHECK(plugin_choose(&choice, &model_kind, "mlp:hidden=8", &error) == OK, "%s", error.words);
    const struct network_settings settings = {.model = &choice,
                                              .shape = {.rank = 1, .dims = {FEATURES}},
                                              .classes = CLASSES,
                                              .batch = BATCH,
                                              .training = true,
                                              .seed = 1,
                                              .decay = 0.01,
                                              .shards = 1};
    CHECK(network_open(&network, &settings, &error) == OK, "%s", error.words);
    const struct layout *layout = &network.graph.layout;
    CHECK(memory_array(&weights, layout->floats, "weights", &error) == OK &&
              memory_array(&expected, layout->floats, "a gradient", &error) == OK,
          "%s", error.words);
    CHECK(!probe_is_open(&probe), "it is open before it was opened");
    CHECK(probe_open(&probe, &network, &device, &train, 1, &error) == OK && probe_is_open(&probe), "%s",
          error.words);
    for (int round = 0; round < 4; round++) {
        layout_initialize(layout, (uint64_t)(round / 2), weights);
        run_by_hand(&network, &device, weights, expected);
        CHECK(probe_run(&probe, weights, &error) == OK, "%s", error.words);
        float largest = 0.0f;
        for (int i = 0; i < layout->count; i++) {
            const struct range *range = &layout->ranges[i];
            for (size_t j = range->begin; j < range->begin + range->floats; j++) {
                CHECK(memcmp(&probe.gradient[j], &expected[j], sizeof *expected) == 0,
                      "round %d, %s: %g, expected %g", round, range->name, (double)probe.gradient[j],
                      (double)expected[j]);
                if (expected[j] > largest) largest = expected[j];
            }
        }
        CHECK(largest > 0.0f, "round %d: no gradient is above 0", round);
    }
    probe_close(&probe);
    network_close(&network);
    memory_free(weights);
    memory_free(expected);
    return check_end();
}
