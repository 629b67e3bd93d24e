/* Times the building of batches of CIFAR-10 on one core: images anywhere in 154 MB of bytes, each chain of
 * augmentation. The keys are drawn anew for every batch, as in training.
 *
 *   bench/input [BATCH]      128 unless given
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/data/augment.h"
#include "../src/data/stream.h"
#include "../src/device/device.h"

enum { EXAMPLES = 50000, SIDE = 32, CHANNELS = 3, PIXELS = SIDE * SIDE * CHANNELS };

static const struct row {
    const char *what, *settings;
    bool test;
} rows[] = {
    {"scaled only", "", false},
    {"tests: central crop, standardized", "crop=24,standardize=image", true},
    {"crop=24, standardized", "crop=24,standardize=image", false},
    {"augment=distnet", "augment=distnet", false},
    {"crop=24, rotate=15, standardized", "crop=24,rotate=15,standardize=image", false},
    {"pad=4, flip, cutout=8, standardized", "pad=4,flip=1,cutout=8,standardize=image", false},
};

struct input_settings {
    struct augment_settings augment;
};
static const struct option options[] = {AUGMENT_ROWS(struct input_settings, "none"), {0}};
static const struct plugin plugin = {
    .name = "input", .options = options, .settings_bytes = sizeof(struct input_settings)};

struct bench {
    struct world *world;
    struct examples examples;
    struct stream stream;
    long number;
    int *index;    /* [batch] */
    uint64_t *key; /* [batch] */
    float *out;    /* [batch][PIXELS] */
};

static void build(struct bench *bench, bool test) {
    const struct device device = {.name = "cpu:0", .threads = 1};
    const struct indices indices = {
        .count = bench->stream.batch, .index = bench->index, .key = test ? NULL : bench->key};
    stream_batch(&bench->stream, 0, bench->number, bench->index);
    stream_keys(&bench->stream, 0, bench->number, bench->key);
    bench->number++;
    backends[0]->gather(&device, &bench->examples, &indices, bench->out, NULL);
}

/* Milliseconds a batch: the mean over a second, and the fastest ten batches in a row. */
static void measure(struct bench *bench, const struct row *row) {
    enum { RUNS = 10 };
    const double begin = world_now(bench->world);
    double best = INFINITY, now = begin;
    long batches = 0;
    while (now < begin + 1.0) {
        const double from = now;
        for (int i = 0; i < RUNS; i++) build(bench, row->test);
        now = world_now(bench->world);
        best = fmin(best, (now - from) / RUNS);
        batches += RUNS;
    }
    printf("%-38s %8.3f %8.3f %12.0f\n", row->what, 1e3 * (now - begin) / (double)batches, 1e3 * best,
           (double)bench->stream.batch * (double)batches / (now - begin));
}

static int run_row(struct bench *bench, const struct row *row, struct error *error) {
    const struct plugin *const plugins[] = {&plugin, NULL};
    const struct plugin_kind kind = {"input", "inputs", plugins};
    const struct shape stored = SHAPE(SIDE, SIDE, CHANNELS);
    struct choice choice;
    struct shape given;
    char text[128];
    snprintf(text, sizeof text, "input%s%s", row->settings[0] ? ":" : "", row->settings);
    RETURN_IF(plugin_choose(&choice, &kind, text, error));
    RETURN_IF(augment_choose(&bench->examples.augment, &given, (const void *)choice.settings, "input",
                             &stored, error));
    bench->examples.features = given.dims[0] * given.dims[1] * given.dims[2];
    measure(bench, row);
    return OK;
}

int main(int count, char **arguments) {
    struct error error = {0};
    struct bench bench = {
        .examples = {.count = EXAMPLES, .scale = 1.0f / 255.0f},
        .stream = {
            .seed = 1, .examples = EXAMPLES, .batch = count > 1 ? atoi(arguments[1]) : 128, .workers = 1}};
    void *bytes = NULL, *index = NULL, *key = NULL, *out = NULL;
    const size_t batch = (size_t)(bench.stream.batch > 0 ? bench.stream.batch : 1);
    int code = world_open_threads(&bench.world, &error);
    if (code == OK) code = memory_zeroed(&bytes, EXAMPLES, PIXELS, "images", &error);
    if (code == OK) code = memory_zeroed(&index, batch, sizeof(int), "numbers", &error);
    if (code == OK) code = memory_zeroed(&key, batch, sizeof(uint64_t), "keys", &error);
    if (code == OK) code = memory_zeroed(&out, batch * PIXELS, sizeof(float), "a batch", &error);
    if (code == OK) {
        for (size_t i = 0; i < (size_t)EXAMPLES * PIXELS; i++)
            ((uint8_t *)bytes)[i] = (uint8_t)(i * 2654435761u >> 13);
        bench.examples.bytes = bytes;
        bench.index = index;
        bench.key = key;
        bench.out = out;
        printf("batch %d, one core            ms a batch: mean  fastest   examples/s\n", bench.stream.batch);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows && code == OK; i++)
        code = run_row(&bench, &rows[i], &error);
    memory_free(out);
    memory_free(key);
    memory_free(index);
    memory_free(bytes);
    world_close(bench.world);
    if (code != OK) fprintf(stderr, "%s\n", error.words);
    return code;
}
