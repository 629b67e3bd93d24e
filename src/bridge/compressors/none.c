/* Every float as it is. */
#include "../compressor.h"

static size_t bytes(const void *settings, const struct blocks *blocks) {
    (void)settings;
    return blocks->floats * sizeof(float);
}

static size_t encode(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out) {
    uint8_t *at = out;
    (void)settings, (void)scratch;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        memcpy(at, values + block->at, block->floats * sizeof(float));
        at += block->floats * sizeof(float);
    }
    return (size_t)(at - out);
}

static bool decode(const void *settings, const struct blocks *blocks, const uint8_t *in, size_t count,
                   float *scratch, float *values) {
    (void)scratch;
    if (count != bytes(settings, blocks)) return false;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        memcpy(values + block->at, in, block->floats * sizeof(float));
        in += block->floats * sizeof(float);
    }
    return true;
}

const struct compressor compressor_none = {
    .plugin = {.name = "none", .help = "every float as it is"},
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
