/* GPU kernels of norm.cu: their descriptors. Sums over the rows of [rows, channels] are made in passes
 * (problem.h). */
#include "../src/base/memory.h"
#include "problem.h"

static struct gpu_rows rows_of(const struct problem *problem) {
    const struct shape *shape = &problem->input[0].shape;
    const uint32_t channels = (uint32_t)shape->dims[shape->rank - 1];
    return (struct gpu_rows){gpu_count(shape) / channels, channels};
}

static int prepare_sums(const struct problem *problem, void **plan, struct error *error) {
    if (!gpu_takes_wide(problem)) return KERNEL_DECLINED;
    const struct gpu_rows rows = rows_of(problem);
    RETURN_IF(memory_zeroed(plan, 1, sizeof(struct gpu_passes), "passes of batch normalisation", error));
    *(struct gpu_passes *)*plan = gpu_passes_of(1, rows.rows, rows.length, 4, 2);
    return OK;
}

static int bind_sums(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    return gpu_scratch_open(problem, gpu_passes_parts(plan) * sizeof(struct gpu_two), instance, error);
}

/* [2, channels]: mean and variance */
static int run_moments(const struct call *call, struct error *error) {
    const struct device *device = call->problem->device;
    const struct gpu_passes *passes = call->plan;
    const struct gpu_view *view = passes->view;
    struct gpu_two *parts = gpu_scratch_of(call);
    const float *x = call->input[0];
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (passes->count == 1) {
        GPU_TRY(device, launch_moments(queue->stream, view[0], x, call->output), error);
        return OK;
    }
    GPU_TRY(device, launch_moments_parts(queue->stream, view[0], x, parts), error);
    GPU_TRY(device, launch_moments_of_parts(queue->stream, view[1], parts, x, view[0].length, call->output),
            error);
    return OK;
}
const struct kernel gpu_moments = {.name = "cuda:moments",
                                   .prepare = prepare_sums,
                                   .release = gpu_plan_free,
                                   .bind = bind_sums,
                                   .unbind = gpu_scratch_close,
                                   .run = run_moments};

/* x, moments, dy -> sums of dy, and of dy times the normalised x */
static int run_batch_norm_sums(const struct call *call, struct error *error) {
    const struct device *device = call->problem->device;
    const struct gpu_passes *passes = call->plan;
    const struct gpu_view *view = passes->view;
    struct gpu_two *parts = gpu_scratch_of(call);
    const float *x = call->input[0], *moments = call->input[1], *dy = call->input[2],
                epsilon = call->problem->attributes->epsilon;
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (passes->count == 1) {
        GPU_TRY(device, launch_slopes(queue->stream, view[0], x, moments, epsilon, dy, call->output), error);
        return OK;
    }
    GPU_TRY(device, launch_slopes_parts(queue->stream, view[0], x, moments, dy, parts), error);
    GPU_TRY(device, launch_slopes_of_parts(queue->stream, view[1], parts, moments, epsilon, call->output),
            error);
    return OK;
}
const struct kernel gpu_batch_norm_sums = {.name = "cuda:batch_norm_sums",
                                           .prepare = prepare_sums,
                                           .release = gpu_plan_free,
                                           .bind = bind_sums,
                                           .unbind = gpu_scratch_close,
                                           .run = run_batch_norm_sums};

/* x, moments, scale, shift */
static int run_batch_norm(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_norm(queue->stream, rows_of(call->problem), call->problem->attributes->epsilon,
                        call->input[0], call->input[1], call->input[2], call->input[3], call->output),
            error);
}
const struct kernel gpu_batch_norm = {.name = "cuda:batch_norm", .prepare = gpu_wide, .run = run_batch_norm};

/* x, moments, scale, sums, dy */
static int run_batch_norm_grad(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_norm_grad(queue->stream, rows_of(call->problem), call->problem->attributes->epsilon,
                             call->input[0], call->input[1], call->input[2], call->input[3], call->input[4],
                             call->output),
            error);
}
const struct kernel gpu_batch_norm_grad = {
    .name = "cuda:batch_norm_grad", .prepare = gpu_wide, .run = run_batch_norm_grad};
