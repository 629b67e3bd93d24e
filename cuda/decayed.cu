/* Kernels: what several values add to a loss, the sum of the squares of each in parts of a block, and of
 * these the sum, in a fixed order: the same bits whether a launch has one of the values or all. */
#include "kernels.h"
#include "launch.h"

namespace {

struct add_up {
    DEVICE float of(float a, float b) { return a + b; }
};

/* parts [values][PARTS]; 4 bytes read per number. */
KERNEL squares_of(CONSTANT gpu_squares of, float *parts) {
    TEAMS(k, (size_t)of.count * SQUARES_PARTS, BLOCK) {
        const size_t v = k / SQUARES_PARTS, part = k % SQUARES_PARTS;
        each<float, BLOCK> sum;
        ALONE(t, BLOCK) {
            sum[t] = 0.0f;
            for (size_t i = part * BLOCK + t; i < of.floats[v]; i += SQUARES_PARTS * BLOCK)
                sum[t] += of.values[v][i] * of.values[v][i];
        }
        team_fold<add_up>(sum);
        ALONE(t, BLOCK)
        if (t == 0) parts[k] = sum[t];
    }
}

/* x NULL: 0. */
KERNEL add_shares(const float *parts, int count, const float *x, float share, float *y) {
    TEAMS(k, 1, BLOCK) {
        each<float, BLOCK> all;
        ALONE(t, BLOCK) all[t] = x ? *x : 0.0f;
        for (int v = 0; v < count; v++) {
            each<float, BLOCK> sum;
            ALONE(t, BLOCK) {
                sum[t] = 0.0f;
                for (uint32_t i = t; i < SQUARES_PARTS; i += BLOCK)
                    sum[t] += parts[(size_t)v * SQUARES_PARTS + i];
            }
            team_fold<add_up>(sum);
            ALONE(t, BLOCK) all[t] += share * sum[t];
        }
        ALONE(t, BLOCK)
        if (t == 0) *y = all[t];
    }
}

} // namespace

cudaError_t launch_decayed(cudaStream_t stream, const struct gpu_squares *of, const float *x, float share,
                           float *y, float *scratch) {
    const cudaError_t code = LAUNCH_TEAMS(stream, of->count * SQUARES_PARTS, BLOCK, squares_of, *of, scratch);
    if (code != cudaSuccess) return code;
    return LAUNCH_TEAMS(stream, 1, BLOCK, add_shares, scratch, of->count, x, share, y);
}
