/* Convolutions as cuDNN is told of them, and which of its algorithms may be used.
 *
 * Of cuDNN's algorithms only those are taken that it calls deterministic, so that a run is repeatable bit for
 * bit. The price is that the gradients cannot be summed by atomic additions (ALGO_0 and 3 of the kernel's,
 * ALGO_0 of x's), which are the fastest for a few shapes. fp32 is FMA_MATH, float32 throughout: DEFAULT_MATH
 * would multiply in tf32. In bf16 x, kernel and y are all bf16 to cuDNN, sums are float32; so the gradient of
 * a kernel is rounded to bf16 before it becomes float32 again. */
#include "convolution.h"

#include <stdint.h>
#include "../src/graph/window.h"

/* An algorithm that wants more than this is not worth its memory. */
static const size_t most_workspace = (size_t)256 << 20;

static bool is_possible(const struct problem *problem, enum type type, const struct shape *shape) {
    const bool narrow = type == TYPE_BF16 && problem->device->precision == PRECISION_BF16;
    const size_t count = shape_count(shape);
    return (type == TYPE_FLOAT || narrow) && count > 0 && count <= INT32_MAX;
}

static bool takes(const struct problem *problem) {
    for (int i = 0; i < problem->inputs; i++)
        if (!is_possible(problem, problem->input[i].type, &problem->input[i].shape)) return false;
    if (problem->op == OP_conv2d_bias && problem->input[2].type != TYPE_FLOAT) return false;
    return is_possible(problem, problem->output.type, &problem->output.shape);
}

static void find_roles(const struct problem *problem, struct convolution_plan *plan) {
    switch (problem->op) {
    case OP_conv2d_grad_x:
        plan->direction = GRAD_X;
        plan->x = OUTPUT;
        plan->kernel = 0;
        plan->y = 1;
        break;
    case OP_conv2d_grad_kernel:
        plan->direction = GRAD_KERNEL;
        plan->x = 0;
        plan->kernel = OUTPUT;
        plan->y = 1;
        break;
    default:
        plan->direction = FORWARD;
        plan->x = 0;
        plan->kernel = 1;
        plan->y = OUTPUT;
    }
}

static const struct shape *shape_of(const struct problem *problem, int operand) {
    return operand == OUTPUT ? &problem->output.shape : &problem->input[operand].shape;
}

