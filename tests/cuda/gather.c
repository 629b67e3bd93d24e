/* Batches built on the GPU: the same bits as the CPU's, of every kind of example and augmentation, from
 * examples that are kept there and from rows that are sent; and no more is kept than fits. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../cuda/gpu.h"
#include "../../src/base/memory.h"
#include "../../src/base/rng.h"
#include "../check.h"
#include "../gpu_control.h"

extern const struct backend gpu_backend;
static const struct device gpu = {.backend = &gpu_backend, .name = "gpu:0", .threads = 1};
static const struct device cpu = {.name = "cpu:0", .threads = 1};

enum { EXAMPLES = 37, MOST_INDICES = 600, MOST_BYTES = 12 * 10 * 4, MOST_FEATURES = 41 * 5 * 4 };

static uint8_t bytes[EXAMPLES * MOST_BYTES];
static float floats[EXAMPLES * MOST_BYTES];
static int labels[EXAMPLES], indices[MOST_INDICES];
static uint64_t keys[MOST_INDICES];

static void fill(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)rng_philox(3, 0, i).word[0];
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) floats[i] = (float)i * 0.37f - 5.0f;
    for (int i = 0; i < EXAMPLES; i++) labels[i] = i * i % 10;
    for (int i = 0; i < MOST_INDICES; i++) {
        indices[i] = (int)(rng_philox(4, 0, (uint64_t)i).word[0] % EXAMPLES);
        keys[i] = rng_mix(9, (uint64_t)i);
    }
}

/* One batch on both; queued twice in a row with other indices, so that what the first still needs is not
 * overwritten. */
static void check_batch(const struct examples *examples, int count, bool drawn, const char *kind) {
    const struct indices first = {.count = count, .index = indices, .key = drawn ? keys : NULL},
                         second = {.count = count,
                                   .index = indices + MOST_INDICES - count,
                                   .key = drawn ? keys + MOST_INDICES - count : NULL};
    const size_t size = (size_t)count * (size_t)examples->features * sizeof(float), guard = 256;
    struct error error = {0};
    char *host = NULL, *expected = NULL, *on = NULL;
    int *on_labels = NULL, found_labels[2 * MOST_INDICES];
    int code = memory_zeroed((void **)&host, 2 * size + 2 * guard, 1, "batch", &error);
    if (code == OK) code = memory_zeroed((void **)&expected, 2 * size + 2 * guard, 1, "batch", &error);
    if (code == OK) code = gpu.backend->allocate(&gpu, (void **)&on, 2 * size + 2 * guard, "batch", &error);
    if (code == OK)
        code = gpu.backend->allocate(&gpu, (void **)&on_labels, sizeof found_labels, "labels", &error);
    if (code == OK) {
        memset(expected, 0xA5, 2 * size + 2 * guard);
        code = gpu.backend->copy(&gpu, on, expected, 2 * size + 2 * guard, &error);
        backends[0]->gather(&cpu, examples, &first, (float *)(void *)(expected + guard), &error);
        backends[0]->gather(&cpu, examples, &second, (float *)(void *)(expected + guard + size), &error);
    }
    if (code == OK) code = gpu.backend->gather(&gpu, examples, &first, (float *)(void *)(on + guard), &error);
    if (code == OK)
        code = gpu.backend->gather(&gpu, examples, &second, (float *)(void *)(on + guard + size), &error);
    if (code == OK) code = gpu.backend->gather_labels(&gpu, examples, &first, on_labels, &error);
    if (code == OK) code = gpu.backend->gather_labels(&gpu, examples, &second, on_labels + count, &error);
    if (code == OK) code = gpu.backend->copy(&gpu, host, on, 2 * size + 2 * guard, &error);
    if (code == OK) code = gpu.backend->copy(&gpu, found_labels, on_labels, sizeof found_labels, &error);
    CHECK(code == OK, "%s: %s", kind, error.words);
    if (code == OK) {
        size_t wrong = 0, at = 0;
        for (size_t i = 0; i < 2 * size + 2 * guard; i++)
            if (host[i] != expected[i] && wrong++ == 0) at = i;
        CHECK(wrong == 0, "%s, %d of %d numbers: %zu bytes are wrong, the first is %zu", kind, count,
              examples->features, wrong, at);
        for (int i = 0; i < 2 * count; i++) {
            const int index = i < count ? first.index[i] : second.index[i - count];
            CHECK(found_labels[i] == labels[index], "%s: label %d is %d", kind, i, found_labels[i]);
        }
    }
    gpu.backend->release(&gpu, on_labels);
    gpu.backend->release(&gpu, on);
    memory_free(expected);
    memory_free(host);
}

