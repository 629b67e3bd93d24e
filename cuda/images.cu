/* Kernels: pooling and local response normalisation of [..., channels]. Neighbouring threads have
 * neighbouring channels. A window's elements are read again and again, but from the caches: what counts is
 * each element once, 4 bytes, or 2 of bf16. */
#include "../src/device/formulas.h"
#include "kernels.h"
#include "launch.h"
#include "narrow.h"

namespace {

/* --- pooling --- */

struct place {
    uint32_t image, channel;
    int row, column;
};
DEVICE place place_of(uint32_t i, uint32_t channels, int columns, int rows) {
    place place;
    place.channel = i % channels;
    i /= channels;
    place.column = (int)(i % (uint32_t)columns);
    i /= (uint32_t)columns;
    place.row = (int)(i % (uint32_t)rows);
    place.image = i / (uint32_t)rows;
    return place;
}

struct extent {
    int begin, end;
};
/* The elements of window i that are there, always one or more. */
DEVICE extent part_of(const gpu_window &window, int i) {
    const int first = i * window.stride - window.before, last = first + window.length;
    const extent extent = {first < 0 ? 0 : first, last > window.in ? window.in : last};
    return extent;
}
/* The windows that element i is in, maybe none. */
DEVICE extent windows_of(const gpu_window &window, int i) {
    const int behind = i + window.before - window.length; /* the last element that window 0 must not have */
    const int last = (i + window.before) / window.stride;
    const extent extent = {behind < 0 ? 0 : behind / window.stride + 1,
                           last < window.out ? last + 1 : window.out};
    return extent;
}

/* The first largest of a window in x [in, in, channels], which is of the window's image and channel: where it
 * is, counted in elements of one channel, and its value. */
template <class T> DEVICE int find_largest(const gpu_pool &pool, const place &at, const T *x, float *value) {
    const extent rows = part_of(pool.rows, at.row), columns = part_of(pool.columns, at.column);
    int which = rows.begin * pool.columns.in + columns.begin;
    float most = widen(x[(size_t)which * pool.channels]);
    for (int row = rows.begin; row < rows.end; row++)
        for (int column = columns.begin; column < columns.end; column++) {
            const int here = row * pool.columns.in + column;
            const float one = widen(x[(size_t)here * pool.channels]);
            which = one > most ? here : which;
            most = formula_largest(most, one);
        }
    *value = most;
    return which;
}

DEVICE size_t image_elements(const gpu_pool &pool) {
    return (size_t)pool.rows.in * (size_t)pool.columns.in * pool.channels;
}

template <class T> KERNEL maxpool(gpu_pool pool, uint32_t count, const T *x, T *y) {
    EACH(i, count) {
        const place at = place_of((uint32_t)i, pool.channels, pool.columns.out, pool.rows.out);
        float value;
        find_largest(pool, at, x + at.image * image_elements(pool) + at.channel, &value);
        put(&y[i], value);
    }
}

template <class T> KERNEL find_all(gpu_pool pool, uint32_t count, const T *x, int *which) {
    EACH(i, count) {
        const place at = place_of((uint32_t)i, pool.channels, pool.columns.out, pool.rows.out);
        float value;
        which[i] = find_largest(pool, at, x + at.image * image_elements(pool) + at.channel, &value);
    }
}

/* One thread per element of dx: the sum of what the windows that selected it pass on, in their order,
 * rounded after each as where dx itself is added to. */
template <class T> KERNEL give_back(gpu_pool pool, uint32_t count, const int *which, const T *dy, T *dx) {
    EACH(i, count) {
        const place at = place_of((uint32_t)i, pool.channels, pool.columns.in, pool.rows.in);
        const int here = at.row * pool.columns.in + at.column;
        const extent rows = windows_of(pool.rows, at.row), columns = windows_of(pool.columns, at.column);
        T sum;
        put(&sum, 0.0f);
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                const size_t window =
                    (((size_t)at.image * (size_t)pool.rows.out + (size_t)row) * (size_t)pool.columns.out +
                     (size_t)column) *
                        pool.channels +
                    at.channel;
                if (which[window] == here) put(&sum, widen(sum) + widen(dy[window]));
            }
        dx[i] = sum;
    }
}

