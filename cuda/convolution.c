/* Convolution and its gradients by cuDNN.
 *
 * Images stay as the graph has them, [batch, rows, columns, channels]. A kernel is [rows, columns, in, out]
 * in the graph and [out, rows, columns, in] to cuDNN: it is turned in each run, and its gradient is turned
 * back; that moves twice the kernel's bytes, little beside the images. What is float32 in memory and computed
 * in bf16 is converted on the same way. Bias and activation are cuDNN's own where it is faster so, else a
 * kernel of ours in one pass over y. */
#include "convolution.h"

#include <stdio.h>
#include "../src/base/memory.h"
#include "measure.h"

struct instance {
    const struct device *device;
    void *block; /* of GPU memory, owned; in it, NULL where the operand itself is used: */
    void *x, *kernel, *y, *bias, *workspace;
};

static enum type type_of(const struct problem *problem, int operand) {
    return operand == OUTPUT ? problem->output.type : problem->input[operand].type;
}

/* Whether cuDNN gets a copy of x or y, or leaves its result in one. */
static bool is_copied(const struct problem *problem, const struct convolution_plan *plan, int operand) {
    return type_of(problem, operand) != plan->computed || (operand == plan->x && plan->framed);
}

static size_t image_bytes(const struct problem *problem, const struct convolution_plan *plan, int operand) {
    const struct frame *f = &plan->frame;
    const size_t x = (size_t)f->batch * (size_t)f->out[0] * (size_t)f->out[1] * (size_t)f->channels;
    const struct shape *y = operand == OUTPUT ? &problem->output.shape : &problem->input[operand].shape;
    return (operand == plan->x ? x : shape_count(y)) * type_bytes(plan->computed);
}

/* Whether cuDNN adds the bias in the type that it computes in, which the bias is not. */
static bool is_bias_copied(const struct convolution_plan *plan) {
    return plan->ways[plan->taken].fused && plan->computed != TYPE_FLOAT;
}

static int add_memory(const struct problem *problem, const struct convolution_plan *plan,
                      struct instance *made, struct error *error) {
    const struct way *way = &plan->ways[plan->taken];
    const size_t element = type_bytes(plan->computed);
    const bool x_copied = is_copied(problem, plan, plan->x), y_copied = is_copied(problem, plan, plan->y);
    size_t bytes = 0;
    const size_t kernel = gpu_part(&bytes, (size_t)plan->window * (size_t)plan->out * element);
    const size_t x = gpu_part(&bytes, x_copied ? image_bytes(problem, plan, plan->x) : 0);
    const size_t y = gpu_part(&bytes, y_copied ? image_bytes(problem, plan, plan->y) : 0);
    const size_t bias = gpu_part(&bytes, is_bias_copied(plan) ? (size_t)plan->out * element : 0);
    const size_t workspace = gpu_part(&bytes, way->workspace);
    RETURN_IF(gpu_allocate(problem->device, &made->block, bytes, "room for a convolution", error));
    char *block = made->block;
    made->kernel = block + kernel;
    if (x_copied) made->x = block + x;
    if (y_copied) made->y = block + y;
    if (is_bias_copied(plan)) made->bias = block + bias;
    if (way->workspace > 0) made->workspace = block + workspace;
    return OK;
}

static void unbind(void *bound) {
    struct instance *instance = bound;
    if (!instance) return;
    if (instance->block) gpu_release(instance->device, instance->block);
    memory_free(instance);
}

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    struct instance *made = NULL;
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_dnn(problem->device, queue, error)); /* not while a run is recorded */
    RETURN_IF(memory_array(&made, 1, "a convolution", error));
    made->device = problem->device;
    const int code = add_memory(problem, plan, made, error);
    if (code == OK)
        *instance = made;
    else
        unbind(made);
    return code;
}

/* Where cuDNN finds or leaves the three, and the bias. */
struct operands {
    const void *x, *kernel, *y, *bias;
    void *result;
};

