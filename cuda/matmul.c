/* Matrix products by cuBLASLt: matmul, and dense, whose bias and ReLU are cuBLASLt's epilogue.
 *
 * cuBLASLt counts matrices by columns, so that ours are transposed ones to it: it is asked for y^T = b^T a^T,
 * whose memory is y, and the bias that it adds to each row of y^T is added to each column of y. fp32 is
 * float32 throughout; tf32 only by choice. In bf16 what is float32 in memory is converted in each run, but
 * for weights that the program has converted; sums are float32 always. Sums of parts of a product are kept in
 * float32 and added in a fixed order, so that a product is repeatable bit for bit.
 *
 * cuBLASLt's ReLU is max(x, 0), which makes 0 of what is not a number; a diverged run is seen all the same,
 * as the logits have no ReLU. */
#include "measure.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "../src/base/memory.h"
#include "operands.h"

enum { ALGORITHMS = 8, ALIGNMENT = 64, WORKSPACE = 32 << 20 };

_Static_assert((int)FINISH_NONE == (int)ACTIVATION_NONE && (int)FINISH_RELU == (int)ACTIVATION_RELU &&
                   (int)FINISH_SIGMOID == (int)ACTIVATION_SIGMOID && (int)FINISH_TANH == (int)ACTIVATION_TANH,
               "activations have the same numbers for device code");

struct plan {
    const struct device *device;
    enum type computed; /* what is multiplied */
    cublasLtMatrixLayout_t a, b, y;
    bool turned[2];              /* transpose_a, transpose_b */
    cublasLtEpilogue_t epilogue; /* DEFAULT of a dense: bias and activation by a kernel of ours */
    int count, taken;            /* algorithms; the one that is used */
    cublasLtMatmulHeuristicResult_t found[ALGORITHMS];
    cublasStatus_t *status; /* [ALGORITHMS] that each came to while they were measured; owned */
};

struct instance {
    const struct device *device;
    cublasLtMatmulDesc_t descriptor;
    void *block;        /* of GPU memory, owned; in it: */
    void *converted[2]; /* operands in bf16; NULL: they come so */
    void *bias;         /* in bf16; NULL: as it comes */
    void *workspace;
};

