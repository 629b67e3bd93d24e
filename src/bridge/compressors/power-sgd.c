/* Of each matrix M two thin ones, P and Q, whose product is near it: by power iteration from random columns.
 * These are drawn by a number of the matrix itself, so they change from step to step, and nothing is kept.
 * Vectors, and matrices too small to gain, go as they are. Bytes: rank * (rows + columns) floats of rows *
 * columns. Source: Vogels et al., "PowerSGD", NeurIPS 2019, which begins with the last step's Q instead of
 * iterating. */
#include <math.h>

#include "../../base/rng.h"
#include "../compressor.h"

struct power_settings {
    int rank, iterations;
};

static const struct option rows[] = {
    OPTION_ROW(INT, "rank", struct power_settings, rank, .fallback = "4", .least = 1, .most = 64,
               .help = "columns of the thin matrices"),
    OPTION_ROW(INT, "iterations", struct power_settings, iterations, .fallback = "2", .least = 1, .most = 16,
               .help = "passes over each matrix; more come nearer to it"),
    {0},
};

static size_t columns_of(const struct block *block) {
    return block->rows > 0 ? block->floats / block->rows : 0;
}

/* Floats of P and Q; 0: the block goes as it is. */
static size_t thin_floats(const void *settings, const struct block *block) {
    const size_t rank = (size_t)((const struct power_settings *)settings)->rank;
    const size_t floats = rank * (block->rows + columns_of(block));
    return block->rows > 0 && floats < block->floats ? floats : 0;
}

static size_t floats_of(const void *settings, const struct block *block) {
    const size_t thin = thin_floats(settings, block);
    return thin > 0 ? thin : block->floats;
}

static size_t bytes(const void *settings, const struct blocks *blocks) {
    size_t floats = 0;
    for (int b = 0; b < blocks->count; b++) floats += floats_of(settings, &blocks->list[b]);
    return floats * sizeof(float);
}

static size_t scratch_floats(const void *settings, const struct blocks *blocks) {
    size_t most = 0;
    for (int b = 0; b < blocks->count; b++) {
        const size_t floats = thin_floats(settings, &blocks->list[b]);
        if (floats > most) most = floats;
    }
    return most;
}

/* With eight sums, which a processor adds at once. */
static float dot(const float *a, const float *b, size_t count) {
    float sums[8] = {0}, sum = 0.0f;
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; k++) sums[k] += a[i + (size_t)k] * b[i + (size_t)k];
    for (; i < count; i++) sum += a[i] * b[i];
    for (int k = 0; k < 8; k++) sum += sums[k];
    return sum;
}

/* Each of the rank rows of p[rank][count] at right angles to those before, and 1 long; a row of zeros stays.
 */
static void make_orthonormal(float *p, size_t rank, size_t count) {
    for (size_t k = 0; k < rank; k++) {
        float *row = p + k * count;
        for (size_t other = 0; other < k; other++) {
            const float *before = p + other * count, along = dot(row, before, count);
            for (size_t i = 0; i < count; i++) row[i] -= along * before[i];
        }
        const float length = sqrtf(dot(row, row, count));
        if (length == 0.0f) continue;
        for (size_t i = 0; i < count; i++) row[i] /= length;
    }
}

/* p[rank][height] orthonormal and q[rank][width] = p M, so that the sum over k of p[k] q[k]' is near M. */
static void approximate(const struct power_settings *power, const float *matrix, size_t height, size_t width,
                        float *p, float *q) {
    const size_t rank = (size_t)power->rank;
    const float squares = dot(matrix, matrix, height * width);
    uint32_t key;
    memcpy(&key, &squares, sizeof key);
    for (size_t i = 0; i < rank * width; i++) {
        const struct rng_block random = rng_philox(key, 0, i);
        q[i] = rng_unit(random.word[0]) + rng_unit(random.word[1]) - 1.0f;
    }
    for (int n = 0; n < power->iterations; n++) {
        for (size_t i = 0; i < height; i++)
            for (size_t k = 0; k < rank; k++)
                p[k * height + i] = dot(matrix + i * width, q + k * width, width);
        make_orthonormal(p, rank, height);
        memset(q, 0, rank * width * sizeof *q);
        for (size_t i = 0; i < height; i++)
            for (size_t k = 0; k < rank; k++) {
                const float *row = matrix + i * width, factor = p[k * height + i];
                float *sum = q + k * width;
                for (size_t j = 0; j < width; j++) sum[j] += factor * row[j];
            }
    }
}

static size_t encode(const void *settings, const struct blocks *blocks, const float *values, float *scratch,
                     uint8_t *out) {
    const struct power_settings *power = settings;
    uint8_t *at = out;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        const size_t floats = floats_of(settings, block);
        const float *sent = values + block->at;
        if (thin_floats(settings, block) > 0) {
            sent = scratch;
            approximate(power, values + block->at, block->rows, columns_of(block), scratch,
                        scratch + (size_t)power->rank * block->rows);
        }
        memcpy(at, sent, floats * sizeof *sent);
        at += floats * sizeof *sent;
    }
    return (size_t)(at - out);
}

/* matrix[height][width] = the sum over k of p[k] q[k]'. */
static void multiply(float *matrix, size_t height, size_t width, size_t rank, const float *p,
                     const float *q) {
    memset(matrix, 0, height * width * sizeof *matrix);
    for (size_t i = 0; i < height; i++)
        for (size_t k = 0; k < rank; k++) {
            const float factor = p[k * height + i], *row = q + k * width;
            for (size_t j = 0; j < width; j++) matrix[i * width + j] += factor * row[j];
        }
}

static bool decode(const void *settings, const struct blocks *blocks, const uint8_t *in, size_t count,
                   float *scratch, float *values) {
    const size_t rank = (size_t)((const struct power_settings *)settings)->rank;
    if (count != bytes(settings, blocks)) return false;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        const size_t sent = floats_of(settings, block) * sizeof(float);
        if (thin_floats(settings, block) == 0) {
            memcpy(values + block->at, in, sent);
        } else {
            memcpy(scratch, in, sent);
            multiply(values + block->at, block->rows, columns_of(block), rank, scratch,
                     scratch + rank * block->rows);
        }
        in += sent;
    }
    return true;
}

const struct compressor compressor_power_sgd = {
    .plugin = {.name = "power-sgd",
               .help = "of each matrix two thin ones, whose product is near it",
               .options = rows,
               .settings_bytes = sizeof(struct power_settings)},
    .bytes = bytes,
    .scratch = scratch_floats,
    .encode = encode,
    .decode = decode,
};
