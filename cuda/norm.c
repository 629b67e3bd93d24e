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
    *(struct gpu_passes *)*plan = gpu_passes_of(1, rows.rows, rows.length, 4, 4);
    return OK;
}

static int bind_sums(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    return gpu_scratch_open(problem, gpu_passes_parts(plan) * sizeof(float), instance, error);
}

/* The passes behind `first`, from what the one before left; result [channels] = sums / divide. */
static int sum_rest(const struct call *call, cudaStream_t stream, int first, const float *from, float *result,
                    float divide, struct error *error) {
    const struct gpu_passes *passes = call->plan;
    for (int pass = first; pass < passes->count; pass++) {
        float *to = gpu_pass_result(passes, pass, gpu_scratch_of(call), result);
        GPU_TRY(call->problem->device,
                launch_sum(stream, passes->view[pass], from, to, pass == passes->count - 1 ? divide : 1.0f),
                error);
        from = to;
    }
    return OK;
}

/* [2, channels]: mean and variance, one after the other. */
static int run_moments(const struct call *call, struct error *error) {
    const struct gpu_passes *passes = call->plan;
    const float rows = (float)passes->view[0].length;
    float *mean = call->output, *variance = mean + passes->view[0].inner;
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    RETURN_IF(sum_rest(call, queue->stream, 0, call->input[0], mean, rows, error));
    float *parts = gpu_pass_result(passes, 0, gpu_scratch_of(call), variance);
    GPU_TRY(call->problem->device,
            launch_squares_from(queue->stream, passes->view[0], call->input[0], mean, parts,
                                passes->count == 1 ? rows : 1.0f),
            error);
    return sum_rest(call, queue->stream, 1, parts, variance, rows, error);
}
const struct kernel gpu_moments = {.name = "cuda:moments",
                                   .prepare = prepare_sums,
                                   .release = gpu_plan_free,
                                   .bind = bind_sums,
                                   .unbind = gpu_scratch_close,
                                   .run = run_moments};

/* x, moments, dy -> sums of dy, and of dy times the normalised x */
static int run_batch_norm_sums(const struct call *call, struct error *error) {
    const struct gpu_passes *passes = call->plan;
    const uint32_t channels = passes->view[0].inner;
    const float *moments = call->input[1];
    float *plain = call->output, *product = plain + channels;
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    RETURN_IF(sum_rest(call, queue->stream, 0, call->input[2], plain, 1.0f, error));
    float *parts = gpu_pass_result(passes, 0, gpu_scratch_of(call), product);
    GPU_TRY(
        call->problem->device,
        launch_products_from(queue->stream, passes->view[0], call->input[0], moments, call->input[2], parts),
        error);
    RETURN_IF(sum_rest(call, queue->stream, 1, parts, product, 1.0f, error));
    GPU_TRY(call->problem->device,
            launch_norm_divide(queue->stream, channels, moments, call->problem->attributes->epsilon, product),
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