static const struct picker *picker;

/* The batch that is picked, recorded once and replayed for another one: rows, labels and number. Returns
 * whether it was built so. */
static bool check_picked(const struct examples *examples, int count, const char *kind) {
    static float expected[MOST_INDICES * MOST_FEATURES], found[MOST_INDICES * MOST_FEATURES];
    const size_t size = (size_t)count * (size_t)examples->features * sizeof(float);
    int found_labels[MOST_INDICES + 1], *on_labels = NULL;
    void *picks = NULL, *on = NULL, *recording = NULL;
    struct error error = {0};
    bool picked = true;
    const int shift = (MOST_INDICES - count) / 3;
    int code = picker->open(&gpu, examples, count, &picks, &error);
    if (code == OK) code = gpu.backend->allocate(&gpu, &on, size, "batch", &error);
    if (code == OK)
        code = gpu.backend->allocate(&gpu, (void **)&on_labels, sizeof found_labels, "labels", &error);
    for (int run = 0; picks && picked && run < 3 && code == OK; run++) {
        const struct indices batch = {
            .count = count, .index = indices + run * shift, .key = keys + run * shift};
        code = picker->pick(&gpu, picks, &batch, 1000 + run, &picked, &error);
        if (!picked) break;
        if (code == OK && run == 1) code = gpu.backend->record(&gpu, &error);
        if (code == OK && run < 2)
            code = picker->gather(&gpu, picks, on, on_labels, on_labels + count, &error);
        if (code == OK && run == 1) code = gpu.backend->recorded(&gpu, &recording, &error);
        if (code == OK && run >= 1) code = gpu.backend->replay(&gpu, recording, &error);
        if (code == OK) code = gpu.backend->copy(&gpu, found, on, size, &error);
        if (code == OK) code = gpu.backend->copy(&gpu, found_labels, on_labels, sizeof found_labels, &error);
        backends[0]->gather(&cpu, examples, &batch, expected, &error);
        if (code != OK) break;
        CHECK(memcmp(found, expected, size) == 0, "%s, %d picked, run %d: other rows", kind, count, run);
        for (int i = 0; i < count; i++)
            CHECK(found_labels[i] == labels[batch.index[i]], "%s: label %d is %d", kind, i, found_labels[i]);
        CHECK(found_labels[count] == 1000 + run, "%s: number %d", kind, found_labels[count]);
    }
    CHECK(code == OK, "%s, picked: %s", kind, error.words);
    const bool built = picks && picked;
    gpu.backend->forget(&gpu, recording);
    gpu.backend->release(&gpu, on_labels);
    gpu.backend->release(&gpu, on);
    picker->close(&gpu, picks);
    return built;
}