static cudaDataType_t data_type(enum type type) {
    return type == TYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Of cuBLASLt's words for "cannot". */
static bool is_impossible(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
}

static bool is_possible(const struct problem *problem, enum type type, const struct shape *shape) {
    const bool narrow = type == TYPE_BF16 && problem->device->precision == PRECISION_BF16;
    const size_t count = shape_count(shape);
    return (type == TYPE_FLOAT || narrow) && shape->rank == 2 && count > 0 && count <= INT32_MAX;
}

static bool takes(const struct problem *problem) {
    for (int i = 0; i < 2; i++)
        if (!is_possible(problem, problem->input[i].type, &problem->input[i].shape)) return false;
    if (problem->op == OP_dense && problem->input[2].type != TYPE_FLOAT) return false;
    return is_possible(problem, problem->output.type, &problem->output.shape);
}

static bool has_epilogue_bias(const struct plan *plan) {
    return plan->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
}

static cublasLtEpilogue_t epilogue_of(const struct problem *problem) {
    if (problem->op == OP_dense && problem->attributes->activation == ACTIVATION_NONE)
        return CUBLASLT_EPILOGUE_BIAS;
    if (problem->op == OP_dense && problem->attributes->activation == ACTIVATION_RELU)
        return CUBLASLT_EPILOGUE_RELU_BIAS;
    return CUBLASLT_EPILOGUE_DEFAULT;
}

/* As cuBLASLt sees it: our rows are its columns. */
static int make_layout(const struct problem *problem, cublasLtMatrixLayout_t *layout,
                       const struct shape *shape, enum type type, struct error *error) {
    const int rows = shape->dims[0], columns = shape->dims[1];
    BLAS_TRY(problem->device,
             cublasLtMatrixLayoutCreate(layout, data_type(type), (uint64_t)columns, (uint64_t)rows, columns),
             error);
    return OK;
}

#define SET(descriptor, name, value)                                                                         \
    BLAS_TRY(device, cublasLtMatmulDescSetAttribute(descriptor, name, &(value), sizeof(value)), error)

/* *made is the caller's to destroy, also after an error. The bias is as well aligned as all else. */
static int make_descriptor(const struct problem *problem, const struct plan *plan, cublasLtMatmulDesc_t *made,
                           struct error *error) {
    const struct device *device = problem->device;
    const cublasComputeType_t compute =
        device->precision == PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const int32_t left = plan->turned[1] ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t right = plan->turned[0] ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = (uint32_t)plan->epilogue;
    const int32_t bias_type = (int32_t)data_type(problem->output.type);
    const void *bias = (const void *)(uintptr_t)ALIGNMENT; /* looked at, not into */
    BLAS_TRY(device, cublasLtMatmulDescCreate(made, compute, CUDA_R_32F), error);
    SET(*made, CUBLASLT_MATMUL_DESC_TRANSA, left);
    SET(*made, CUBLASLT_MATMUL_DESC_TRANSB, right);
    SET(*made, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (!has_epilogue_bias(plan)) return OK;
    SET(*made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type);
    SET(*made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    return OK;
}

#define PREFER(name, value)                                                                                  \
    BLAS_TRY(device, cublasLtMatmulPreferenceSetAttribute(preference, name, &(value), sizeof(value)), error)

static int set_preference(const struct device *device, cublasLtMatmulPreference_t preference,
                          struct error *error) {
    const uint64_t workspace = WORKSPACE;
    const uint32_t alignment = ALIGNMENT, sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    PREFER(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    PREFER(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums);
    PREFER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
    PREFER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
    PREFER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    PREFER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
    return OK;
}

/* Fills the plan's list with what cuBLASLt thinks fast, best first; it may stay empty. */
static int ask(const struct problem *problem, struct plan *plan, cublasLtMatmulDesc_t descriptor,
               cublasLtMatmulPreference_t preference, struct error *error) {
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_blas(problem->device, queue, error));
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(queue->blas, descriptor, plan->b, plan->a, plan->y, plan->y,
                                       preference, ALGORITHMS, plan->found, &count);
    if (is_impossible(status)) return OK;
    if (status != CUBLAS_STATUS_SUCCESS)
        return BLAS_FAILED(problem->device, "cublasLtMatmulAlgoGetHeuristic", status, error);
    for (int i = 0; i < count; i++)
        if (plan->found[i].state == CUBLAS_STATUS_SUCCESS) plan->found[plan->count++] = plan->found[i];
    return OK;
}

static int find_algorithms(const struct problem *problem, struct plan *plan, struct error *error) {
    cublasLtMatmulDesc_t descriptor = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    const cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference);
    int code = status == CUBLAS_STATUS_SUCCESS
                   ? make_descriptor(problem, plan, &descriptor, error)
                   : BLAS_FAILED(problem->device, "cublasLtMatmulPreferenceCreate", status, error);
    if (code == OK) code = set_preference(problem->device, preference, error);
    if (code == OK) code = ask(problem, plan, descriptor, preference, error);
    if (descriptor) cublasLtMatmulDescDestroy(descriptor);
    if (preference) cublasLtMatmulPreferenceDestroy(preference);
    return code;
}

static void release(void *prepared) {
    struct plan *plan = prepared;
    if (!plan) return;
    if (plan->a) cublasLtMatrixLayoutDestroy(plan->a);
    if (plan->b) cublasLtMatrixLayoutDestroy(plan->b);
    if (plan->y) cublasLtMatrixLayoutDestroy(plan->y);
    memory_free(plan->status);
    memory_free(plan);
}

/* In each run, by the kernel itself. */
static bool is_converted(const struct problem *problem, const struct plan *plan, int i) {
    return problem->input[i].type != plan->computed && !(problem->ready >> i & 1);
}

/* Whether cuBLASLt adds the bias in bf16. */
static bool is_bias_narrow(const struct problem *problem, const struct plan *plan) {
    return has_epilogue_bias(plan) && problem->output.type == TYPE_BF16;
}

static bool wants(const struct problem *problem, const void *prepared, int i, struct form *form) {
    const struct plan *plan = prepared;
    const int *dims = problem->input[i].shape.dims;
    *form = (struct form){.type = TYPE_BF16, .rows = 1, .columns = dims[0]};
    if (i == 2) return is_bias_narrow(problem, plan);
    form->rows = dims[0];
    form->columns = dims[1];
    return problem->input[i].type == TYPE_FLOAT && plan->computed == TYPE_BF16;
}

static int add_memory(const struct problem *problem, const struct plan *plan, struct instance *made,
                      struct error *error) {
    size_t bytes = 0, converted[2] = {0};
    const bool narrow_bias = is_bias_narrow(problem, plan) && !(problem->ready >> 2 & 1);
    for (int i = 0; i < 2; i++)
        if (is_converted(problem, plan, i))
            converted[i] =
                gpu_part(&bytes, shape_count(&problem->input[i].shape) * type_bytes(plan->computed));
    const size_t bias =
        narrow_bias ? gpu_part(&bytes, shape_count(&problem->input[2].shape) * type_bytes(TYPE_BF16)) : 0;
    const size_t workspace = gpu_part(&bytes, plan->found[plan->taken].workspaceSize);
    if (bytes == 0) return OK;
    RETURN_IF(gpu_allocate(problem->device, &made->block, bytes, "room for a matrix product", error));
    char *block = made->block;
    for (int i = 0; i < 2; i++)
        if (is_converted(problem, plan, i)) made->converted[i] = block + converted[i];
    if (narrow_bias) made->bias = block + bias;
    if (plan->found[plan->taken].workspaceSize > 0) made->workspace = block + workspace;
    return OK;
}

static void unbind(void *bound) {
    struct instance *instance = bound;
    if (!instance) return;
    if (instance->block) gpu_release(instance->device, instance->block);
    if (instance->descriptor) cublasLtMatmulDescDestroy(instance->descriptor);
    memory_free(instance);
}

static int bind(const struct problem *problem, const void *prepared, void **instance, struct error *error) {
    const struct plan *plan = prepared;
    struct instance *made = NULL;
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_blas(problem->device, queue, error)); /* not while a run is recorded */
    RETURN_IF(memory_array(&made, 1, "a matrix product", error));
    made->device = problem->device;
    int code = make_descriptor(problem, plan, &made->descriptor, error);
    if (code == OK) code = add_memory(problem, plan, made, error);
    if (code == OK)
        *instance = made;
    else
        unbind(made);
    return code;
}

/* *to is operand i in the type that is multiplied. */
static int bring(const struct call *call, const struct queue *queue, int i, const void **to,
                 struct error *error) {
    const struct problem *problem = call->problem;
    const struct plan *plan = call->plan;
    const struct instance *instance = call->instance;
    *to = call->input[i];
    if (!is_converted(problem, plan, i)) return OK;
    *to = instance->converted[i];
    GPU_TRY(problem->device,
            operand_convert(queue->stream, instance->converted[i], plan->computed, call->input[i],
                            problem->input[i].type, shape_count(&problem->input[i].shape)),
            error);
    return OK;
}

/* Tells the instance's descriptor where the bias is. */
static int bring_bias(const struct call *call, const struct queue *queue, struct error *error) {
    const struct device *device = call->problem->device;
    const struct instance *instance = call->instance;
    const void *bias = call->input[2];
    if (instance->bias) {
        bias = instance->bias;
        GPU_TRY(device,
                operand_convert(queue->stream, instance->bias, TYPE_BF16, call->input[2], TYPE_FLOAT,
                                shape_count(&call->problem->input[2].shape)),
                error);
    }
    SET(instance->descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    return OK;
}

/* *status: the library's, of the product itself. */
static int multiply(const struct call *call, cublasStatus_t *status, struct error *error) {
    const struct problem *problem = call->problem;
    const struct plan *plan = call->plan;
    const struct instance *instance = call->instance;
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_blas(problem->device, queue, error));
    const cublasLtMatmulHeuristicResult_t *found = &plan->found[plan->taken];
    const float one = 1.0f, zero = 0.0f;
    const void *a, *b;
    RETURN_IF(bring(call, queue, 0, &a, error));
    RETURN_IF(bring(call, queue, 1, &b, error));
    if (has_epilogue_bias(plan)) RETURN_IF(bring_bias(call, queue, error));
    *status = cublasLtMatmul(queue->blas, instance->descriptor, &one, b, plan->b, a, plan->a, &zero,
                             call->output, plan->y, call->output, plan->y, &found->algo, instance->workspace,
                             found->workspaceSize, queue->stream);
    if (is_impossible(*status)) return KERNEL_DECLINED;
    if (*status != CUBLAS_STATUS_SUCCESS)
        return BLAS_FAILED(problem->device, "cublasLtMatmul", *status, error);
    if (problem->op == OP_matmul || has_epilogue_bias(plan)) return OK;
    const enum type type = problem->output.type;
    const int *dims = problem->output.shape.dims;
    GPU_TRY(problem->device,
            operand_finish(queue->stream, call->output, type, call->output, type, call->input[2], dims[0],
                           dims[1], (enum finish)problem->attributes->activation),
            error);
    return OK;
}

static int run(const struct call *call, struct error *error) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const int code = multiply(call, &status, error);
    if (code != KERNEL_DECLINED) return code;
    return gpu_failed(call->problem->device, "cublasLtMatmul", 0, "what was possible is no longer", __FILE__,
                      __LINE__, error);
}

