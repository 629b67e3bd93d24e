/* Private to the .cu files: the middle axis of [outer, length, inner] made into parts (struct gpu_view of
 * kernels.h), by groups of threads that read neighbouring addresses, 16 bytes each where the inner axis
 * allows it. A kernel that makes parts is a `Work`, with
 *
 * - In, Value, Out: the types of x, of what is folded, and of the result
 * - Op::of(a, b): two values folded, of which a is the one that may have the very first element in it
 * - none(): the value of no elements
 * - term<V>(x, mean, dy, l, i, at): values of V neighbours, which are element l of the middle axis, i and
 *   following of the inner one, and `at` and following of all
 * - result(value, divide): an element of the result
 * - wide: whether V may be more than 1 */
#ifndef TRAINER_CUDA_PARTS_H
#define TRAINER_CUDA_PARTS_H

#include "kernels.h"
#include "launch.h"
#include "narrow.h"

namespace {

struct add_up {
    template <class T> DEVICE T of(T a, T b) { return a + b; }
};

/* An Op of V neighbours. */
template <class Op> struct side_by_side {
    template <class T, int V> DEVICE pack<T, V> of(const pack<T, V> &a, const pack<T, V> &b) {
        pack<T, V> all;
        UNROLL(8)
        for (int v = 0; v < V; v++) all.at[v] = Op::of(a.at[v], b.at[v]);
        return all;
    }
};

/* Groups side by side that cover the inner axis, with V elements per thread; and groups in all. */
HOST_DEVICE uint32_t parts_across(const gpu_view &view, uint32_t v) {
    return (view.inner + view.columns * v - 1) / (view.columns * v);
}
HOST_DEVICE uint32_t parts_groups(const gpu_view &view, uint32_t v) {
    return view.outer * view.chunks * parts_across(view, v);
}

/* What a thread of a group works on. */
struct part {
    bool there;
    uint32_t outer, chunk, row, i; /* i: its first element of the inner axis */
};
template <int V> DEVICE part part_of(const gpu_view &view, size_t group, uint32_t thread) {
    const uint32_t across = parts_across(view, V);
    uint32_t at = (uint32_t)group;
    part part;
    part.row = thread / view.columns;
    part.i = (at % across * view.columns + thread % view.columns) * V;
    at /= across;
    part.chunk = at % view.chunks;
    part.outer = at / view.chunks;
    part.there = part.outer < view.outer && part.i < view.inner;
    return part;
}

/* Row r of part k has the elements k rows + r + n chunks rows, for n = 0, 1, ... The first of all stands for
 * itself: no `none` comes before it. */
template <class Work, int V, int THREADS>
KERNEL make_parts(gpu_view view, const typename Work::In *x, const float *mean, const float *dy,
                  typename Work::Out *y, float divide) {
    typedef side_by_side<typename Work::Op> each_of;
    const uint32_t group = view.rows * view.columns, groups = THREADS / group;
    TEAMS(team, (parts_groups(view, V) + groups - 1) / groups, THREADS) {
        each<pack<typename Work::Value, V>, THREADS> folded;
        ALONE(t, THREADS) {
            const part part = part_of<V>(view, team * groups + t / group, t % group);
            const uint32_t step = view.chunks * view.rows;
            const size_t begin = (size_t)part.outer * view.length * view.inner + part.i;
            uint32_t l = part.there ? part.chunk * view.rows + part.row : view.length;
            pack<typename Work::Value, V> sum;
            UNROLL(8)
            for (int v = 0; v < V; v++) sum.at[v] = Work::none();
            if (l == 0) {
                sum = Work::template term<V>(x, mean, dy, l, part.i, begin);
                l += step;
            }
            UNROLL(4)
            for (; l < view.length; l += step)
                sum = each_of::of(
                    sum, Work::template term<V>(x, mean, dy, l, part.i, begin + (size_t)l * view.inner));
            folded[t] = sum;
        }
        team_fold<each_of>(folded, group, view.columns);
        ALONE(t, THREADS) {
            const part part = part_of<V>(view, team * groups + t / group, t % group);
            const size_t to = ((size_t)part.outer * view.chunks + part.chunk) * view.inner + part.i;
            if (part.there && part.row == 0) {
                UNROLL(8)
                for (int v = 0; v < V; v++) y[to + (size_t)v] = Work::result(folded[t].at[v], divide);
            }
        }
    }
}

template <class Work, int V>
cudaError_t launch_parts_of(cudaStream_t stream, const gpu_view &view, const typename Work::In *x,
                            const float *mean, const float *dy, typename Work::Out *y, float divide) {
    const size_t group = (size_t)view.rows * view.columns, groups = parts_groups(view, V);
    if (group > WARP)
        return LAUNCH_TEAMS(stream, groups, BLOCK, (make_parts<Work, V, BLOCK>), view, x, mean, dy, y,
                            divide);
    const size_t each = WARP / group;
    return LAUNCH_TEAMS(stream, (groups + each - 1) / each, WARP, (make_parts<Work, V, WARP>), view, x, mean,
                        dy, y, divide);
}

/* The order of what is added does not depend on how many elements a thread reads at once. */
template <class Work>
cudaError_t launch_parts(cudaStream_t stream, const gpu_view &view, const typename Work::In *x,
                         const float *mean, const float *dy, typename Work::Out *y, float divide) {
    constexpr int wide = Work::wide ? full<typename Work::In>() : 1;
    if (wide > 1 && packs<typename Work::In>(view.inner, x, mean, dy))
        return launch_parts_of<Work, wide>(stream, view, x, mean, dy, y, divide);
    return launch_parts_of<Work, 1>(stream, view, x, mean, dy, y, divide);
}

} // namespace

#endif