static const struct {
    const char *kind;
    struct augment augment;
} recipes[] = {
    {"crop", {.height = 12, .width = 10, .channels = 3, .rows = 8, .columns = 9}},
    {"pad", {.height = 12, .width = 10, .channels = 3, .pad = 3, .rows = 14, .columns = 11}},
    {"flip", {.height = 12, .width = 10, .channels = 1, .rows = 12, .columns = 10, .flip = 1}},
    {"brightness",
     {.height = 12, .width = 10, .channels = 4, .rows = 12, .columns = 10, .brightness = 63.0f}},
    {"contrast",
     {.height = 12,
      .width = 10,
      .channels = 3,
      .rows = 12,
      .columns = 10,
      .contrast_least = 0.2f,
      .contrast_most = 1.8f}},
    {"rotate",
     {.height = 12, .width = 10, .channels = 3, .pad = 1, .rows = 9, .columns = 10, .rotate = 90.0f}},
    {"cutout", {.height = 12, .width = 10, .channels = 3, .rows = 9, .columns = 10, .cutout = 5}},
    {"standardize", {.height = 12, .width = 10, .channels = 3, .rows = 12, .columns = 10, .standardize = 1}},
    {"all",
     {.height = 12,
      .width = 10,
      .channels = 3,
      .pad = 2,
      .rows = 11,
      .columns = 9,
      .flip = 1,
      .rotate = 15.0f,
      .brightness = 63.0f,
      .contrast_least = 0.2f,
      .contrast_most = 1.8f,
      .cutout = 4,
      .standardize = 1}},
    {"more rows and columns than the image",
     {.height = 40,
      .width = 3,
      .channels = 4,
      .pad = 1,
      .rows = 41,
      .columns = 5,
      .flip = 1,
      .contrast_least = 0.5f,
      .contrast_most = 2.0f}},
};

/* Mixed on both, twice in a row: shares and boxes may change once the call is back. */
static void check_mix(int count) {
    const struct augment a = {.rows = 7, .columns = 5, .channels = 3};
    const size_t numbers = 7 * 5 * 3, all = (size_t)count * numbers, guard = 64;
    const size_t size = (2 * all + guard) * sizeof(float), from = (all + numbers) * sizeof(float);
    static struct augment_mix mix[MOST_INDICES];
    float *expected = malloc(size), *found = malloc(size), *on = NULL, *rows = NULL;
    struct error error = {0};
    int code = gpu.backend->allocate(&gpu, (void **)&on, size, "batch", &error);
    if (code == OK) code = gpu.backend->allocate(&gpu, (void **)&rows, from, "rows", &error);
    if (code == OK) code = gpu.backend->copy(&gpu, rows, floats, from, &error);
    for (size_t i = 0; i < size / sizeof(float); i++) expected[i] = -77.0f;
    if (code == OK) code = gpu.backend->copy(&gpu, on, expected, size, &error);
    for (int pass = 0; code == OK && pass < 2; pass++) {
        for (int i = 0; i < count; i++) {
            const struct rng_block bits = rng_philox(6, (uint64_t)pass, (uint64_t)i);
            mix[i] = (struct augment_mix){.share = rng_unit(bits.word[0]),
                                          .boxed = (int)(bits.word[1] & 1),
                                          .top = augment_below(bits.word[2], 4),
                                          .bottom = 4 + augment_below(bits.word[2], 4),
                                          .left = augment_below(bits.word[3], 3),
                                          .right = 3 + augment_below(bits.word[3], 3)};
        }
        backends[0]->mix(&cpu, &a, mix, count, floats, expected + (size_t)pass * all, &error);
        code = gpu.backend->mix(&gpu, &a, mix, count, rows, on + (size_t)pass * all, &error);
        memset(mix, 0, sizeof mix);
    }
    if (code == OK) code = gpu.backend->copy(&gpu, found, on, size, &error);
    CHECK(code == OK, "%s", error.words);
    CHECK(code != OK || memcmp(found, expected, size) == 0, "%d are mixed otherwise", count);
    gpu.backend->release(&gpu, rows);
    gpu.backend->release(&gpu, on);
    free(found);
    free(expected);
}

/* Targets are rows beside those of the examples. */
static void check_targets(void) {
    enum { OUTPUTS = 3, BATCH = 40 };
    static float targets[EXAMPLES * OUTPUTS];
    const struct examples examples = {
        .count = EXAMPLES, .features = 5, .targets = targets, .outputs = OUTPUTS};
    const struct indices batch = {.count = BATCH, .index = indices};
    float found[BATCH * OUTPUTS];
    void *on = NULL;
    struct error error = {0};
    for (int i = 0; i < EXAMPLES * OUTPUTS; i++) targets[i] = (float)i;
    int code = gpu.backend->allocate(&gpu, &on, sizeof found, "targets", &error);
    if (code == OK) code = device_gather_labels(&gpu, &examples, &batch, on, &error);
    if (code == OK) code = gpu.backend->copy(&gpu, found, on, sizeof found, &error);
    CHECK(code == OK, "%s", error.words);
    for (int i = 0; i < BATCH * OUTPUTS && code == OK; i++)
        CHECK(found[i] == targets[indices[i / OUTPUTS] * OUTPUTS + i % OUTPUTS], "target %d is %g", i,
              (double)found[i]);
    gpu.backend->release(&gpu, on);
}

