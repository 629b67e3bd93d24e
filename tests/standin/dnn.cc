/* cuDNN's part of the stand-in: convolutions and their gradients as plain loops, queued on the handle's
 * stream.
 *
 * The lists of algorithms hold what real lists hold: some that cannot be had, as their status says; some that
 * turn out to be impossible when run; some that are not deterministic, and here give other bits in every run;
 * some that want more workspace than there is; one that rounds more than float32 allows. They name an
 * algorithm once for each kind of arithmetic that is not float32's own, with the workspace for that one. What
 * is refused follows cuDNN's documentation of each call. */
#include "cudnn.h"

#include <atomic>
#include <vector>

#include "numbers.hh"

struct cudnnContext {
    int device;
    cudaStream_t stream = nullptr;
};
/* In both descriptors: images (or output channels), channels, rows, columns, and the elements from one to the
 * next. */
struct cudnnTensorStruct {
    bool set = false;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
    size_t dims[4] = {0, 0, 0, 0}, strides[4] = {0, 0, 0, 0};
};
struct cudnnFilterStruct : cudnnTensorStruct {};
struct cudnnConvolutionStruct {
    bool set = false;
    int pad[2], stride[2], dilation[2];
    cudnnConvolutionMode_t mode;
    cudnnDataType_t compute;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    int groups = 1;
};
struct cudnnActivationStruct {
    bool set = false;
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
};

const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_NOT_SUPPORTED_LAYOUT:
        return "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT";
    case CUDNN_STATUS_INTERNAL_ERROR:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
        return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    }
    return "CUDNN_UNKNOWN_STATUS";
}

size_t cudnnGetVersion(void) {
    return 91900;
}

template <class T> static cudnnStatus_t make(T **out, const char *call) {
    if (!out) return CUDNN_STATUS_BAD_PARAM;
    if (standin::fails(call)) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    *out = new T();
    standin::count("cudnn object", 1);
    return CUDNN_STATUS_SUCCESS;
}
template <class T> static cudnnStatus_t unmake(T *object) {
    if (!object) return CUDNN_STATUS_BAD_PARAM;
    delete object;
    standin::count("cudnn object", -1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || standin::forbidden_now())
        return CUDNN_STATUS_NOT_INITIALIZED;
    const cudnnStatus_t status = make(handle, "cudnnCreate");
    if (status == CUDNN_STATUS_SUCCESS) (*handle)->device = device;
    return status;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    return unmake(handle);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    if (!handle || standin::device_of(stream) != handle->device) return CUDNN_STATUS_BAD_PARAM;
    if (standin::fails("cudnnSetStream")) return CUDNN_STATUS_INTERNAL_ERROR;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor) {
    return make(tensor, "cudnnCreateTensorDescriptor");
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
    return unmake(tensor);
}
static cudnnStatus_t set_form(cudnnTensorStruct *t, cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                              int c, int h, int w) {
    if (!t || n <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
    const size_t d[4] = {(size_t)n, (size_t)c, (size_t)h, (size_t)w};
    const size_t planar[4] = {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
    const size_t last[4] = {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]};
    t->set = true;
    t->type = type;
    t->format = format;
    memcpy(t->dims, d, sizeof d);
    memcpy(t->strides, format == CUDNN_TENSOR_NHWC ? last : planar, sizeof d);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
    return set_form(tensor, format, type, n, c, h, w);
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter) {
    return make(filter, "cudnnCreateFilterDescriptor");
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
    return unmake(filter);
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
    return set_form(filter, format, type, k, c, h, w);
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convolution) {
    return make(convolution, "cudnnCreateConvolutionDescriptor");
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convolution) {
    return unmake(convolution);
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convolution, int pad_h, int pad_w,
                                              int stride_h, int stride_w, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
    if (!convolution || pad_h < 0 || pad_w < 0 || stride_h <= 0 || stride_w <= 0 || dilation_h <= 0 ||
        dilation_w <= 0)
        return CUDNN_STATUS_BAD_PARAM;
    const cudnnMathType_t math = convolution->math;
    const int groups = convolution->groups;
    *convolution = {true, {pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, mode, compute,
                    math, groups};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convolution, int groups) {
    if (!convolution || groups < 1) return CUDNN_STATUS_BAD_PARAM;
    convolution->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convolution, cudnnMathType_t math) {
    if (!convolution) return CUDNN_STATUS_BAD_PARAM;
    convolution->math = math;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *activation) {
    return make(activation, "cudnnCreateActivationDescriptor");
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activation) {
    return unmake(activation);
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double coefficient) {
    (void)coefficient;
    if (!activation) return CUDNN_STATUS_BAD_PARAM;
    *activation = {true, mode, nan};
    return CUDNN_STATUS_SUCCESS;
}

/* --- algorithms --- */

enum trait { SOUND, REFUSED, IMPOSSIBLE, RANDOM, GREEDY, COARSE };
struct algorithm {
    int number;
    trait is;
    size_t workspace;
};
static const size_t too_much = (size_t)1 << 50;
enum direction { FORWARD, DATA, FILTER };
static const std::vector<algorithm> algorithms[] = {
    {{CUDNN_CONVOLUTION_FWD_ALGO_FFT, GREEDY, too_much},
     {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, IMPOSSIBLE, 100},
     {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, COARSE, 0},
     {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, SOUND, 777},
     {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, SOUND, 0},
     {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, REFUSED, 0}},
    {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, RANDOM, 0},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, COARSE, 0},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, IMPOSSIBLE, 100},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, SOUND, 3000},
     {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, REFUSED, 0}},
    {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, RANDOM, 0},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, COARSE, 0},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, RANDOM, 10},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, GREEDY, too_much},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, SOUND, 513},
     {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, REFUSED, 0}}};

