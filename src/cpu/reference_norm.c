/* Reference kernels: batch normalisation over [rows, channels], rows being all axes but the last. Loops run
 * along the channels; sums over many rows are taken a block of rows at a time, in float32, and the blocks'
 * sums added up in double. */
#include <string.h>
#include "../device/formulas.h"
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

/* sums [count] = over all rows of `part` of element i of x and y, which begin at the first channel. */
INLINED void sum_rows(const struct rows *rows, const float *x, const float *y, const float *mean,
                      size_t count, float (*part)(float x, float y, float mean), double *sums) {
    float block[CHANNELS];
    memset(sums, 0, count * sizeof *sums);
    for (size_t first = 0; first < rows->count; first += BLOCK) {
        const size_t end = first + BLOCK < rows->count ? first + BLOCK : rows->count;
        memset(block, 0, count * sizeof *block);
        for (size_t row = first; row < end; row++)
            for (size_t c = 0; c < count; c++)
                block[c] += part(x[row * rows->channels + c], y[row * rows->channels + c], mean[c]);
        for (size_t c = 0; c < count; c++) sums[c] += (double)block[c];
    }
}

static inline float part_x(float x, float y, float mean) {
    (void)y, (void)mean;
    return x;
}
static inline float part_square(float x, float y, float mean) {
    (void)y;
    return formula_square_from(x, mean);
}
static inline float part_product(float x, float y, float mean) {
    return formula_product_from(x, mean, y);
}

static size_t channels_from(const struct rows *rows, size_t first) {
    return rows->channels - first < CHANNELS ? rows->channels - first : CHANNELS;
}

/* [2, channels]: mean and variance, by two passes. */
static int run_moments(const struct call *call, struct error *error) {
    (void)error;
    const struct rows rows = rows_of(call->problem);
    const float *x = call->input[0];
    float *mean = call->output, *variance = mean + rows.channels;
    double sums[CHANNELS];
    for (size_t c = 0; c < rows.channels; c += CHANNELS) {
        const size_t count = channels_from(&rows, c);
        memset(mean + c, 0, count * sizeof *mean);
        sum_rows(&rows, x + c, x + c, mean + c, count, part_x, sums);
        for (size_t i = 0; i < count; i++) mean[c + i] = (float)(sums[i] / (double)rows.count);
        sum_rows(&rows, x + c, x + c, mean + c, count, part_square, sums);
        for (size_t i = 0; i < count; i++) variance[c + i] = (float)(sums[i] / (double)rows.count);
    }
    return OK;
}
const struct kernel reference_moments = {.name = "reference:moments", .run = run_moments};

/* x, moments, scale, shift */
static int run_batch_norm(const struct call *call, struct error *error) {
    (void)error;
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
        const float *x = (const float *)call->input[0] + c;
        float *y = (float *)call->output + c;
        for (size_t row = 0; row < rows.count; row++, x += rows.channels, y += rows.channels)
            for (size_t i = 0; i < count; i++) y[i] = x[i] * factor[i] + term[i];
    }
    return OK;
}
const struct kernel reference_batch_norm = {.name = "reference:batch_norm", .run = run_batch_norm};

/* x, moments, dy -> sums of dy, and of dy times the normalised x */
static int run_batch_norm_sums(const struct call *call, struct error *error) {
    (void)error;
    const struct rows rows = rows_of(call->problem);
    const float epsilon = call->problem->attributes->epsilon;
    const float *x = call->input[0], *mean = call->input[1], *variance = mean + rows.channels,
                *dy = call->input[2];
    float *plain = call->output, *product = plain + rows.channels;
    double sums[CHANNELS];
    for (size_t c = 0; c < rows.channels; c += CHANNELS) {
        const size_t count = channels_from(&rows, c);
        sum_rows(&rows, dy + c, dy + c, mean + c, count, part_x, sums);
        for (size_t i = 0; i < count; i++) plain[c + i] = (float)sums[i];
        sum_rows(&rows, x + c, dy + c, mean + c, count, part_product, sums);
        for (size_t i = 0; i < count; i++)
            product[c + i] = (float)sums[i] * formula_inverse_deviation(variance[c + i], epsilon);
    }
    return OK;
}
const struct kernel reference_batch_norm_sums = {.name = "reference:batch_norm_sums",
                                                 .run = run_batch_norm_sums};

/* x, moments, scale, sums, dy */
static int run_batch_norm_grad(const struct call *call, struct error *error) {
    (void)error;
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
        const float *x = (const float *)call->input[0] + c, *dy = (const float *)call->input[4] + c;
        float *dx = (float *)call->output + c;
        for (size_t row = 0; row < rows.count;
             row++, x += rows.channels, dy += rows.channels, dx += rows.channels)
            for (size_t i = 0; i < count; i++)
                dx[i] = formula_norm_dx(x[i], dy[i], factor[i], slope[i], term[i]);
    }
    return OK;
}
const struct kernel reference_batch_norm_grad = {.name = "reference:batch_norm_grad",
                                                 .run = run_batch_norm_grad};
