/* GPU kernels of nets.cu: their descriptors. */
#include "problem.h"

static struct gpu_rows rows_of(const struct problem *problem) {
    const struct shape *shape = &problem->input[0].shape;
    const uint32_t length = (uint32_t)shape->dims[shape->rank - 1];
    return (struct gpu_rows){gpu_count(shape) / length, length};
}

static int run_softmax(const struct call *call, struct error *error) {
    GPU_RUN(call, queue, launch_softmax(queue->stream, rows_of(call->problem), call->input[0], call->output),
            error);
}
const struct kernel gpu_softmax = {.name = "cuda:softmax", .prepare = gpu_wide, .run = run_softmax};

static int run_softmax_grad(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_softmax_grad(queue->stream, rows_of(call->problem), call->input[0], call->input[1],
                                call->output),
            error);
}
const struct kernel gpu_softmax_grad = {
    .name = "cuda:softmax_grad", .prepare = gpu_wide, .run = run_softmax_grad};

static int run_cross_entropy(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_cross_entropy(queue->stream, rows_of(call->problem), call->input[0], call->input[1],
                                 call->output),
            error);
}
const struct kernel gpu_cross_entropy = {
    .name = "cuda:cross_entropy", .prepare = gpu_wide, .run = run_cross_entropy};

static int run_cross_entropy_grad(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_cross_entropy_grad(queue->stream, rows_of(call->problem), call->input[0], call->input[1],
                                      call->input[2], call->output),
            error);
}
const struct kernel gpu_cross_entropy_grad = {
    .name = "cuda:cross_entropy_grad", .prepare = gpu_wide, .run = run_cross_entropy_grad};

static int run_softmax_cross_entropy(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_softmax_cross_entropy(queue->stream, rows_of(call->problem), call->input[0],
                                         call->input[1], call->problem->attributes->smoothing, call->output),
            error);
}
const struct kernel gpu_softmax_cross_entropy = {
    .name = "cuda:softmax_cross_entropy", .prepare = gpu_wide, .run = run_softmax_cross_entropy};

static int run_softmax_cross_entropy_grad(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_softmax_cross_entropy_grad(queue->stream, rows_of(call->problem), call->input[0],
                                              call->input[1], call->problem->attributes->smoothing,
                                              call->input[2], call->output),
            error);
}
const struct kernel gpu_softmax_cross_entropy_grad = {
    .name = "cuda:softmax_cross_entropy_grad", .prepare = gpu_wide, .run = run_softmax_cross_entropy_grad};