template <class T>
cudaError_t maxpool_grad(cudaStream_t stream, const gpu_pool &pool, const T *x, const T *dy, T *dx,
                         int *which) {
    const uint32_t windows =
        pool.batch * (uint32_t)pool.rows.out * (uint32_t)pool.columns.out * pool.channels;
    const uint32_t elements = pool.batch * (uint32_t)pool.rows.in * (uint32_t)pool.columns.in * pool.channels;
    const cudaError_t code = LAUNCH(stream, windows, find_all<T>, pool, windows, x, which);
    if (code != cudaSuccess) return code;
    return LAUNCH(stream, elements, give_back<T>, pool, elements, which, dy, dx);
}

/* The mean of what is there of a window: its sum, in the order of its rows, times this. */
DEVICE float inverse_count(const gpu_pool &pool, int row, int column) {
    const extent rows = part_of(pool.rows, row), columns = part_of(pool.columns, column);
    return 1.0f / (float)((rows.end - rows.begin) * (columns.end - columns.begin));
}

KERNEL avgpool(gpu_pool pool, uint32_t count, const float *x, float *y) {
    EACH(i, count) {
        const place at = place_of((uint32_t)i, pool.channels, pool.columns.out, pool.rows.out);
        const extent rows = part_of(pool.rows, at.row), columns = part_of(pool.columns, at.column);
        const float *image = x + at.image * image_elements(pool) + at.channel;
        float sum = 0.0f;
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++)
                sum += image[(size_t)(row * pool.columns.in + column) * pool.channels];
        y[i] = sum * inverse_count(pool, at.row, at.column);
    }
}

/* One thread per element of dx: what the windows that it is in pass on, in their order. */
KERNEL avgpool_grad(gpu_pool pool, uint32_t count, const float *dy, float *dx) {
    EACH(i, count) {
        const place at = place_of((uint32_t)i, pool.channels, pool.columns.in, pool.rows.in);
        const extent rows = windows_of(pool.rows, at.row), columns = windows_of(pool.columns, at.column);
        float sum = 0.0f;
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                const size_t window =
                    ((size_t)at.image * (size_t)pool.rows.out + (size_t)row) * (size_t)pool.columns.out +
                    (size_t)column;
                sum += inverse_count(pool, row, column) * dy[window * pool.channels + at.channel];
            }
        dx[i] = sum;
    }
}

/* --- local response normalisation --- */

/* The neighbours of element i on the last axis, itself included. */
struct around {
    size_t begin, end;
};
DEVICE around around_of(const gpu_lrn &lrn, size_t i) {
    const int c = (int)((uint32_t)i % lrn.channels), last = (int)lrn.channels - 1;
    const int before = c < lrn.radius ? c : lrn.radius;
    const int behind = last - c < lrn.radius ? last - c : lrn.radius;
    const around around = {i - (size_t)before, i + (size_t)behind + 1};
    return around;
}

template <class T> DEVICE formula_powers powers_of(const gpu_lrn &lrn, const T *x, size_t i) {
    const around around = around_of(lrn, i);
    float sum = 0.0f;
    for (size_t k = around.begin; k < around.end; k++) sum += widen(x[k]) * widen(x[k]);
    const float s = lrn.bias + lrn.alpha * sum;
    return lrn.beta == 0.75f ? formula_lrn_quarters(s) : formula_lrn_powers(s, lrn.beta);
}

template <class T> KERNEL lrn(gpu_lrn lrn, const T *x, T *y) {
    EACH(i, lrn.count) put(&y[i], widen(x[i]) * powers_of(lrn, x, i).power);
}

/* power [count] and shares [count] of all elements, which the next kernel needs of their neighbours too: 9
 * powers per element would take longer than writing and reading these 16 bytes. */
