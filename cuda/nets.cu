/* Kernels: softmax and cross entropy of rows [rows, length], a row by a warp, or by a block where it is long.
 * Thread t has the elements t, t + threads, ... of it and reads them three times, from the caches after the
 * first.
 *
 * Labels come from files. Host code cannot look at them here without waiting, so a label beyond the classes
 * gives a loss and gradients that are not numbers, which ends the run as diverged; nothing is read or
 * written beside the row. */
#include "../src/device/formulas.h"
#include "kernels.h"
#include "launch.h"

namespace {

struct add_up {
    DEVICE float of(float a, float b) { return a + b; }
};
struct larger {
    DEVICE float of(float most, float x) { return formula_largest(most, x); }
};

/* The largest of a row, told to all; not a number counts only as the first element. */
template <int THREADS> DEVICE each<float, THREADS> top_of(const float *x, uint32_t length) {
    each<float, THREADS> top;
    ALONE(t, THREADS) {
        float most = t == 0 ? x[0] : -INFINITY;
        for (uint32_t i = t == 0 ? THREADS : t; i < length; i += THREADS) most = formula_largest(most, x[i]);
        top[t] = most;
    }
    team_fold<larger>(top);
    return top;
}

/* y = exp(x - top); the sum of them, told to all. x and y may be the same. */
template <int THREADS> DEVICE each<float, THREADS> exponentials(const float *x, uint32_t length, float *y) {
    each<float, THREADS> top = top_of<THREADS>(x, length), sum;
    ALONE(t, THREADS) {
        sum[t] = 0.0f;
        for (uint32_t i = t; i < length; i += THREADS) {
            y[i] = formula_exp(x[i] - top[t]);
            sum[t] += y[i];
        }
    }
    team_fold<add_up>(sum);
    return sum;
}

template <int THREADS> KERNEL softmax(gpu_rows rows, const float *x, float *y) {
    TEAMS(row, rows.rows, THREADS) {
        float *to = y + row * rows.length;
        each<float, THREADS> sum = exponentials<THREADS>(x + row * rows.length, rows.length, to);
        ALONE(t, THREADS)
        for (uint32_t i = t; i < rows.length; i += THREADS) to[i] /= sum[t];
    }
}

template <int THREADS> KERNEL softmax_grad(gpu_rows rows, const float *y, const float *dy, float *dx) {
    TEAMS(row, rows.rows, THREADS) {
        const size_t first = row * rows.length;
        each<float, THREADS> sum;
        ALONE(t, THREADS) {
            sum[t] = 0.0f;
            for (uint32_t i = t; i < rows.length; i += THREADS) sum[t] += y[first + i] * dy[first + i];
        }
        team_fold<add_up>(sum);
        ALONE(t, THREADS)
        for (uint32_t i = t; i < rows.length; i += THREADS)
            dx[first + i] = formula_softmax_grad(y[first + i], dy[first + i], sum[t]);
    }
}

DEVICE bool is_class(const gpu_rows &rows, int label) {
    return label >= 0 && (uint32_t)label < rows.length;
}

KERNEL cross_entropy(gpu_rows rows, const float *p, const int *labels, float *loss) {
    EACH(row, rows.rows) {
        const int label = labels[row];
        loss[row] =
            is_class(rows, label) ? formula_cross_entropy(p[row * rows.length + (uint32_t)label]) : NAN;
    }
}

/* One thread per element. */
KERNEL cross_entropy_grad(gpu_rows rows, const float *p, const int *labels, const float *dloss, float *dx) {
    EACH(i, rows.rows * rows.length) {
        const uint32_t row = (uint32_t)i / rows.length, c = (uint32_t)i % rows.length;
        const int label = labels[row];
        if (!is_class(rows, label))
            dx[i] = NAN;
        else
            dx[i] = c == (uint32_t)label ? formula_cross_entropy_grad(p[i], dloss[row]) : 0.0f;
    }
}

template <int THREADS>
KERNEL softmax_cross_entropy(gpu_rows rows, const float *x, const int *labels, float smoothing, float *loss) {
    TEAMS(row, rows.rows, THREADS) {
        const float *from = x + row * rows.length;
        each<float, THREADS> top = top_of<THREADS>(from, rows.length), sum, mean;
        ALONE(t, THREADS) {
            sum[t] = mean[t] = 0.0f;
            for (uint32_t i = t; i < rows.length; i += THREADS) {
                sum[t] += formula_exp(from[i] - top[t]);
                mean[t] += from[i];
            }
        }
        team_fold<add_up>(sum);
        if (smoothing > 0.0f) team_fold<add_up>(mean);
        ALONE(t, THREADS) {
            const int label = labels[row];
            if (t == 0 && is_class(rows, label)) {
                const float plain = formula_softmax_cross_entropy(from[label], top[t], sum[t]);
                loss[row] = smoothing > 0.0f
                                ? formula_smoothed_cross_entropy(plain, from[label],
                                                                 mean[t] / (float)rows.length, smoothing)
                                : plain;
            } else if (t == 0) {
                loss[row] = NAN;
            }
        }
    }
}

/* The loss of a row, by one thread; and where dx is not NULL the gradient of its logits, with that slope. */
DEVICE float loss_of(const gpu_rows &rows, const float *x, int label, float smoothing, float slope,
                     float *dx) {
    enum { AT_ONCE = 4 };
    const float one = formula_label_share(1, rows.length, smoothing),
                none = formula_label_share(0, rows.length, smoothing);
    const float weight = is_class(rows, label) ? slope : NAN;
    float top = x[0], sum = 0.0f, mean = 0.0f;
    UNROLL(4)
    for (uint32_t i = 1; i < rows.length; i++) top = formula_largest(top, x[i]);
    UNROLL(4)
    for (uint32_t i = 0; i < rows.length; i++) {
        sum += formula_exp(x[i] - top);
        mean += x[i];
    }
    for (uint32_t i = 0; dx && i < rows.length; i += AT_ONCE) { /* no load waits for a store */
        float power[AT_ONCE];
        UNROLL(4)
        for (uint32_t k = 0; k < AT_ONCE; k++)
            power[k] = formula_exp(x[i + k < rows.length ? i + k : i] - top);
        UNROLL(4)
        for (uint32_t k = 0; k < AT_ONCE; k++)
            if (i + k < rows.length)
                dx[i + k] = formula_softmax_cross_entropy_grad(power[k] / sum,
                                                               (int)(i + k) == label ? one : none, weight);
    }
    if (!is_class(rows, label)) return NAN;
    const float plain = formula_softmax_cross_entropy(x[label], top, sum);
    return smoothing > 0.0f
               ? formula_smoothed_cross_entropy(plain, x[label], mean / (float)rows.length, smoothing)
               : plain;
}

/* The mean of all rows' losses, by one block, and the gradient of all logits, unless dx is NULL. */
WIDE_KERNEL(1)
mean_softmax_cross_entropy(gpu_rows rows, const float *x, const int *labels, float smoothing, float *mean,
                           const float *dloss, float *dx) {
    TEAMS(only, 1, BLOCK) {
        const float slope = dx ? *dloss : 0.0f;
        each<float, BLOCK> sum;
        ALONE(t, BLOCK) {
            sum[t] = 0.0f;
            for (size_t row = only + t; row < rows.rows; row += BLOCK) {
                const size_t first = row * rows.length;
                sum[t] += loss_of(rows, x + first, labels[row], smoothing, slope, dx ? dx + first : NULL);
            }
        }
        team_fold<add_up>(sum);
        ALONE(t, BLOCK)
        if (t == 0) *mean = sum[t] / (float)rows.rows;
    }
}

/* slopes: 1 where each row has its own dloss, 0 where one is for all. */
template <int THREADS>
KERNEL softmax_cross_entropy_grad(gpu_rows rows, const float *x, const int *labels, float smoothing,
                                  const float *dloss, uint32_t slopes, float *dx) {
    const float one = formula_label_share(1, rows.length, smoothing),
                none = formula_label_share(0, rows.length, smoothing);
    TEAMS(row, rows.rows, THREADS) {
        float *to = dx + row * rows.length;
        each<float, THREADS> sum = exponentials<THREADS>(x + row * rows.length, rows.length, to);
        ALONE(t, THREADS) {
            const int label = labels[row];
            const float weight = is_class(rows, label) ? dloss[row * slopes] : NAN;
            for (uint32_t i = t; i < rows.length; i += THREADS)
                to[i] =
                    formula_softmax_cross_entropy_grad(to[i] / sum[t], (int)i == label ? one : none, weight);
        }
    }
}

} // namespace

