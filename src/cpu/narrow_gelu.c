/* GELU and its gradient on a device that computes in bf16: by polynomials, without a division or a power,
 * which the compiler vectorises. What is between the layers is rounded to 8 bits there, and what the
 * polynomials miss, 6e-5 of GELU and 1.1e-4 of its slope, is less than that, and less than the usual formula
 * by tanh (5e-4). erff and expf take many times as long. Operands and results may be bf16 or float32.
 *
 * The coefficients are those of tests/gelu_table.py: odd polynomials about the middle, 1/2, that meet the
 * ends where the functions are 0 and 1 but for 1e-5 and 1e-4. */
#include <string.h>
#include "../device/formulas.h"
#include "bf16.h"
#include "reference.h"

enum { PART = 256 }; /* elements at a time, in the nearest cache; with 1024 their places there collide */

/* 1/2 + x times a polynomial of x^2 of so many coefficients, the lowest first; 0 and 1 beyond -end and end.
 */
static inline __attribute__((always_inline)) float between(float x, float end, const float *coefficient,
                                                           int count) {
    const float square = x * x;
    float sum = coefficient[count - 1];
    for (int i = count - 2; i >= 0; i--) sum = sum * square + coefficient[i];
    const float inside = 0.5f + x * sum;
    return x < -end ? 0.0f : x > end ? 1.0f : inside;
}

/* The share of the normal distribution below x. */
static inline float share_below(float x) {
    static const float coefficient[] = {3.989360172e-01f,  -6.643292582e-02f, 9.884511027e-03f,
                                        -1.132604803e-03f, 9.791745582e-05f,  -6.105959435e-06f,
                                        2.547475080e-07f,  -6.273877415e-09f, 6.829414168e-11f};
    return between(x, 4.2f, coefficient, 9);
}

/* The slope of GELU. */
static inline float slope_at(float x) {
    static const float coefficient[] = {
        7.978506157e-01f,  -2.656108438e-01f, 5.922862108e-02f,  -9.071860141e-03f, 9.980884847e-04f,
        -7.884046321e-05f, 4.332571232e-06f,  -1.559238888e-07f, 3.281194287e-09f,  -3.046068242e-11f};
    return between(x, 4.4f, coefficient, 10);
}

static void read(const void *values, enum type type, size_t from, size_t count, float *restrict to) {
    for (size_t i = 0; i < count && type == TYPE_BF16; i++)
        to[i] = bf16_float(((const bf16 *)values)[from + i]);
    if (type == TYPE_FLOAT) memcpy(to, (const float *)values + from, count * sizeof *to);
}

static void write(const float *restrict values, enum type type, size_t to, size_t count, void *out) {
    for (size_t i = 0; i < count && type == TYPE_BF16; i++) ((bf16 *)out)[to + i] = bf16_nearest(values[i]);
    if (type == TYPE_FLOAT) memcpy((float *)out + to, values, count * sizeof *values);
}

static size_t part_at(size_t count, size_t at) {
    return count - at < PART ? count - at : PART;
}

static int run_gelu(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const size_t count = shape_count(&problem->output.shape);
    float x[PART], y[PART];
    for (size_t at = 0; at < count; at += PART) {
        const size_t part = part_at(count, at);
        read(call->input[0], problem->input[0].type, at, part, x);
        for (size_t i = 0; i < part; i++) y[i] = x[i] * share_below(x[i]);
        write(y, problem->output.type, at, part, call->output);
    }
    return OK;
}
const struct kernel narrow_gelu = {.name = "narrow:gelu", .run = run_gelu};

/* x, dy */
static int run_gelu_grad(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const size_t count = shape_count(&problem->output.shape);
    float x[PART], dy[PART], dx[PART];
    for (size_t at = 0; at < count; at += PART) {
        const size_t part = part_at(count, at);
        read(call->input[0], problem->input[0].type, at, part, x);
        read(call->input[1], problem->input[1].type, at, part, dy);
        for (size_t i = 0; i < part; i++) dx[i] = dy[i] * slope_at(x[i]);
        write(dx, problem->output.type, at, part, call->output);
    }
    return OK;
}
const struct kernel narrow_gelu_grad = {.name = "narrow:gelu_grad", .run = run_gelu_grad};
