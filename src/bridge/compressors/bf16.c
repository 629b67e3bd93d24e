/* The upper half of each float, to the nearest: half of the bytes, the same range, 8 bits of precision. */
#include "../../device/bf16.h"
#include "../halves.h"

static size_t encode(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out) {
    (void)settings, (void)scratch;
    return halves_encode(blocks, values, out, bf16_nearest);
}

static bool decode(const void *settings, const struct blocks *blocks, const uint8_t *in, size_t count,
                   float *scratch, float *values) {
    (void)settings, (void)scratch;
    return halves_decode(blocks, in, count, values, bf16_float);
}

const struct compressor compressor_bf16 = {
    .plugin = {.name = "bf16", .help = "half of the bytes: each float rounded to bfloat16"},
    .bytes = halves_bytes,
    .encode = encode,
    .decode = decode,
};
