/* Kernels: batch normalisation of [rows, channels]. Sums over rows are made in passes like those of
 * reduce.cu, two sums of a channel at once; the numbers of a channel are worked out anew for each element,
 * from caches. */
#include "../src/device/formulas.h"
#include "parts.h"

namespace {

/* Two sums of a channel at once. */
struct add_two {
    DEVICE gpu_two of(const gpu_two &a, const gpu_two &b) {
        const gpu_two all = {a.first + b.first, a.second + b.second};
        return all;
    }
};
struct sums_of_two {
    typedef gpu_two Value;
    typedef add_two Op;
    enum { wide = 1 };
    DEVICE gpu_two none() {
        const gpu_two none = {0.0f, 0.0f};
        return none;
    }
};
/* What a pass that is not the last leaves; and what the last one reads. */
struct leave_parts {
    typedef gpu_two Out;
    DEVICE void write(gpu_two *y, const part_result &to, const gpu_two &sums) { y[to.at] = sums; }
};
struct of_parts : sums_of_two {
    typedef gpu_two In;
    template <int V> DEVICE nothing begin(const gpu_two *, const float *, const parts_grid &, uint32_t) {
        return nothing();
    }
    template <int V> DEVICE pack<gpu_two, V> read(const gpu_two *x, const float *, size_t at) {
        return take<V>(x + at);
    }
    template <int V> DEVICE pack<gpu_two, V> term(const pack<gpu_two, V> &read, nothing, uint32_t) {
        return read;
    }
};

/* dy and (x - mean) dy, of more = moments. The result is divided by the deviation. */
struct of_slopes : sums_of_two {
    typedef float In;
    template <int V>
    DEVICE pack<float, V> begin(const float *, const float *moments, const parts_grid &, uint32_t i) {
        return take<V>(moments + i);
    }
    template <int V> struct pair { pack<float, V> x, dy; };
    template <int V> DEVICE pair<V> read(const float *x, const float *dy, size_t at) {
        const pair<V> pair = {take<V>(x + at), take<V>(dy + at)};
        return pair;
    }
    template <int V> DEVICE pack<gpu_two, V> term(const pair<V> &read, const pack<float, V> &mean, uint32_t) {
        pack<gpu_two, V> terms;
        UNROLL(4)
        for (int v = 0; v < V; v++) {
            terms.at[v].first = read.dy.at[v];
            terms.at[v].second = formula_product_from(read.x.at[v], mean.at[v], read.dy.at[v]);
        }
        return terms;
    }
};
struct end_slopes {
    typedef float Out;
    DEVICE void write(float *y, const part_result &to, const gpu_two &sums) {
        const float variance = to.more[to.inner + to.i];
        y[to.i] = sums.first;
        y[to.inner + to.i] = sums.second * formula_inverse_deviation(variance, to.grid.number);
    }
};
struct slopes_to_parts : of_slopes, leave_parts {};
struct slopes_to_end : of_slopes, end_slopes {};
struct slope_parts_to_end : of_parts, end_slopes {};

/* x - near and its square, of more = all of x; near: the mean of a few rows, so that nothing large cancels in
 * the variance. */
enum { NEAR_ROWS = 8 };
template <int V> DEVICE pack<float, V> near_mean(const float *x, const parts_grid &grid, uint32_t i) {
    pack<float, V> rows[NEAR_ROWS], sum;
    UNROLL(8)
    for (uint32_t k = 0; k < NEAR_ROWS; k++) {
        const uint32_t row = (uint32_t)((uint64_t)grid.all * k / NEAR_ROWS);
        rows[k] = take<V>(x + (size_t)row * grid.view.inner + i);
    }
    UNROLL(4)
    for (int v = 0; v < V; v++) {
        sum.at[v] = rows[0].at[v];
        UNROLL(8)
        for (int k = 1; k < NEAR_ROWS; k++) sum.at[v] += rows[k].at[v];
        sum.at[v] *= 1.0f / NEAR_ROWS;
    }
    return sum;
}
struct of_values : sums_of_two {
    typedef float In;
    template <int V>
    DEVICE pack<float, V> begin(const float *, const float *x, const parts_grid &grid, uint32_t i) {
        return near_mean<V>(x, grid, i);
    }
    template <int V> DEVICE pack<float, V> read(const float *x, const float *, size_t at) {
        return take<V>(x + at);
    }
    template <int V>
    DEVICE pack<gpu_two, V> term(const pack<float, V> &value, const pack<float, V> &near, uint32_t) {
        pack<gpu_two, V> terms;
        UNROLL(4)
        for (int v = 0; v < V; v++) {
            terms.at[v].first = value.at[v] - near.at[v];
            terms.at[v].second = formula_square_from(value.at[v], near.at[v]);
        }
        return terms;
    }
};
struct end_moments {
    typedef float Out;
    DEVICE void write(float *y, const part_result &to, const gpu_two &sums) {
        const float near = near_mean<1>(to.more, to.grid, to.i).at[0];
        const struct formula_moments moments =
            formula_moments(near, sums.first, sums.second, (float)to.grid.all);
        y[to.i] = moments.mean;
        y[to.inner + to.i] = moments.variance;
    }
};
struct values_to_parts : of_values, leave_parts {};
struct values_to_end : of_values, end_moments {};
struct value_parts_to_end : of_parts, end_moments {};

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

cudaError_t launch_moments_parts(cudaStream_t stream, struct gpu_view view, const float *x,
                                 struct gpu_two *parts) {
    return launch_parts<values_to_parts>(stream, view, x, x, NULL, parts, 0.0f, view.length);
}
cudaError_t launch_moments(cudaStream_t stream, struct gpu_view view, const float *x, float *moments) {
    return launch_parts<values_to_end>(stream, view, x, x, NULL, moments, 0.0f, view.length);
}
cudaError_t launch_moments_of_parts(cudaStream_t stream, struct gpu_view view, const struct gpu_two *parts,
                                    const float *x, uint32_t rows, float *moments) {
    return launch_parts<value_parts_to_end>(stream, view, parts, x, NULL, moments, 0.0f, rows);
}
cudaError_t launch_slopes_parts(cudaStream_t stream, struct gpu_view view, const float *x,
                                const float *moments, const float *dy, struct gpu_two *parts) {
    return launch_parts<slopes_to_parts>(stream, view, x, moments, dy, parts, 0.0f, view.length);
}
cudaError_t launch_slopes(cudaStream_t stream, struct gpu_view view, const float *x, const float *moments,
                          float epsilon, const float *dy, float *sums) {
    return launch_parts<slopes_to_end>(stream, view, x, moments, dy, sums, epsilon, view.length);
}
cudaError_t launch_slopes_of_parts(cudaStream_t stream, struct gpu_view view, const struct gpu_two *parts,
                                   const float *moments, float epsilon, float *sums) {
    return launch_parts<slope_parts_to_end>(stream, view, parts, moments, NULL, sums, epsilon, view.length);
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
