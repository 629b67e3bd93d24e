/* Convolution and its gradients by cuDNN, or as a matrix product (unfold.c): whichever is faster.
 *
 * Images stay as the graph has them, [batch, rows, columns, channels]. A kernel is [rows, columns, in, out]
 * in the graph and [out, rows, columns, in] to cuDNN: it is turned in each run, unless the program has turned
 * it, and its gradient is turned back; that moves twice the kernel's bytes, little beside the images. What is
 * float32 in memory and computed in bf16 is converted on the same way. Bias and activation are cuDNN's own
 * where it can and is faster so, else a kernel of ours in one pass over y.
 *
 * cuDNN's ReLU makes 0 of what is not a number; a diverged run is seen all the same, as the logits have no
 * ReLU. */
#include "convolution.h"

#include <stdio.h>
#include "../src/base/memory.h"

struct instance {
    const struct device *device;
    void *unfolded; /* that of unfold.c; NULL: cuDNN computes, with: */
    struct dnn_convolution told;
    struct dnn_plan plan; /* this arena's own */
    void *block;          /* of GPU memory, owned; in it, NULL where the operand itself is used: */
    void *x, *kernel, *y, *bias, *workspace;
};

static enum type type_of(const struct problem *problem, int operand) {
    return operand == OUTPUT ? problem->output.type : problem->input[operand].type;
}

static size_t count_of(const struct problem *problem, int operand) {
    return shape_count(operand == OUTPUT ? &problem->output.shape : &problem->input[operand].shape);
}

/* Bytes of the copy of x or y that cuDNN gets, or leaves its result in; 0: it gets the operand itself. */
static size_t copy_bytes(const struct problem *problem, const struct convolution_plan *plan, int operand) {
    const enum type computed = plan->told.type;
    return type_of(problem, operand) == computed ? 0 : count_of(problem, operand) * type_bytes(computed);
}

/* Whether what is taken is a matrix product; *number: which of those, or which of cuDNN's ways. */
static bool is_unfolded(const struct convolution_plan *plan, int *number) {
    return convolution_is_unfolded(plan, plan->taken, number);
}

static const struct way *way_of(const struct convolution_plan *plan) {
    int number;
    return is_unfolded(plan, &number) ? NULL : &plan->ways[number];
}

/* Whether cuDNN adds the bias in the type that it computes in, which the bias is not. */
static bool is_bias_copied(const struct convolution_plan *plan) {
    return way_of(plan)->fused && plan->told.type != TYPE_FLOAT;
}

/* Whether the program has brought the operand into the form that cuDNN gets. */
static bool is_ready(const struct problem *problem, int operand) {
    return operand != OUTPUT && (problem->ready >> operand & 1);
}

static bool wants(const struct problem *problem, const void *prepared, int i, struct form *form) {
    const struct convolution_plan *plan = prepared;
    int number;
    if (is_unfolded(plan, &number)) return unfold_wants(problem, plan->unfolding, number, i, form);
    if (i == plan->kernel) {
        *form = (struct form){
            .type = plan->told.type, .turned = true, .rows = plan->window, .columns = plan->out};
        return true;
    }
    *form = (struct form){.type = plan->told.type, .rows = 1, .columns = plan->out};
    return problem->op == OP_conv2d_bias && i == 2 && is_bias_copied(plan);
}

static int add_memory(const struct problem *problem, const struct convolution_plan *plan,
                      size_t workspace_bytes, struct instance *made, struct error *error) {
    const size_t element = type_bytes(plan->told.type);
    const size_t x_bytes = copy_bytes(problem, plan, plan->x), y_bytes = copy_bytes(problem, plan, plan->y);
    size_t bytes = 0;
    const size_t kernel = gpu_part(
        &bytes, is_ready(problem, plan->kernel) ? 0 : (size_t)plan->window * (size_t)plan->out * element);
    const size_t x = gpu_part(&bytes, x_bytes);
    const size_t y = gpu_part(&bytes, y_bytes);
    const bool bias_copied = is_bias_copied(plan) && !is_ready(problem, 2);
    const size_t bias = gpu_part(&bytes, bias_copied ? (size_t)plan->out * element : 0);
    const size_t workspace = gpu_part(&bytes, workspace_bytes);
    if (bytes == 0) return OK;
    RETURN_IF(gpu_allocate(problem->device, &made->block, bytes, "room for a convolution", error));
    char *block = made->block;
    if (!is_ready(problem, plan->kernel)) made->kernel = block + kernel;
    if (x_bytes > 0) made->x = block + x;
    if (y_bytes > 0) made->y = block + y;
    if (bias_copied) made->bias = block + bias;
    if (workspace_bytes > 0) made->workspace = block + workspace;
    return OK;
}

