/* Loads and stores of kernels whose tensors are float32 or bfloat16, as loops that the compiler vectorises
 * once the type is known to it: the `type` of an INLINED function is a constant. */
#ifndef TRAINER_CPU_BF16_H
#define TRAINER_CPU_BF16_H

#include "../device/bf16.h"
#include "../graph/shape.h"

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
