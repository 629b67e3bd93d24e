/* The upper half of each float, to the nearest: half of the bytes, the same range, 8 bits of precision. */
#include "../../device/bf16.h"
#include "../compressor.h"

static size_t bytes(const void *settings, const struct blocks *blocks) {
    (void)settings;
    return blocks->floats * sizeof(bf16);
}

static size_t encode(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out) {
    size_t used = 0;
    (void)settings, (void)scratch;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        for (size_t i = 0; i < block->floats; i++) {
            const bf16 half = bf16_nearest(values[block->at + i]);
            memcpy(out + used + i * sizeof half, &half, sizeof half);
        }
        used += block->floats * sizeof(bf16);
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
            bf16 half;
            memcpy(&half, in + i * sizeof half, sizeof half);
            values[block->at + i] = bf16_float(half);
        }
        in += block->floats * sizeof(bf16);
    }
    return true;
}

const struct compressor compressor_bf16 = {
    .plugin = {.name = "bf16", .help = "half of the bytes: each float rounded to bfloat16"},
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
