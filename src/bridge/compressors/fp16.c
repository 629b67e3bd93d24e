/* Each float to the nearest float16: half of the bytes, 11 bits of precision, at most 65504. */
#include "../../base/half.h"
#include "../compressor.h"

static size_t bytes(const void *settings, const struct blocks *blocks) {
    (void)settings;
    return blocks->floats * sizeof(uint16_t);
}

static size_t encode(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out) {
    size_t used = 0;
    (void)settings, (void)scratch;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        for (size_t i = 0; i < block->floats; i++) {
            const uint16_t half = half_nearest(values[block->at + i]);
            memcpy(out + used + i * sizeof half, &half, sizeof half);
        }
        used += block->floats * sizeof(uint16_t);
    }
    return used;
}

static bool decode(const void *settings, const struct blocks *blocks, const uint8_t *in, size_t count,
                   float *scratch, float *values) {
    (void)scratch;
    if (count != bytes(settings, blocks)) return false;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        for (size_t i = 0; i < block->floats; i++) {
            uint16_t half;
            memcpy(&half, in + i * sizeof half, sizeof half);
            values[block->at + i] = half_float(half);
        }
        in += block->floats * sizeof(uint16_t);
    }
    return true;
}

const struct compressor compressor_fp16 = {
    .plugin = {.name = "fp16", .help = "half of the bytes: each float rounded to float16"},
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