/* A warp for a row of up to 32 elements a lane. */
#define LAUNCH_ROWS(kernel, ...)                                                                             \
    (rows.length <= 32 * WARP ? LAUNCH_TEAMS(stream, rows.rows, WARP, kernel<WARP>, __VA_ARGS__)             \
                              : LAUNCH_TEAMS(stream, rows.rows, BLOCK, kernel<BLOCK>, __VA_ARGS__))

cudaError_t launch_softmax(cudaStream_t stream, struct gpu_rows rows, const float *x, float *y) {
    return LAUNCH_ROWS(softmax, rows, x, y);
}
cudaError_t launch_softmax_grad(cudaStream_t stream, struct gpu_rows rows, const float *y, const float *dy,
                                float *dx) {
    return LAUNCH_ROWS(softmax_grad, rows, y, dy, dx);
}
cudaError_t launch_cross_entropy(cudaStream_t stream, struct gpu_rows rows, const float *p, const int *labels,
                                 float *loss) {
    return LAUNCH(stream, rows.rows, cross_entropy, rows, p, labels, loss);
}
cudaError_t launch_cross_entropy_grad(cudaStream_t stream, struct gpu_rows rows, const float *p,
                                      const int *labels, const float *dloss, float *dx) {
    return LAUNCH(stream, rows.rows * rows.length, cross_entropy_grad, rows, p, labels, dloss, dx);
}
cudaError_t launch_softmax_cross_entropy(cudaStream_t stream, struct gpu_rows rows, const float *x,
                                         const int *labels, float smoothing, float *loss) {
    return LAUNCH_ROWS(softmax_cross_entropy, rows, x, labels, smoothing, loss);
}
cudaError_t launch_mean_softmax_cross_entropy(cudaStream_t stream, struct gpu_rows rows, const float *x,
                                              const int *labels, float smoothing, float *mean,
                                              const float *dloss, float *dx) {
    return LAUNCH_TEAMS(stream, 1, BLOCK, mean_softmax_cross_entropy, rows, x, labels, smoothing, mean, dloss,
                        dx);
}
cudaError_t launch_softmax_cross_entropy_grad(cudaStream_t stream, struct gpu_rows rows, const float *x,
                                              const int *labels, float smoothing, const float *dloss,
                                              int slopes, float *dx) {
    return LAUNCH_ROWS(softmax_cross_entropy_grad, rows, x, labels, smoothing, dloss, (uint32_t)slopes, dx);
}
