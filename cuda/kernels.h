/* Private to cuda/: the plain functions by which host code queues the kernels of the .cu files. Common part
 * of C and C++.
 *
 * All pointers are to the device's memory. Elements are counted in 32 bits: dividing by 64 bits costs a GPU
 * more than the memory that most of these kernels wait for. What is larger has no kernel (problem.h). Each
 * returns what the launch returned; the results are there when the stream has come so far. */
#ifndef TRAINER_CUDA_KERNELS_H
#define TRAINER_CUDA_KERNELS_H

#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>

#include "../src/device/augment.h"
#include "../src/device/update.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- elementwise.cu --- */

enum { GPU_RANK = 6 };

/* How two operands follow an output of `count` elements: strides in elements, 0 where one is broadcast. */
struct gpu_walk {
    int rank; /* 1 or more */
    uint32_t count, dims[GPU_RANK], stride[2][GPU_RANK];
};

/* From type to type. */
enum gpu_cast {
    CAST_FLOAT_INT,
    CAST_FLOAT_BOOL,
    CAST_INT_FLOAT,
    CAST_INT_BOOL,
    CAST_BOOL_FLOAT,
    CAST_BOOL_INT
};

/* One for each elementwise row of ops.def. y = formula(a, b), of float32 or int32 (`ints`), a float or a
 * bool; y may be a where a is not broadcast. y = formula(x). dx = formula(y, dy). */
typedef cudaError_t gpu_binary(cudaStream_t stream, const struct gpu_walk *walk, int ints, const void *a,
                               const void *b, void *y);
typedef cudaError_t gpu_unary(cudaStream_t stream, const float *x, float *y, uint32_t count);
typedef cudaError_t gpu_slope(cudaStream_t stream, const float *y, const float *dy, float *dx,
                              uint32_t count);
#define BINARY(name, ...) gpu_binary elementwise_##name;
#define UNARY(name, ...) gpu_unary elementwise_##name;
#define SLOPE(name) gpu_slope elementwise_##name;
#include "../src/graph/ops.def"

/* dx = dy where y > 0, else 0; `narrow` says which are bf16: bit 0 y, bit 1 dy, bit 2 dx. */
cudaError_t launch_relu_slope(cudaStream_t stream, int narrow, const void *y, const void *dy, void *dx,
                              uint32_t count);
cudaError_t launch_cast(cudaStream_t stream, enum gpu_cast cast, const void *x, void *y, uint32_t count);
/* *step: int on the device */
cudaError_t launch_dropout(cudaStream_t stream, uint64_t seed, const int *step, float rate, const float *x,
                           float *y, uint32_t count);

/* --- arrays.cu --- */

/* Element i of y, whose first axes are `walk`, goes from x to y along the walk's strides (0 of x, 1 of y);
 * elements of 1 or 4 bytes. */
cudaError_t launch_move(cudaStream_t stream, const struct gpu_walk *walk, size_t bytes, const void *x,
                        void *y);
struct gpu_dims {
    int count, value[GPU_RANK];
};
cudaError_t launch_dims(cudaStream_t stream, const struct gpu_dims *dims, int *y);

/* --- reduce.cu --- */

/* A value [outer, length, inner] whose middle axis is reduced to `chunks` parts, each by a group of rows x
 * columns threads, both powers of two: at most a warp, or a whole block. Neighbouring columns read
 * neighbouring addresses; rows and parts take the elements of the middle axis in turn. */
struct gpu_view {
    uint32_t outer, length, inner, chunks, columns, rows;
};
/* y [outer, chunks, inner] = sums / divide */
cudaError_t launch_sum(cudaStream_t stream, struct gpu_view view, const float *x, float *y, float divide);
cudaError_t launch_sum_bf16(cudaStream_t stream, struct gpu_view view, const uint16_t *x, float *y,
                            float divide);
cudaError_t launch_sum_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y);
cudaError_t launch_max(cudaStream_t stream, struct gpu_view view, const float *x, float *y);
cudaError_t launch_max_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y);
/* y [outer, inner]; chunks is 1 */
cudaError_t launch_argmax(cudaStream_t stream, struct gpu_view view, const float *x, int *y);
cudaError_t launch_argmax_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y);

/* --- nets.cu: rows [rows, length] --- */

struct gpu_rows {
    uint32_t rows, length;
};
cudaError_t launch_softmax(cudaStream_t stream, struct gpu_rows rows, const float *x, float *y);
cudaError_t launch_softmax_grad(cudaStream_t stream, struct gpu_rows rows, const float *y, const float *dy,
                                float *dx);
cudaError_t launch_cross_entropy(cudaStream_t stream, struct gpu_rows rows, const float *p, const int *labels,
                                 float *loss);
cudaError_t launch_cross_entropy_grad(cudaStream_t stream, struct gpu_rows rows, const float *p,
                                      const int *labels, const float *dloss, float *dx);
