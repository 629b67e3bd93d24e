/* GPU kernels of elementwise.cu: their descriptors. Operands that broadcast have a plan: how they are walked
 * through, worked out once. */
#include "../src/base/memory.h"
#include "tasks.h"

/* --- two operands --- */

static int prepare_pairs(const struct task *task, void **plan, struct error *error) {
    struct gpu_walk *walk = NULL;
    struct walk both;
    if (!gpu_takes_wide(task)) return KERNEL_DECLINED;
    RETURN_IF(memory_zeroed((void **)&walk, 1, sizeof *walk, "a walk over operands", error));
    walk_broadcast(&both, &task->output.shape, &task->input[0].shape, &task->input[1].shape);
    *walk = gpu_walk_of(&both);
    *plan = walk;
    return OK;
}

static int run_pairs(const struct call *call, enum gpu_pairs op, struct error *error) {
    const struct task *task = call->task;
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (task->input[0].type == TYPE_INT)
        GPU_TRY(task->device,
                launch_pairs_int(queue->stream, op, call->plan, call->input[0], call->input[1], call->output),
                error);
    else
        GPU_TRY(task->device,
                launch_pairs(queue->stream, op, call->plan, call->input[0], call->input[1], call->output),
                error);
    return OK;
}

static int run_tests(const struct call *call, enum gpu_tests op, struct error *error) {
    const struct task *task = call->task;
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (task->input[0].type == TYPE_INT)
        GPU_TRY(task->device,
                launch_tests_int(queue->stream, op, call->plan, call->input[0], call->input[1], call->output),
                error);
    else
        GPU_TRY(task->device,
                launch_tests(queue->stream, op, call->plan, call->input[0], call->input[1], call->output),
                error);
    return OK;
}

static int run_add(const struct call *call, struct error *error) {
    return run_pairs(call, PAIRS_ADD, error);
}
const struct kernel gpu_add = {
    .name = "cuda:add", .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_add};

static int run_sub(const struct call *call, struct error *error) {
    return run_pairs(call, PAIRS_SUB, error);
}
const struct kernel gpu_sub = {
    .name = "cuda:sub", .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_sub};

static int run_mul(const struct call *call, struct error *error) {
    return run_pairs(call, PAIRS_MUL, error);
}
const struct kernel gpu_mul = {
    .name = "cuda:mul", .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_mul};

static int run_div(const struct call *call, struct error *error) {
    return run_pairs(call, PAIRS_DIV, error);
}
const struct kernel gpu_div = {
    .name = "cuda:div", .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_div};

static int run_pow(const struct call *call, struct error *error) {
    return run_pairs(call, PAIRS_POW, error);
}
const struct kernel gpu_pow = {
    .name = "cuda:pow", .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_pow};

static int run_greater(const struct call *call, struct error *error) {
    return run_tests(call, TESTS_GREATER, error);
}
const struct kernel gpu_greater = {
    .name = "cuda:greater", .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_greater};

static int run_less(const struct call *call, struct error *error) {
    return run_tests(call, TESTS_LESS, error);
}
const struct kernel gpu_less = {
    .name = "cuda:less", .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_less};

static int run_equal(const struct call *call, struct error *error) {
    return run_tests(call, TESTS_EQUAL, error);
}
const struct kernel gpu_equal = {
    .name = "cuda:equal", .prepare = prepare_pairs, .release = gpu_plan_free, .run = run_equal};

/* --- one operand --- */

static int run_map(const struct call *call, enum gpu_map op, struct error *error) {
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    GPU_TRY(call->task->device,
            launch_map(queue->stream, op, call->input[0], call->output, gpu_count(&call->task->output.shape)),
            error);
    return OK;
}

static int run_exp(const struct call *call, struct error *error) {
    return run_map(call, MAP_EXP, error);
}
const struct kernel gpu_exp = {.name = "cuda:exp", .prepare = gpu_wide, .run = run_exp};

