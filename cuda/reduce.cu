/* Kernels: reductions of the middle axis of [outer, length, inner]. One pass makes `chunks` parts of it, each
 * by one thread, in a fixed order; host code (reduce.c) makes as many passes as keep all threads busy and
 * every part short. A pass reads 4 bytes per element, 2 of bf16. */
#include "../src/device/formulas.h"
#include "kernels.h"
#include "launch.h"
#include "narrow.h"

namespace {

using ::widen;
DEVICE int widen(int x) {
    return x;
}
DEVICE float add(float a, float b) {
    return a + b;
}
DEVICE int add(int a, int b) {
    return formula_add_int(a, b);
}
DEVICE float larger(float most, float x) {
    return formula_largest(most, x);
}
DEVICE int larger(int most, int x) {
    return x > most ? x : most;
}
DEVICE float over(float sum, float divide) {
    return sum / divide;
}
DEVICE int over(int sum, float) {
    return sum;
}

/* The first element of part k of (o, k, i), which is thread `at`. */
struct part {
    size_t first;
    uint32_t k;
};
DEVICE part part_of(const gpu_view &view, uint32_t at) {
    const uint32_t run = view.chunks * view.inner, o = at / run, rest = at - o * run;
    const part part = {(size_t)o * view.length * view.inner + rest, rest / view.inner};
    return part;
}

template <class In, class Sum> KERNEL sums(gpu_view view, const In *x, Sum *y, float divide) {
    EACH(at, view.outer * view.chunks * view.inner) {
        const part part = part_of(view, (uint32_t)at);
        const In *from = x + part.first;
        const size_t stride = (size_t)view.chunks * view.inner;
        Sum sum = widen(*from);
        for (uint32_t l = part.k + view.chunks; l < view.length; l += view.chunks)
            sum = add(sum, widen(*(from += stride)));
        y[at] = over(sum, divide);
    }
}

/* Not a number counts only as the very first element, so no other part begins with one. */
template <class T> KERNEL largest(gpu_view view, const T *x, T *y, T least) {
    EACH(at, view.outer * view.chunks * view.inner) {
        const part part = part_of(view, (uint32_t)at);
        const T *from = x + part.first;
        const size_t stride = (size_t)view.chunks * view.inner;
        T most = part.k == 0 ? *from : larger(least, *from);
        for (uint32_t l = part.k + view.chunks; l < view.length; l += view.chunks)
            most = larger(most, *(from += stride));
        y[at] = most;
    }
}

/* A thread a result: for rows of classes, which are short. */
template <class T> KERNEL argmax(gpu_view view, const T *x, int *y) {
    EACH(at, view.outer * view.inner) {
        const T *from = x + part_of(view, (uint32_t)at).first;
        T most = *from;
        uint32_t best = 0;
        for (uint32_t l = 1; l < view.length; l++) {
            from += view.inner;
            if (*from > most) {
                most = *from;
                best = l;
            }
        }
        y[at] = (int)best;
    }
}

} // namespace

static uint32_t parts_of(struct gpu_view view) {
    return view.outer * view.chunks * view.inner;
}

cudaError_t launch_sum(cudaStream_t stream, struct gpu_view view, const float *x, float *y, float divide) {
    return LAUNCH(stream, parts_of(view), (sums<float, float>), view, x, y, divide);
}
cudaError_t launch_sum_bf16(cudaStream_t stream, struct gpu_view view, const uint16_t *x, float *y,
                            float divide) {
    return LAUNCH(stream, parts_of(view), (sums<bf16, float>), view, x, y, divide);
}
cudaError_t launch_sum_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y) {
    return LAUNCH(stream, parts_of(view), (sums<int, int>), view, x, y, 1.0f);
}
cudaError_t launch_max(cudaStream_t stream, struct gpu_view view, const float *x, float *y) {
    return LAUNCH(stream, parts_of(view), largest<float>, view, x, y, -INFINITY);
}
cudaError_t launch_max_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y) {
    return LAUNCH(stream, parts_of(view), largest<int>, view, x, y, INT32_MIN);
}
cudaError_t launch_argmax(cudaStream_t stream, struct gpu_view view, const float *x, int *y) {
    return LAUNCH(stream, parts_of(view), argmax<float>, view, x, y);
}
cudaError_t launch_argmax_int(cudaStream_t stream, struct gpu_view view, const int *x, int *y) {
    return LAUNCH(stream, parts_of(view), argmax<int>, view, x, y);
}
