/* cuBLASLt's part of the stand-in: matrix products as plain loops, queued on the stream.
 *
 * The heuristic names four algorithms: one that it says itself cannot be had, one with a workspace that it
 * fills with rubbish, one that adds up from the other end, and one that turns out to be impossible when it is
 * run. What is refused follows the documentation of cublasLtMatmul. */
#include "cublasLt.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "numbers.hh"

struct cublasLtContext {
    int device;
};
struct standin_layout {
    cudaDataType type;
    size_t rows, columns, leading;
    int32_t count = 1;
    int64_t next = 0; /* numbers to the next matrix of `count` */
};
struct standin_product {
    cublasComputeType_t compute;
    int turned[2] = {CUBLAS_OP_N, CUBLAS_OP_N};
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias = nullptr;
    int bias_type = -1;
};
struct standin_preference {
    uint64_t workspace = 0;
    uint32_t sums = CUBLASLT_REDUCTION_SCHEME_MASK;
    uint32_t alignment[4] = {256, 256, 256, 256};
};

/* Of an algorithm's data. */
enum { NUMBER, WORKSPACE, ALIGNMENT, MAGIC = 7 };
enum { REFUSED, WITH_WORKSPACE, BACKWARDS, IMPOSSIBLE, ALGORITHMS };
static const uint64_t magic = 0x5354414e44494eu;
static const size_t workspaces[ALGORITHMS] = {0, 5000, 0, 0};

const char *cublasLtGetStatusString(cublasStatus_t status) {
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "the operation completed successfully";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an invalid value was used as an argument";
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return "an absent device architectural feature is required";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality is not supported";
    }
    return "unknown error code";
}

/* Makes what is counted, or fails when a test wants it to. */
template <class T, class... Values>
static cublasStatus_t make(T **out, const char *call, const Values &...values) {
    if (!out) return CUBLAS_STATUS_INVALID_VALUE;
    if (standin::fails(call)) return CUBLAS_STATUS_ALLOC_FAILED;
    *out = new T{values...};
    standin::count("cublasLt object", 1);
    return CUBLAS_STATUS_SUCCESS;
}
template <class T> static cublasStatus_t unmake(T *object) {
    if (!object) return CUBLAS_STATUS_INVALID_VALUE;
    delete object;
    standin::count("cublasLt object", -1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || standin::forbidden_now())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return make(handle, "cublasLtCreate", device);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return unmake(handle);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    return make(layout, "cublasLtMatrixLayoutCreate", type, (size_t)rows, (size_t)columns, (size_t)leading);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    return unmake(layout);
}

