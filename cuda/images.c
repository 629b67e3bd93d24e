/* GPU kernels of images.cu: their descriptors. Pooling has a plan: where its windows are. */
#include "../src/base/memory.h"
#include "../src/graph/window.h"
#include "problem.h"

/* x and y (or dx) of one type, float32 or bf16: no kernel converts between them. */
static bool of_one_type(const struct problem *problem) {
    const enum type type = problem->output.type;
    return (type == TYPE_FLOAT || type == TYPE_BF16) && problem->input[0].type == type &&
           problem->input[problem->inputs - 1].type == type && gpu_takes(problem);
}

static int is_narrow(const struct problem *problem) {
    return problem->output.type == TYPE_BF16;
}

static struct gpu_window window_of(int in, const struct attributes *a, int axis) {
    const struct window window = window_along(in, a->window[axis], a->stride[axis], a->padding);
    return (struct gpu_window){.in = window.in,
                               .out = window.out,
                               .length = window.length,
                               .stride = window.stride,
                               .before = window.before};
}

/* x: the shape of what is pooled. */
static int plan_pool(const struct problem *problem, const struct shape *x, void **plan, struct error *error) {
    struct gpu_pool *pool = NULL;
    RETURN_IF(memory_array(&pool, 1, "windows of a pooling", error));
    pool->rows = window_of(x->dims[1], problem->attributes, 0);
    pool->columns = window_of(x->dims[2], problem->attributes, 1);
    pool->batch = (uint32_t)x->dims[0];
    pool->channels = (uint32_t)x->dims[3];
    *plan = pool;
    return OK;
}

static int prepare_pool(const struct problem *problem, void **plan, struct error *error) {
    if (!of_one_type(problem)) return KERNEL_DECLINED;
    return plan_pool(problem, &problem->input[0].shape, plan, error);
}

static int run_maxpool(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_maxpool(queue->stream, call->plan, is_narrow(call->problem), call->input[0], call->output),
            error);
}
const struct kernel gpu_maxpool = {
    .name = "cuda:maxpool", .prepare = prepare_pool, .release = gpu_plan_free, .run = run_maxpool};

/* Which element each window found, unless these need not be asked by more than one. */
static int bind_maxpool_grad(const struct problem *problem, const void *plan, void **instance,
                             struct error *error) {
    const size_t windows = gpu_pool_tiles(plan) ? 0 : shape_count(&problem->input[1].shape);
    return gpu_scratch_open(problem, windows * gpu_pool_which_bytes(plan), instance, error);
}

static int run_maxpool_grad(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_maxpool_grad(queue->stream, call->plan, is_narrow(call->problem), call->input[0],
                                call->input[1], call->output, gpu_scratch_of(call)),
            error);
}
const struct kernel gpu_maxpool_grad = {.name = "cuda:maxpool_grad",
                                        .prepare = prepare_pool,
                                        .release = gpu_plan_free,
                                        .bind = bind_maxpool_grad,
                                        .unbind = gpu_scratch_close,
                                        .run = run_maxpool_grad};

/* Means are of float32 only. */
static int prepare_avgpool(const struct problem *problem, void **plan, struct error *error) {
    if (is_narrow(problem) || !of_one_type(problem)) return KERNEL_DECLINED;
    return plan_pool(problem, &problem->input[0].shape, plan, error);
}

static int run_avgpool(const struct call *call, struct error *error) {
    GPU_RUN(call, queue, launch_avgpool(queue->stream, call->plan, call->input[0], call->output), error);
}
const struct kernel gpu_avgpool = {
    .name = "cuda:avgpool", .prepare = prepare_avgpool, .release = gpu_plan_free, .run = run_avgpool};

static int prepare_avgpool_grad(const struct problem *problem, void **plan, struct error *error) {
    if (is_narrow(problem) || !of_one_type(problem)) return KERNEL_DECLINED;
    return plan_pool(problem, &problem->output.shape, plan, error);
}

static int run_avgpool_grad(const struct call *call, struct error *error) {
    GPU_RUN(call, queue, launch_avgpool_grad(queue->stream, call->plan, call->input[0], call->output), error);
}
const struct kernel gpu_avgpool_grad = {.name = "cuda:avgpool_grad",
                                        .prepare = prepare_avgpool_grad,
                                        .release = gpu_plan_free,
                                        .run = run_avgpool_grad};

/* --- local response normalisation --- */

static int prepare_lrn(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    return of_one_type(problem) ? OK : KERNEL_DECLINED;
}

static struct gpu_lrn lrn_of(const struct problem *problem) {
    const struct attributes *attributes = problem->attributes;
    const struct shape *shape = &problem->output.shape;
    return (struct gpu_lrn){.count = gpu_count(shape),
                            .channels = (uint32_t)shape->dims[shape->rank - 1],
                            .radius = attributes->lrn.radius,
                            .bias = attributes->lrn.bias,
                            .alpha = attributes->lrn.alpha,
                            .beta = attributes->lrn.beta,
                            .positive = attributes->activation == ACTIVATION_RELU};
}

static int run_lrn(const struct call *call, struct error *error) {
    const struct gpu_lrn lrn = lrn_of(call->problem);
    GPU_RUN(call, queue,
            launch_lrn(queue->stream, &lrn, is_narrow(call->problem), call->input[0], call->output), error);
}
const struct kernel gpu_lrn = {.name = "cuda:lrn", .prepare = prepare_lrn, .run = run_lrn};

static int run_lrn_grad(const struct call *call, struct error *error) {
    const struct gpu_lrn lrn = lrn_of(call->problem);
    GPU_RUN(call, queue,
            launch_lrn_grad(queue->stream, &lrn, is_narrow(call->problem), call->input[0], call->input[1],
                            call->output),
            error);
}
const struct kernel gpu_lrn_grad = {.name = "cuda:lrn_grad", .prepare = prepare_lrn, .run = run_lrn_grad};
