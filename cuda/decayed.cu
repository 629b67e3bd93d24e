/* Kernels: the sum of the squares of several values, in two passes: a part for each block, and of these the
 * sum, in a fixed order. */
#include "kernels.h"
#include "launch.h"

namespace {

struct add_up {
    DEVICE float of(float a, float b) { return a + b; }
};

/* 4 bytes read per number. */
KERNEL squares_of(CONSTANT gpu_squares of, float *parts, size_t count) {
    TEAMS(k, count, BLOCK) {
        each<float, BLOCK> sum;
        ALONE(t, BLOCK) {
            sum[t] = 0.0f;
            for (int v = 0; v < of.count; v++)
                for (size_t i = k * BLOCK + t; i < of.floats[v]; i += count * BLOCK)
                    sum[t] += of.values[v][i] * of.values[v][i];
        }
        team_fold<add_up>(sum);
        ALONE(t, BLOCK)
        if (t == 0) parts[k] = sum[t];
    }
}

KERNEL add_share(const float *parts, uint32_t count, const float *x, float share, float *y) {
    TEAMS(k, 1, BLOCK) {
        each<float, BLOCK> sum;
        ALONE(t, BLOCK) {
            sum[t] = 0.0f;
            for (uint32_t i = t; i < count; i += BLOCK) sum[t] += parts[i];
        }
        team_fold<add_up>(sum);
        ALONE(t, BLOCK)
        if (t == 0) *y = *x + share * sum[t];
    }
}

} // namespace

cudaError_t launch_decayed(cudaStream_t stream, const struct gpu_squares *of, const float *x, float share,
                           float *y, float *scratch) {
    const cudaError_t code =
        LAUNCH_TEAMS(stream, SQUARES_PARTS, BLOCK, squares_of, *of, scratch, (size_t)SQUARES_PARTS);
    if (code != cudaSuccess) return code;
    return LAUNCH_TEAMS(stream, 1, BLOCK, add_share, scratch, (uint32_t)SQUARES_PARTS, x, share, y);
}
