/* Kernels: the sum of the squares of several values, in three passes of ever fewer parts. Every thread adds
 * up its own numbers in a fixed order, neighbours reading neighbours. */
#include "kernels.h"
#include "launch.h"

namespace {

/* 4 bytes read per number. */
KERNEL squares_of(CONSTANT gpu_squares of, float *parts, uint32_t count) {
    EACH(k, count) {
        float sum = 0.0f;
        for (int v = 0; v < of.count; v++)
            for (uint32_t i = (uint32_t)k; i < of.floats[v]; i += count)
                sum += of.values[v][i] * of.values[v][i];
        parts[k] = sum;
    }
}

KERNEL fold(const float *from, uint32_t length, float *parts, uint32_t count) {
    EACH(k, count) {
        float sum = 0.0f;
        for (uint32_t i = (uint32_t)k; i < length; i += count) sum += from[i];
        parts[k] = sum;
    }
}

KERNEL add_share(const float *from, uint32_t length, const float *x, float share, float *y) {
    EACH(k, 1) {
        float sum = 0.0f;
        for (uint32_t i = 0; i < length; i++) sum += from[i];
        *y = *x + share * sum;
    }
}

} // namespace

cudaError_t launch_decayed(cudaStream_t stream, const struct gpu_squares *of, const float *x, float share,
                           float *y, float *scratch) {
    float *first = scratch, *second = scratch + SQUARES_FIRST;
    cudaError_t code = LAUNCH(stream, SQUARES_FIRST, squares_of, *of, first, (uint32_t)SQUARES_FIRST);
    if (code == cudaSuccess)
        code = LAUNCH(stream, SQUARES_SECOND, fold, first, (uint32_t)SQUARES_FIRST, second,
                      (uint32_t)SQUARES_SECOND);
    if (code == cudaSuccess)
        code = LAUNCH(stream, 1, add_share, second, (uint32_t)SQUARES_SECOND, x, share, y);
    return code;
}
