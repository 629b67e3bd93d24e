/* Kernels: elementwise with one operand or two that broadcast, gradients of activations, casts, dropout. Each
 * element moves what it reads and writes once: 4 bytes per operand and result, 2 of bf16, 1 of a bool. */
#include "../src/device/formulas.h"
#include "kernels.h"
#include "launch.h"
#include "narrow.h"
#include "walk.h"

namespace {

template <class In, class Out, Out (*formula)(In, In)>
KERNEL pairs(CONSTANT gpu_walk walk, const In *a, const In *b, Out *y) {
    EACH(i, walk.count) {
        const places from = places_of(walk, (uint32_t)i);
        y[i] = formula(a[from.at[0]], b[from.at[1]]);
    }
}

template <float (*formula)(float)> KERNEL map(const float *x, float *y, uint32_t count) {
    EACH(i, count) y[i] = formula(x[i]);
}

template <float (*formula)(float, float)>
KERNEL slope(const float *y, const float *dy, float *dx, uint32_t count) {
    EACH(i, count) dx[i] = formula(y[i], dy[i]);
}

template <class Y, class DY, class DX> KERNEL relu_slope(const Y *y, const DY *dy, DX *dx, uint32_t count) {
    EACH(i, count) put(&dx[i], formula_relu_grad(widen(y[i]), widen(dy[i])));
}

DEVICE int int_of(float x) {
    return formula_int(x);
}
DEVICE int int_of_bool(uint8_t x) {
    return x;
}
DEVICE float float_of(int x) {
    return (float)x;
}
DEVICE float float_of_bool(uint8_t x) {
    return (float)x;
}
DEVICE uint8_t bool_of(float x) {
    return x != 0.0f;
}
DEVICE uint8_t bool_of_int(int x) {
    return x != 0;
}

template <class In, class Out, Out (*formula)(In)> KERNEL cast(const In *x, Out *y, uint32_t count) {
    EACH(i, count) y[i] = formula(x[i]);
}

/* Four elements per thread, which share a draw. */
KERNEL dropout(uint64_t seed, const int *step, float rate, const float *x, float *y, uint32_t count) {
    EACH(block, (count + 3) / 4) {
        const rng_block draw = formula_dropout_draw(seed, *step, block);
        for (uint32_t k = 0; k < 4; k++) {
            const size_t i = block * 4 + k;
            if (i < count) y[i] = formula_dropout(x[i], draw.word[k], rate);
        }
    }
}

} // namespace

/* --- one launch for each elementwise row of ops.def --- */

#define PAIRS(In, Out, formula)                                                                              \
    LAUNCH(stream, walk->count, (pairs<In, Out, formula>), *walk, (const In *)a, (const In *)b, (Out *)y)
/* By the types of a row. */
#define PAIRS_number(name) ints ? PAIRS(int, int, formula_##name##_int) : PAIRS(float, float, formula_##name)
#define PAIRS_float(name) ints ? cudaErrorInvalidValue : PAIRS(float, float, formula_##name)
#define PAIRS_truth(name)                                                                                    \
    ints ? PAIRS(int, uint8_t, formula_##name##_int) : PAIRS(float, uint8_t, formula_##name)

#define BINARY(name, types, ...)                                                                             \
    cudaError_t elementwise_##name(cudaStream_t stream, const struct gpu_walk *walk, int ints,               \
                                   const void *a, const void *b, void *y) {                                  \
        return PAIRS_##types(name);                                                                          \
    }
#define UNARY(name, ...)                                                                                     \
    cudaError_t elementwise_##name(cudaStream_t stream, const float *x, float *y, uint32_t count) {          \
        return LAUNCH(stream, count, map<formula_##name>, x, y, count);                                      \
    }
#define SLOPE(name)                                                                                          \
    cudaError_t elementwise_##name(cudaStream_t stream, const float *y, const float *dy, float *dx,          \
                                   uint32_t count) {                                                         \
        return LAUNCH(stream, count, slope<formula_##name>, y, dy, dx, count);                               \
    }
#include "../src/graph/ops.def"

/* --- the others --- */

/* The types settled one after the other. */
template <class Y, class DY>
static cudaError_t relu_slope_to(cudaStream_t stream, int narrow, const Y *y, const DY *dy, void *dx,
                                 uint32_t count) {
    if (narrow & 4) return LAUNCH(stream, count, (relu_slope<Y, DY, bf16>), y, dy, (bf16 *)dx, count);
    return LAUNCH(stream, count, (relu_slope<Y, DY, float>), y, dy, (float *)dx, count);
}
template <class Y>
static cudaError_t relu_slope_of(cudaStream_t stream, int narrow, const Y *y, const void *dy, void *dx,
                                 uint32_t count) {
    if (narrow & 2) return relu_slope_to(stream, narrow, y, (const bf16 *)dy, dx, count);
    return relu_slope_to(stream, narrow, y, (const float *)dy, dx, count);
}
cudaError_t launch_relu_slope(cudaStream_t stream, int narrow, const void *y, const void *dy, void *dx,
                              uint32_t count) {
    if (narrow & 1) return relu_slope_of(stream, narrow, (const bf16 *)y, dy, dx, count);
    return relu_slope_of(stream, narrow, (const float *)y, dy, dx, count);
}

#define CAST(In, Out, formula) LAUNCH(stream, count, (cast<In, Out, formula>), (const In *)x, (Out *)y, count)

cudaError_t launch_cast(cudaStream_t stream, enum gpu_cast from_to, const void *x, void *y, uint32_t count) {
    switch (from_to) {
    case CAST_FLOAT_INT:
        return CAST(float, int, int_of);
    case CAST_FLOAT_BOOL:
        return CAST(float, uint8_t, bool_of);
    case CAST_INT_FLOAT:
        return CAST(int, float, float_of);
    case CAST_INT_BOOL:
        return CAST(int, uint8_t, bool_of_int);
    case CAST_BOOL_FLOAT:
        return CAST(uint8_t, float, float_of_bool);
    case CAST_BOOL_INT:
        return CAST(uint8_t, int, int_of_bool);
    }
    return cudaErrorInvalidValue;
}

cudaError_t launch_dropout(cudaStream_t stream, uint64_t seed, const int *step, float rate, const float *x,
                           float *y, uint32_t count) {
    return LAUNCH(stream, (count + 3) / 4, dropout, seed, step, rate, x, y, count);
}
