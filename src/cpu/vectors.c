/* Arithmetic of the store on vectors in the host's memory: the backend's struct vectors.
 *
 * A step with several gradients, or with a moving average beside it, goes through the slice block by block:
 * the mean of the gradients and the weights just stepped stay in the first cache between two passes. */
#include "cpu.h"

enum { BLOCK = 2048 }; /* floats: 8 KB */

void cpu_step(const struct update *update, size_t floats, float *weights, float *const *moments,
              const float *gradient, float *average) {
    if (update->rule >= 0)
        update->step(update, floats, weights, moments, gradient);
    else if (update->rule == UPDATE_SUBTRACT)
        for (size_t i = 0; i < floats; i++) weights[i] -= gradient[i];
    for (size_t i = 0; average && i < floats; i++)
        average[i] = update_average(average[i], weights[i], update->towards);
}

/* sum[floats] = the weighted sum of what begins at values[k] + at; sum may be the first of these. */
static void add_up(const float *const *values, const float *weight, int count, size_t at, size_t floats,
                   float *restrict sum) {
    for (int k = 0; k < count; k++) {
        const float *restrict from = values[k] + at; /* not read where it is sum */
        const float by = weight ? weight[k] : 1.0f;
        if (from == sum)
            for (size_t i = 0; i < floats; i++) sum[i] *= by;
        else if (k == 0)
            for (size_t i = 0; i < floats; i++) sum[i] = by * from[i];
        else
            for (size_t i = 0; i < floats; i++) sum[i] += by * from[i];
    }
}

static void compensate(const struct compensation *by, const float *gradient, const float *weights, size_t at,
                       size_t floats, float *restrict out) {
    const float *then = by->then + (at - by->begin);
    float *squares = by->squares ? by->squares + (at - by->begin) : NULL;
    for (size_t i = 0; squares && i < floats; i++)
        squares[i] = update_squares(squares[i], gradient[i], by->keep);
    for (size_t i = 0; i < floats; i++)
        out[i] = update_compensated(gradient[i], weights[i], then[i],
                                    squares ? update_adapted(by->lambda, squares[i], by->seen) : by->lambda);
}

static int update(const struct device *device, const struct update *update, const struct update_slice *slice,
                  struct error *error) {
    const struct compensation *compensation = update->rule >= 0 ? slice->compensation : NULL;
    const bool blocks = slice->weight || slice->average || compensation;
    _Alignas(64) float mean[BLOCK];
    (void)device, (void)error;
    if (slice->racy) {
        cpu_update_racy(update, slice);
        return OK;
    }
    for (size_t at = slice->begin, floats; at < slice->end; at += floats) {
        const float *gradient = slice->gradients[0] + at;
        float *moments[UPDATE_MOMENTS];
        floats = blocks && slice->end - at > BLOCK ? BLOCK : slice->end - at;
        if (slice->weight) {
            add_up(slice->gradients, slice->weight, slice->count, at, floats, mean);
            gradient = mean;
        }
        if (compensation) {
            compensate(compensation, gradient, slice->state->vector[0].at + at, at, floats, mean);
            gradient = mean;
        }
        for (int m = 0; m < update->moments; m++) moments[m] = slice->state->vector[1 + m].at + at;
        cpu_step(update, floats, slice->state->vector[0].at + at, moments, gradient,
                 slice->average ? slice->average + at : NULL);
    }
    return OK;
}

static int mean(const struct device *device, const float *const *values, const float *weight, int count,
                size_t begin, size_t end, float factor, float *out, struct error *error) {
    (void)device, (void)error;
    for (size_t at = begin, floats; at < end; at += floats) {
        floats = end - at > BLOCK ? BLOCK : end - at;
        add_up(values, weight, count, at, floats, out + at);
        for (size_t i = at; i < at + floats; i++) out[i] *= factor;
    }
    return OK;
}

/* Eight partial sums, so that it vectorises and has the same bits everywhere. */
static int squares(const struct device *device, const float *values, size_t floats, double *out,
                   struct error *error) {
    double sums[8] = {0};
    size_t i = 0;
    (void)device, (void)error;
    for (; i + 8 <= floats; i += 8)
        for (size_t k = 0; k < 8; k++) sums[k] += (double)values[i + k] * (double)values[i + k];
    for (size_t k = 0; i + k < floats; k++) sums[k] += (double)values[i + k] * (double)values[i + k];
    *out = 0.0;
    for (int k = 0; k < 8; k++) *out += sums[k];
    return OK;
}

static int scale(const struct device *device, float *values, size_t floats, float factor,
                 struct error *error) {
    (void)device, (void)error;
    for (size_t i = 0; i < floats; i++) values[i] *= factor;
    return OK;
}

static int unit(const struct device *device, float *values, size_t floats, void *room, struct error *error) {
    double all = 0.0;
    (void)room;
    squares(device, values, floats, &all, error);
    return scale(device, values, floats, (float)(1.0 / (sqrt(all) + 1e-7)), error);
}

static int exchange(const struct device *device, float *restrict a, float *restrict b, size_t floats,
                    float rate, struct error *error) {
    (void)device, (void)error;
    for (size_t i = 0; i < floats; i++) {
        const float moved = rate * (a[i] - b[i]);
        a[i] -= moved;
        b[i] += moved;
    }
    return OK;
}

const struct vectors cpu_vectors = {.update = update,
                                    .mean = mean,
                                    .squares = squares,
                                    .scale = scale,
                                    .unit = unit,
                                    .exchange = exchange,
                                    .copy_racy = cpu_copy_racy};
