/* Private to the .cu files: elements that are float32 or bf16, computed with in float32, one by one or in
 * packs of 16 bytes. */
#ifndef TRAINER_CUDA_NARROW_H
#define TRAINER_CUDA_NARROW_H

#include "../src/device/bf16.h"
#include "launch.h"

DEVICE float widen(float x) {
    return x;
}
DEVICE float widen(bf16 x) {
    return bf16_float(x);
}
DEVICE void put(float *to, float x) {
    *to = x;
}
DEVICE void put(bf16 *to, float x) {
    *to = bf16_nearest(x);
}

/* Neighbours that one thread reads or writes at once. */
template <class T, int V> struct alignas(sizeof(T) * V) pack { T at[V]; };
template <int V, class T> DEVICE pack<T, V> take(const T *from) {
    return *reinterpret_cast<const pack<T, V> *>(from);
}
template <int V, class T> DEVICE void give(T *to, const pack<T, V> &values) {
#ifdef __CUDACC__
    if constexpr (sizeof values == sizeof(uint4)) { /* in one store: nvcc may divide it otherwise */
        uint4 words;
        memcpy(&words, &values, sizeof words);
        __stwb(reinterpret_cast<uint4 *>(to), words);
        return;
    }
#endif
    *reinterpret_cast<pack<T, V> *>(to) = values;
}

/* The same number of bytes, as words. */
template <int V, class T> DEVICE pack<uint32_t, V *(int)sizeof(T) / 4> take_words(const T *from) {
#ifdef __CUDACC__
    return take<V *(int)sizeof(T) / 4>(reinterpret_cast<const uint32_t *>(from));
#else
    pack<uint32_t, V *(int)sizeof(T) / 4> words;
    memcpy(&words, from, sizeof words);
    return words;
#endif
}

/* Elements of type T in 16 bytes. */
template <class T> constexpr int full() {
    return (int)(16 / sizeof(T));
}
/* Whether rows of so many elements, at all of these places, are made of such packs. */
template <class T> inline bool packs(uint32_t length, const void *a, const void *b, const void *c) {
    return length % full<T>() == 0 && ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % 16 == 0;
}

/* --- two bf16 in a word, the first one in its lower half --- */

DEVICE bf16 half_of(uint32_t two, int which) {
    return (bf16)(two >> (16 * which));
}
template <class F> DEVICE uint32_t of_halves(F f) {
    return (uint32_t)(f(0) & 0xFFFFu) | (uint32_t)(f(1) & 0xFFFFu) << 16;
}
/* Of four bytes the lower two, or the upper two, as halves. */
DEVICE uint32_t bytes_apart(uint32_t four, int upper) {
#ifdef __CUDA_ARCH__
    return __byte_perm(four, 0, upper ? 0x4342 : 0x4140);
#else
    const uint32_t two = upper ? four >> 16 : four;
    return (two & 0xFFu) | (two & 0xFF00u) << 8;
#endif
}
/* All bits of the halves where a > b. */
DEVICE uint32_t halves_greater(uint32_t a, uint32_t b) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    uint32_t mask;
    asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
    return mask;
#else
    return of_halves([=](int i) { return widen(half_of(a, i)) > widen(half_of(b, i)) ? 0xFFFFu : 0u; });
#endif
}
/* All bits of the halves that are the same whole number, below 2^10: as float16 these are numbers, too. */
DEVICE uint32_t halves_equal(uint32_t a, uint32_t b) {
#if defined __CUDA_ARCH__
    uint32_t mask;
    asm("set.eq.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
    return mask;
#else
    return of_halves([=](int i) { return half_of(a, i) == half_of(b, i) ? 0xFFFFu : 0u; });
#endif
}
/* Each rounded; that float32 was between makes no difference to a sum of two. */
DEVICE uint32_t halves_sum(uint32_t a, uint32_t b) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900
    uint32_t sum;
    asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
#else
    return of_halves(
        [=](int i) { return (uint32_t)bf16_nearest(widen(half_of(a, i)) + widen(half_of(b, i))); });
#endif
}

#endif
