/* Reference kernels: batch normalisation over [rows, channels], rows being all axes but the last. Loops run
 * along the channels; sums over many rows are taken a block of rows at a time, in float32, and the blocks'
 * sums added up in double. */
#include <string.h>
#include "../device/formulas.h"
#include "bf16.h"
#include "reference.h"

enum { CHANNELS = 256, BLOCK = 64 }; /* channels and rows at a time */

struct rows {
    size_t count, channels;
};

static struct rows rows_of(const struct problem *problem) {
    const struct shape *shape = &problem->input[0].shape;
    const size_t channels = (size_t)shape->dims[shape->rank - 1];
    return (struct rows){shape_count(shape) / channels, channels};
}

/* Images are float32 or all of them bf16; what is of the channels is float32. */
static int prepare(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    const enum type type = problem->input[0].type;
    const struct shape *image = &problem->input[0].shape;
    for (int i = 1; i < problem->inputs; i++)
        if (problem->input[i].type != (shape_equal(&problem->input[i].shape, image) ? type : TYPE_FLOAT))
            return KERNEL_DECLINED;
    return problem->output.type == (shape_equal(&problem->output.shape, image) ? type : TYPE_FLOAT)
               ? OK
               : KERNEL_DECLINED;
}

/* sums [count] = over all rows of `part` of the elements of x, from channel `from` on. */
INLINED void sum_rows(const struct rows *rows, const void *x, const float *mean, size_t from, size_t count,
                      float (*part)(float x, float mean), enum type type, double *sums) {
    float block[CHANNELS];
    memset(sums, 0, count * sizeof *sums);
    for (size_t first = 0; first < rows->count; first += BLOCK) {
        const size_t end = first + BLOCK < rows->count ? first + BLOCK : rows->count;
        memset(block, 0, count * sizeof *block);
        for (size_t row = first; row < end; row++) {
            const void *x_row = element(x, type, row * rows->channels + from);
            for (size_t c = 0; c < count; c++) block[c] += part(load(x_row, type, c), mean[c]);
        }
        for (size_t c = 0; c < count; c++) sums[c] += (double)block[c];
    }
}

/* The same of dy, and of dy times x less its mean: sums [2][count], in one pass. */
INLINED void sum_both(const struct rows *rows, const void *x, const void *dy, const float *mean, size_t from,
                      size_t count, enum type type, double sums[2][CHANNELS]) {
    float plain[CHANNELS], product[CHANNELS];
    for (int i = 0; i < 2; i++) memset(sums[i], 0, count * sizeof *sums[i]);
    for (size_t first = 0; first < rows->count; first += BLOCK) {
        const size_t end = first + BLOCK < rows->count ? first + BLOCK : rows->count;
        memset(plain, 0, count * sizeof *plain);
        memset(product, 0, count * sizeof *product);
        for (size_t row = first; row < end; row++) {
            const void *x_row = element(x, type, row * rows->channels + from),
                       *dy_row = element(dy, type, row * rows->channels + from);
            for (size_t c = 0; c < count; c++) {
                const float one = load(dy_row, type, c);
                plain[c] += one;
                product[c] += formula_product_from(load(x_row, type, c), mean[c], one);
            }
        }
        for (size_t c = 0; c < count; c++) sums[0][c] += (double)plain[c];
        for (size_t c = 0; c < count; c++) sums[1][c] += (double)product[c];
    }
}

static inline float part_x(float x, float mean) {
    (void)mean;
    return x;
}
static inline float part_square(float x, float mean) {
    return formula_square_from(x, mean);
}

static size_t channels_from(const struct rows *rows, size_t first) {
    return rows->channels - first < CHANNELS ? rows->channels - first : CHANNELS;
}

/* [2, channels]: mean and variance, by two passes. */
INLINED int moments(const struct call *call, enum type type) {
    const struct rows rows = rows_of(call->problem);
    const void *x = call->input[0];
    float *mean = call->output, *variance = mean + rows.channels;
    double sums[CHANNELS];
    for (size_t c = 0; c < rows.channels; c += CHANNELS) {
        const size_t count = channels_from(&rows, c);
        memset(mean + c, 0, count * sizeof *mean);
        sum_rows(&rows, x, mean + c, c, count, part_x, type, sums);
        for (size_t i = 0; i < count; i++) mean[c + i] = (float)(sums[i] / (double)rows.count);
        sum_rows(&rows, x, mean + c, c, count, part_square, type, sums);
        for (size_t i = 0; i < count; i++) variance[c + i] = (float)(sums[i] / (double)rows.count);
    }
    return OK;
}