/* `count`: the examples that there are said to be; `kept`: the GPU has room for them. */
static void check_all(int count, bool kept) {
    struct examples examples = {.count = count, .scale = 1.0f / 255.0f, .labels = labels, .bytes = bytes};
    const int counts[] = {0, 1, 5, 37, 256, 257, 600}, features[] = {1, 3, 17, 100};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (size_t f = 0; f < sizeof features / sizeof *features; f++) {
            examples.features = features[f];
            check_batch(&examples, counts[c], false, "bytes");
            CHECK(check_picked(&examples, counts[c], "bytes") == (kept && counts[c] > 0), "bytes are picked");
            examples.bytes = NULL;
            examples.floats = floats;
            check_batch(&examples, counts[c], true, "floats");
            CHECK(check_picked(&examples, counts[c], "floats") == (kept && counts[c] > 0),
                  "floats are picked");
            examples.bytes = bytes;
        }
        for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
            struct examples images = examples;
            images.augment = recipes[r].augment;
            if (!(images.augment.contrast_most > 0.0f))
                images.augment.contrast_least = images.augment.contrast_most = 1.0f;
            images.features = images.augment.rows * images.augment.columns * images.augment.channels;
            check_batch(&images, counts[c], true, recipes[r].kind);
            check_batch(&images, counts[c], false, recipes[r].kind);
            CHECK(check_picked(&images, counts[c], recipes[r].kind) == (kept && counts[c] > 0),
                  "%d images are picked", counts[c]);
        }
    }
}

/* A copy is made once, however often it is asked for, and given back with the GPU's last device. */
static void test_kept(void) {
    struct error error = {0};
    const void *once = NULL, *again = NULL, *part = NULL;
    CHECK(gpu_open(&gpu, &error) == OK && gpu_open(&gpu, &error) == OK, "%s", error.words);
    const int before = standin_open("allocation");
    CHECK(gpu_examples(&gpu, bytes, sizeof bytes, &once, &error) == OK && once, "%s", error.words);
    CHECK(gpu_examples(&gpu, bytes, sizeof bytes, &again, &error) == OK && again == once, "%s", error.words);
    CHECK(gpu_examples(&gpu, bytes, 100, &part, &error) == OK && part && part != once, "%s", error.words);
    if (STANDIN)
        CHECK(standin_open("allocation") == before + 2, "%d copies", standin_open("allocation") - before);
    gpu_close(&gpu);
    if (STANDIN) CHECK(standin_open("allocation") == before + 2, "given back while a device is open");
    gpu_close(&gpu);
    CHECK(standin_open(NULL) == 0, "%d things are left", standin_open(NULL));
}

/* On a GPU of 1 MB: what would leave less than an eighth of it is not kept. */
static int on_a_small_gpu(void) {
    static uint8_t many[1000000];
    struct error error = {0};
    const void *there = NULL;
    CHECK(gpu_open(&gpu, &error) == OK, "%s", error.words);
    CHECK(gpu_examples(&gpu, many, 930000, &there, &error) == OK && !there, "%s", error.words);
    CHECK(gpu_examples(&gpu, many, 900000, &there, &error) == OK && there, "%s", error.words);
    gpu_close(&gpu);
    CHECK(standin_open(NULL) == 0, "%d things are left", standin_open(NULL));
    return check_end();
}

