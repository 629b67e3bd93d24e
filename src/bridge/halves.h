/* Floats as halves of 16 bits on their way through a compressor; what a half means is the compressor's. */
#ifndef TRAINER_BRIDGE_HALVES_H
#define TRAINER_BRIDGE_HALVES_H

#include "compressor.h"

static inline size_t halves_bytes(const void *settings, const struct blocks *blocks) {
    (void)settings;
    return blocks->floats * sizeof(uint16_t);
}

/* As compressor.encode. */
static inline size_t halves_encode(const struct blocks *blocks, const float *values, uint8_t *out,
                                   uint16_t (*nearest)(float)) {
    uint8_t *at = out;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        for (size_t i = 0; i < block->floats; i++) {
            const uint16_t half = nearest(values[block->at + i]);
            memcpy(at + i * sizeof half, &half, sizeof half);
        }
        at += block->floats * sizeof(uint16_t);
    }
    return (size_t)(at - out);
}

/* As compressor.decode. */
static inline bool halves_decode(const struct blocks *blocks, const uint8_t *in, size_t count, float *values,
                                 float (*exact)(uint16_t)) {
    if (count != halves_bytes(NULL, blocks)) return false;
    for (int b = 0; b < blocks->count; b++) {
        const struct block *block = &blocks->list[b];
        for (size_t i = 0; i < block->floats; i++) {
            uint16_t half;
            memcpy(&half, in + i * sizeof half, sizeof half);
            values[block->at + i] = exact(half);
        }
        in += block->floats * sizeof(uint16_t);
    }
    return true;
}

#endif
