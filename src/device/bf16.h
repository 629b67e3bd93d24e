/* bfloat16: the upper half of a float32. Conversions for all devices; common part of C, C++ and CUDA. */
#ifndef TRAINER_DEVICE_BF16_H
#define TRAINER_DEVICE_BF16_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#    define BF16_INLINE static inline __host__ __device__
#else
#    define BF16_INLINE static inline
#endif

typedef uint16_t bf16;

BF16_INLINE float bf16_float(bf16 half) {
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To the nearest, of two equally near ones the even; not a number stays one, on GPUs another one. */
BF16_INLINE bf16 bf16_nearest(float value) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800 /* an instruction in the place of eight */
    bf16 half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return (bf16)((bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16) | 0x40u : rounded);
#endif
}

#endif