static int bring(const struct call *call, const struct queue *queue, struct operands *o,
                 struct error *error) {
    const struct problem *problem = call->problem;
    const struct convolution_plan *plan = call->plan;
    const struct instance *instance = call->instance;
    const struct device *device = problem->device;
    const enum type computed = plan->computed;
    if (plan->x != OUTPUT) {
        o->x = instance->x ? instance->x : call->input[plan->x];
        if (instance->x)
            GPU_TRY(device,
                    operand_frame(queue->stream, instance->x, computed, call->input[plan->x],
                                  type_of(problem, plan->x), &plan->frame),
                    error);
    }
    if (plan->kernel != OUTPUT) {
        o->kernel = instance->kernel;
        GPU_TRY(device,
                operand_turn(queue->stream, instance->kernel, computed, call->input[plan->kernel],
                             type_of(problem, plan->kernel), plan->window, plan->out),
                error);
    }
    if (plan->y != OUTPUT) {
        o->y = instance->y ? instance->y : call->input[plan->y];
        if (instance->y)
            GPU_TRY(device,
                    operand_convert(queue->stream, instance->y, computed, call->input[plan->y],
                                    type_of(problem, plan->y), shape_count(&problem->input[plan->y].shape)),
                    error);
    }
    if (plan->ways[plan->taken].fused) {
        o->bias = instance->bias ? instance->bias : call->input[2];
        if (instance->bias)
            GPU_TRY(device,
                    operand_convert(queue->stream, instance->bias, computed, call->input[2], TYPE_FLOAT,
                                    (size_t)plan->out),
                    error);
    }
    return OK;
}

static const char *call_name(const struct convolution_plan *plan) {
    return plan->direction == GRAD_X        ? "cudnnConvolutionBackwardData"
           : plan->direction == GRAD_KERNEL ? "cudnnConvolutionBackwardFilter"
           : plan->ways[plan->taken].fused  ? "cudnnConvolutionBiasActivationForward"
                                            : "cudnnConvolutionForward";
}

static cudnnStatus_t compute(const struct convolution_plan *plan, const struct instance *instance,
                             const struct queue *queue, const struct operands *o) {
    const struct way *way = &plan->ways[plan->taken];
    const float one = 1.0f, zero = 0.0f;
    switch (plan->direction) {
    case GRAD_X:
        return cudnnConvolutionBackwardData(
            queue->dnn, &one, plan->kernel_form, o->kernel, plan->y_form, o->y, plan->convolution,
            (cudnnConvolutionBwdDataAlgo_t)way->algorithm, instance->workspace, way->workspace, &zero,
            plan->x_form, o->result);
    case GRAD_KERNEL:
        return cudnnConvolutionBackwardFilter(
            queue->dnn, &one, plan->x_form, o->x, plan->y_form, o->y, plan->convolution,
            (cudnnConvolutionBwdFilterAlgo_t)way->algorithm, instance->workspace, way->workspace, &zero,
            plan->kernel_form, o->result);
    default:
        break;
    }
    const cudnnConvolutionFwdAlgo_t algorithm = (cudnnConvolutionFwdAlgo_t)way->algorithm;
    if (way->fused)
        return cudnnConvolutionBiasActivationForward(
            queue->dnn, &one, plan->x_form, o->x, plan->kernel_form, o->kernel, plan->convolution, algorithm,
            instance->workspace, way->workspace, &zero, plan->y_form, o->result, plan->bias_form, o->bias,
            plan->activation, plan->y_form, o->result);
    return cudnnConvolutionForward(queue->dnn, &one, plan->x_form, o->x, plan->kernel_form, o->kernel,
                                   plan->convolution, algorithm, instance->workspace, way->workspace, &zero,
                                   plan->y_form, o->result);
}

/* From where cuDNN left the result to where the graph wants it. */
static int finish(const struct call *call, const struct queue *queue, const void *result,
                  struct error *error) {
    const struct problem *problem = call->problem;
    const struct convolution_plan *plan = call->plan;
    const enum type computed = plan->computed, type = problem->output.type;
    const size_t count = shape_count(&problem->output.shape);
    if (plan->direction == GRAD_KERNEL) {
        GPU_TRY(problem->device,
                operand_turn(queue->stream, call->output, type, result, computed, plan->out, plan->window),
                error);
    } else if (plan->direction == GRAD_X && result != call->output) {
        const struct frame *f = &plan->frame;
        const struct frame cut = {.batch = f->batch,
                                  .channels = f->channels,
                                  .in = {f->out[0], f->out[1]},
                                  .out = {f->in[0], f->in[1]},
                                  .begin = {-f->begin[0], -f->begin[1]}};
        GPU_TRY(problem->device, operand_frame(queue->stream, call->output, type, result, computed, &cut),
                error);
    } else if (problem->op == OP_conv2d_bias && !plan->ways[plan->taken].fused) {
        GPU_TRY(problem->device,
                operand_finish(queue->stream, call->output, type, result, computed, call->input[2],
                               (int)(count / (size_t)plan->out), plan->out,
                               (enum finish)problem->attributes->activation),
                error);
    } else if (result != call->output) {
        GPU_TRY(problem->device, operand_convert(queue->stream, call->output, type, result, computed, count),
                error);
    }
    return OK;
}

