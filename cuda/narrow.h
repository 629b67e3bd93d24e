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

/* Elements of type T in 16 bytes. */
template <class T> constexpr int full() {
    return (int)(16 / sizeof(T));
}
/* Whether rows of so many elements, at all of these places, are made of such packs. */
template <class T> inline bool packs(uint32_t length, const void *a, const void *b, const void *c) {
    return length % full<T>() == 0 && ((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % 16 == 0;
}

#endif
