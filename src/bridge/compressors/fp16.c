/* Each float to the nearest float16: half of the bytes, 11 bits of precision, at most 65504. */
#include "../../base/half.h"
#include "../halves.h"

static float exact(uint16_t half) {
    return half_float(half);
}

static size_t encode(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out) {
    (void)settings, (void)scratch;
    return halves_encode(blocks, values, out, half_nearest);
}

static bool decode(const void *settings, const struct blocks *blocks, const uint8_t *in, size_t count,
                   float *scratch, float *values) {
    (void)settings, (void)scratch;
    return halves_decode(blocks, in, count, values, exact);
}

const struct compressor compressor_fp16 = {
    .plugin = {.name = "fp16", .help = "half of the bytes: each float rounded to float16"},
    .bytes = halves_bytes,
    .encode = encode,
    .decode = decode,
};
