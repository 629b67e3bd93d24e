/* Kernels: batch normalisation of [rows, channels]. Sums over rows are made in passes like those of
 * reduce.cu; the numbers of a channel are worked out anew for each element, from caches. */
#include "../src/device/formulas.h"
#include "parts.h"

namespace {

/* Formula(x, mean, dy) over all rows, in V channels. */
template <float (*formula)(float, float, float)> struct sum_from {
    typedef float In, Value, Out;
    typedef add_up Op;
    enum { wide = 1 };
    DEVICE float none() { return 0.0f; }
    template <int V>
    DEVICE pack<float, V> term(const float *x, const float *mean, const float *dy, uint32_t, uint32_t i,
                               size_t at) {
        const pack<float, V> value = take<V>(x + at), middle = take<V>(mean + i), slope = take<V>(dy + at);
        pack<float, V> out;
        UNROLL(4)
        for (int v = 0; v < V; v++) out.at[v] = formula(value.at[v], middle.at[v], slope.at[v]);
        return out;
    }
    DEVICE float result(float sum, float divide) { return sum / divide; }
};

DEVICE float square_part(float x, float mean, float) {
    return formula_square_from(x, mean);
}

KERNEL divide_by_deviation(uint32_t channels, const float *variance, float epsilon, float *values) {
    EACH(c, channels) values[c] *= formula_inverse_deviation(variance[c], epsilon);
}

KERNEL norm(gpu_rows rows, float epsilon, const float *x, const float *moments, const float *scale,
            const float *shift, float *y) {
    EACH(i, rows.rows * rows.length) {
        const uint32_t c = (uint32_t)i % rows.length;
        const struct formula_norm line =
            formula_norm(moments[c], moments[rows.length + c], epsilon, scale[c], shift[c]);
        y[i] = x[i] * line.factor + line.term;
    }
}

KERNEL norm_grad(gpu_rows rows, float epsilon, const float *x, const float *moments, const float *scale,
                 const float *sums, const float *dy, float *dx) {
    const float share = 1.0f / (float)rows.rows;
    EACH(i, rows.rows * rows.length) {
        const uint32_t c = (uint32_t)i % rows.length;
        const struct formula_norm_grad grad = formula_norm_grad(
            moments[c], moments[rows.length + c], epsilon, scale[c], sums[c], sums[rows.length + c], share);
        dx[i] = formula_norm_dx(x[i], dy[i], grad.factor, grad.slope, grad.term);
    }
}

} // namespace

cudaError_t launch_squares_from(cudaStream_t stream, struct gpu_view view, const float *x, const float *mean,
                                float *parts, float divide) {
    return launch_parts<sum_from<square_part>>(stream, view, x, mean, x, parts, divide);
}
cudaError_t launch_products_from(cudaStream_t stream, struct gpu_view view, const float *x, const float *mean,
                                 const float *dy, float *parts) {
    return launch_parts<sum_from<formula_product_from>>(stream, view, x, mean, dy, parts, 1.0f);
}
cudaError_t launch_norm_divide(cudaStream_t stream, uint32_t channels, const float *moments, float epsilon,
                               float *values) {
    return LAUNCH(stream, channels, divide_by_deviation, channels, moments + channels, epsilon, values);
}
cudaError_t launch_norm(cudaStream_t stream, struct gpu_rows rows, float epsilon, const float *x,
                        const float *moments, const float *scale, const float *shift, float *y) {
    return LAUNCH(stream, rows.rows * rows.length, norm, rows, epsilon, x, moments, scale, shift, y);
}
cudaError_t launch_norm_grad(cudaStream_t stream, struct gpu_rows rows, float epsilon, const float *x,
                             const float *moments, const float *scale, const float *sums, const float *dy,
                             float *dx) {
    return LAUNCH(stream, rows.rows * rows.length, norm_grad, rows, epsilon, x, moments, scale, sums, dy, dx);
}
