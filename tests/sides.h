/* For the tests of replicas: a network with its replicas on one worker's devices, a few images to learn, and
 * the batches drawn of them. */
#ifndef TRAINER_TESTS_SIDES_H
#define TRAINER_TESTS_SIDES_H

#include <math.h>
#include <string.h>

#include "../src/base/memory.h"
#include "../src/device/groups.h"
#include "../src/engine/replica.h"
#include "../src/graph/model.h"
#include "check.h"

enum { EXAMPLES = 31, SIDE = 6, PIXELS = SIDE * SIDE, CLASSES = 4, BATCH = 12, BUFFERS = 2, STEPS = 3 };

static uint8_t side_bytes[EXAMPLES * PIXELS];
static int side_labels[EXAMPLES];
static int index_of[BATCH + 1];
static uint64_t key_of[BATCH + 1];

/* Of images that are flipped and, if wanted, mixed. */
static inline struct examples side_examples(bool mixed) {
    for (size_t i = 0; i < sizeof side_bytes; i++) side_bytes[i] = (uint8_t)rng_philox(4, 0, i).word[0];
    for (int i = 0; i < EXAMPLES; i++) side_labels[i] = i * 5 % CLASSES;
    return (struct examples){.count = EXAMPLES,
                             .features = PIXELS,
                             .bytes = side_bytes,
                             .scale = 1.0f / 255.0f,
                             .labels = side_labels,
                             .augment = {.height = SIDE,
                                         .width = SIDE,
                                         .channels = 1,
                                         .rows = SIDE,
                                         .columns = SIDE,
                                         .flip = 1,
                                         .contrast_least = 1.0f,
                                         .contrast_most = 1.0f,
                                         .mixup = mixed ? 0.6f : 0.0f,
                                         .cutmix = mixed ? 0.9f : 0.0f}};
}

static inline void draw_batch(int step) {
    for (int i = 0; i <= BATCH; i++) {
        index_of[i] = (i * 7 + step * 5) % EXAMPLES;
        key_of[i] = rng_mix((uint64_t)step, (uint64_t)i);
    }
}

struct side {
    struct network network;
    struct replicas replicas;
    struct compute compute;
    float *weights, *gradient; /* [layout floats] in the host's memory */
};

/* groups: NULL: on the one device. batch: of a micro-batch. */
static inline int open_side(struct side *side, const struct device *device, const struct groups *groups,
                            const char *layers, const struct examples *examples, int microbatches, int batch,
                            struct error *error) {
    struct choice model;
    *side = (struct side){0};
    RETURN_IF(plugin_choose(&model, &model_kind, layers, error));
    const struct network_settings settings = {.model = &model,
                                              .shape = SHAPE(SIDE, SIDE, 1),
                                              .classes = CLASSES,
                                              .batch = batch,
                                              .training = true,
                                              .mixed = augment_mixes(&examples->augment),
                                              .seed = 1,
                                              .decay = 0.01,
                                              .shards = 1};
    RETURN_IF(network_open(&side->network, &settings, error));
    RETURN_IF(
        replicas_open(&side->replicas, &side->network, device, 1, examples, microbatches, BUFFERS, error));
    side->replicas.groups = groups;
    side->compute = replicas_compute(&side->replicas);
    RETURN_IF(side->compute.open(side->compute.self, 0, error));
    const size_t floats = side->network.graph.layout.floats;
    RETURN_IF(memory_array(&side->weights, floats, "weights", error));
    RETURN_IF(memory_array(&side->gradient, floats, "a gradient", error));
    layout_initialize(&side->network.graph.layout, 1, side->weights);
    return OK;
}

static inline void close_side(struct side *side) {
    replicas_close(&side->replicas);
    network_close(&side->network);
    memory_free(side->weights);
    memory_free(side->gradient);
}

static inline int run_side(struct side *side, int buffer, long number, const struct indices *indices,
                           float *loss, struct error *error) {
    const struct compute *compute = &side->compute;
    struct outcome outcome = {0};
    RETURN_IF(compute->load(compute->self, 0, buffer, number, indices, error));
    RETURN_IF(compute->run(compute->self, 0, buffer, side->weights, side->gradient, loss, error));
    RETURN_IF(compute->synchronize(compute->self, 0, false, &outcome, error));
    *loss = outcome.loss;
    return OK;
}

/* The devices of groups, as in "(cpu:0+cpu:1)", on which `groups` then are. */
static inline int open_groups(const char *text, bool reference, struct groups *groups,
                              struct device **devices, struct error *error) {
    const struct device_settings settings = {
        .threads = 1, .reference_only = reference, .deterministic = true};
    char flat[200];
    int size = 0, count = 0;
    bool shared = false;
    RETURN_IF(groups_read(text, flat, sizeof flat, &size, error));
    RETURN_IF(devices_open(flat, &settings, devices, &count, &shared, error));
    groups->size = size;
    groups->workers = count / size;
    groups->devices = *devices;
    groups_spread(*devices, groups->workers, size);
    return OK;
}

/* Several steps of both, through all input buffers: loss and gradient are the same. exact: devices of one
 * kind have the same kernels; else these may round otherwise. */
static inline void compare_sides(struct side *one, struct side *group, bool exact, const char *name) {
    struct error error = {0};
    const size_t floats = one->network.graph.layout.floats;
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    for (int step = 0; step < STEPS && error.code == OK; step++) {
        float loss = 0.0f, expected = 0.0f;
        draw_batch(step);
        run_side(one, step % BUFFERS, step, &indices, &expected, &error);
        run_side(group, step % BUFFERS, step, &indices, &loss, &error);
        double off = fabs((double)loss - (double)expected);
        for (size_t k = 0; k < floats; k++)
            off = fmax(off, fabs((double)group->gradient[k] - (double)one->gradient[k]));
        const bool same = memcmp(&loss, &expected, sizeof loss) == 0 &&
                          memcmp(group->gradient, one->gradient, floats * sizeof(float)) == 0;
        CHECK(exact ? same : off < 1e-5, "%s, step %d: loss %g, expected %g, and a gradient up to %g off",
              name, step, (double)loss, (double)expected, off);
        for (size_t k = 0; k < floats; k++) /* as a step does */
            one->weights[k] = group->weights[k] = one->weights[k] - 0.1f * one->gradient[k];
    }
    CHECK(error.code == OK, "%s: %s", name, error.words);
}

#endif
