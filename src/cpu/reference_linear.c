/* Reference kernels: the inverse and the determinant of a square matrix, by LU with the largest pivot of each
 * column, in double; rows in another order. */
#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "reference.h"

static size_t order_of(const struct problem *problem) {
    return (size_t)problem->input[0].shape.dims[0];
}

/* Room for the matrix and, behind it, as many numbers for what it is solved for. */
static int bind_matrices(const struct problem *problem, const void *plan, void **instance,
                         struct error *error) {
    const size_t n = order_of(problem);
    (void)plan;
    return memory_zeroed(instance, 2 * n * n, sizeof(double), "a matrix to solve", error);
}

static void swap_rows(double *a, size_t n, size_t i, size_t j) {
    for (size_t k = 0; k < n; k++) {
        const double kept = a[i * n + k];
        a[i * n + k] = a[j * n + k];
        a[j * n + k] = kept;
    }
}

/* row[count] -= factor * other[count], another row. */
static void subtract(double *restrict row, double factor, const double *restrict other, size_t count) {
    for (size_t j = 0; j < count; j++) row[j] -= factor * other[j];
}

/* Brings a [n, n] to upper triangular form by steps on its rows, which b [n, n] gets too (NULL: none). False:
 * it is singular. */
static bool eliminate(double *a, double *b, size_t n, double *determinant) {
    *determinant = 1.0;
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        *determinant *= a[pivot * n + k];
        if (fabs(a[pivot * n + k]) <= 0.0) return false;
        if (pivot != k) {
            swap_rows(a, n, k, pivot);
            if (b) swap_rows(b, n, k, pivot);
            *determinant = -*determinant;
        }
        for (size_t i = k + 1; i < n; i++) {
            const double factor = a[i * n + k] / a[k * n + k];
            subtract(a + i * n + k, factor, a + k * n + k, n - k);
            if (b) subtract(b + i * n, factor, b + k * n, n);
        }
    }
    return true;
}

static int run_determinant(const struct call *call, struct error *error) {
    const size_t n = order_of(call->problem);
    const float *x = call->input[0];
    double *a = call->instance, determinant;
    (void)error;
    for (size_t i = 0; i < n * n; i++) a[i] = (double)x[i];
    eliminate(a, NULL, n, &determinant);
    *(float *)call->output = (float)determinant;
    return OK;
}
const struct kernel reference_determinant = {
    .name = "reference:determinant", .bind = bind_matrices, .unbind = memory_free, .run = run_determinant};

static int run_inverse(const struct call *call, struct error *error) {
    const size_t n = order_of(call->problem);
    const float *x = call->input[0];
    float *y = call->output;
    double *a = call->instance, *b = a + n * n, determinant;
    for (size_t i = 0; i < n * n; i++) {
        a[i] = (double)x[i];
        b[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
    }
    if (!eliminate(a, b, n, &determinant))
        return error_set(error, ERROR_USAGE, "inverse: the matrix [%zu, %zu] is singular", n, n);
    for (size_t i = n; i-- > 0;) {
        double *row = b + i * n;
        for (size_t k = i + 1; k < n; k++) subtract(row, a[i * n + k], b + k * n, n);
        for (size_t j = 0; j < n; j++) {
            row[j] /= a[i * n + i];
            y[i * n + j] = (float)row[j];
        }
    }
    return OK;
}
const struct kernel reference_inverse = {
    .name = "reference:inverse", .bind = bind_matrices, .unbind = memory_free, .run = run_inverse};

/* Row i of the one becomes row permute(i) of the other. */
static int permute(const struct call *call, bool undo) {
    const struct shape *shape = &call->problem->output.shape;
    const uint32_t rows = (uint32_t)shape->dims[0];
    const size_t floats = shape_count(shape) / rows;
    const uint64_t key = rng_mix(call->problem->attributes->seed, (uint64_t) * (const int *)call->input[1]);
    const float *x = call->input[0];
    float *y = call->output;
    for (uint32_t row = 0; row < rows; row++) {
        const uint32_t other = rng_permute(key, rows, row), from = undo ? other : row,
                       to = undo ? row : other;
        memcpy(y + to * floats, x + from * floats, floats * sizeof *y);
    }
    return OK;
}

static int run_shuffle(const struct call *call, struct error *error) {
    (void)error;
    return permute(call, false);
}
const struct kernel reference_shuffle = {.name = "reference:shuffle", .run = run_shuffle};

static int run_unshuffle(const struct call *call, struct error *error) {
    (void)error;
    return permute(call, true);
}
const struct kernel reference_unshuffle = {.name = "reference:unshuffle", .run = run_unshuffle};