static int convolve(const struct call *call, struct error *error) {
    const struct device *device = call->problem->device;
    const struct convolution_plan *plan = call->plan;
    const struct instance *instance = call->instance;
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_dnn(device, queue, error));
    struct operands o = {0};
    RETURN_IF(bring(call, queue, &o, error));
    void *copy = plan->direction == GRAD_KERNEL ? instance->kernel
                 : plan->direction == GRAD_X    ? instance->x
                                                : instance->y;
    o.result = copy ? copy : call->output;
    const cudnnStatus_t status = compute(plan, instance, queue, &o);
    if (convolution_is_impossible(status)) return KERNEL_DECLINED;
    if (status != CUDNN_STATUS_SUCCESS) return DNN_FAILED(device, call_name(plan), status, error);
    return finish(call, queue, o.result, error);
}

static int run(const struct call *call, struct error *error) {
    const int code = convolve(call, error);
    if (code != KERNEL_DECLINED) return code;
    return gpu_failed(call->problem->device, call_name(call->plan), 0, "what was possible is no longer",
                      __FILE__, __LINE__, error);
}

static int take(const struct problem *problem, void *prepared, int number, struct error *error) {
    struct convolution_plan *plan = prepared;
    plan->taken = number;
    DNN_TRY(problem->device, cudnnSetConvolutionMathType(plan->convolution, plan->ways[number].math), error);
    return OK;
}

static void release(void *plan) {
    if (plan) convolution_close(plan);
    memory_free(plan);
}

static int make_plan(const struct problem *problem, struct convolution_plan *plan, struct error *error) {
    RETURN_IF(convolution_open(problem, plan, error));
    RETURN_IF(convolution_find_ways(problem, plan, error));
    if (plan->count == 0) return KERNEL_DECLINED;
    const struct contest contest = {
        .count = plan->count, .take = take, .bind = bind, .unbind = unbind, .run = convolve};
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

static const char *math_name(const struct convolution_plan *plan) {
    switch (plan->ways[plan->taken].math) {
    case CUDNN_FMA_MATH:
        return "fp32";
    case CUDNN_DEFAULT_MATH:
        return plan->computed == TYPE_BF16 ? "bf16" : "tf32 where it can";
    default:
        return plan->computed == TYPE_BF16 ? "bf16 tensor cores" : "tf32 tensor cores";
    }
}

/* "cudnn:implicit_precomp_gemm, fp32, bias fused, x framed, way 1 of 4, workspace 0.8 MB" */
static void describe(const void *prepared, char *out, size_t bytes) {
    const struct convolution_plan *plan = prepared;
    const struct way *way = &plan->ways[plan->taken];
    snprintf(out, bytes, "cudnn:%s, %s%s%s, way %d of %d, workspace %.1f MB",
             convolution_algorithm_name(plan), math_name(plan), way->fused ? ", bias fused" : "",
             plan->framed ? ", x framed" : "", plan->taken + 1, plan->count, (double)way->workspace / 1e6);
}

#define KERNEL(op)                                                                                           \
    const struct kernel gpu_##op = {.name = "cudnn:" #op,                                                    \
                                    .prepare = prepare,                                                      \
                                    .release = release,                                                      \
                                    .bind = bind,                                                            \
                                    .unbind = unbind,                                                        \
                                    .run = run,                                                              \
                                    .describe = describe}
KERNEL(conv2d);
KERNEL(conv2d_bias);
KERNEL(conv2d_grad_x);
KERNEL(conv2d_grad_kernel);