cudaError_t launch_softmax_cross_entropy(cudaStream_t stream, struct gpu_rows rows, const float *x,
                                         const int *labels, float smoothing, float *loss);
/* *mean of the losses, and dx for *dloss, unless both are NULL: by one block, for few and short rows */
cudaError_t launch_mean_softmax_cross_entropy(cudaStream_t stream, struct gpu_rows rows, const float *x,
                                              const int *labels, float smoothing, float *mean,
                                              const float *dloss, float *dx);
/* dloss [rows], or [] with no slopes but that one */
cudaError_t launch_softmax_cross_entropy_grad(cudaStream_t stream, struct gpu_rows rows, const float *x,
                                              const int *labels, float smoothing, const float *dloss,
                                              int slopes, float *dx);

/* --- images.cu --- */

/* Windows along an axis, as window_along of src/graph/window.h places them. */
struct gpu_window {
    int in, out, length, stride, before;
};
struct gpu_pool {
    struct gpu_window rows, columns;
    uint32_t batch, channels;
};
/* x, y, dx, dy are float32, or bf16 with `narrow`. */
cudaError_t launch_maxpool(cudaStream_t stream, const struct gpu_pool *pool, int narrow, const void *x,
                           void *y);
/* Bytes by which the elements of a window are told apart. */
static inline size_t gpu_pool_which_bytes(const struct gpu_pool *pool) {
    return pool->rows.length * pool->columns.length <= 256 ? sizeof(uint8_t) : sizeof(int);
}
/* Whether every element is in one window. */
static inline int gpu_windows_tile(const struct gpu_window *window) {
    return window->stride == window->length && window->out * window->stride - window->before >= window->in;
}
static inline int gpu_pool_tiles(const struct gpu_pool *pool) {
    return gpu_windows_tile(&pool->rows) && gpu_windows_tile(&pool->columns);
}
/* which [windows, channels] of so many bytes each: scratch, unused where the windows tile */
cudaError_t launch_maxpool_grad(cudaStream_t stream, const struct gpu_pool *pool, int narrow, const void *x,
                                const void *dy, void *dx, void *which);
cudaError_t launch_avgpool(cudaStream_t stream, const struct gpu_pool *pool, const float *x, float *y);
cudaError_t launch_avgpool_grad(cudaStream_t stream, const struct gpu_pool *pool, const float *dy, float *dx);

struct gpu_lrn {
    uint32_t count, channels; /* elements; of the last axis */
    int radius;               /* at most MAX_LRN_RADIUS */
    float bias, alpha, beta;
    int positive; /* the gradient is 0 where x is not above 0 */
};
cudaError_t launch_lrn(cudaStream_t stream, const struct gpu_lrn *lrn, int narrow, const void *x, void *y);
cudaError_t launch_lrn_grad(cudaStream_t stream, const struct gpu_lrn *lrn, int narrow, const void *x,
                            const void *dy, void *dx);

/* --- norm.cu: x [rows, channels], moments and sums [2, channels] --- */

/* Two sums of a channel; parts of them: [chunks, channels] */
struct gpu_two {
    float first, second;
};
/* Mean and variance, by one pass over view [1, rows, channels]; or by two. */
cudaError_t launch_moments(cudaStream_t stream, struct gpu_view view, const float *x, float *moments);
cudaError_t launch_moments_parts(cudaStream_t stream, struct gpu_view view, const float *x,
                                 struct gpu_two *parts);
cudaError_t launch_moments_of_parts(cudaStream_t stream, struct gpu_view view, const struct gpu_two *parts,
                                    const float *x, uint32_t rows, float *moments);
/* Sums of dy and of dy times the normalised x, in the same way. */
cudaError_t launch_slopes(cudaStream_t stream, struct gpu_view view, const float *x, const float *moments,
                          float epsilon, const float *dy, float *sums);
cudaError_t launch_slopes_parts(cudaStream_t stream, struct gpu_view view, const float *x,
                                const float *moments, const float *dy, struct gpu_two *parts);
cudaError_t launch_slopes_of_parts(cudaStream_t stream, struct gpu_view view, const struct gpu_two *parts,
                                   const float *moments, float epsilon, float *sums);
cudaError_t launch_norm(cudaStream_t stream, struct gpu_rows rows, float epsilon, const float *x,
                        const float *moments, const float *scale, const float *shift, float *y);
cudaError_t launch_norm_grad(cudaStream_t stream, struct gpu_rows rows, float epsilon, const float *x,
                             const float *moments, const float *scale, const float *sums, const float *dy,
                             float *dx);

/* --- vectors.cu --- */