template <class T> KERNEL lrn_shares(gpu_lrn lrn, const T *x, const T *dy, float *power, float *shares) {
    EACH(i, lrn.count) {
        const formula_powers powers = powers_of(lrn, x, i);
        power[i] = powers.power;
        shares[i] = formula_lrn_share(widen(x[i]), widen(dy[i]), powers.steeper);
    }
}

template <class T>
KERNEL lrn_back(gpu_lrn lrn, const T *x, const T *dy, const float *power, const float *shares, T *dx) {
    EACH(i, lrn.count) {
        const around around = around_of(lrn, i);
        const float factor = 2.0f * lrn.alpha * lrn.beta, value = widen(x[i]);
        float sum = 0.0f;
        for (size_t k = around.begin; k < around.end; k++) sum += shares[k];
        const float back = formula_lrn_grad(value, widen(dy[i]), power[i], factor, sum);
        put(&dx[i], value <= (lrn.positive ? 0.0f : -INFINITY) ? 0.0f : back);
    }
}

template <class T>
cudaError_t lrn_grad(cudaStream_t stream, const gpu_lrn &lrn, const T *x, const T *dy, T *dx,
                     float *scratch) {
    float *power = scratch, *shares = scratch + lrn.count;
    const cudaError_t code = LAUNCH(stream, lrn.count, lrn_shares<T>, lrn, x, dy, power, shares);
    if (code != cudaSuccess) return code;
    return LAUNCH(stream, lrn.count, lrn_back<T>, lrn, x, dy, power, shares, dx);
}

} // namespace

cudaError_t launch_maxpool(cudaStream_t stream, const struct gpu_pool *pool, int narrow, const void *x,
                           void *y) {
    const uint32_t count =
        pool->batch * (uint32_t)pool->rows.out * (uint32_t)pool->columns.out * pool->channels;
    if (narrow) return LAUNCH(stream, count, maxpool<bf16>, *pool, count, (const bf16 *)x, (bf16 *)y);
    return LAUNCH(stream, count, maxpool<float>, *pool, count, (const float *)x, (float *)y);
}

cudaError_t launch_maxpool_grad(cudaStream_t stream, const struct gpu_pool *pool, int narrow, const void *x,
                                const void *dy, void *dx, int *which) {
    if (narrow) return maxpool_grad(stream, *pool, (const bf16 *)x, (const bf16 *)dy, (bf16 *)dx, which);
    return maxpool_grad(stream, *pool, (const float *)x, (const float *)dy, (float *)dx, which);
}

cudaError_t launch_avgpool(cudaStream_t stream, const struct gpu_pool *pool, const float *x, float *y) {
    const uint32_t count =
        pool->batch * (uint32_t)pool->rows.out * (uint32_t)pool->columns.out * pool->channels;
    return LAUNCH(stream, count, avgpool, *pool, count, x, y);
}

cudaError_t launch_avgpool_grad(cudaStream_t stream, const struct gpu_pool *pool, const float *dy,
                                float *dx) {
    const uint32_t count =
        pool->batch * (uint32_t)pool->rows.in * (uint32_t)pool->columns.in * pool->channels;
    return LAUNCH(stream, count, avgpool_grad, *pool, count, dy, dx);
}

cudaError_t launch_lrn(cudaStream_t stream, const struct gpu_lrn *settings, int narrow, const void *x,
                       void *y) {
    if (narrow) return LAUNCH(stream, settings->count, lrn<bf16>, *settings, (const bf16 *)x, (bf16 *)y);
    return LAUNCH(stream, settings->count, lrn<float>, *settings, (const float *)x, (float *)y);
}

cudaError_t launch_lrn_grad(cudaStream_t stream, const struct gpu_lrn *settings, int narrow, const void *x,
                            const void *dy, void *dx, float *scratch) {
    if (narrow) return lrn_grad(stream, *settings, (const bf16 *)x, (const bf16 *)dy, (bf16 *)dx, scratch);
    return lrn_grad(stream, *settings, (const float *)x, (const float *)dy, (float *)dx, scratch);
}
