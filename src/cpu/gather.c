/* Builds a batch from examples picked by number: bytes are scaled to floats, images augmented, floats copied.
 */
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

/* Images: each is drawn its place and change by its key. */
static void gather_images(const struct examples *examples, const struct indices *indices, float *out) {
    enum { AHEAD = 2 };
    const struct augment *augment = &examples->augment;
    const size_t bytes = (size_t)augment->height * (size_t)augment->width * (size_t)augment->channels;
    for (int i = 0; i < indices->count; i++) {
        const struct augment_draw draw =
            indices->key ? augment_draw(augment, indices->key[i]) : augment_centre(augment);
        if (i + AHEAD < indices->count)
            fetch_ahead(examples->bytes + (size_t)indices->index[i + AHEAD] * bytes, bytes);
        cpu_augment(augment, &draw, examples->bytes + (size_t)indices->index[i] * bytes, examples->scale,
                    out + (size_t)i * (size_t)examples->features);
    }
}

static void gather_rows(const struct examples *examples, const struct indices *indices, float *out) {
    enum { AHEAD = 4 };
    const size_t features = (size_t)examples->features;
    for (int i = 0; i < indices->count; i++) {
        const size_t from = (size_t)indices->index[i] * features;
        float *row = out + (size_t)i * features;
        if (examples->bytes) {
            if (i + AHEAD < indices->count)
                fetch_ahead(examples->bytes + (size_t)indices->index[i + AHEAD] * features, features);
            scale_row(examples->bytes + from, examples->scale, features, row);
        } else {
            memcpy(row, examples->floats + from, features * sizeof *row);
        }
    }
}

int cpu_gather(const struct device *device, const struct examples *examples, const struct indices *indices,
               float *out, struct error *error) {
    (void)device, (void)error;
    if (examples->bytes && examples->augment.height > 0)
        gather_images(examples, indices, out);
    else
        gather_rows(examples, indices, out);
    return OK;
}

int cpu_gather_labels(const struct device *device, const struct examples *examples,
                      const struct indices *indices, int *out, struct error *error) {
    (void)device, (void)error;
    for (int i = 0; i < indices->count; i++) out[i] = examples->labels[indices->index[i]];
    return OK;
}