static const algorithm *find(direction which, int number) {
    for (const algorithm &a : algorithms[which])
        if (a.number == number) return &a;
    return nullptr;
}

/* Each kind of arithmetic wants another one. */
static size_t workspace_for(const algorithm &a, cudnnMathType_t math) {
    const size_t more = math == CUDNN_FMA_MATH ? 600 : math == CUDNN_TENSOR_OP_MATH ? 300 : 0;
    return a.workspace > 0 ? a.workspace + more : 0;
}

/* Whether the three fit together as x, the kernel and y, in types and forms that such a convolution has. */
static cudnnStatus_t check(cudnnHandle_t handle, const cudnnTensorStruct *x, const cudnnTensorStruct *w,
                           const cudnnConvolutionStruct *c, const cudnnTensorStruct *y) {
    if (!handle || !x || !w || !c || !y || !x->set || !w->set || !c->set || !y->set)
        return CUDNN_STATUS_BAD_PARAM;
    if (x->dims[1] != w->dims[1] * (size_t)c->groups || y->dims[0] != x->dims[0] ||
        y->dims[1] != w->dims[0] || y->dims[1] % (size_t)c->groups != 0)
        return CUDNN_STATUS_BAD_PARAM;
    for (int axis = 0; axis < 2; axis++) {
        const size_t padded = x->dims[2 + axis] + 2 * (size_t)c->pad[axis], length = w->dims[2 + axis];
        if (padded < length || y->dims[2 + axis] != (padded - length) / (size_t)c->stride[axis] + 1)
            return CUDNN_STATUS_BAD_PARAM;
        if (c->dilation[axis] != 1) return CUDNN_STATUS_NOT_SUPPORTED;
    }
    if (x->type != w->type || x->type != y->type || c->compute != CUDNN_DATA_FLOAT ||
        (x->type != CUDNN_DATA_FLOAT && x->type != CUDNN_DATA_BFLOAT16) || c->mode != CUDNN_CROSS_CORRELATION)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (x->format != w->format || y->format != w->format) return CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
    if (x->type == CUDNN_DATA_BFLOAT16 && c->math == CUDNN_FMA_MATH) return CUDNN_STATUS_NOT_SUPPORTED;
    return CUDNN_STATUS_SUCCESS;
}