/* An attribute of the size that the library keeps it in. */
template <class T> static cublasStatus_t set(T &to, const void *value, size_t bytes) {
    if (!value || bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t bytes) {
    if (!layout) return CUBLAS_STATUS_INVALID_VALUE;
    if (standin::fails("cublasLtMatrixLayoutSetAttribute")) return CUBLAS_STATUS_INTERNAL_ERROR;
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return set(layout->count, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return set(layout->next, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *descriptor, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    if (scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
    return make(descriptor, "cublasLtMatmulDescCreate", compute);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t descriptor) {
    return unmake(descriptor);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t bytes) {
    if (!descriptor) return CUBLAS_STATUS_INVALID_VALUE;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(descriptor->turned[0], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(descriptor->turned[1], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(descriptor->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(descriptor->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return set(descriptor->bias_type, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    return make(preference, "cublasLtMatmulPreferenceCreate");
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    return unmake(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
    if (!preference) return CUBLAS_STATUS_INVALID_VALUE;
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(preference->workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(preference->sums, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value,
                   bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* --- the product --- */

struct sizes {
    size_t rows, inner, columns;
};

static bool has_bias(const standin_product &product) {
    return product.epilogue & CUBLASLT_EPILOGUE_BIAS;
}

/* Whether such a product is one, and one that the library has. */
static cublasStatus_t check(const standin_product &product, const standin_layout &a, const standin_layout &b,
                            const standin_layout &c, const standin_layout &d, sizes *s) {
    const bool turned_a = product.turned[0] == CUBLAS_OP_T, turned_b = product.turned[1] == CUBLAS_OP_T;
    *s = {turned_a ? a.columns : a.rows, turned_a ? a.rows : a.columns, turned_b ? b.rows : b.columns};
    for (const standin_layout *l : {&a, &b, &c, &d})
        if (l->rows == 0 || l->columns == 0 || l->leading < l->rows) return CUBLAS_STATUS_INVALID_VALUE;
    if ((turned_b ? b.columns : b.rows) != s->inner || d.rows != s->rows || d.columns != s->columns ||
        c.rows != d.rows || c.columns != d.columns || c.type != d.type || a.count < 1 || b.count != a.count ||
        c.count != a.count || d.count != a.count)
        return CUBLAS_STATUS_INVALID_VALUE;
    const bool narrow = a.type == CUDA_R_16BF;
    if (a.type != b.type || (a.type != CUDA_R_32F && !narrow) ||
        (d.type != CUDA_R_32F && d.type != CUDA_R_16BF))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!narrow && d.type != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (product.compute != CUBLAS_COMPUTE_32F && (narrow || product.compute != CUBLAS_COMPUTE_32F_FAST_TF32))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (has_bias(product) && product.bias_type != -1 && product.bias_type != (int)d.type)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t *results, int *returned) {
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!descriptor || !a || !b || !c || !d || !preference || requested <= 0 || !results || !returned)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (standin::fails("cublasLtMatmulAlgoGetHeuristic")) return CUBLAS_STATUS_INTERNAL_ERROR;
    standin::contest();
    sizes s;
    *returned = 0;
    const cublasStatus_t status = check(*descriptor, *a, *b, *c, *d, &s);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    uint64_t alignment = 0;
    for (int i = 0; i < 4; i++) alignment |= (uint64_t)preference->alignment[i] << (16 * i);
    for (int number = 0; number < ALGORITHMS && *returned < requested; number++) {
        if (workspaces[number] > preference->workspace) continue;
        cublasLtMatmulHeuristicResult_t *result = &results[(*returned)++];
        *result = {};
        result->algo.data[NUMBER] = (uint64_t)number;
        result->algo.data[WORKSPACE] = workspaces[number];
        result->algo.data[ALIGNMENT] = alignment;
        result->algo.data[MAGIC] = magic;
        result->workspaceSize = workspaces[number];
        result->state = number == REFUSED ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* op(matrix) as rows of float32. */
static std::vector<float> read_matrix(const void *matrix, const standin_layout &layout, bool turned,
                                      bool round) {
    std::vector<float> out(layout.rows * layout.columns);
    for (size_t column = 0; column < layout.columns; column++)
        for (size_t row = 0; row < layout.rows; row++) {
            const float value =
                standin::read_number(matrix, layout.type == CUDA_R_16BF, column * layout.leading + row);
            out[turned ? column * layout.rows + row : row * layout.columns + column] =
                round ? standin::tf32(value) : value;
        }
    return out;
}

UNWATCHED static void add_scaled(float *sums, const float *numbers, float factor, size_t count) {
    for (size_t i = 0; i < count; i++) sums[i] += factor * numbers[i];
}

static void multiply(const standin_product &product, const sizes &s, const float scale[2], const void *a,
                     const standin_layout &a_layout, const void *b, const standin_layout &b_layout,
                     const void *c, void *d, const standin_layout &d_layout, bool backwards) {
    const bool round = product.compute == CUBLAS_COMPUTE_32F_FAST_TF32, narrow = d_layout.type == CUDA_R_16BF;
    const std::vector<float> left = read_matrix(a, a_layout, product.turned[0] == CUBLAS_OP_T, round);
    const std::vector<float> right = read_matrix(b, b_layout, product.turned[1] == CUBLAS_OP_T, round);
    std::vector<float> sums(s.columns);
    for (size_t row = 0; row < s.rows; row++) {
        sums.assign(s.columns, 0.0f);
        for (size_t i = 0; i < s.inner; i++) {
            const size_t k = backwards ? s.inner - 1 - i : i;
            const float factor = left[row * s.inner + k];
            add_scaled(sums.data(), &right[k * s.columns], factor, s.columns);
        }
        for (size_t column = 0; column < s.columns; column++) {
            const size_t place = column * d_layout.leading + row;
            float value = scale[0] * sums[column];
            if (scale[1] != 0.0f) value += scale[1] * standin::read_number(c, narrow, place);
            if (has_bias(product)) value += standin::read_number(product.bias, narrow, row);
            if (product.epilogue & CUBLASLT_EPILOGUE_RELU) value = fmaxf(value, 0.0f);
            standin::write_number(d, narrow, place, value);
        }
    }
}

/* Of several matrices, the one of that number. */
static const void *one_of(const void *first, const standin_layout &layout, int32_t number) {
    return (const char *)first + number * layout.next * (layout.type == CUDA_R_16BF ? 2 : 4);
}

/* What is read or written is memory of the device, all of it. */
static void reach_all(cudaStream_t stream, const void *first, const standin_layout &l) {
    const size_t bytes = l.type == CUDA_R_16BF ? 2 : 4;
    const size_t numbers = (size_t)(l.count - 1) * (size_t)l.next + (l.columns - 1) * l.leading + l.rows;
    standin::reach(stream, first, "cublasLtMatmul");
    if (standin::holds(standin::device_of(stream), first, numbers * bytes)) return;
    fprintf(stderr, "standin: cublasLtMatmul of a matrix that ends behind its memory\n");
    abort();
}

/* Addresses are where the preference said that they would be. */
static bool are_aligned(const cublasLtMatmulAlgo_t &algorithm, const void *const *addresses) {
    for (int i = 0; i < 4; i++) {
        const uint64_t alignment = algorithm.data[ALIGNMENT] >> (16 * i) & 0xFFFF;
        if ((uintptr_t)addresses[i] % alignment != 0) return false;
    }
    return true;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t descriptor, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
    const void *addresses[] = {a, b, c, d};
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!descriptor || !alpha || !a || !a_layout || !b || !b_layout || !beta || !c_layout || !d || !d_layout)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->device != standin::device_of(stream)) return CUBLAS_STATUS_INVALID_VALUE;
    sizes s;
    const cublasStatus_t status = check(*descriptor, *a_layout, *b_layout, *c_layout, *d_layout, &s);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (!algorithm || algorithm->data[MAGIC] != magic || !are_aligned(*algorithm, addresses))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (has_bias(*descriptor) && (!descriptor->bias || (uintptr_t)descriptor->bias % 16 != 0))
        return CUBLAS_STATUS_INVALID_VALUE;
    const size_t needed = (size_t)algorithm->data[WORKSPACE];
    if (workspace_bytes < needed || (needed > 0 && (!workspace || (uintptr_t)workspace % 256 != 0)))
        return CUBLAS_STATUS_INVALID_VALUE;
    const uint64_t number = algorithm->data[NUMBER];
    if (number == REFUSED) { /* nothing is promised of it */
        fprintf(stderr, "standin: cublasLtMatmul with an algorithm whose state is not success\n");
        abort();
    }
    if (number == IMPOSSIBLE) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (standin::fails("cublasLtMatmul")) return CUBLAS_STATUS_EXECUTION_FAILED;
    reach_all(stream, a, *a_layout);
    reach_all(stream, b, *b_layout);
    reach_all(stream, d, *d_layout);
    if (has_bias(*descriptor)) standin::reach(stream, descriptor->bias, "cublasLtMatmul");
    const std::string code = "cublasLt " + std::to_string(number) + " " + std::to_string(a_layout->type) +
                             " " + std::to_string(d_layout->type) + " " +
                             std::to_string(descriptor->epilogue);
    if (standin::load(stream, code) != cudaSuccess) return CUBLAS_STATUS_INTERNAL_ERROR;
    const standin_product product = *descriptor;
    const standin_layout al = *a_layout, bl = *b_layout, dl = *d_layout;
    const float scales[2] = {*(const float *)alpha, *(const float *)beta};
    const char *const name =
        s.rows == 1 && s.columns == 1 ? "a product that is one number" : "cublasLtMatmul";
    const cudaError_t queued = standin::queue(stream, name, [=] {
        if (needed > 0) memset(workspace, 0xA5, needed);
        for (int32_t i = 0; i < dl.count; i++)
            multiply(product, s, scales, one_of(a, al, i), al, one_of(b, bl, i), bl, one_of(c, dl, i),
                     const_cast<void *>(one_of(d, dl, i)), dl, number == BACKWARDS);
    });
    return queued == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
