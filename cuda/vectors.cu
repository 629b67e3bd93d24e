/* Kernels: arithmetic of the store on windows of flat vectors. */
#include "kernels.h"
#include "launch.h"

namespace {

/* 4 bytes read and 4 written of the weights and of each moment and average, 4 read of the gradient. */
KERNEL step(update update, update_window window) {
    EACH(i, window.floats) {
        const float before = window.weights[i];
        float m0 = window.moments[0] ? window.moments[0][i] : 0.0f;
        float m1 = window.moments[1] ? window.moments[1][i] : 0.0f;
        const float after = update_weight(&update, before, window.gradient[i], &m0, &m1);
        if (window.moments[0]) window.moments[0][i] = m0;
        if (window.moments[1]) window.moments[1][i] = m1;
        if (window.atomic)
            atomicAdd(&window.weights[i], after - before);
        else
            window.weights[i] = after;
        if (window.average) window.average[i] = update_average(window.average[i], after, update.towards);
        if (window.witness && i == window.floats - 1) {
            if (window.atomic)
                atomicAdd(window.witness, 1.0);
            else
                *window.witness += 1.0;
        }
    }
}

KERNEL mean_of(gpu_mean mean, size_t floats, float *out) {
    EACH(i, floats) {
        float sum = mean.weight[0] * mean.values[0][i];
        for (int k = 1; k < mean.count; k++) sum += mean.weight[k] * mean.values[k][i];
        out[i] = sum;
    }
}

template <class T> KERNEL sums(const T *values, size_t count, double *parts, size_t chunks, bool squared) {
    EACH(k, chunks) {
        double sum = 0.0;
        for (size_t i = k; i < count; i += chunks) {
            const double value = (double)values[i];
            sum += squared ? value * value : value;
        }
        parts[k] = sum;
    }
}

KERNEL scale(float *values, size_t floats, float factor) {
    EACH(i, floats) values[i] *= factor;
}

} // namespace

cudaError_t launch_update(cudaStream_t stream, const struct update *update,
                          const struct update_window *window) {
    return LAUNCH(stream, window->floats, step, *update, *window);
}
cudaError_t launch_mean(cudaStream_t stream, const struct gpu_mean *mean, size_t floats, float *out) {
    return LAUNCH(stream, floats, mean_of, *mean, floats, out);
}
cudaError_t launch_squares(cudaStream_t stream, const float *values, size_t floats, double *parts,
                           size_t chunks) {
    return LAUNCH(stream, chunks, sums<float>, values, floats, parts, chunks, true);
}
cudaError_t launch_sum_double(cudaStream_t stream, const double *values, size_t count, double *parts,
                              size_t chunks) {
    return LAUNCH(stream, chunks, sums<double>, values, count, parts, chunks, false);
}
cudaError_t launch_scale(cudaStream_t stream, float *values, size_t floats, float factor) {
    return LAUNCH(stream, floats, scale, values, floats, factor);
}