/* The n-th call fails: words, and everything is given back. */
static void test_failures(void) {
    const struct augment augment = {.height = 12,
                                    .width = 10,
                                    .channels = 3,
                                    .rows = 8,
                                    .columns = 9,
                                    .contrast_least = 1.0f,
                                    .contrast_most = 1.0f,
                                    .standardize = 1};
    const struct examples examples = {.count = EXAMPLES,
                                      .scale = 1.0f,
                                      .labels = labels,
                                      .bytes = bytes,
                                      .features = 216,
                                      .augment = augment};
    const struct indices batch = {.count = 300, .index = indices, .key = keys};
    int failed = 0;
    for (long n = 1;; n++) {
        struct error error = {0};
        void *out = NULL, *out_labels = NULL;
        int code = gpu_open(&gpu, &error);
        if (code == OK) code = gpu_allocate(&gpu, &out, 300 * 216 * sizeof(float), "batch", &error);
        if (code == OK) code = gpu_allocate(&gpu, &out_labels, 300 * sizeof(int), "labels", &error);
        CHECK(code == OK, "%s", error.words);
        const long calls = standin_calls();
        standin_fail(n);
        if (code == OK) code = gpu_gather(&gpu, &examples, &batch, out, &error);
        if (code == OK) code = gpu_gather_labels(&gpu, &examples, &batch, out_labels, &error);
        const bool all = standin_calls() - calls < n;
        standin_fail(0);
        failed += code != OK;
        CHECK(code == OK || (code == ERROR_DEVICE && strncmp(error.words, "gpu:0: ", 7) == 0),
              "call %ld: %d, %s", n, code, error.words);
        gpu_finish(&gpu, &error);
        gpu_release(&gpu, out_labels);
        gpu_release(&gpu, out);
        gpu_close(&gpu);
        CHECK(standin_open(NULL) == 0, "call %ld failed: %d things are left", n, standin_open(NULL));
        if (all || n > 100) break;
    }
    CHECK(failed > 6, "%d calls failed", failed);
}

/* Rows that are sent and work that is done as soon as it is queued: they have to be there before. */
static int on_an_eager_gpu(void) {
    struct error error = {0};
    CHECK(gpu_open(&gpu, &error) == OK, "%s", error.words);
    check_all(INT32_MAX, false);
    gpu_close(&gpu);
    return check_end();
}

/* In a process of its own, before this one's stand-in reads its settings. */
static void test_other_gpu(const char *name, int (*body)(void)) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        setenv(name, "1", 1);
        exit(body());
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "with %s=1: status %d", name, status);
}

/* More than the GPU has memory for: rows are sent. The stand-in's is outgrown by examples that there are not;
 * a real one is filled up first, but for less than is kept free. */
static void check_sent(void) {
    const size_t some = (size_t)64 << 20;
    size_t free_bytes = 0, total = 0;
    void *most = NULL;
    if (STANDIN) {
        check_all(INT32_MAX, false);
        CHECK(standin_open("host allocation") == 2, "%d blocks to send from",
              standin_open("host allocation"));
        return;
    }
    cudaError_t code = cudaMemGetInfo(&free_bytes, &total);
    if (code == cudaSuccess && free_bytes + some > total / 8)
        code = cudaMalloc(&most, free_bytes + some - total / 8);
    CHECK(code == cudaSuccess, "%s", cudaGetErrorString(code));
    if (code == cudaSuccess) check_all(EXAMPLES, false);
    cudaFree(most);
}

int main(void) {
    struct error error = {0};
    fill();
    picker = gpu.backend->picker;
    if (STANDIN) {
        test_other_gpu("STANDIN_MEMORY", on_a_small_gpu);
        test_other_gpu("STANDIN_EAGER", on_an_eager_gpu);
    }
    gpu_or_skip();
    CHECK(gpu_open(&gpu, &error) == OK, "%s", error.words);
    check_all(EXAMPLES, true);
    for (int count = 0; count < 40; count += 3) check_mix(count);
    for (int count = 126; count < 132; count++) check_mix(count);
    check_targets();
    CHECK(standin_open("host allocation") == 0, "rows were sent though all fits");
    gpu_close(&gpu);
    CHECK(gpu_open(&gpu, &error) == OK, "%s", error.words);
    check_sent();
    gpu_close(&gpu);
    test_kept();
    if (STANDIN) test_failures();
    return check_end();
}
