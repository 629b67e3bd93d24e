/* The elementwise formulas. CPU kernels and CUDA kernels include this header, so they compute the same.
 * Common part of C, C++ and CUDA. Truth is one byte, 0 or 1. */
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
FORMULA float formula_relu6(float x) {
    return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
}
FORMULA float formula_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
FORMULA float formula_tanh(float x) {
    return tanhf(x);
}

/* Hendrycks and Gimpel, "Gaussian error linear units", 2016: x times the normal distribution's share below x;
 * then their approximation of it, as TensorFlow and PyTorch have it. */
FORMULA float formula_gelu(float x) {
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
}
FORMULA float formula_gelu_tanh(float x) {
    return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
}
/* Also known as swish. */
FORMULA float formula_silu(float x) {
    return x * formula_sigmoid(x);
}
/* Howard et al., "Searching for MobileNetV3", 2019: sigmoid and swish of straight lines. */
FORMULA float formula_hard_sigmoid(float x) {
    return formula_relu6(x + 3.0f) / 6.0f;
}
FORMULA float formula_hard_swish(float x) {
    return x * formula_hard_sigmoid(x);
}
/* `leak`, alpha: of what is below 0. */
FORMULA float formula_leaky_relu(float x, float leak) {
    return x < 0.0f ? leak * x : x;
}
FORMULA float formula_leaky_relu_slope(float x, float leak) {
    return x < 0.0f ? leak : 1.0f;
}
FORMULA float formula_elu(float x, float alpha) {
    return x < 0.0f ? alpha * expm1f(x) : x;
}
FORMULA float formula_elu_slope(float x, float alpha) {
    return x < 0.0f ? alpha * expf(x) : 1.0f;
}

/* Gradients of activations from their operands. */
FORMULA float formula_gelu_grad(float x, float dy) {
    const float below = 0.5f * (1.0f + erff(x * 0.70710678f));
    return dy * (below + x * 0.39894228f * expf(-0.5f * x * x));
}
FORMULA float formula_gelu_tanh_grad(float x, float dy) {
    const float t = tanhf(0.79788456f * (x + 0.044715f * x * x * x));
    const float inner = 0.79788456f * (1.0f + 3.0f * 0.044715f * x * x);
    return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * inner);
}
FORMULA float formula_silu_grad(float x, float dy) {
    const float share = formula_sigmoid(x);
    return dy * share * (1.0f + x * (1.0f - share));
}
FORMULA float formula_hard_swish_grad(float x, float dy) {
    return x <= -3.0f ? 0.0f : x < 3.0f ? dy * (x / 3.0f + 0.5f) : dy;
}