static int run_log(const struct call *call, struct error *error) {
    return run_map(call, MAP_LOG, error);
}
const struct kernel gpu_log = {.name = "cuda:log", .prepare = gpu_wide, .run = run_log};

static int run_relu(const struct call *call, struct error *error) {
    return run_map(call, MAP_RELU, error);
}
const struct kernel gpu_relu = {.name = "cuda:relu", .prepare = gpu_wide, .run = run_relu};

static int run_sigmoid(const struct call *call, struct error *error) {
    return run_map(call, MAP_SIGMOID, error);
}
const struct kernel gpu_sigmoid = {.name = "cuda:sigmoid", .prepare = gpu_wide, .run = run_sigmoid};

static int run_tanh(const struct call *call, struct error *error) {
    return run_map(call, MAP_TANH, error);
}
const struct kernel gpu_tanh = {.name = "cuda:tanh", .prepare = gpu_wide, .run = run_tanh};

/* --- gradients of activations, from their results --- */

static int run_slope(const struct call *call, enum gpu_slope op, struct error *error) {
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    GPU_TRY(call->task->device,
            launch_slope(queue->stream, op, call->input[0], call->input[1], call->output,
                         gpu_count(&call->task->output.shape)),
            error);
    return OK;
}

static int run_sigmoid_grad(const struct call *call, struct error *error) {
    return run_slope(call, SLOPE_SIGMOID, error);
}
const struct kernel gpu_sigmoid_grad = {
    .name = "cuda:sigmoid_grad", .prepare = gpu_wide, .run = run_sigmoid_grad};

static int run_tanh_grad(const struct call *call, struct error *error) {
    return run_slope(call, SLOPE_TANH, error);
}
const struct kernel gpu_tanh_grad = {.name = "cuda:tanh_grad", .prepare = gpu_wide, .run = run_tanh_grad};

static int prepare_relu_grad(const struct task *task, void **plan, struct error *error) {
    (void)plan, (void)error;
    return gpu_takes(task) ? OK : KERNEL_DECLINED;
}

static int run_relu_grad(const struct call *call, struct error *error) {
    const struct task *task = call->task;
    const int narrow = (task->input[0].type == TYPE_BF16 ? 1 : 0) |
                       (task->input[1].type == TYPE_BF16 ? 2 : 0) | (task->output.type == TYPE_BF16 ? 4 : 0);
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    GPU_TRY(task->device,
            launch_relu_slope(queue->stream, narrow, call->input[0], call->input[1], call->output,
                              gpu_count(&task->output.shape)),
            error);
    return OK;
}
const struct kernel gpu_relu_grad = {
    .name = "cuda:relu_grad", .prepare = prepare_relu_grad, .run = run_relu_grad};

/* --- copies, casts, dropout --- */

static int copy_operand(const struct call *call, int i, struct error *error) {
    const struct task *task = call->task;
    const size_t bytes = shape_count(&task->output.shape) * type_bytes(task->output.type);
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (call->output != call->input[i])
        GPU_TRY(task->device,
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
    const struct task *task = call->task;
    const enum type from = task->input[0].type, to = task->output.type;
    if (from == to) return copy_operand(call, 0, error);
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    GPU_TRY(task->device,
            launch_cast(queue->stream, casts[from][to], call->input[0], call->output,
                        gpu_count(&task->output.shape)),
            error);
    return OK;
}
const struct kernel gpu_cast = {.name = "cuda:cast", .prepare = gpu_wide, .run = run_cast};

/* x, step (int scalar). */
static int run_dropout(const struct call *call, struct error *error) {
    const struct task *task = call->task;
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    GPU_TRY(task->device,
            launch_dropout(queue->stream, task->attributes->seed, call->input[1], task->attributes->rate,
                           call->input[0], call->output, gpu_count(&task->output.shape)),
            error);
    return OK;
}
const struct kernel gpu_dropout = {.name = "cuda:dropout", .prepare = gpu_wide, .run = run_dropout};
