/* GPU kernels of elementwise.cu: their descriptors, of the elementwise rows of ops.def made here. Operands
 * that broadcast have a plan: how they are walked through, worked out once. */
#include "../src/base/memory.h"
#include "problem.h"

/* --- two operands --- */

static int prepare_pairs(const struct problem *problem, void **plan, struct error *error) {
    struct gpu_walk *walk = NULL;
    struct walk both;
    if (!gpu_takes_wide(problem)) return KERNEL_DECLINED;
    RETURN_IF(memory_array(&walk, 1, "a walk over operands", error));
    walk_broadcast(&both, &problem->output.shape, &problem->input[0].shape, &problem->input[1].shape);
    *walk = gpu_walk_of(&both);
    *plan = walk;
    return OK;
}

static int run_binary(const struct call *call, gpu_binary *launch, struct error *error) {
    const struct problem *problem = call->problem;
    GPU_RUN(call, queue,
            launch(queue->stream, call->plan, problem->input[0].type == TYPE_INT, call->input[0],
                   call->input[1], call->output),
            error);
}

#define BINARY(op, ...)                                                                                      \
    static int run_##op(const struct call *call, struct error *error) {                                      \
        return run_binary(call, elementwise_##op, error);                                                    \
    }                                                                                                        \
    const struct kernel gpu_##op = {                                                                         \
        .name = "cuda:" #op, .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_##op};
#include "../src/graph/ops.def"

/* --- one operand, and the gradients of activations from their results --- */

static int run_unary(const struct call *call, gpu_unary *launch, struct error *error) {
    GPU_RUN(call, queue,
            launch(queue->stream, call->input[0], call->output, gpu_count(&call->problem->output.shape)),
            error);
}

static int run_slope(const struct call *call, gpu_slope *launch, struct error *error) {
    GPU_RUN(call, queue,
            launch(queue->stream, call->input[0], call->input[1], call->output,
                   gpu_count(&call->problem->output.shape)),
            error);
}

#define UNARY(op, ...)                                                                                       \
    static int run_##op(const struct call *call, struct error *error) {                                      \
        return run_unary(call, elementwise_##op, error);                                                     \
    }                                                                                                        \
    const struct kernel gpu_##op = {.name = "cuda:" #op, .prepare = gpu_wide, .run = run_##op};
#define SLOPE(op)                                                                                            \
    static int run_##op(const struct call *call, struct error *error) {                                      \
        return run_slope(call, elementwise_##op, error);                                                     \
    }                                                                                                        \
    const struct kernel gpu_##op = {.name = "cuda:" #op, .prepare = gpu_wide, .run = run_##op};
#include "../src/graph/ops.def"

static int prepare_relu_grad(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    return gpu_takes(problem) ? OK : KERNEL_DECLINED;
}

static int run_relu_grad(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    const int narrow = (problem->input[0].type == TYPE_BF16 ? 1 : 0) |
                       (problem->input[1].type == TYPE_BF16 ? 2 : 0) |
                       (problem->output.type == TYPE_BF16 ? 4 : 0);
    GPU_RUN(call, queue,
            launch_relu_slope(queue->stream, narrow, call->input[0], call->input[1], call->output,
                              gpu_count(&problem->output.shape)),
            error);
}
const struct kernel gpu_relu_grad = {
    .name = "cuda:relu_grad", .prepare = prepare_relu_grad, .run = run_relu_grad};

/* --- copies, casts, dropout --- */

static int copy_operand(const struct call *call, int i, struct error *error) {
    const struct problem *problem = call->problem;
    const size_t bytes = shape_count(&problem->output.shape) * type_bytes(problem->output.type);
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (call->output != call->input[i])
        GPU_TRY(problem->device,
                cudaMemcpyAsync(call->output, call->input[i], bytes, cudaMemcpyDeviceToDevice, queue->stream),
                error);
    return OK;
}

static int run_copy(const struct call *call, struct error *error) {
    return copy_operand(call, 0, error);
}
const struct kernel gpu_copy = {.name = "cuda:copy", .prepare = gpu_wide, .run = run_copy};

/* Variable, value: the value over the variable, which is where the output is. */
static int run_assign(const struct call *call, struct error *error) {
    return copy_operand(call, 1, error);
}
const struct kernel gpu_assign = {.name = "cuda:assign", .prepare = gpu_wide, .run = run_assign};

static int run_cast(const struct call *call, struct error *error) {
    static const enum gpu_cast casts[3][3] = {
        [TYPE_FLOAT] = {[TYPE_INT] = CAST_FLOAT_INT, [TYPE_BOOL] = CAST_FLOAT_BOOL},
        [TYPE_INT] = {[TYPE_FLOAT] = CAST_INT_FLOAT, [TYPE_BOOL] = CAST_INT_BOOL},
        [TYPE_BOOL] = {[TYPE_FLOAT] = CAST_BOOL_FLOAT, [TYPE_INT] = CAST_BOOL_INT},
    };
    const struct problem *problem = call->problem;
    const enum type from = problem->input[0].type, to = problem->output.type;
    if (from == to) return copy_operand(call, 0, error);
    GPU_RUN(call, queue,
            launch_cast(queue->stream, casts[from][to], call->input[0], call->output,
                        gpu_count(&problem->output.shape)),
            error);
}
const struct kernel gpu_cast = {.name = "cuda:cast", .prepare = gpu_wide, .run = run_cast};

/* x, step (int scalar). */
static int run_dropout(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    GPU_RUN(call, queue,
            launch_dropout(queue->stream, problem->attributes->seed, call->input[1],
                           problem->attributes->rate, call->input[0], call->output,
                           gpu_count(&problem->output.shape)),
            error);
}
const struct kernel gpu_dropout = {.name = "cuda:dropout", .prepare = gpu_wide, .run = run_dropout};