static void unbind(void *bound) {
    struct instance *instance = bound;
    if (!instance) return;
    unfold_unbind(instance->unfolded);
    dnn_plan_close(&instance->plan);
    if (instance->block) gpu_release(instance->device, instance->block);
    memory_free(instance);
}

/* The plan of the way that is taken is made here: it is not to be shared. */
static int make_instance(const struct problem *problem, const struct convolution_plan *plan,
                         const struct queue *queue, struct instance *made, struct error *error) {
    int number;
    if (is_unfolded(plan, &number))
        return unfold_bind(problem, plan->unfolding, number, &made->unfolded, error);
    const struct way *way = &plan->ways[number];
    const struct dnn_gpu gpu = dnn_gpu_of(problem->device, queue->dnn);
    size_t workspace = 0;
    made->told = convolution_told(plan, way);
    RETURN_IF(dnn_plan_open(&gpu, &made->told, way, &made->plan, &workspace, error));
    return add_memory(problem, plan, workspace, made, error);
}

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    struct instance *made = NULL;
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_dnn(problem->device, queue, error)); /* not while a run is recorded */
    RETURN_IF(memory_array(&made, 1, "a convolution", error));
    made->device = problem->device;
    const int code = make_instance(problem, plan, queue, made, error);
    if (code == OK)
        *instance = made;
    else
        unbind(made);
    return code;
}

/* The operands as cuDNN gets them; *result: where it leaves what it computes. */
static int bring(const struct call *call, const struct queue *queue, struct dnn_operands *o, void **result,
                 struct error *error) {
    const struct problem *problem = call->problem;
    const struct convolution_plan *plan = call->plan;
    const struct instance *instance = call->instance;
    const struct device *device = problem->device;
    const enum type computed = plan->told.type;
    o->x = instance->x ? instance->x : plan->x == OUTPUT ? call->output : call->input[plan->x];
    o->y = instance->y ? instance->y : plan->y == OUTPUT ? call->output : call->input[plan->y];
    o->kernel = is_ready(problem, plan->kernel) ? call->input[plan->kernel] : instance->kernel;
    o->workspace = instance->workspace;
    *result = (void *)(plan->x == OUTPUT ? o->x : plan->y == OUTPUT ? o->y : o->kernel);
    if (plan->x != OUTPUT && instance->x)
        GPU_TRY(device,
                operand_convert(queue->stream, instance->x, computed, call->input[plan->x],
                                type_of(problem, plan->x), count_of(problem, plan->x)),
                error);
    if (plan->kernel != OUTPUT && instance->kernel)
        GPU_TRY(device,
                operand_turn(queue->stream, instance->kernel, computed, call->input[plan->kernel],
                             type_of(problem, plan->kernel), plan->window, plan->out),
                error);
    if (plan->y != OUTPUT && instance->y)
        GPU_TRY(device,
                operand_convert(queue->stream, instance->y, computed, call->input[plan->y],
                                type_of(problem, plan->y), count_of(problem, plan->y)),
                error);
    if (!instance->told.fused) return OK;
    o->bias = instance->bias ? instance->bias : call->input[2];
    if (instance->bias)
        GPU_TRY(device,
                operand_convert(queue->stream, instance->bias, computed, call->input[2], TYPE_FLOAT,
                                (size_t)plan->out),
                error);
    return OK;
}

/* From where cuDNN left the result to where the graph wants it. */
static int finish(const struct call *call, const struct queue *queue, const void *result,
                  struct error *error) {
    const struct problem *problem = call->problem;
    const struct convolution_plan *plan = call->plan;
    const struct instance *instance = call->instance;
    const enum type computed = plan->told.type, type = problem->output.type;
    const size_t count = shape_count(&problem->output.shape);
    if (plan->kernel == OUTPUT)
        GPU_TRY(problem->device,
                operand_turn(queue->stream, call->output, type, result, computed, plan->out, plan->window),
                error);
    else if (problem->op == OP_conv2d_bias && !instance->told.fused)
        GPU_TRY(problem->device,
                operand_finish(queue->stream, call->output, type, result, computed, call->input[2],
                               (int)(count / (size_t)plan->out), plan->out,
                               (enum finish)problem->attributes->activation),
                error);
    else if (result != call->output)
        GPU_TRY(problem->device, operand_convert(queue->stream, call->output, type, result, computed, count),
                error);
    return OK;
}

static int convolve_dnn(const struct call *call, struct error *error) {
    const struct device *device = call->problem->device;
    struct instance *instance = call->instance;
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_dnn(device, queue, error));
    struct dnn_operands o = {0};
    void *result = NULL;
    RETURN_IF(bring(call, queue, &o, &result, error));
    RETURN_IF(dnn_plan_run(&instance->plan, &instance->told, queue->dnn, &o, error));
    return finish(call, queue, result, error);
}

