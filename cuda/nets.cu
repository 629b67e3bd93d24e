/* Kernels: softmax and cross entropy of rows [rows, length], one thread per row, which reads its row three
 * times. A row of classes is short, and all rows of a batch are some KB, so what counts is how long one
 * thread takes and not how the rows lie. That time grows with the classes: with more than a few hundred it is
 * longer than what the launch costs, and a row should be shared by threads in passes, as reduce.cu does.
 *
 * Labels come from files. Host code cannot look at them here without waiting, so a label beyond the classes
 * gives a loss and gradients that are not numbers, which ends the run as diverged; nothing is read or
 * written beside the row. */
#include "../src/device/formulas.h"
#include "kernels.h"
#include "launch.h"

namespace {

DEVICE float top_of(const float *x, uint32_t length) {
    float top = x[0];
    for (uint32_t i = 1; i < length; i++) top = formula_largest(top, x[i]);
    return top;
}

/* y = exp(x - top); returns their sum. x and y may be the same. */
DEVICE float exponentials(const float *x, uint32_t length, float top, float *y) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < length; i++) {
        y[i] = formula_exp(x[i] - top);
        sum += y[i];
    }
    return sum;
}

DEVICE float mean_of(const float *x, uint32_t length) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < length; i++) sum += x[i];
    return sum / (float)length;
}

KERNEL softmax(gpu_rows rows, const float *x, float *y) {
    EACH(row, rows.rows) {
        const float *from = x + row * rows.length;
        float *to = y + row * rows.length;
        const float sum = exponentials(from, rows.length, top_of(from, rows.length), to);
        for (uint32_t i = 0; i < rows.length; i++) to[i] /= sum;
    }
}

KERNEL softmax_grad(gpu_rows rows, const float *y, const float *dy, float *dx) {
    EACH(row, rows.rows) {
        const size_t first = row * rows.length;
        float sum = 0.0f;
        for (uint32_t i = 0; i < rows.length; i++) sum += y[first + i] * dy[first + i];
        for (uint32_t i = 0; i < rows.length; i++)
            dx[first + i] = formula_softmax_grad(y[first + i], dy[first + i], sum);
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

KERNEL softmax_cross_entropy(gpu_rows rows, const float *x, const int *labels, float smoothing, float *loss) {
    EACH(row, rows.rows) {
        const float *from = x + row * rows.length;
        const int label = labels[row];
        const float top = top_of(from, rows.length);
        float sum = 0.0f;
        for (uint32_t i = 0; i < rows.length; i++) sum += formula_exp(from[i] - top);
        loss[row] = is_class(rows, label) ? formula_softmax_cross_entropy(from[label], top, sum) : NAN;
        if (smoothing > 0.0f && is_class(rows, label))
            loss[row] =
                formula_smoothed_cross_entropy(loss[row], from[label], mean_of(from, rows.length), smoothing);
    }
}

KERNEL softmax_cross_entropy_grad(gpu_rows rows, const float *x, const int *labels, float smoothing,
                                  const float *dloss, float *dx) {
    EACH(row, rows.rows) {
        const float *from = x + row * rows.length;
        float *to = dx + row * rows.length;
        const int label = labels[row];
        const float sum = exponentials(from, rows.length, top_of(from, rows.length), to);
        const float weight = is_class(rows, label) ? dloss[row] : NAN;
        const float one = formula_label_share(1, rows.length, smoothing),
                    none = formula_label_share(0, rows.length, smoothing);
        for (uint32_t i = 0; i < rows.length; i++)
            to[i] = formula_softmax_cross_entropy_grad(to[i] / sum, (int)i == label ? one : none, weight);
    }
}

} // namespace

cudaError_t launch_softmax(cudaStream_t stream, struct gpu_rows rows, const float *x, float *y) {
    return LAUNCH(stream, rows.rows, softmax, rows, x, y);
}
cudaError_t launch_softmax_grad(cudaStream_t stream, struct gpu_rows rows, const float *y, const float *dy,
                                float *dx) {
    return LAUNCH(stream, rows.rows, softmax_grad, rows, y, dy, dx);
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
    return LAUNCH(stream, rows.rows, softmax_cross_entropy, rows, x, labels, smoothing, loss);
}
cudaError_t launch_softmax_cross_entropy_grad(cudaStream_t stream, struct gpu_rows rows, const float *x,
                                              const int *labels, float smoothing, const float *dloss,
                                              float *dx) {
    return LAUNCH(stream, rows.rows, softmax_cross_entropy_grad, rows, x, labels, smoothing, dloss, dx);
}