/* While algorithms are measured: what keeps one from running is remembered. */
static int try(const struct call *call, struct error *error) {
    const struct plan *plan = call->plan;
    return multiply(call, &plan->status[plan->taken], error);
}

static int take(const struct problem *problem, void *prepared, int number, struct error *error) {
    (void)problem;
    (void)error;
    struct plan *plan = prepared;
    plan->taken = number;
    return OK;
}

/* Whether cuBLASLt can do it with that epilogue. */
static int plan_with(const struct problem *problem, struct plan *plan, cublasLtEpilogue_t epilogue,
                     struct error *error) {
    plan->epilogue = epilogue;
    plan->count = 0;
    memset(plan->status, 0, ALGORITHMS * sizeof *plan->status);
    RETURN_IF(find_algorithms(problem, plan, error));
    if (plan->count == 0) return KERNEL_DECLINED;
    const struct contest contest = {
        .count = plan->count, .take = take, .bind = bind, .unbind = unbind, .run = try};
    return gpu_measure(problem, plan, &contest, error);
}

static int make_plan(const struct problem *problem, struct plan *plan, struct error *error) {
    const struct attributes *attributes = problem->attributes;
    RETURN_IF(memory_array(&plan->status, ALGORITHMS, "the plan of a matrix product", error));
    plan->device = problem->device;
    plan->computed = problem->device->precision == PRECISION_BF16 ? TYPE_BF16 : TYPE_FLOAT;
    plan->turned[0] = problem->op == OP_matmul && attributes->transpose_a;
    plan->turned[1] = problem->op == OP_matmul && attributes->transpose_b;
    RETURN_IF(make_layout(problem, &plan->a, &problem->input[0].shape, plan->computed, error));
    RETURN_IF(make_layout(problem, &plan->b, &problem->input[1].shape, plan->computed, error));
    RETURN_IF(make_layout(problem, &plan->y, &problem->output.shape, problem->output.type, error));
    const cublasLtEpilogue_t epilogue = epilogue_of(problem);
    const int code = plan_with(problem, plan, epilogue, error);
    if (code != KERNEL_DECLINED || epilogue == CUBLASLT_EPILOGUE_DEFAULT) return code;
    return plan_with(problem, plan, CUBLASLT_EPILOGUE_DEFAULT, error);
}

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    struct plan *made = NULL;
    if (!takes(problem)) return KERNEL_DECLINED;
    RETURN_IF(gpu_load(problem->device, &cublaslt_library, error));
    RETURN_IF(memory_array(&made, 1, "the plan of a matrix product", error));
    const int code = make_plan(problem, made, error);
    if (code == OK)
        *plan = made;
    else
        release(made);
    return code;
}