static int convolve(const struct call *call, bool measured, struct error *error) {
    const struct convolution_plan *plan = call->plan;
    const struct instance *instance = call->instance;
    int number;
    if (!is_unfolded(plan, &number)) return convolve_dnn(call, error);
    return unfold_run(call, plan->unfolding, number, instance->unfolded, measured, error);
}

static int run(const struct call *call, struct error *error) {
    int number;
    const int code = convolve(call, false, error);
    if (code != KERNEL_DECLINED) return code;
    return gpu_failed(call->problem->device,
                      is_unfolded(call->plan, &number) ? "cublasLtMatmul" : "cudnnBackendExecute", 0,
                      "what was possible is no longer", __FILE__, __LINE__, error);
}

static int try(const struct call *call, struct error *error) {
    return convolve(call, true, error);
}

static int take(const struct problem *problem, void *prepared, int number, struct error *error) {
    (void)problem;
    (void)error;
    struct convolution_plan *plan = prepared;
    plan->taken = number;
    return OK;
}

static void release(void *prepared) {
    struct convolution_plan *plan = prepared;
    if (plan) unfold_close(plan->unfolding);
    memory_free(plan);
}

static int make_plan(const struct problem *problem, struct convolution_plan *plan, struct error *error) {
    RETURN_IF(convolution_open(problem, plan));
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_dnn(problem->device, queue, error));
    const struct dnn_gpu gpu = dnn_gpu_of(problem->device, queue->dnn);
    RETURN_IF(convolution_find_ways(&gpu, plan, error));
    RETURN_IF(unfold_open(problem, convolution_budget(), &plan->unfolding, error));
    const int candidates = convolution_candidates(plan);
    if (candidates == 0) return KERNEL_DECLINED;
    const struct contest contest = {.count = candidates,
                                    .take = take,
                                    .bind = bind,
                                    .unbind = unbind,
                                    .run = try,
                                    .outcome = &plan->outcome};
    return gpu_measure(problem, plan, &contest, error);
}

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    struct convolution_plan *made = NULL;
    RETURN_IF(memory_array(&made, 1, "the plan of a convolution", error));
    const int code = make_plan(problem, made, error);
    if (code == OK)
        *plan = made;
    else
        release(made);
    return code;
}

static const char *math_name(const struct convolution_plan *plan, const struct way *way) {
    const bool tensor_cores = way->notes & DNN_NOTE(TENSOR_CORE);
    if (plan->told.type == TYPE_BF16) return tensor_cores ? "bf16 tensor cores" : "bf16";
    return tensor_cores ? "tf32 tensor cores" : "fp32";
}

/* "cudnn:engine 45, bf16 tensor cores, bias fused, way 1 of 12, 1.2 MB", which is the workspace; or as
 * unfold.h has it. Behind it what the contest found: "2 impossible", "1 wrong". */
static void describe(const void *prepared, char *out, size_t bytes) {
    const struct convolution_plan *plan = prepared;
    int number;
    char impossible[30] = "", wrong[30] = "", what[160];
    const bool unfolded = is_unfolded(plan, &number);
    const struct way *way = &plan->ways[number];
    if (unfolded)
        unfold_describe(plan->unfolding, number, what, sizeof what);
    else
        snprintf(what, sizeof what, "cudnn:engine %lld, %s%s%s, way %d of %d, %.1f MB",
                 (long long)way->engine, math_name(plan, way), way->fused ? ", bias fused" : "",
                 way->notes & DNN_NOTE(NONDETERMINISTIC) ? ", not repeatable" : "", number + 1, plan->count,
                 (double)way->workspace / 1e6);
    if (plan->outcome.impossible > 0)
        snprintf(impossible, sizeof impossible, ", %d impossible", plan->outcome.impossible);
    if (plan->outcome.wrong > 0) snprintf(wrong, sizeof wrong, ", %d wrong", plan->outcome.wrong);
    snprintf(out, bytes, "%s%s%s", what, impossible, wrong);
}

#define KERNEL(op)                                                                                           \
    const struct kernel gpu_##op = {.name = "cudnn:" #op,                                                    \
                                    .prepare = prepare,                                                      \
                                    .release = release,                                                      \
                                    .bind = bind,                                                            \
                                    .unbind = unbind,                                                        \
                                    .run = run,                                                              \
                                    .wants = wants,                                                          \
                                    .describe = describe}
KERNEL(conv2d);
KERNEL(conv2d_bias);
KERNEL(conv2d_grad_x);
KERNEL(conv2d_grad_kernel);
