/* Arithmetic of the store on vectors that lie on the GPU: the backend's struct vectors. */
#include "gpu.h"
#include "kernels.h"

static int mean(const struct device *device, const float *const *values, const float *weight, int count,
                size_t begin, size_t end, float factor, float *out, struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (begin == end) return OK;
    for (int first = 0; first < count; first += GPU_MEAN_VECTORS) {
        const int left = count - first;
        struct gpu_mean sum = {.count = left < GPU_MEAN_VECTORS ? left : GPU_MEAN_VECTORS,
                               .more = first > 0,
                               .factor = left > GPU_MEAN_VECTORS ? 1.0f : factor};
        for (int i = 0; i < sum.count; i++) {
            sum.weight[i] = weight ? weight[first + i] : 1.0f;
            sum.values[i] = values[first + i] + begin;
        }
        GPU_TRY(device, launch_mean(queue->stream, &sum, end - begin, out + begin), error);
    }
    return OK;
}

/* In the place of the mean, of which there is none. */
static int compensate(const struct device *device, struct queue *queue, const struct compensation *by,
                      const struct update_slice *slice, const float **gradient, struct error *error) {
    const size_t at = slice->begin - by->begin;
    GPU_TRY(device,
            launch_compensate(queue->stream, by, *gradient + slice->begin,
                              slice->state->vector[0].at + slice->begin, at, slice->end - slice->begin,
                              slice->mean + slice->begin),
            error);
    *gradient = slice->mean;
    return OK;
}

static struct gpu_windows gpu_windows_of(const struct update_window *windows, int count) {
    struct gpu_windows out = {.count = count};
    size_t before = 0;
    for (int i = 0; i < count; i++) {
        out.window[i].ahead = windows[i].begin - before;
        before += windows[i].end - windows[i].begin;
        out.window[i].until = before;
        out.window[i].rule = windows[i].rule;
        out.window[i].rate = windows[i].rate;
        out.window[i].decay = windows[i].decay;
        out.window[i].weight_decay = windows[i].weight_decay;
    }
    return out;
}

static int update_windows(const struct device *device, const struct update *update,
                          const struct update_slice *slice, const struct update_window *windows, int count,
                          struct error *error) {
    const float *gradient = slice->weight ? slice->mean : slice->gradients[0];
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (slice->begin == slice->end) return OK;
    RETURN_IF(gpu_queue_refused(device, queue, error));
    if (slice->weight)
        RETURN_IF(mean(device, slice->gradients, slice->weight, slice->count, slice->begin, slice->end, 1.0f,
                       slice->mean, error));
    if (slice->compensation && update->rule >= 0)
        RETURN_IF(compensate(device, queue, slice->compensation, slice, &gradient, error));
    struct gpu_step step = {.weights = slice->state->vector[0].at,
                            .gradient = gradient,
                            .average = slice->average,
                            .witness = slice->witness,
                            .atomic = slice->atomic,
                            .refused = queue->refused};
    for (int m = 0; m < update->moments; m++) step.moments[m] = slice->state->vector[1 + m].at;
    const struct gpu_windows table = gpu_windows_of(windows, count);
    GPU_TRY(device, launch_update(queue->stream, update, &table, &step), error);
    return OK;
}

static int update(const struct device *device, const struct update *update, const struct update_slice *slice,
                  struct error *error) {
    const struct update_window all = {.begin = slice->begin,
                                      .end = slice->end,
                                      .rule = update->rule,
                                      .rate = update->rate,
                                      .decay = update->decay,
                                      .weight_decay = update->weight_decay};
    return update_windows(device, update, slice, &all, 1, error);
}

/* The GPU makes so many sums that all of it is busy, and so few that they are soon sent and added up. */
enum { PARTS = 512 };
_Static_assert(PARTS * sizeof(double) <= VECTORS_ROOM, "the sums have room");

static size_t parts_of(size_t floats) {
    const size_t shares = (floats + GPU_SQUARES_AT_ONCE - 1) / GPU_SQUARES_AT_ONCE;
    return shares < PARTS ? shares : PARTS;
}

static int squares(const struct device *device, const float *values, size_t floats, double *out,
                   struct error *error) {
    const size_t parts = parts_of(floats);
    double sums[PARTS] = {0};
    void *scratch = NULL;
    struct queue *queue = gpu_queue(device, error);
    *out = 0.0;
    if (!queue) return error->code;
    if (floats == 0) return OK;
    RETURN_IF(gpu_queue_scratch(device, queue, sizeof sums, &scratch, error));
    GPU_TRY(device, launch_squares(queue->stream, values, floats, scratch, parts), error);
    RETURN_IF(gpu_transfer(device, sums, scratch, parts * sizeof *sums, error));
    for (size_t i = 0; i < parts; i++) *out += sums[i];
    return OK;
}

static int scale(const struct device *device, float *values, size_t floats, float factor,
                 struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (floats > 0) GPU_TRY(device, launch_scale(queue->stream, values, floats, factor), error);
    return OK;
}

static int unit(const struct device *device, float *values, size_t floats, void *room, struct error *error) {
    const size_t parts = parts_of(floats);
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (floats == 0) return OK;
    GPU_TRY(device, launch_squares(queue->stream, values, floats, room, parts), error);
    GPU_TRY(device, launch_unit(queue->stream, values, floats, room, parts), error);
    return OK;
}

static int exchange(const struct device *device, float *a, float *b, size_t floats, float rate,
                    struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (floats > 0) GPU_TRY(device, launch_exchange(queue->stream, a, b, floats, rate), error);
    return OK;
}

const struct vectors gpu_vectors = {.update = update,
                                    .update_windows = update_windows,
                                    .mean = mean,
                                    .squares = squares,
                                    .scale = scale,
                                    .unit = unit,
                                    .exchange = exchange};
