/* Micro-batches: loss and gradient of a batch in M parts are, bit for bit, those of M replicas' steps of such
 * a part each, added by hand in their order and divided; with dropout, statistics, mixed examples and in
 * every input buffer, on every kind of device. Without what depends on the batch they are those of the whole
 * batch, as far as rounding allows. */
#include <math.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/engine/replica.h"
#include "../../src/graph/model.h"
#include "../check.h"

enum { EXAMPLES = 31, SIDE = 6, PIXELS = SIDE * SIDE, CLASSES = 4, BATCH = 12, BUFFERS = 2, STEPS = 3 };

static uint8_t bytes[EXAMPLES * PIXELS];
static int labels[EXAMPLES];
static int index_of[BATCH + 1];
static uint64_t key_of[BATCH + 1];

/* A network on one device. */
struct side {
    struct network network;
    struct replicas replicas;
    struct compute compute;
    float *weights, *gradient; /* [layout floats] in the host's memory */
};

static int open_side(struct side *side, const struct device *device, const char *layers,
                     const struct examples *examples, int microbatches, int batch, struct error *error) {
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
    side->compute = replicas_compute(&side->replicas);
    RETURN_IF(side->compute.open(side->compute.self, 0, error));
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

static int run_side(struct side *side, int buffer, long number, const struct indices *indices, float *loss,
                    struct error *error) {
    const struct compute *compute = &side->compute;
    struct outcome outcome = {0};
    RETURN_IF(compute->load(compute->self, 0, buffer, number, indices, error));
    RETURN_IF(compute->run(compute->self, 0, buffer, side->weights, side->gradient, loss, error));
    RETURN_IF(compute->synchronize(compute->self, 0, false, &outcome, error));
    *loss = outcome.loss;
    return OK;
}

/* What a batch in M parts is to give, from a replica of a part. */
static int add_by_hand(struct side *one, int microbatches, long number, float *loss, float *sum,
                       struct error *error) {
    const int part = BATCH / microbatches;
    double losses = 0.0;
    for (int m = 0; m < microbatches; m++) {
        const struct indices indices = {
            .count = part, .index = index_of + m * part, .key = key_of + m * part};
        RETURN_IF(run_side(one, 0, number * microbatches + m, &indices, loss, error));
        losses += (double)*loss;
        for (size_t k = 0; k < one->network.graph.layout.floats; k++)
            sum[k] = m == 0 ? one->gradient[k] : sum[k] + one->gradient[k];
    }
    *loss = (float)(losses / microbatches);
    for (size_t k = 0; k < one->network.graph.layout.floats && microbatches > 1; k++)
        sum[k] *= 1.0f / (float)microbatches;
    return OK;
}

static void draw_batch(int step) {
    for (int i = 0; i <= BATCH; i++) {
        index_of[i] = (i * 7 + step * 5) % EXAMPLES;
        key_of[i] = rng_mix((uint64_t)step, (uint64_t)i);
    }
}

static double furthest(const float *one, const float *other, size_t floats) {
    double most = 0.0;
    for (size_t k = 0; k < floats; k++) most = fmax(most, fabs((double)one[k] - (double)other[k]));
    return most;
}

/* Several steps, through all input buffers. exact: else rounding may differ, as the parts are not those that
 * are added. */
static int compare(struct side *parts, struct side *other, int microbatches, bool exact, const char *name,
                   struct error *error) {
    const size_t floats = parts->network.graph.layout.floats;
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    float *sum = NULL, loss = 0.0f, expected = 0.0f;
    RETURN_IF(memory_array(&sum, floats, "a sum", error));
    int code = OK;
    for (int step = 0; step < STEPS && code == OK; step++) {
        draw_batch(step);
        code = run_side(parts, step % BUFFERS, step, &indices, &loss, error);
        if (code == OK) code = add_by_hand(other, exact ? microbatches : 1, step, &expected, sum, error);
        if (code != OK) break;
        const double off = furthest(parts->gradient, sum, floats);
        if (exact) {
            CHECK(memcmp(&loss, &expected, sizeof loss) == 0, "%s, %d parts, step %d: loss %g, expected %g",
                  name, microbatches, step, (double)loss, (double)expected);
            CHECK(memcmp(parts->gradient, sum, floats * sizeof *sum) == 0,
                  "%s, %d parts, step %d: the gradient is %g off", name, microbatches, step, off);
        } else {
            CHECK(fabsf(loss - expected) < 1e-5f && off < 1e-5 && off >= 0.0,
                  "%s, %d parts, step %d: loss %g, expected %g; the gradient is %g off", name, microbatches,
                  step, (double)loss, (double)expected, off);
        }
        CHECK(loss > 0.5f && furthest(sum, parts->weights, floats) > 1e-3, "%s: nothing is learnt", name);
    }
    memory_free(sum);
    return code;
}

static void check(const struct device *device, const char *layers, const struct examples *examples,
                  int microbatches, bool exact) {
    struct error error = {0};
    struct side parts, other;
    const int part = BATCH / microbatches;
    int code = open_side(&parts, device, layers, examples, microbatches, part, &error);
    const int also = open_side(&other, device, layers, examples, 1, exact ? part : BATCH, &error);
    if (code == OK && also == OK) code = compare(&parts, &other, microbatches, exact, device->name, &error);
    CHECK(code == OK && also == OK, "%s: %s", device->name, error.words);
    close_side(&other);
    close_side(&parts);
}

static void check_device(const struct device *device) {
    static const char plain[] = "layers:conv 3 3x3 same relu; maxpool 2; flatten; dense 7 tanh; dense";
    static const char drawn[] =
        "layers:conv 3 3x3 same; batch_norm; relu; flatten; dense 9 relu; dropout 0.4; dense";
    static const int counts[] = {1, 2, 3, 6, 12};
    const struct examples usual = {.count = EXAMPLES,
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
                                               .contrast_most = 1.0f}};
    struct examples mixed = usual;
    mixed.augment.mixup = 0.6f;
    mixed.augment.cutmix = 0.9f;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check(device, drawn, &usual, counts[i], true);
        check(device, drawn, &mixed, counts[i], true);
        check(device, plain, &usual, counts[i], false);
    }
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_philox(4, 0, i).word[0];
    for (int i = 0; i < EXAMPLES; i++) labels[i] = i * 5 % CLASSES;
    for (const struct backend *const *backend = backends; *backend; backend++) {
        struct error error = {0};
        struct device *devices = NULL;
        int count = 0;
        bool shared = false;
        char name[16];
        if ((*backend)->count() == 0) continue;
        snprintf(name, sizeof name, "%s:0", (*backend)->name);
        const struct device_settings settings = {.threads = 1, .reference_only = true, .deterministic = true};
        CHECK(devices_open(name, &settings, &devices, &count, &shared, &error) == OK, "%s", error.words);
        if (count > 0) check_device(&devices[0]);
        devices_close(devices, count);
    }
    return check_end();
}
