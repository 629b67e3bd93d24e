/* bfloat16: the upper half of a float32. Loads and stores of kernels whose tensors are either, as loops that
 * the compiler vectorises once the type is known to it: the `type` of an INLINED function is a constant. */
#ifndef TRAINER_CPU_BF16_H
#define TRAINER_CPU_BF16_H

#include <stdint.h>
#include <string.h>
#include "../graph/shape.h"

typedef uint16_t bf16;

static inline float bf16_float(bf16 half) {
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To the nearest, of two equally near ones the even; not a number stays one. */
static inline bf16 bf16_nearest(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return (bf16)((bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16) | 0x40u : rounded);
}

/* Element i of a tensor of that type. */
static inline __attribute__((always_inline)) float load(const void *values, enum type type, size_t i) {
    return type == TYPE_BF16 ? bf16_float(((const bf16 *)values)[i]) : ((const float *)values)[i];
}
static inline __attribute__((always_inline)) void store(void *values, enum type type, size_t i, float value) {
    if (type == TYPE_BF16)
        ((bf16 *)values)[i] = bf16_nearest(value);
    else
        ((float *)values)[i] = value;
}

/* Where element i is. */
static inline const void *element(const void *values, enum type type, size_t i) {
    return (const char *)values + i * type_bytes(type);
}
static inline void *element_to(void *values, enum type type, size_t i) {
    return (char *)values + i * type_bytes(type);
}

#endif
