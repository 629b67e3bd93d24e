/* Mixed examples: loss and gradient are the weighted sums of those of both labels, and a batch that nothing
 * is drawn for is one without mixing, to the bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/data/mix.h"
#include "../../src/engine/replica.h"
#include "../../src/graph/model.h"
#include "../check.h"

enum { EXAMPLES = 9, SIDE = 6, PIXELS = SIDE * SIDE, CLASSES = 4, BATCH = 5 };

static uint8_t bytes[EXAMPLES * PIXELS];
static int labels[EXAMPLES];
static const int index_of[BATCH + 1] = {3, 1, 8, 0, 5, 2};
static uint64_t key_of[BATCH + 1];

static const struct examples images = {
    .count = EXAMPLES,
    .features = PIXELS,
    .bytes = bytes,
    .scale = 1.0f / 255.0f,
    .labels = labels,
    .augment = {.height = SIDE,
                .width = SIDE,
                .channels = 1,
                .rows = SIDE,
                .columns = SIDE,
                .flip = 1,
                .contrast_least = 1.0f,
                .contrast_most = 1.0f,
                .mixup = 0.6f,
                .cutmix = 0.9f},
};

/* A network on one device, with what it says of a batch. */
struct side {
    struct network network;
    struct replicas replicas;
    struct device device;
    float *weights, *gradient, loss;
};

static int open_side(struct side *side, bool mixed, const struct examples *examples, int batch,
                     struct error *error) {
    struct choice model;
    *side = (struct side){.device = device_processor()};
    RETURN_IF(plugin_choose(&model, &model_kind, "mlp:hidden=7", error));
    const struct network_settings settings = {.model = &model,
                                              .shape = SHAPE(PIXELS),
                                              .classes = CLASSES,
                                              .batch = batch,
                                              .training = true,
                                              .mixed = mixed,
                                              .seed = 1,
                                              .shards = 1};
    RETURN_IF(network_open(&side->network, &settings, error));
    RETURN_IF(replicas_open(&side->replicas, &side->network, &side->device, 1, examples, 1, 1, error));
    const struct compute compute = replicas_compute(&side->replicas);
    RETURN_IF(compute.open(compute.self, 0, error));
    const size_t floats = side->network.graph.layout.floats;
    RETURN_IF(memory_array(&side->weights, floats, "weights", error));
    RETURN_IF(memory_array(&side->gradient, floats, "a gradient", error));
    layout_initialize(&side->network.graph.layout, 1, side->weights);
    return OK;
}

static void close_side(struct side *side) {
    replicas_close(&side->replicas);
    network_close(&side->network);
    memory_free(side->weights);
    memory_free(side->gradient);
}

static int run_side(struct side *side, const struct indices *indices, struct error *error) {
    const struct compute compute = replicas_compute(&side->replicas);
    struct outcome outcome = {0};
    RETURN_IF(compute.load(compute.self, 0, 0, 0, indices, error));
    RETURN_IF(compute.run(compute.self, 0, 0, side->weights, side->gradient, &side->loss, error));
    RETURN_IF(compute.synchronize(compute.self, 0, false, &outcome, error));
    side->loss = outcome.loss;
    return OK;
}

/* What the mixed batch should give: every example by itself, once with each label. */
static int sum_both(const struct network *network, double *loss, double *gradient, struct error *error) {
    static float rows[(BATCH + 1) * PIXELS], x[BATCH * PIXELS];
    const struct device device = device_processor();
    const struct indices all = {.count = BATCH + 1, .index = index_of, .key = key_of};
    struct augment_mix mix[BATCH];
    struct side plain;
    const int first = 0;
    int label;
    struct examples one = {.count = 1, .features = PIXELS, .floats = x, .scale = 1.0f, .labels = &label};
    const struct indices indices = {.count = 1, .index = &first};
    for (int i = 0; i < BATCH; i++) mix_draw(&mix[i], &images.augment, key_of[i]);
    RETURN_IF(device.backend->gather(&device, &images, &all, rows, error));
    RETURN_IF(device.backend->mix(&device, &images.augment, mix, BATCH, rows, x, error));
    int code = open_side(&plain, false, &one, 1, error);
    for (int i = 0; code == OK && i < 2 * BATCH; i++) {
        const double share = (double)mix[i / 2].share, weight = (i % 2 ? 1.0 - share : share) / BATCH;
        one.floats = x + i / 2 * PIXELS;
        label = labels[index_of[i / 2 + i % 2]];
        code = run_side(&plain, &indices, error);
        *loss += weight * (double)plain.loss;
        for (size_t k = 0; k < network->graph.layout.floats; k++)
            gradient[k] += weight * (double)plain.gradient[k];
    }
    close_side(&plain);
    return code;
}

static void check_sum(struct side *mixed) {
    struct error error = {0};
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    const size_t floats = mixed->network.graph.layout.floats;
    double *gradient = calloc(floats, sizeof *gradient), loss = 0.0, furthest = 0.0, largest = 0.0;
    CHECK(gradient && run_side(mixed, &indices, &error) == OK, "%s", error.words);
    CHECK(gradient && sum_both(&mixed->network, &loss, gradient, &error) == OK, "%s", error.words);
    for (size_t k = 0; gradient && k < floats; k++) {
        furthest = fmax(furthest, fabs(gradient[k] - (double)mixed->gradient[k]));
        largest = fmax(largest, fabs(gradient[k]));
    }
    CHECK(fabs(loss - (double)mixed->loss) < 1e-6 && loss > 0.5, "loss %g, expected %g", (double)mixed->loss,
          loss);
    CHECK(furthest < 1e-6 && largest > 1e-3, "the gradient is %g off, of at most %g", furthest, largest);
    free(gradient);
}

static void check_not_drawn(struct side *mixed) {
    struct error error = {0};
    struct side plain;
    const struct indices indices = {.count = BATCH, .index = index_of};
    CHECK(open_side(&plain, false, &images, BATCH, &error) == OK, "%s", error.words);
    CHECK(run_side(mixed, &indices, &error) == OK && run_side(&plain, &indices, &error) == OK, "%s",
          error.words);
    CHECK(memcmp(&mixed->loss, &plain.loss, sizeof plain.loss) == 0, "loss %g, expected %g",
          (double)mixed->loss, (double)plain.loss);
    for (size_t k = 0; k < plain.network.graph.layout.floats; k++)
        if (fabsf(mixed->gradient[k] - plain.gradient[k]) > 0.0f) {
            CHECK(false, "number %zu of the gradient: %g, expected %g", k, (double)mixed->gradient[k],
                  (double)plain.gradient[k]);
            break;
        }
    close_side(&plain);
}

int main(void) {
    struct error error = {0};
    struct side mixed;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_philox(4, 0, i).word[0];
    for (int i = 0; i < EXAMPLES; i++) labels[i] = i * 5 % CLASSES;
    for (int i = 0; i <= BATCH; i++) key_of[i] = rng_mix(2, (uint64_t)i);
    CHECK(open_side(&mixed, true, &images, BATCH, &error) == OK, "%s", error.words);
    if (error.code == OK) check_sum(&mixed);
    if (error.code == OK) check_not_drawn(&mixed);
    close_side(&mixed);
    return check_end();
}
