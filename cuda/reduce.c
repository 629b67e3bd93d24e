/* GPU kernels of reduce.cu: their descriptors. A reduction is made in one pass or two (problem.h), with the
 * parts between them in scratch memory of the arena. */
#include "../src/base/memory.h"
#include "problem.h"

/* Sums of floats and bf16 are read 16 bytes at a time. */
static struct gpu_passes passes_of(const struct problem *problem) {
    const struct shape *shape = &problem->input[0].shape;
    const enum type type = problem->input[0].type;
    const int axis = problem->attributes->axis;
    const bool sums = type != TYPE_INT && (problem->op == OP_reduce_sum || problem->op == OP_reduce_mean);
    const size_t wide = sums ? 16 / type_bytes(type) : 1, wide_parts = sums ? 4 : 1;
    size_t outer = 1, inner = 1;
    if (axis == ALL_AXES) return gpu_passes_of(1, shape_count(shape), 1, wide, wide_parts);
    for (int i = 0; i < axis; i++) outer *= (size_t)shape->dims[i];
    for (int i = axis + 1; i < shape->rank; i++) inner *= (size_t)shape->dims[i];
    return gpu_passes_of(outer, (size_t)shape->dims[axis], inner, wide, wide_parts);
}

static int make_plan(const struct problem *problem, void **plan, struct error *error) {
    RETURN_IF(memory_zeroed(plan, 1, sizeof(struct gpu_passes), "passes of a reduction", error));
    *(struct gpu_passes *)*plan = passes_of(problem);
    return OK;
}

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    return gpu_takes_wide(problem) ? make_plan(problem, plan, error) : KERNEL_DECLINED;
}

/* Sums are float32, also that of bf16. */
static int prepare_sum(const struct problem *problem, void **plan, struct error *error) {
    if (!gpu_takes(problem) || problem->output.type == TYPE_BF16) return KERNEL_DECLINED;
    return make_plan(problem, plan, error);
}

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    return gpu_scratch_open(problem, gpu_passes_parts(plan) * sizeof(float), instance, error);
}

/* The largest, or sums / divide. The first pass reads the operand, the others what the one before left. */
static int run_passes(const struct call *call, bool largest, float divide, struct error *error) {
    const struct problem *problem = call->problem;
    const struct gpu_passes *passes = call->plan;
    const void *from = call->input[0];
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    for (int pass = 0; pass < passes->count; pass++) {
        void *to = gpu_pass_result(passes, pass, gpu_scratch_of(call), call->output);
        const float by = pass == passes->count - 1 ? divide : 1.0f;
        if (largest && problem->output.type == TYPE_INT)
            GPU_TRY(problem->device, launch_max_int(queue->stream, passes->view[pass], from, to), error);
        else if (largest)
            GPU_TRY(problem->device, launch_max(queue->stream, passes->view[pass], from, to), error);
        else if (problem->output.type == TYPE_INT)
            GPU_TRY(problem->device, launch_sum_int(queue->stream, passes->view[pass], from, to), error);
        else if (pass == 0 && problem->input[0].type == TYPE_BF16)
            GPU_TRY(problem->device, launch_sum_bf16(queue->stream, passes->view[pass], from, to, by), error);
        else
            GPU_TRY(problem->device, launch_sum(queue->stream, passes->view[pass], from, to, by), error);
        from = to;
    }
    return OK;
}

static int run_reduce_sum(const struct call *call, struct error *error) {
    return run_passes(call, false, 1.0f, error);
}

static int run_reduce_mean(const struct call *call, struct error *error) {
    const struct gpu_passes *passes = call->plan;
    return run_passes(call, false, (float)passes->view[0].length, error);
}

static int run_reduce_max(const struct call *call, struct error *error) {
    return run_passes(call, true, 1.0f, error);
}

#define KERNEL(op, how)                                                                                      \
    const struct kernel gpu_##op = {.name = "cuda:" #op,                                                     \
                                    .prepare = how,                                                          \
                                    .release = gpu_plan_free,                                                \
                                    .bind = bind,                                                            \
                                    .unbind = gpu_scratch_close,                                             \
                                    .run = run_##op,                                                         \
                                    .writes_host = true}
KERNEL(reduce_sum, prepare_sum);
KERNEL(reduce_mean, prepare);
KERNEL(reduce_max, prepare);

/* In one pass, so that places need not be kept between two: it is for rows of classes. */
static int prepare_argmax(const struct problem *problem, void **plan, struct error *error) {
    RETURN_IF(prepare(problem, plan, error));
    struct gpu_passes *passes = *plan;
    passes->count = 1;
    passes->view[0].chunks = 1;
    return OK;
}

static int run_argmax(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    const struct gpu_passes *passes = call->plan;
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (problem->input[0].type == TYPE_INT)
        GPU_TRY(problem->device,
                launch_argmax_int(queue->stream, passes->view[0], call->input[0], call->output), error);
    else
        GPU_TRY(problem->device, launch_argmax(queue->stream, passes->view[0], call->input[0], call->output),
                error);
    return OK;
}
const struct kernel gpu_argmax = {
    .name = "cuda:argmax", .prepare = prepare_argmax, .release = gpu_plan_free, .run = run_argmax};
