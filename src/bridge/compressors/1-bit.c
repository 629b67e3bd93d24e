/* The sign of each float, and of every 4096 two sizes: what the positive ones are on average, and the
 * negative ones. 1/32 of the bytes. Source: Seide et al., "1-bit stochastic gradient descent", Interspeech
 * 2014. */
#include "../compressor.h"

enum { CHUNK = 4096 };

static size_t chunk_bytes(size_t floats) {
    return 2 * sizeof(float) + (floats + 7) / 8;
}

static size_t bytes(const void *settings, const struct blocks *blocks) {
    size_t sum = 0;
    (void)settings;
    for (int b = 0; b < blocks->count; b++) {
        const size_t floats = blocks->list[b].floats;
        sum += floats / CHUNK * chunk_bytes(CHUNK);
        if (floats % CHUNK) sum += chunk_bytes(floats % CHUNK);
    }
    return sum;
}

/* A value that is no number counts as a negative one, whose average then is none either. */
static void encode_chunk(const float *values, size_t count, uint8_t *out) {
    float sum[2] = {0}, size[2];
    size_t number[2] = {0};
    for (size_t i = 0; i < count; i++) {
        const int positive = values[i] >= 0.0f;
        sum[positive] += values[i];
        number[positive]++;
    }
    for (int s = 0; s < 2; s++) size[s] = number[s] > 0 ? sum[s] / (float)number[s] : 0.0f;
    memcpy(out, size, sizeof size);
    out += sizeof size;
    memset(out, 0, (count + 7) / 8);
    for (size_t i = 0; i < count; i++) out[i / 8] |= (uint8_t)((values[i] >= 0.0f) << (i % 8));
}

static size_t encode(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out) {
    uint8_t *at = out;
    (void)settings, (void)scratch;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        for (size_t i = 0; i < block->floats; i += CHUNK) {
            const size_t count = block->floats - i < CHUNK ? block->floats - i : CHUNK;
            encode_chunk(values + block->at + i, count, at);
            at += chunk_bytes(count);
        }
    }
    return (size_t)(at - out);
}

static bool decode(const void *settings, const struct blocks *blocks, const uint8_t *in, size_t count,
                   float *scratch, float *values) {
    (void)scratch;
    if (count != bytes(settings, blocks)) return false;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        for (size_t i = 0; i < block->floats; i += CHUNK) {
            const size_t floats = block->floats - i < CHUNK ? block->floats - i : CHUNK;
            float size[2];
            memcpy(size, in, sizeof size);
            const uint8_t *bits = in + sizeof size;
            for (size_t j = 0; j < floats; j++) values[block->at + i + j] = size[bits[j / 8] >> (j % 8) & 1];
            in += chunk_bytes(floats);
        }
    }
    return true;
}

const struct compressor compressor_1_bit = {
    .plugin = {.name = "1-bit", .help = "1/32 of the bytes: the signs, and two sizes for every 4096 floats"},
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};
