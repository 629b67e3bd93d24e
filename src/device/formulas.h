/* The elementwise formulas, said once for all devices: CPU kernels and CUDA kernels include this header, so
 * they agree on what is computed. Common part of C, C++ and CUDA. Truth is one byte, 0 or 1. */
#ifndef TRAINER_DEVICE_FORMULAS_H
#define TRAINER_DEVICE_FORMULAS_H

#include <math.h>
#include <stdint.h>
#include "../base/rng.h"

#ifdef __CUDACC__
#    define FORMULA static inline __host__ __device__
#else
#    define FORMULA static inline
#endif

FORMULA float formula_add(float a, float b) {
    return a + b;
}
FORMULA float formula_sub(float a, float b) {
    return a - b;
}
FORMULA float formula_mul(float a, float b) {
    return a * b;
}
FORMULA float formula_div(float a, float b) {
    return a / b;
}
FORMULA float formula_pow(float a, float b) {
    return powf(a, b);
}
FORMULA uint8_t formula_greater(float a, float b) {
    return a > b;
}
FORMULA uint8_t formula_less(float a, float b) {
    return a < b;
}
FORMULA uint8_t formula_equal(float a, float b) {
    return a == b;
}

/* int32 wraps around. */
FORMULA int formula_add_int(int a, int b) {
    return (int)((unsigned)a + (unsigned)b);
}
FORMULA int formula_sub_int(int a, int b) {
    return (int)((unsigned)a - (unsigned)b);
}
FORMULA int formula_mul_int(int a, int b) {
    return (int)((unsigned)a * (unsigned)b);
}
FORMULA uint8_t formula_greater_int(int a, int b) {
    return a > b;
}
FORMULA uint8_t formula_less_int(int a, int b) {
    return a < b;
}
FORMULA uint8_t formula_equal_int(int a, int b) {
    return a == b;
}

FORMULA float formula_exp(float x) {
    return expf(x);
}
FORMULA float formula_log(float x) {
    return logf(x);
}
FORMULA float formula_relu(float x) {
    return x < 0.0f ? 0.0f : x;
} /* not a number stays one, so that a diverged run is seen */
FORMULA float formula_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
FORMULA float formula_tanh(float x) {
    return tanhf(x);
}

/* Gradients of activations from their results. */
FORMULA float formula_relu_grad(float y, float dy) {
    return y > 0.0f ? dy : 0.0f;
}
FORMULA float formula_sigmoid_grad(float y, float dy) {
    return dy * y * (1.0f - y);
}
FORMULA float formula_tanh_grad(float y, float dy) {
    return dy * (1.0f - y * y);
}

/* Towards zero; beyond the ends of int32 the end, not a number 0. */
FORMULA int formula_int(float x) {
    if (x >= 2147483648.0f) return INT32_MAX;
    if (x <= -2147483648.0f) return INT32_MIN;
    return x == x ? (int)x : 0;
}

/* Dropout: elements 4i .. 4i+3 of a value draw from block i; each is kept with probability 1 - rate. The same
 * seed and step give the same mask, which is how the gradient finds it again. */
FORMULA struct rng_block formula_dropout_draw(uint64_t seed, int step, uint64_t i) {
    return rng_philox(seed, (uint64_t)(uint32_t)step, i);
}
FORMULA float formula_dropout(float x, uint32_t bits, float rate) {
    return rng_unit(bits) >= rate ? x / (1.0f - rate) : 0.0f;
}

#endif