/* Fills a list of at most `requested` results, as all three lists are filled. */
template <class Result, class Number>
static cudnnStatus_t list(direction which, cudnnHandle_t handle, const cudnnTensorStruct *x,
                          const cudnnTensorStruct *w, const cudnnConvolutionStruct *c,
                          const cudnnTensorStruct *y, int requested, int *returned, Result *results,
                          const char *call, Number) {
    if (requested < 1 || !returned || !results) return CUDNN_STATUS_BAD_PARAM;
    const cudnnStatus_t status = check(handle, x, w, c, y);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (standin::fails(call)) return CUDNN_STATUS_INTERNAL_ERROR;
    *returned = 0;
    for (const algorithm &a : algorithms[which])
        for (const cudnnMathType_t math : {CUDNN_TENSOR_OP_MATH, CUDNN_DEFAULT_MATH}) {
            if (*returned == requested) break;
            if (a.is == COARSE && c->math == CUDNN_FMA_MATH) continue;
            Result *result = &results[(*returned)++];
            *result = {};
            result->algo = (Number)a.number;
            result->status = a.is == REFUSED ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
            result->time = a.is == REFUSED ? -1.0f : (float)*returned;
            result->memory = workspace_for(a, math);
            result->determinism = a.is == RANDOM ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
            result->mathType = a.is == COARSE ? CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION : math;
        }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t workspace_of(direction which, cudnnStatus_t status,
                                  const cudnnConvolutionStruct *convolution, int number, size_t *bytes) {
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (standin::fails("cudnnGetConvolutionWorkspaceSize")) return CUDNN_STATUS_INTERNAL_ERROR;
    const algorithm *a = find(which, number);
    if (!bytes) return CUDNN_STATUS_BAD_PARAM;
    if (!a || a->is == REFUSED) return CUDNN_STATUS_NOT_SUPPORTED;
    *bytes = workspace_for(*a, convolution->math);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t convolution,
                                                     const cudnnTensorDescriptor_t y, const int requested,
                                                     int *returned, cudnnConvolutionFwdAlgoPerf_t *results) {
    return list(FORWARD, handle, x, w, convolution, y, requested, returned, results, __func__,
                CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t convolution,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algorithm, size_t *bytes) {
    return workspace_of(FORWARD, check(handle, x, w, convolution, y), convolution, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx, const int requested,
    int *returned, cudnnConvolutionBwdDataAlgoPerf_t *results) {
    return list(DATA, handle, dx, w, convolution, dy, requested, returned, results, __func__,
                CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t *bytes) {
    return workspace_of(DATA, check(handle, dx, w, convolution, dy), convolution, algorithm, bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw, const int requested,
    int *returned, cudnnConvolutionBwdFilterAlgoPerf_t *results) {
    return list(FILTER, handle, x, dw, convolution, dy, requested, returned, results, __func__,
                CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes) {
    return workspace_of(FILTER, check(handle, x, dw, convolution, dy), convolution, algorithm, bytes);
}

/* --- the loops --- */

/* A tensor's numbers as [n][h][w][c], rounded as the math type has it. */
static std::vector<float> read_tensor(const cudnnTensorStruct &t, const void *data, cudnnMathType_t math) {
    std::vector<float> out;
    out.reserve(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]);
    for (size_t n = 0; n < t.dims[0]; n++)
        for (size_t h = 0; h < t.dims[2]; h++)
            for (size_t w = 0; w < t.dims[3]; w++)
                for (size_t c = 0; c < t.dims[1]; c++) {
                    const size_t place =
                        n * t.strides[0] + c * t.strides[1] + h * t.strides[2] + w * t.strides[3];
                    const float value = standin::read_number(data, t.type == CUDNN_DATA_BFLOAT16, place);
                    out.push_back(math == CUDNN_FMA_MATH ? value : standin::tf32(value));
                }
    return out;
}

static void write_tensor(const cudnnTensorStruct &t, void *data, const std::vector<float> &values,
                         float alpha, float beta) {
    const bool narrow = t.type == CUDNN_DATA_BFLOAT16;
    size_t i = 0;
    for (size_t n = 0; n < t.dims[0]; n++)
        for (size_t h = 0; h < t.dims[2]; h++)
            for (size_t w = 0; w < t.dims[3]; w++)
                for (size_t c = 0; c < t.dims[1]; c++, i++) {
                    const size_t place =
                        n * t.strides[0] + c * t.strides[1] + h * t.strides[2] + w * t.strides[3];
                    float value = alpha * values[i];
                    if (beta != 0.0f) value += beta * standin::read_number(data, narrow, place);
                    standin::write_number(data, narrow, place, value);
                }
}

/* One of x, w and y is the sum of the products of the other two: the one that `which` names is cleared and
 * filled. */
UNWATCHED static void convolve(direction which, const cudnnConvolutionStruct &c, const size_t *x_dims,
                               const size_t *w_dims, const size_t *y_dims, std::vector<float> &x,
                               std::vector<float> &w, std::vector<float> &y) {
    const size_t in = w_dims[1], out = y_dims[1], out_of_group = out / (size_t)c.groups;
    std::vector<float> &result = which == FORWARD ? y : which == DATA ? x : w;
    result.assign(which == FORWARD ? y_dims[0] * y_dims[1] * y_dims[2] * y_dims[3]
                  : which == DATA  ? x_dims[0] * x_dims[1] * x_dims[2] * x_dims[3]
                                   : w_dims[0] * w_dims[1] * w_dims[2] * w_dims[3],
                  0.0f);
    for (size_t n = 0; n < y_dims[0]; n++)
        for (size_t row = 0; row < y_dims[2]; row++)
            for (size_t column = 0; column < y_dims[3]; column++)
                for (size_t i = 0; i < w_dims[2]; i++)
                    for (size_t j = 0; j < w_dims[3]; j++) {
                        const long h = (long)(row * (size_t)c.stride[0] + i) - c.pad[0];
                        const long v = (long)(column * (size_t)c.stride[1] + j) - c.pad[1];
                        if (h < 0 || h >= (long)x_dims[2] || v < 0 || v >= (long)x_dims[3]) continue;
                        float *pixel = &x[((n * x_dims[2] + (size_t)h) * x_dims[3] + (size_t)v) * x_dims[1]];
                        float *ys = &y[((n * y_dims[2] + row) * y_dims[3] + column) * out];
                        for (size_t o = 0; o < out; o++) {
                            float *ws = &w[((o * w_dims[2] + i) * w_dims[3] + j) * in];
                            float *xs = pixel + o / out_of_group * in;
                            float sum = 0.0f;
                            for (size_t k = 0; k < in; k++) {
                                if (which == FORWARD) sum += xs[k] * ws[k];
                                if (which == DATA) xs[k] += ws[k] * ys[o];
                                if (which == FILTER) ws[k] += xs[k] * ys[o];
                            }
                            if (which == FORWARD) ys[o] += sum;
                        }
                    }
}

/* Where the operands of a call are. */
struct places {
    const void *x, *w, *y;
    void *result;
    const void *bias; /* NULL: none; with it: */
    const void *z;    /* times `z_scale` */
    bool relu;
    float alpha, beta; /* beta: of the result, or of z */
};

static std::atomic<unsigned> runs;

static void compute(direction which, const cudnnTensorStruct &x, const cudnnTensorStruct &w,
                    const cudnnConvolutionStruct &c, const cudnnTensorStruct &y, const places &p, trait is) {
    std::vector<float> xs, ws, ys;
    if (which != DATA) xs = read_tensor(x, p.x, c.math);
    if (which != FILTER) ws = read_tensor(w, p.w, c.math);
    if (which != FORWARD) ys = read_tensor(y, p.y, c.math);
    convolve(which, c, x.dims, w.dims, y.dims, xs, ws, ys);
    std::vector<float> &result = which == FORWARD ? ys : which == DATA ? xs : ws;
    if (is == RANDOM) result[0] += 0.5f * (float)(runs++ % 7);
    if (is == COARSE)
        for (float &value : result) value = bf16_float(bf16_nearest(value));
    if (p.bias) {
        const bool narrow = y.type == CUDNN_DATA_BFLOAT16;
        for (size_t i = 0; i < result.size(); i++) {
            float value = p.alpha * result[i] + standin::read_number(p.bias, narrow, i % y.dims[1]);
            result[i] = p.relu ? fmaxf(value, 0.0f) : value;
        }
    }
    write_tensor(which == FORWARD ? y
                 : which == DATA  ? x
                                  : w,
                 p.result, result, p.bias ? 1.0f : p.alpha, p.bias ? 0.0f : p.beta);
}

/* What all calls that compute have in common. */
static cudnnStatus_t launch(direction which, const char *call, cudnnHandle_t handle,
                            const cudnnTensorStruct *x, const cudnnTensorStruct *w,
                            const cudnnConvolutionStruct *c, const cudnnTensorStruct *y, int number,
                            void *workspace, size_t workspace_bytes, const places &p) {
    const cudnnStatus_t status = check(handle, x, w, c, y);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const algorithm *a = find(which, number);
    if (!a || a->is == REFUSED || a->is == IMPOSSIBLE) return CUDNN_STATUS_NOT_SUPPORTED;
    const size_t needed = workspace_for(*a, c->math);
    if (workspace_bytes < needed || (needed > 0 && !workspace)) return CUDNN_STATUS_BAD_PARAM;
    if (standin::fails(call)) return CUDNN_STATUS_EXECUTION_FAILED;
    const void *addresses[] = {p.x, p.w, p.y, p.result};
    for (const void *address : addresses) {
        if (!address || (uintptr_t)address % 16 != 0) return CUDNN_STATUS_BAD_PARAM;
        standin::reach(handle->stream, address, call);
    }
    if (p.bias && (uintptr_t)p.bias % 16 != 0) return CUDNN_STATUS_BAD_PARAM;
    if (p.bias) standin::reach(handle->stream, p.bias, call);
    const cudnnTensorStruct xd = *x, wd = *w, yd = *y;
    const cudnnConvolutionStruct cd = *c;
    const trait is = a->is;
    const cudaError_t queued = standin::queue(handle->stream, [=] {
        if (needed > 0) memset(workspace, 0xA5, needed);
        compute(which, xd, wd, cd, yd, p, is);
    });
    return queued == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x, const void *x_data,
                                      const cudnnFilterDescriptor_t w, const void *w_data,
                                      const cudnnConvolutionDescriptor_t convolution,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *workspace,
                                      size_t workspace_bytes, const void *beta,
                                      const cudnnTensorDescriptor_t y, void *y_data) {
    if (!alpha || !beta) return CUDNN_STATUS_BAD_PARAM;
    const places p = {
        x_data, w_data, y_data, y_data, nullptr, nullptr, false, *(const float *)alpha, *(const float *)beta};
    return launch(FORWARD, __func__, handle, x, w, convolution, y, algorithm, workspace, workspace_bytes, p);
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnFilterDescriptor_t w, const void *w_data, const cudnnConvolutionDescriptor_t convolution,
    cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t workspace_bytes, const void *alpha2,
    const cudnnTensorDescriptor_t z, const void *z_data, const cudnnTensorDescriptor_t bias,
    const void *bias_data, const cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y,
    void *y_data) {
    if (!alpha1 || !alpha2 || !z || !z_data || !bias || !bias_data || !activation || !y || !bias->set ||
        !activation->set)
        return CUDNN_STATUS_BAD_PARAM;
    if (memcmp(z->dims, y->dims, sizeof z->dims) != 0) return CUDNN_STATUS_BAD_PARAM;
    const bool relu = activation->mode == CUDNN_ACTIVATION_RELU;
    if ((!relu && activation->mode != CUDNN_ACTIVATION_IDENTITY) ||
        activation->nan != CUDNN_NOT_PROPAGATE_NAN)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!relu && algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (bias->dims[0] != 1 || bias->dims[1] != y->dims[1] || bias->dims[2] != 1 || bias->dims[3] != 1 ||
        bias->type != y->type || z->type != y->type || *(const float *)alpha2 != 0.0f)
        return CUDNN_STATUS_NOT_SUPPORTED;
    const places p = {x_data, w_data, y_data, y_data, bias_data, z_data, relu, *(const float *)alpha1, 0.0f};
    return launch(FORWARD, __func__, handle, x, w, convolution, y, algorithm, workspace, workspace_bytes, p);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w, const void *w_data,
                                           const cudnnTensorDescriptor_t dy, const void *dy_data,
                                           const cudnnConvolutionDescriptor_t convolution,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace,
                                           size_t workspace_bytes, const void *beta,
                                           const cudnnTensorDescriptor_t dx, void *dx_data) {
    if (!alpha || !beta) return CUDNN_STATUS_BAD_PARAM;
    const places p = {dx_data,
                      w_data,
                      dy_data,
                      dx_data,
                      nullptr,
                      nullptr,
                      false,
                      *(const float *)alpha,
                      *(const float *)beta};
    return launch(DATA, __func__, handle, dx, w, convolution, dy, algorithm, workspace, workspace_bytes, p);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x, const void *x_data,
                                             const cudnnTensorDescriptor_t dy, const void *dy_data,
                                             const cudnnConvolutionDescriptor_t convolution,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace,
                                             size_t workspace_bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dw, void *dw_data) {
    if (!alpha || !beta) return CUDNN_STATUS_BAD_PARAM;
    const places p = {x_data,
                      dw_data,
                      dy_data,
                      dw_data,
                      nullptr,
                      nullptr,
                      false,
                      *(const float *)alpha,
                      *(const float *)beta};
    return launch(FILTER, __func__, handle, x, dw, convolution, dy, algorithm, workspace, workspace_bytes, p);
}