/* Gradients of activations from their results. */
FORMULA float formula_relu_grad(float y, float dy) {
    return y > 0.0f ? dy : 0.0f;
}
FORMULA float formula_relu6_grad(float y, float dy) {
    return y > 0.0f && y < 6.0f ? dy : 0.0f;
}
FORMULA float formula_hard_sigmoid_grad(float y, float dy) {
    return y > 0.0f && y < 1.0f ? dy / 6.0f : 0.0f;
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

/* The largest so far. Not a number stays when it comes first, and is passed over later; of equal ones the
 * first. */
FORMULA float formula_largest(float most, float x) {
    return x > most ? x : most;
}

/* Softmax and cross entropy of a row. dx from its results y, with sum = sum of y dy. */
FORMULA float formula_softmax_grad(float y, float dy, float sum) {
    return y * (dy - sum);
}
/* p: what was given to the label. */
FORMULA float formula_cross_entropy(float p) {
    return -logf(p);
}
FORMULA float formula_cross_entropy_grad(float p, float dloss) {
    return -dloss / p;
}
/* Of the logit x, and z, what its sigmoid is to be: -z log(p) - (1 - z) log(1 - p), in a form in which
 * nothing overflows and nothing large cancels. Not a number stays one. */
FORMULA float formula_sigmoid_cross_entropy(float x, float z) {
    return (x < 0.0f ? 0.0f : x) - x * z + log1pf(expf(-fabsf(x)));
}
/* From the logit x of the label, the row's largest and the sum of exp(logit - largest). */
FORMULA float formula_softmax_cross_entropy(float x, float largest, float sum) {
    return logf(sum) - (x - largest);
}
/* `smoothing` of what the label counts is divided among all classes; mean: of the row's logits. */
FORMULA float formula_smoothed_cross_entropy(float loss, float x, float mean, float smoothing) {
    return loss + smoothing * (x - mean);
}
/* What class counts in a row of so many: the label, 1 without smoothing; another one, 0. */
FORMULA float formula_label_share(int is_label, uint32_t classes, float smoothing) {
    return (is_label ? 1.0f - smoothing : 0.0f) + smoothing / (float)classes;
}
/* From p, the softmax; label: the share that the class counts. */
FORMULA float formula_softmax_cross_entropy_grad(float p, float label, float dloss) {
    return (p - label) * dloss;
}

/* Local response normalisation: with s = bias + alpha * the squares around, y = x s^-beta. */
struct formula_powers {
    float power, steeper; /* s^-beta, s^(-beta - 1) */
};
FORMULA struct formula_powers formula_lrn_powers(float s, float beta) {
    struct formula_powers powers;
    powers.power = powf(s, -beta);
    powers.steeper = powers.power / s;
    return powers;
}
/* The same for beta 3/4, from s^-1/4: much faster than powf. */
FORMULA struct formula_powers formula_lrn_of_root(float root) {
    struct formula_powers powers;
    powers.power = root * root * root;
    powers.steeper = powers.power * powers.power * root;
    return powers;
}
FORMULA struct formula_powers formula_lrn_quarters(float s) {
    return formula_lrn_of_root(1.0f / sqrtf(sqrtf(s)));
}
/* What a neighbour's gradient is made of, and dx_i = dy_i s_i^-beta - factor x_i * (sum of the neighbours'
 * shares); factor = 2 alpha beta. */
FORMULA float formula_lrn_share(float x, float dy, float steeper) {
    return dy * x * steeper;
}
FORMULA float formula_lrn_grad(float x, float dy, float power, float factor, float shares) {
    return dy * power - factor * x * shares;
}

/* Batch normalisation, a channel: y = x * factor + term. */
struct formula_norm {
    float factor, term;
};
FORMULA float formula_inverse_deviation(float variance, float epsilon) {
    return 1.0f / sqrtf(variance + epsilon);
}
FORMULA struct formula_norm formula_norm(float mean, float variance, float epsilon, float scale,
                                         float shift) {
    struct formula_norm norm;
    norm.factor = scale * formula_inverse_deviation(variance, epsilon);
    norm.term = shift - mean * norm.factor;
    return norm;
}
FORMULA float formula_square_from(float x, float mean) {
    return (x - mean) * (x - mean);
}
FORMULA float formula_product_from(float x, float mean, float dy) {
    return (x - mean) * dy;
}
/* Mean and variance from the sums of x - near and of its square over so many rows; near: a number about the
 * mean, or the difference loses digits. */
struct formula_moments {
    float mean, variance;
};
FORMULA struct formula_moments formula_moments(float near, float sum, float squares, float rows) {
    struct formula_moments moments;
    const float beside = sum / rows, variance = squares / rows - beside * beside;
    moments.mean = near + beside;
    moments.variance = variance < 0.0f ? 0.0f : variance; /* not a number stays one */
    return moments;
}
/* With n rows and the normalised x, dx = scale / deviation * (dy - sum of dy / n - normalised x * (sum of dy
 * times the normalised x) / n) = factor (dy - x slope - term). share = 1/n. */
struct formula_norm_grad {
    float factor, slope, term;
};
FORMULA struct formula_norm_grad formula_norm_grad(float mean, float variance, float epsilon, float scale,
                                                   float plain, float product, float share) {
    struct formula_norm_grad grad;
    const float inverse = formula_inverse_deviation(variance, epsilon);
    grad.factor = scale * inverse;
    grad.slope = inverse * product * share;
    grad.term = plain * share - mean * grad.slope;
    return grad;
}
FORMULA float formula_norm_dx(float x, float dy, float factor, float slope, float term) {
    return factor * (dy - x * slope - term);
}

#endif
