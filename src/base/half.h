/* float16 (IEEE 754 binary16) in files and frames: its bits as a float, exactly, and a float's nearest. */
#ifndef TRAINER_BASE_HALF_H
#define TRAINER_BASE_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float half_float(unsigned bits) {
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023, sign = (bits & 0x8000u) << 16;
    uint32_t single = (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13 | sign;
    float value;
    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f;
        memcpy(&single, &value, sizeof single);
        single |= sign;
    }
    memcpy(&value, &single, sizeof value);
    return value;
}

/* To the nearest, of two equally near ones the even. What is finite stays so: it becomes 65504 at most. */
static inline uint16_t half_nearest(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t size = bits & 0x7FFFFFFFu, sign = bits >> 16 & 0x8000u;
    const uint32_t rounded = (size + 0xFFFu + (size >> 13 & 1u) - (112u << 23)) >> 13;
    if (size > 0x7F800000u) return (uint16_t)(sign | 0x7E00u);  /* not a number */
    if (size == 0x7F800000u) return (uint16_t)(sign | 0x7C00u); /* infinite */
    if (size < 0x38800000u) return (uint16_t)(sign | (uint32_t)lrintf(fabsf(value) * 0x1p24f));
    return (uint16_t)(sign | (rounded < 0x7BFFu ? rounded : 0x7BFFu));
}

#endif