/* x, moments, scale, shift */
INLINED int batch_norm(const struct call *call, enum type type) {
    const struct rows rows = rows_of(call->problem);
    const float epsilon = call->problem->attributes->epsilon;
    const float *mean = call->input[1], *variance = mean + rows.channels;
    const float *scale = call->input[2], *shift = call->input[3];
    for (size_t c = 0; c < rows.channels; c += CHANNELS) {
        float factor[CHANNELS], term[CHANNELS];
        const size_t count = channels_from(&rows, c);
        for (size_t i = 0; i < count; i++) {
            const struct formula_norm norm =
                formula_norm(mean[c + i], variance[c + i], epsilon, scale[c + i], shift[c + i]);
            factor[i] = norm.factor;
            term[i] = norm.term;
        }
        for (size_t row = 0, at = c; row < rows.count; row++, at += rows.channels) {
            const void *x = element(call->input[0], type, at);
            void *restrict y = element_to(call->output, type, at);
            for (size_t i = 0; i < count; i++) store(y, type, i, load(x, type, i) * factor[i] + term[i]);
        }
    }
    return OK;
}

/* x, moments, dy -> sums of dy, and of dy times the normalised x */
INLINED int batch_norm_sums(const struct call *call, enum type type) {
    const struct rows rows = rows_of(call->problem);
    const float epsilon = call->problem->attributes->epsilon;
    const void *x = call->input[0], *dy = call->input[2];
    const float *mean = call->input[1], *variance = mean + rows.channels;
    float *plain = call->output, *product = plain + rows.channels;
    double sums[2][CHANNELS];
    for (size_t c = 0; c < rows.channels; c += CHANNELS) {
        const size_t count = channels_from(&rows, c);
        sum_both(&rows, x, dy, mean + c, c, count, type, sums);
        for (size_t i = 0; i < count; i++) plain[c + i] = (float)sums[0][i];
        for (size_t i = 0; i < count; i++)
            product[c + i] = (float)sums[1][i] * formula_inverse_deviation(variance[c + i], epsilon);
    }
    return OK;
}

/* x, moments, scale, sums, dy */
INLINED int batch_norm_grad(const struct call *call, enum type type) {
    const struct rows rows = rows_of(call->problem);
    const float epsilon = call->problem->attributes->epsilon, share = 1.0f / (float)rows.count;
    const float *mean = call->input[1], *variance = mean + rows.channels, *scale = call->input[2];
    const float *plain = call->input[3], *product = plain + rows.channels;
    for (size_t c = 0; c < rows.channels; c += CHANNELS) {
        float factor[CHANNELS], slope[CHANNELS], term[CHANNELS];
        const size_t count = channels_from(&rows, c);
        for (size_t i = 0; i < count; i++) {
            const struct formula_norm_grad grad = formula_norm_grad(
                mean[c + i], variance[c + i], epsilon, scale[c + i], plain[c + i], product[c + i], share);
            factor[i] = grad.factor;
            slope[i] = grad.slope;
            term[i] = grad.term;
        }
        for (size_t row = 0, at = c; row < rows.count; row++, at += rows.channels) {
            const void *x = element(call->input[0], type, at), *dy = element(call->input[4], type, at);
            void *restrict dx = element_to(call->output, type, at);
            for (size_t i = 0; i < count; i++)
                store(dx, type, i,
                      formula_norm_dx(load(x, type, i), load(dy, type, i), factor[i], slope[i], term[i]));
        }
    }
    return OK;
}

#define KERNEL(op)                                                                                           \
    static int run_##op(const struct call *call, struct error *error) {                                      \
        (void)error;                                                                                         \
        return call->problem->input[0].type == TYPE_BF16 ? op(call, TYPE_BF16) : op(call, TYPE_FLOAT);       \
    }                                                                                                        \
    const struct kernel reference_##op = {.name = "reference:" #op, .prepare = prepare, .run = run_##op};
KERNEL(moments)
KERNEL(batch_norm)
KERNEL(batch_norm_sums)
KERNEL(batch_norm_grad)