/* A step of the weights in some windows of the flat vector; whole vectors each. */
struct gpu_windows {
    int count;
    struct {
        size_t until; /* numbers of this window and those before it */
        size_t ahead; /* of its first one in the vector, before which so many are in no window */
        int rule;     /* the update's, UPDATE_SUBTRACT or UPDATE_NONE */
        float rate, decay, weight_decay; /* in the place of the update's */
    } window[UPDATE_WINDOWS];
};
struct gpu_step {
    float *weights, *moments[UPDATE_MOMENTS];
    const float *gradient;
    float *average;  /* or NULL */
    double *witness; /* or NULL */
    int atomic;
    int *refused; /* is set to 1 where a number of the gradient is not finite: that weight is left alone */
};
cudaError_t launch_update(cudaStream_t stream, const struct update *update, const struct gpu_windows *windows,
                          const struct gpu_step *step);
/* out = factor (weight[0] values[0] + ...); `more`: out + that. */
enum { GPU_MEAN_VECTORS = 64 };
struct gpu_mean {
    int count, more;
    float factor;
    float weight[GPU_MEAN_VECTORS];
    const float *values[GPU_MEAN_VECTORS];
};
cudaError_t launch_mean(cudaStream_t stream, const struct gpu_mean *mean, size_t floats, float *out);
/* parts [chunks] in double: the sums of the squares of that many shares of the values */
enum { GPU_SQUARES_AT_ONCE = 256 }; /* values that a share begins with */
cudaError_t launch_squares(cudaStream_t stream, const float *values, size_t floats, double *parts,
                           size_t chunks);
cudaError_t launch_scale(cudaStream_t stream, float *values, size_t floats, float factor);
/* values divided by the root of the sum of the parts and 1e-7 */
cudaError_t launch_unit(cudaStream_t stream, float *values, size_t floats, const double *parts,
                        size_t chunks);
/* by->then and by->squares begin `at` floats before the gradient. */
cudaError_t launch_compensate(cudaStream_t stream, const struct compensation *by, const float *gradient,
                              const float *weights, size_t at, size_t floats, float *out);
cudaError_t launch_exchange(cudaStream_t stream, float *a, float *b, size_t floats, float rate);

/* --- decayed.cu --- */

enum { SQUARES_VALUES = 8, SQUARES_PARTS = 512 };
struct gpu_squares {
    int count;
    uint32_t floats[SQUARES_VALUES];
    const float *values[SQUARES_VALUES];
};
/* *y = *x, or 0 without it, plus share times the sum of the squares of each value in turn; scratch
 * [values][SQUARES_PARTS] */
cudaError_t launch_decayed(cudaStream_t stream, const struct gpu_squares *of, const float *x, float share,
                           float *y, float *scratch);

/* --- gather.cu --- */

/* Which examples make a part of a batch: goes to the device as an argument of the launch, which copies it, so
 * that nothing has to be kept or waited for. 4 KB is what every GPU takes. */
enum { GPU_PICKS = 256 };
struct gpu_indices {
    int count;
    int index[GPU_PICKS];
};
struct gpu_keys {
    int drawn; /* 0: no keys, the central crop */
    uint64_t key[GPU_PICKS];
};
/* out[i] = the index itself */
cudaError_t launch_numbers(cudaStream_t stream, const struct gpu_indices *indices, int *out);
/* out[count][features] from rows of floats, or of bytes times scale */
cudaError_t launch_rows(cudaStream_t stream, const struct gpu_indices *indices, size_t features,
                        const float *values, float *out);
cudaError_t launch_rows_bytes(cudaStream_t stream, const struct gpu_indices *indices, size_t features,
                              const uint8_t *bytes, float scale, float *out);

/* The same where they lie on the device: what a recording builds a batch from, as the host has put it there.
 */
struct gpu_picks {
    int count, drawn;    /* drawn 0: no keys */
    const int *index;    /* [count] */
    const uint64_t *key; /* [count] */
    const int *label;    /* [count], and the batch's number */
    int *labels, *step;  /* where these go; step NULL: nowhere */
};
cudaError_t launch_picked_rows(cudaStream_t stream, const struct gpu_picks *picks, size_t features,
                               const float *values, float *out);
cudaError_t launch_picked_bytes(cudaStream_t stream, const struct gpu_picks *picks, size_t features,
                                const uint8_t *bytes, float scale, float *out);

/* images [..][height][width][channels]; `measured`: what an image gets may depend on its pixels */
cudaError_t launch_augment(cudaStream_t stream, const struct augment *augment,
                           const struct gpu_indices *indices, const struct gpu_keys *keys,
                           const uint8_t *images, float scale, int measured, float *out);
cudaError_t launch_picked_augment(cudaStream_t stream, const struct augment *augment,
                                  const struct gpu_picks *picks, const uint8_t *images, float scale,
                                  int measured, float *out);
/* How a part of a batch is mixed; an argument, too. */
enum { GPU_MIXES = 128 };
struct gpu_mixes {
    int count;
    struct augment_mix mix[GPU_MIXES];
};
/* out[count] from rows[count + 1], each [rows][columns][channels]: row i mixed with row i + 1 */
cudaError_t launch_mix(cudaStream_t stream, const struct augment *augment, const struct gpu_mixes *mixes,
                       const float *rows, float *out);

#ifdef __cplusplus
}
#endif

#endif
