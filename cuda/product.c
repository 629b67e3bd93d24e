/* Matrix products by cuBLASLt, as it is told of them.
 *
 * It counts matrices by columns, so that ours are transposed ones to it: it is asked for y^T = b^T a^T, whose
 * memory is y, and the bias that it adds to each row of y^T is added to each column of y. fp32 is float32
 * throughout; tf32 only by choice; sums are float32 always. Sums of parts of a product are kept in float32
 * and added in a fixed order, so that a product is repeatable bit for bit.
 *
 * cuBLASLt's ReLU is max(x, 0), which makes 0 of what is not a number; a diverged run is seen all the same,
 * as the logits have no ReLU. */
#include "product.h"

#include <stdio.h>
#include <string.h>
#include "../src/base/memory.h"

enum { ALIGNMENT = 64 };

static cudaDataType_t data_type(enum type type) {
    return type == TYPE_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Of cuBLASLt's words for "cannot". */
static bool is_impossible(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
}

#define TELL(layout, name, value)                                                                            \
    BLAS_TRY(device, cublasLtMatrixLayoutSetAttribute(layout, name, &(value), sizeof(value)), error)

/* As cuBLASLt sees it: our rows are its columns. */
static int make_layout(const struct device *device, cublasLtMatrixLayout_t *layout,
                       const struct matrix *matrix, int32_t count, struct error *error) {
    const int64_t next = matrix->next;
    BLAS_TRY(device,
             cublasLtMatrixLayoutCreate(layout, data_type(matrix->type), (uint64_t)matrix->columns,
                                        (uint64_t)matrix->rows, matrix->pitch),
             error);
    if (count <= 1) return OK;
    TELL(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    TELL(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, next);
    return OK;
}

int product_open(struct product *product, const struct device *device, const struct product_wish *wish,
                 struct error *error) {
    product->device = device;
    product->computed = wish->a.type;
    product->result = wish->y.type;
    memcpy(product->turned, wish->turned, sizeof product->turned);
    product->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    RETURN_IF(gpu_load(device, &cublaslt_library, error));
    RETURN_IF(memory_array(&product->status, PRODUCT_ALGORITHMS, "the plan of a matrix product", error));
    RETURN_IF(make_layout(device, &product->a, &wish->a, wish->count, error));
    RETURN_IF(make_layout(device, &product->b, &wish->b, wish->count, error));
    return make_layout(device, &product->y, &wish->y, wish->count, error);
}

void product_close(struct product *product) {
    if (product->a) cublasLtMatrixLayoutDestroy(product->a);
    if (product->b) cublasLtMatrixLayoutDestroy(product->b);
    if (product->y) cublasLtMatrixLayoutDestroy(product->y);
    memory_free(product->status);
    *product = (struct product){0};
}

cublasLtEpilogue_t product_epilogue(enum activation activation) {
    switch (activation) {
    case ACTIVATION_NONE:
        return CUBLASLT_EPILOGUE_BIAS;
    case ACTIVATION_RELU:
        return CUBLASLT_EPILOGUE_RELU_BIAS;
    default:
        return CUBLASLT_EPILOGUE_DEFAULT;
    }
}

bool product_has_bias(const struct product *product) {
    return product->epilogue != CUBLASLT_EPILOGUE_DEFAULT;
}

bool product_narrows_bias(const struct product *product) {
    return product_has_bias(product) && product->result == TYPE_BF16;
}

#define SET(descriptor, name, value)                                                                         \
    BLAS_TRY(device, cublasLtMatmulDescSetAttribute(descriptor, name, &(value), sizeof(value)), error)

/* The bias is as well aligned as all else. */
int product_describe(const struct product *product, cublasLtMatmulDesc_t *made, struct error *error) {
    const struct device *device = product->device;
    const cublasComputeType_t compute =
        device->precision == PRECISION_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const int32_t left = product->turned[1] ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t right = product->turned[0] ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = (uint32_t)product->epilogue;
    const int32_t bias_type = (int32_t)data_type(product->result);
    const void *bias = (const void *)(uintptr_t)ALIGNMENT; /* looked at, not into */
    BLAS_TRY(device, cublasLtMatmulDescCreate(made, compute, CUDA_R_32F), error);
    SET(*made, CUBLASLT_MATMUL_DESC_TRANSA, left);
    SET(*made, CUBLASLT_MATMUL_DESC_TRANSB, right);
    SET(*made, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (!product_has_bias(product)) return OK;
    SET(*made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type);
    SET(*made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    return OK;
}

#define PREFER(name, value)                                                                                  \
    BLAS_TRY(device, cublasLtMatmulPreferenceSetAttribute(preference, name, &(value), sizeof(value)), error)

static int set_preference(const struct device *device, cublasLtMatmulPreference_t preference,
                          struct error *error) {
    const uint64_t workspace = PRODUCT_WORKSPACE;
    const uint32_t alignment = ALIGNMENT, sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    PREFER(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    PREFER(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums);
    PREFER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
    PREFER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
    PREFER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    PREFER(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
    return OK;
}

static int ask(struct product *product, cublasLtMatmulDesc_t descriptor,
               cublasLtMatmulPreference_t preference, struct error *error) {
    const struct device *device = product->device;
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_blas(device, queue, error));
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(queue->blas, descriptor, product->b, product->a, product->y,
                                       product->y, preference, PRODUCT_ALGORITHMS, product->found, &count);
    if (is_impossible(status)) return OK;
    if (status != CUBLAS_STATUS_SUCCESS)
        return BLAS_FAILED(device, "cublasLtMatmulAlgoGetHeuristic", status, error);
    for (int i = 0; i < count; i++)
        if (product->found[i].state == CUBLAS_STATUS_SUCCESS)
            product->found[product->count++] = product->found[i];
    return OK;
}

int product_find(struct product *product, cublasLtEpilogue_t epilogue, struct error *error) {
    cublasLtMatmulDesc_t descriptor = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    product->epilogue = epilogue;
    product->count = 0;
    memset(product->status, 0, PRODUCT_ALGORITHMS * sizeof *product->status);
    const cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference);
    int code = status == CUBLAS_STATUS_SUCCESS
                   ? product_describe(product, &descriptor, error)
                   : BLAS_FAILED(product->device, "cublasLtMatmulPreferenceCreate", status, error);
    if (code == OK) code = set_preference(product->device, preference, error);
    if (code == OK) code = ask(product, descriptor, preference, error);
    if (descriptor) cublasLtMatmulDescDestroy(descriptor);
    if (preference) cublasLtMatmulPreferenceDestroy(preference);
    return code;
}

int product_run(const struct product *product, int algorithm, cublasLtMatmulDesc_t descriptor,
                const struct product_operands *operands, cublasStatus_t *status, struct error *error) {
    const struct device *device = product->device;
    const cublasLtMatmulHeuristicResult_t *found = &product->found[algorithm];
    const float one = 1.0f, zero = 0.0f;
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_blas(device, queue, error));
    if (product_has_bias(product)) SET(descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands->bias);
    *status = cublasLtMatmul(queue->blas, descriptor, &one, operands->b, product->b, operands->a, product->a,
                             &zero, operands->y, product->y, operands->y, product->y, &found->algo,
                             operands->workspace, found->workspaceSize, queue->stream);
    if (is_impossible(*status)) return KERNEL_DECLINED;
    if (*status != CUBLAS_STATUS_SUCCESS) return BLAS_FAILED(device, "cublasLtMatmul", *status, error);
    return OK;
}

void product_say(const struct product *product, int algorithm, size_t workspace, char *out, size_t bytes) {
    const char *type = product->computed == TYPE_BF16                 ? "bf16"
                       : product->device->precision == PRECISION_TF32 ? "tf32"
                                                                      : "fp32";
    const char *epilogue = product->epilogue == CUBLASLT_EPILOGUE_BIAS        ? ", bias fused"
                           : product->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ? ", bias and relu fused"
                                                                              : "";
    char failed[40] = "";
    int failures = 0;
    for (int i = 0; i < product->count; i++) {
        if (product->status[i] == CUBLAS_STATUS_SUCCESS) continue;
        snprintf(failed, sizeof failed, ", %d failed (code %d)", ++failures, (int)product->status[i]);
    }
    snprintf(out, bytes, "%s%s, algorithm %d of %d%s, workspace %.1f MB", type, epilogue, algorithm + 1,
             product->count, failed, (double)workspace / 1e6);
}
