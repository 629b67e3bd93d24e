/* Arithmetic of the store on vectors that lie on the GPU: the backend's struct vectors. */
#include "gpu.h"
#include "kernels.h"

static int update(const struct device *device, const struct update *update,
                  const struct update_window *window, struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (window->floats > 0) GPU_TRY(device, launch_update(queue->stream, update, window), error);
    return OK;
}

static int mean(const struct device *device, const float *const *values, const float *weight, int count,
                size_t floats, float *out, struct error *error) {
    struct gpu_mean sum = {.count = count};
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (count < 1 || count > GPU_MEAN_VECTORS)
        return error_set(error, ERROR_INTERNAL, "%s: a mean of %d vectors, expected 1 to %d", device->name,
                         count, GPU_MEAN_VECTORS);
    for (int i = 0; i < count; i++) {
        sum.weight[i] = weight[i];
        sum.values[i] = values[i];
    }
    if (floats > 0) GPU_TRY(device, launch_mean(queue->stream, &sum, floats, out), error);
    return OK;
}

/* Two passes on the GPU, and the rest here: so many sums are few enough to send and many enough to be made
 * quickly. */
static int squares(const struct device *device, const float *values, size_t floats, double *out,
                   struct error *error) {
    enum { PARTS = 16384, LAST = 128 };
    const size_t parts = floats < PARTS ? floats : PARTS, last = parts < LAST ? parts : LAST;
    double sums[LAST] = {0};
    void *scratch = NULL;
    struct queue *queue = gpu_queue(device, error);
    *out = 0.0;
    if (!queue) return error->code;
    if (floats == 0) return OK;
    RETURN_IF(gpu_queue_scratch(device, queue, (PARTS + LAST) * sizeof(double), &scratch, error));
    double *first = scratch, *second = first + PARTS;
    GPU_TRY(device, launch_squares(queue->stream, values, floats, first, parts), error);
    GPU_TRY(device, launch_sum_double(queue->stream, first, parts, second, last), error);
    RETURN_IF(gpu_transfer(device, sums, second, last * sizeof *sums, error));
    for (size_t i = 0; i < last; i++) *out += sums[i];
    return OK;
}

static int scale(const struct device *device, float *values, size_t floats, float factor,
                 struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (floats > 0) GPU_TRY(device, launch_scale(queue->stream, values, floats, factor), error);
    return OK;
}

const struct vectors gpu_vectors = {.update = update, .mean = mean, .squares = squares, .scale = scale};
