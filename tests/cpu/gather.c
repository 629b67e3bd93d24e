/* Batches: every number that gather writes is the one that a plain reading of the examples gives, to the bit,
 * and nothing is written beside them. */
#include "../../src/device/device.h"

#include <stdint.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../check.h"

enum { EXAMPLES = 37, GUARD = 64 };

static const struct device device = {.name = "cpu:0", .threads = 1};

/* Rows picked forwards, backwards and twice. */
static int pick(int i) {
    return (i * 11 + 5) % EXAMPLES;
}

static void check_batch(const struct examples *examples, const int *index, int count, float *block,
                        const char *kind) {
    const size_t features = (size_t)examples->features, floats = (size_t)count * features;
    float *out = block + GUARD;
    for (size_t i = 0; i < floats + 2 * GUARD; i++) block[i] = -77.0f;
    const struct indices indices = {.count = count, .index = index};
    backends[0]->gather(&device, examples, &indices, out, NULL);
    size_t wrong = 0, touched = 0;
    for (size_t i = 0; i < floats; i++) {
        const size_t from = (size_t)index[i / features] * features + i % features;
        const float expected =
            examples->bytes ? (float)examples->bytes[from] * examples->scale : examples->floats[from];
        wrong += memcmp(&out[i], &expected, sizeof expected) != 0;
    }
    for (size_t i = 0; i < GUARD; i++) touched += block[i] != -77.0f || out[floats + i] != -77.0f;
    CHECK(wrong == 0, "%s: %zu wrong of %zu (%d x %d)", kind, wrong, floats, count, examples->features);
    CHECK(touched == 0, "%s: %zu written outside of %d x %d", kind, touched, count, examples->features);

    int labels[EXAMPLES + 1];
    for (int i = 0; i <= count; i++) labels[i] = -1;
    backends[0]->gather_labels(&device, examples, &indices, labels, NULL);
    for (int i = 0; i < count; i++)
        CHECK(labels[i] == examples->labels[index[i]], "label %d is %d", i, labels[i]);
    CHECK(labels[count] == -1, "label %d written", count);
}

static void check_features(int features, struct error *error) {
    const size_t all = (size_t)EXAMPLES * (size_t)features;
    uint8_t *bytes = NULL;
    float *floats = NULL, *out = NULL;
    int labels[EXAMPLES], index[EXAMPLES];
    if (memory_zeroed((void **)&bytes, all, 1, "bytes", error) ||
        memory_zeroed((void **)&floats, all, sizeof *floats, "floats", error) ||
        memory_zeroed((void **)&out, all + 2 * GUARD, sizeof *out, "out", error)) {
        CHECK(0, "%s", error->words);
    } else {
        for (size_t i = 0; i < all; i++) bytes[i] = (uint8_t)(i * 37 + 11);
        for (size_t i = 0; i < all; i++) floats[i] = (float)i * 0.37f - 5.0f;
        for (int i = 0; i < EXAMPLES; i++) labels[i] = i * i % 10;
        for (int i = 0; i < EXAMPLES; i++) index[i] = pick(i);
        struct examples examples = {.count = EXAMPLES,
                                    .features = features,
                                    .bytes = bytes,
                                    .scale = 1.0f / 255.0f,
                                    .labels = labels};
        for (int count = 0; count <= EXAMPLES; count += count < 8 ? 1 : 29)
            check_batch(&examples, index, count, out, "bytes");
        index[1] = index[0];
        check_batch(&examples, index, 5, out, "one row twice");
        examples.bytes = NULL;
        examples.floats = floats;
        check_batch(&examples, index, EXAMPLES, out, "floats");
    }
    memory_free(out);
    memory_free(floats);
    memory_free(bytes);
}

int main(void) {
    struct error error = {0};
    const int features[] = {1, 3, 15, 16, 17, 64, 100, 784};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) check_features(features[i], &error);
    return check_end();
}
