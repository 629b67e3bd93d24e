/* Builds a batch from examples picked by number: bytes are scaled to floats, floats are copied. */
#include <string.h>
#include "../base/memory.h"
#include "cpu.h"

/* The examples lie scattered over more memory than the caches hold: asks for one that is needed soon. */
static void fetch_ahead(const void *row, size_t bytes) {
    for (size_t at = 0; at < bytes; at += CACHE_LINE) __builtin_prefetch((const char *)row + at);
}

static void scale_row(const uint8_t *restrict bytes, float scale, size_t features, float *restrict out) {
    for (size_t j = 0; j < features; j++) out[j] = (float)bytes[j] * scale;
}

void cpu_gather(const struct device *device, const struct examples *examples, const int *index, int count,
                float *out) {
    (void)device;
    enum { AHEAD = 4 };
    const size_t features = (size_t)examples->features;
    for (int i = 0; i < count; i++) {
        const size_t from = (size_t)index[i] * features;
        float *row = out + (size_t)i * features;
        if (examples->bytes) {
            if (i + AHEAD < count)
                fetch_ahead(examples->bytes + (size_t)index[i + AHEAD] * features, features);
            scale_row(examples->bytes + from, examples->scale, features, row);
        } else {
            memcpy(row, examples->floats + from, features * sizeof *row);
        }
    }
}

void cpu_gather_labels(const struct device *device, const struct examples *examples, const int *index,
                       int count, int *out) {
    (void)device;
    for (int i = 0; i < count; i++) out[i] = examples->labels[index[i]];
}