/* "cublaslt:fp32, bias and relu fused, algorithm 2 of 8, 1 failed (code 15), workspace 4.0 MB": the code is
 * that of the last one. */
static void describe(const void *prepared, char *out, size_t bytes) {
    const struct plan *plan = prepared;
    const char *type = plan->computed == TYPE_BF16                 ? "bf16"
                       : plan->device->precision == PRECISION_TF32 ? "tf32"
                                                                   : "fp32";
    const char *epilogue = plan->epilogue == CUBLASLT_EPILOGUE_BIAS        ? ", bias fused"
                           : plan->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ? ", bias and relu fused"
                                                                           : "";
    char failed[40] = "";
    int failures = 0;
    for (int i = 0; i < plan->count; i++) {
        if (plan->status[i] == CUBLAS_STATUS_SUCCESS) continue;
        snprintf(failed, sizeof failed, ", %d failed (code %d)", ++failures, (int)plan->status[i]);
    }
    snprintf(out, bytes, "cublaslt:%s%s, algorithm %d of %d%s, workspace %.1f MB", type, epilogue,
             plan->taken + 1, plan->count, failed, (double)plan->found[plan->taken].workspaceSize / 1e6);
}

#define KERNEL(op)                                                                                           \
    const struct kernel gpu_##op = {.name = "cublaslt:" #op,                                                 \
                                    .prepare = prepare,                                                      \
                                    .release = release,                                                      \
                                    .bind = bind,                                                            \
                                    .unbind = unbind,                                                        \
                                    .run = run,                                                              \
                                    .wants = wants,                                                          \
                                    .describe = describe}
KERNEL(matmul);
KERNEL(dense);
