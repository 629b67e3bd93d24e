/* Reference kernels: matrix products. The inner loop runs along a row of the result, so that it vectorises;
 * when the second operand is transposed it runs along the common axis instead, in LANES partial sums of fixed
 * order. Either way the bits depend on the operands only. */
#include <string.h>
#include "../device/formulas.h"
#include "reference.h"

enum { LANES = 16 };

float reference_dot(const float *a, const float *b, size_t length) {
    float lanes[LANES] = {0};
    size_t k = 0;
    for (; k + LANES <= length; k += LANES)
        for (size_t lane = 0; lane < LANES; lane++) lanes[lane] += a[k + lane] * b[k + lane];
    float sum = 0.0f;
    for (size_t lane = 0; lane < LANES; lane++) sum += lanes[lane];
    for (; k < length; k++) sum += a[k] * b[k];
    return sum;
}

void reference_add_rows(const float *a, size_t step, size_t inner, const float *b, size_t n,
                        float *restrict row) {
    for (size_t k = 0; k < inner; k++) {
        const float factor = a[k * step];
        for (size_t j = 0; j < n; j++) row[j] += factor * b[k * n + j];
    }
}

int reference_one_type(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    const enum type type = problem->output.type;
    return problem->input[0].type == type && problem->input[problem->inputs - 1].type == type
               ? OK
               : KERNEL_DECLINED;
}

int reference_wide(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    bool wide = problem->output.type == TYPE_FLOAT;
    for (int i = 0; i < problem->inputs; i++) wide = wide && problem->input[i].type == TYPE_FLOAT;
    return wide ? OK : KERNEL_DECLINED;
}

/* y [m, n] = A B; A is a [m, k], or [k, m] when transposed; B is b [k, n], or [n, k]. */
static int run_matmul(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const bool ta = problem->attributes->transpose_a, tb = problem->attributes->transpose_b;
    const size_t m = (size_t)problem->output.shape.dims[0], n = (size_t)problem->output.shape.dims[1];
    const size_t inner = (size_t)problem->input[0].shape.dims[ta ? 0 : 1];
    const float *a = call->input[0], *b = call->input[1];
    float *y = call->output;
    for (size_t i = 0; i < m; i++) {
        float *row = y + i * n;
        const float *left = ta ? a + i : a + i * inner;
        if (!tb) {
            memset(row, 0, n * sizeof *row);
            reference_add_rows(left, ta ? m : 1, inner, b, n, row);
        } else if (!ta) {
            for (size_t j = 0; j < n; j++) row[j] = reference_dot(left, b + j * inner, inner);
        } else {
            for (size_t j = 0; j < n; j++) {
                float sum = 0.0f;
                for (size_t k = 0; k < inner; k++) sum += left[k * m] * b[j * inner + k];
                row[j] = sum;
            }
        }
    }
    return OK;
}
const struct kernel reference_matmul = {
    .name = "reference:matmul", .prepare = reference_wide, .run = run_matmul};

void reference_activate(float *row, size_t n, enum activation activation) {
    switch (activation) {
    case ACTIVATION_NONE:
        return;
    case ACTIVATION_RELU:
        for (size_t j = 0; j < n; j++) row[j] = formula_relu(row[j]);
        return;
    case ACTIVATION_SIGMOID:
        for (size_t j = 0; j < n; j++) row[j] = formula_sigmoid(row[j]);
        return;
    case ACTIVATION_TANH:
        for (size_t j = 0; j < n; j++) row[j] = formula_tanh(row[j]);
        return;
    }
}

/* y [m, n] = activation(x [m, k] w [k, n] + bias [n]); bit for bit what matmul, add and the activation give.
 */
static int run_dense(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const size_t m = (size_t)problem->output.shape.dims[0], n = (size_t)problem->output.shape.dims[1];
    const size_t inner = (size_t)problem->input[0].shape.dims[1];
    const float *x = call->input[0], *w = call->input[1], *bias = call->input[2];
    float *y = call->output;
    for (size_t i = 0; i < m; i++) {
        float *row = y + i * n;
        memset(row, 0, n * sizeof *row);
        reference_add_rows(x + i * inner, 1, inner, w, n, row);
        for (size_t j = 0; j < n; j++) row[j] += bias[j];
        reference_activate(row, n, problem->attributes->activation);
    }
    return OK;
}
const struct kernel reference_dense = {
    .name = "reference:dense", .prepare = reference_wide, .run = run_dense};
