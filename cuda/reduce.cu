/* Kernels: reductions of the middle axis of [outer, length, inner]. One pass makes `chunks` parts of it, each
 * by a group of threads, in a fixed order (parts.h); host code (reduce.c) makes a second pass where one would
 * leave most of the GPU idle. A pass reads 4 bytes per element, 2 of bf16. */
#include "../src/device/formulas.h"
#include "parts.h"

namespace {

struct add_ints {
    DEVICE int of(int a, int b) { return formula_add_int(a, b); }
};
struct larger {
    DEVICE float of(float most, float x) { return formula_largest(most, x); }
    DEVICE int of(int most, int x) { return x > most ? x : most; }
};

struct sum_of_floats : plain_work<float> {
    typedef float In, Value;
    typedef add_up Op;
    enum { wide = 1 };
    DEVICE float none() { return 0.0f; }
    template <int V> DEVICE pack<float, V> term(const pack<float, V> &read, nothing, uint32_t) {
        return read;
    }
    DEVICE void write(float *y, const part_result &to, float sum) { y[to.at] = sum / to.grid.number; }
};

struct sum_of_bf16 : sum_of_floats {
    typedef bf16 In;
    template <int V> DEVICE pack<float, V> term(const pack<bf16, V> &narrow, nothing, uint32_t) {
        pack<float, V> wide;
        UNROLL(8)
        for (int v = 0; v < V; v++) wide.at[v] = widen(narrow.at[v]);
        return wide;
    }
};

struct sum_of_ints : plain_work<int> {
    typedef int In, Value;
    typedef add_ints Op;
    enum { wide = 0 };
    DEVICE int none() { return 0; }
    template <int V> DEVICE pack<int, V> term(const pack<int, V> &read, nothing, uint32_t) { return read; }
    DEVICE void write(int *y, const part_result &to, int sum) { y[to.at] = sum; }
};

DEVICE float least(float) {
    return -INFINITY;
}
DEVICE int least(int) {
    return INT32_MIN;
}

/* Not a number counts only as the very first element. */
template <class T> struct largest_of : plain_work<T> {
    typedef T In, Value;
    typedef larger Op;
    enum { wide = 0 };
    DEVICE T none() { return least(T()); }
    template <int V> DEVICE pack<T, V> term(const pack<T, V> &read, nothing, uint32_t) { return read; }
    DEVICE void write(T *y, const part_result &to, T most) { y[to.at] = most; }
};

/* Of equal ones the first, wherever the threads have found them. */
template <class T> struct found {
    T value;
    uint32_t at;
};
struct first_larger {
    template <class T> DEVICE found<T> of(found<T> a, found<T> b) {
        return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
    }
};
template <class T> struct place_of_largest : plain_work<int> {
    typedef T In;
    typedef found<T> Value;
    typedef first_larger Op;
    enum { wide = 0 };
    DEVICE Value none() {
        const Value none = {least(T()), UINT32_MAX};
        return none;
    }
    template <int V> DEVICE pack<Value, V> term(const pack<T, V> &read, nothing, uint32_t l) {
        pack<Value, V> here;
        for (int v = 0; v < V; v++) {
            here.at[v].value = read.at[v];
            here.at[v].at = l;
        }
        return here;
    }
    DEVICE void write(int *y, const part_result &to, Value best) { y[to.at] = (int)best.at; }
};

} // namespace

#define PARTS(Work, divide) launch_parts<Work>(stream, view, x, NULL, NULL, y, divide, view.length)
cudaError_t launch_sum(cudaStream_t stream, struct gpu_view view, const float *x, float *y, float divide) {
    return PARTS(sum_of_floats, divide);
}
cudaError_t launch_sum_bf16(cudaStream_t stream, struct gpu_view view, const uint16_t *x, float *y,
                            float divide) {
    return PARTS(sum_of_bf16, divide);
}
cudaError_t launch_sum_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y) {
    return PARTS(sum_of_ints, 1.0f);
}
cudaError_t launch_max(cudaStream_t stream, struct gpu_view view, const float *x, float *y) {
    return PARTS(largest_of<float>, 1.0f);
}
cudaError_t launch_max_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y) {
    return PARTS(largest_of<int>, 1.0f);
}
cudaError_t launch_argmax(cudaStream_t stream, struct gpu_view view, const float *x, int *y) {
    return PARTS(place_of_largest<float>, 1.0f);
}
cudaError_t launch_argmax_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y) {
    return PARTS(place_of_largest<int>, 1.0f);
}