static cudnnDataType_t data_type(enum type type) {
    return type == TYPE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

/* Images [batch, rows, columns, channels], which cuDNN counts as batch, channels, rows, columns. */
static int set_image(const struct convolution_plan *plan, cudnnTensorDescriptor_t form, int batch, int rows,
                     int columns, int channels, struct error *error) {
    DNN_TRY(plan->device,
            cudnnSetTensor4dDescriptor(form, CUDNN_TENSOR_NHWC, data_type(plan->computed), batch, channels,
                                       rows, columns),
            error);
    return OK;
}

static cudnnMathType_t math_of(const struct device *device) {
    switch (device->precision) {
    case PRECISION_BF16:
        return CUDNN_TENSOR_OP_MATH;
    case PRECISION_TF32:
        return CUDNN_DEFAULT_MATH;
    default:
        return CUDNN_FMA_MATH;
    }
}

/* x, or x with its zeros around, and how the windows slide over it. */
static int set_windows(const struct problem *problem, struct convolution_plan *plan, struct error *error) {
    const struct attributes *attributes = problem->attributes;
    const int *x = shape_of(problem, plan->x)->dims, *kernel = shape_of(problem, plan->kernel)->dims;
    struct window w[2];
    int pad[2], in[2];
    for (int axis = 0; axis < 2; axis++) {
        w[axis] = window_along(x[axis + 1], kernel[axis], attributes->stride[axis], attributes->padding);
        if (w[axis].before != w[axis].after) plan->framed = true;
    }
    plan->frame = (struct frame){.batch = x[0], .channels = x[3]};
    for (int axis = 0; axis < 2; axis++) {
        pad[axis] = plan->framed ? 0 : w[axis].before;
        in[axis] = plan->framed ? w[axis].in + w[axis].before + w[axis].after : w[axis].in;
        plan->frame.in[axis] = w[axis].in;
        plan->frame.out[axis] = in[axis];
        plan->frame.begin[axis] = plan->framed ? w[axis].before : 0;
    }
    if ((int64_t)x[0] * in[0] * in[1] * x[3] > INT32_MAX) return KERNEL_DECLINED;
    RETURN_IF(set_image(plan, plan->x_form, x[0], in[0], in[1], x[3], error));
    DNN_TRY(plan->device,
            cudnnSetConvolution2dDescriptor(plan->convolution, pad[0], pad[1], w[0].stride, w[1].stride, 1, 1,
                                            CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
            error);
    DNN_TRY(plan->device, cudnnSetConvolutionGroupCount(plan->convolution, plan->groups), error);
    DNN_TRY(plan->device, cudnnSetConvolutionMathType(plan->convolution, math_of(plan->device)), error);
    return OK;
}

/* For the call that adds the bias, and the ReLU when there is one. cuDNN's makes 0 of what is not a number,
 * which is all that this call offers; a diverged run is seen all the same, as the logits have no ReLU. */
static int set_bias(const struct problem *problem, struct convolution_plan *plan, struct error *error) {
    const enum activation activation = problem->attributes->activation;
    const struct device *device = plan->device;
    if (problem->op != OP_conv2d_bias || (activation != ACTIVATION_NONE && activation != ACTIVATION_RELU))
        return OK;
    DNN_TRY(device, cudnnCreateTensorDescriptor(&plan->bias_form), error);
    RETURN_IF(set_image(plan, plan->bias_form, 1, 1, 1, plan->out, error));
    DNN_TRY(device, cudnnCreateActivationDescriptor(&plan->activation), error);
    DNN_TRY(device,
            cudnnSetActivationDescriptor(plan->activation,
                                         activation == ACTIVATION_RELU ? CUDNN_ACTIVATION_RELU
                                                                       : CUDNN_ACTIVATION_IDENTITY,
                                         CUDNN_NOT_PROPAGATE_NAN, 0.0),
            error);
    return OK;
}

int convolution_open(const struct problem *problem, struct convolution_plan *plan, struct error *error) {
    const struct device *device = problem->device;
    if (!takes(problem)) return KERNEL_DECLINED;
    RETURN_IF(gpu_load(device, &cudnn_library, error));
    find_roles(problem, plan);
    plan->device = device;
    plan->computed = device->precision == PRECISION_BF16 ? TYPE_BF16 : TYPE_FLOAT;
    const int *kernel = shape_of(problem, plan->kernel)->dims, *y = shape_of(problem, plan->y)->dims;
    plan->window = kernel[0] * kernel[1] * kernel[2];
    plan->out = kernel[3];
    plan->groups = convolution_groups(shape_of(problem, plan->x), shape_of(problem, plan->kernel));
    DNN_TRY(device, cudnnCreateTensorDescriptor(&plan->x_form), error);
    DNN_TRY(device, cudnnCreateTensorDescriptor(&plan->y_form), error);
    DNN_TRY(device, cudnnCreateFilterDescriptor(&plan->kernel_form), error);
    DNN_TRY(device, cudnnCreateConvolutionDescriptor(&plan->convolution), error);
    RETURN_IF(set_windows(problem, plan, error));
    RETURN_IF(set_image(plan, plan->y_form, y[0], y[1], y[2], y[3], error));
    DNN_TRY(device,
            cudnnSetFilter4dDescriptor(plan->kernel_form, data_type(plan->computed), CUDNN_TENSOR_NHWC,
                                       kernel[3], kernel[2], kernel[0], kernel[1]),
            error);
    return set_bias(problem, plan, error);
}

void convolution_close(struct convolution_plan *plan) {
    if (plan->activation) cudnnDestroyActivationDescriptor(plan->activation);
    if (plan->convolution) cudnnDestroyConvolutionDescriptor(plan->convolution);
    if (plan->kernel_form) cudnnDestroyFilterDescriptor(plan->kernel_form);
    if (plan->bias_form) cudnnDestroyTensorDescriptor(plan->bias_form);
    if (plan->y_form) cudnnDestroyTensorDescriptor(plan->y_form);
    if (plan->x_form) cudnnDestroyTensorDescriptor(plan->x_form);
}

/* --- ways --- */

/* Adds what cuDNN lists when it may be used: exact enough, repeatable. ALLOW_CONVERSION would round to fewer
 * bits than tf32 has. A list may name an algorithm once for each kind of arithmetic; in fp32 these are one.
 */
static void add_way(struct convolution_plan *plan, cudnnStatus_t status, int algorithm, cudnnMathType_t math,
                    cudnnDeterminism_t determinism) {
    const cudnnMathType_t wanted = math_of(plan->device);
    const struct way way = {.algorithm = algorithm, .math = wanted == CUDNN_FMA_MATH ? wanted : math};
    if (status != CUDNN_STATUS_SUCCESS || determinism != CUDNN_DETERMINISTIC ||
        math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION || plan->count == MOST_WAYS)
        return;
    for (int i = 0; i < plan->count; i++)
        if (plan->ways[i].algorithm == way.algorithm && plan->ways[i].math == way.math) return;
    plan->ways[plan->count++] = way;
}

/* Calls one of cuDNN's three lists, which differ in their types alone. */
#define FIND(list, ...)                                                                                      \
    do {                                                                                                     \
        const cudnnStatus_t status_ = list(queue->dnn, __VA_ARGS__, MOST_WAYS, &count, found);               \
        if (convolution_is_impossible(status_)) return OK;                                                   \
        if (status_ != CUDNN_STATUS_SUCCESS) return DNN_FAILED(plan->device, #list, status_, error);         \
        for (int i = 0; i < count; i++)                                                                      \
            add_way(plan, found[i].status, (int)found[i].algo, found[i].mathType, found[i].determinism);     \
    } while (0)

static int find_forward(struct convolution_plan *plan, const struct queue *queue, struct error *error) {
    cudnnConvolutionFwdAlgoPerf_t found[MOST_WAYS];
    int count = 0;
    FIND(cudnnGetConvolutionForwardAlgorithm_v7, plan->x_form, plan->kernel_form, plan->convolution,
         plan->y_form);
    return OK;
}

static int find_grad_x(struct convolution_plan *plan, const struct queue *queue, struct error *error) {
    cudnnConvolutionBwdDataAlgoPerf_t found[MOST_WAYS];
    int count = 0;
    FIND(cudnnGetConvolutionBackwardDataAlgorithm_v7, plan->kernel_form, plan->y_form, plan->convolution,
         plan->x_form);
    return OK;
}

static int find_grad_kernel(struct convolution_plan *plan, const struct queue *queue, struct error *error) {
    cudnnConvolutionBwdFilterAlgoPerf_t found[MOST_WAYS];
    int count = 0;
    FIND(cudnnGetConvolutionBackwardFilterAlgorithm_v7, plan->x_form, plan->y_form, plan->convolution,
         plan->kernel_form);
    return OK;
}

static cudnnStatus_t ask_workspace(const struct convolution_plan *plan, const struct queue *queue,
                                   const struct way *way, size_t *bytes) {
    switch (plan->direction) {
    case GRAD_X:
        return cudnnGetConvolutionBackwardDataWorkspaceSize(
            queue->dnn, plan->kernel_form, plan->y_form, plan->convolution, plan->x_form,
            (cudnnConvolutionBwdDataAlgo_t)way->algorithm, bytes);
    case GRAD_KERNEL:
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(
            queue->dnn, plan->x_form, plan->y_form, plan->convolution, plan->kernel_form,
            (cudnnConvolutionBwdFilterAlgo_t)way->algorithm, bytes);
    default:
        return cudnnGetConvolutionForwardWorkspaceSize(queue->dnn, plan->x_form, plan->kernel_form,
                                                       plan->convolution, plan->y_form,
                                                       (cudnnConvolutionFwdAlgo_t)way->algorithm, bytes);
    }
}

/* Of each way how much workspace it wants, and only those that want little. What a list says of it is of the
 * arithmetic that the list names, and not of that which is set here. */
static int set_workspaces(struct convolution_plan *plan, const struct queue *queue, struct error *error) {
    const int count = plan->count;
    plan->count = 0;
    for (int i = 0; i < count; i++) {
        struct way way = plan->ways[i];
        DNN_TRY(plan->device, cudnnSetConvolutionMathType(plan->convolution, way.math), error);
        const cudnnStatus_t status = ask_workspace(plan, queue, &way, &way.workspace);
        if (convolution_is_impossible(status)) continue;
        if (status != CUDNN_STATUS_SUCCESS)
            return DNN_FAILED(plan->device, "cudnnGetConvolution...WorkspaceSize", status, error);
        if (way.workspace <= most_workspace) plan->ways[plan->count++] = way;
    }
    return OK;
}

/* What needs no activation, cuDNN fuses in one algorithm only. A way that is fused and one that is not follow
 * each other. */
static void add_fused(struct convolution_plan *plan, enum activation activation) {
    struct way plain[MOST_WAYS];
    const int count = plan->count;
    for (int i = 0; i < count; i++) plain[i] = plan->ways[i];
    plan->count = 0;
    for (int i = 0; i < count; i++) {
        const bool fuses = activation == ACTIVATION_RELU ||
                           plain[i].algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
        for (int fused = fuses ? 1 : 0; fused >= 0 && plan->count < MOST_WAYS; fused--) {
            plan->ways[plan->count] = plain[i];
            plan->ways[plan->count++].fused = fused;
        }
    }
}

int convolution_find_ways(const struct problem *problem, struct convolution_plan *plan, struct error *error) {
    struct queue *queue = gpu_queue(plan->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_dnn(plan->device, queue, error));
    switch (plan->direction) {
    case FORWARD:
        RETURN_IF(find_forward(plan, queue, error));
        break;
    case GRAD_X:
        RETURN_IF(find_grad_x(plan, queue, error));
        break;
    case GRAD_KERNEL:
        RETURN_IF(find_grad_kernel(plan, queue, error));
        break;
    }
    RETURN_IF(set_workspaces(plan, queue, error));
    if (plan->activation) add_fused(plan, problem->attributes->activation);
    return OK;
}

const char *convolution_algorithm_name(const struct convolution_plan *plan) {
    static const char *const forward[] = {
        "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
        "winograd",      "winograd_nonfused"};
    static const char *const grad_x[] = {"algo_0",     "algo_1",   "fft",
                                         "fft_tiling", "winograd", "winograd_nonfused"};
    static const char *const grad_kernel[] = {
        "algo_0", "algo_1", "fft", "algo_3", "winograd", "winograd_nonfused", "fft_tiling"};
    const char *const *names = plan->direction == FORWARD  ? forward
                               : plan->direction == GRAD_X ? grad_x
                                                           : grad_kernel;
    const int counts[] = {sizeof forward / sizeof *forward, sizeof grad_x / sizeof *grad_x,
                          sizeof grad_kernel / sizeof *grad_kernel};
    const int algorithm = plan->ways[plan->taken].algorithm;
    return algorithm >= 0 && algorithm < counts[plan->direction] ? names[algorithm] : "a new algorithm";
}
