/* Private to the .cu files: the middle axis of [outer, length, inner] made into parts (struct gpu_view of
 * kernels.h), by groups of threads that read neighbouring addresses, 16 bytes each where the inner axis
 * allows it. A kernel that makes parts is a `Work`, with
 *
 * - In, Value, Out: the types of x, of what is folded, and of the result
 * - Op::of(a, b): two values folded, of which a is the one that may have the very first element in it
 * - none(): the value of no elements, which as `b` changes nothing
 * - begin<V>(x, more, grid, i): numbers that a thread needs of V neighbours, i and following of the inner
 * axis
 * - read<V>(x, dy, at): V neighbours, `at` and following of all
 * - term(read, middle, l): their values, where they are element l of the middle axis; middle: what `begin`
 * gave
 * - write(y, to, value): an element of the result
 * - wide: whether V may be more than 1 */
#ifndef TRAINER_CUDA_PARTS_H
#define TRAINER_CUDA_PARTS_H

#include "divide.h"
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

enum { WARP_BITS = 5, BLOCK_BITS = 8 };
static_assert(1 << WARP_BITS == WARP && 1 << BLOCK_BITS == BLOCK, "threads of a team");

/* What host code has worked out for a launch with V elements per thread. */
struct parts_grid {
    gpu_view view;
    uint32_t all;              /* elements of the middle axis before any pass */
    float number;              /* for `write` */
    uint32_t groups;           /* in all; side by side they cover the inner axis, then part after part */
    divisor across, chunks;    /* groups side by side; parts */
    uint32_t columns, threads; /* binary logarithms: of the columns of a group, and of its threads */
};
static inline uint32_t logarithm_of(uint32_t power) {
    uint32_t bits = 0;
    while (power >> bits > 1) bits++;
    return bits;
}
static inline parts_grid parts_grid_of(const gpu_view &view, uint32_t v, float number, uint32_t all) {
    const uint32_t across = (view.inner + view.columns * v - 1) / (view.columns * v);
    parts_grid grid;
    grid.view = view;
    grid.all = all;
    grid.number = number;
    grid.groups = view.outer * view.chunks * across;
    grid.across = divisor_of(across);
    grid.chunks = divisor_of(view.chunks);
    grid.columns = logarithm_of(view.columns);
    grid.threads = logarithm_of(view.columns * view.rows);
    return grid;
}

/* What most need to begin with, and to end. */
struct nothing {};
template <class T> struct plain_work {
    typedef T Out;
    template <int V> DEVICE nothing begin(const void *, const float *, const parts_grid &, uint32_t) {
        return nothing();
    }
    template <int V, class In> DEVICE pack<In, V> read(const In *x, const float *, size_t at) {
        return take<V>(x + at);
    }
};

/* What a thread of a group works on. */
struct part {
    bool there;
    uint32_t outer, chunk, row, i; /* i: its first element of the inner axis */
};
template <int V> DEVICE part part_of(const parts_grid &grid, uint32_t group, uint32_t thread) {
    part part;
    part.row = thread >> grid.columns;
    part.there = group < grid.groups;
    part.chunk = over_and_rest(&group, grid.across);
    part.i = ((group << grid.columns) + (thread & (grid.view.columns - 1))) * V;
    part.outer = over_and_rest(&part.chunk, grid.chunks);
    part.there = part.there && part.i < grid.view.inner;
    return part;
}

/* Where an element of the result goes, and what it may need. */
struct part_result {
    uint32_t inner, i;
    size_t at;
    const float *more; /* what the kernel was given */
    const parts_grid &grid;
};
DEVICE part_result result_of(const parts_grid &grid, const part &part, const float *more) {
    const gpu_view &view = grid.view;
    const part_result result = {view.inner, part.i,
                                ((size_t)part.outer * view.chunks + part.chunk) * view.inner + part.i, more,
                                grid};
    return result;
}

/* The sum of a thread's elements, of which so many are in flight at once. The first of all stands for itself:
 * no `none` comes before it. */
template <class Work, int V>
DEVICE pack<typename Work::Value, V> sum_of_part(const parts_grid &grid, const part &part,
                                                 const typename Work::In *x, const float *more,
                                                 const float *dy) {
    enum { AT_ONCE = 4 };
    typedef side_by_side<typename Work::Op> each_of;
    const gpu_view &view = grid.view;
    const uint32_t step = view.chunks * view.rows;
    const size_t begin = (size_t)part.outer * view.length * view.inner + part.i;
    pack<typename Work::Value, V> sum;
    UNROLL(8)
    for (int v = 0; v < V; v++) sum.at[v] = Work::none();
    if (!part.there) return sum;
    const auto middle = Work::template begin<V>(x, more, grid, part.i);
    for (uint32_t l = part.chunk * view.rows + part.row; l < view.length; l += AT_ONCE * step) {
        decltype(Work::template read<V>(x, dy, begin)) read[AT_ONCE];
        pack<typename Work::Value, V> terms[AT_ONCE];
        UNROLL(4)
        for (uint32_t k = 0; k < AT_ONCE; k++) { /* behind the end one that is there, too */
            const uint32_t at = l + k * step < view.length ? l + k * step : l;
            read[k] = Work::template read<V>(x, dy, begin + (size_t)at * view.inner);
        }
        UNROLL(4)
        for (uint32_t k = 0; k < AT_ONCE; k++) {
            terms[k] = Work::term(read[k], middle, l + k * step);
            UNROLL(8)
            for (int v = 0; v < V; v++)
                if (l + k * step >= view.length) terms[k].at[v] = Work::none();
        }
        if (l > 0) terms[0] = each_of::of(sum, terms[0]);
        sum = terms[0];
        UNROLL(4)
        for (uint32_t k = 1; k < AT_ONCE; k++) sum = each_of::of(sum, terms[k]);
    }
    return sum;
}

/* Row r of part k has the elements k rows + r + n chunks rows, for n = 0, 1, ... A block's sums go from each
 * of its warps to a thread for each element of the inner axis. A warp has 2^beside groups. */
template <class Work, int V, int THREADS>
WIDE_KERNEL(3)
make_parts(CONSTANT parts_grid grid, const typename Work::In *x, const float *more, const float *dy,
           typename Work::Out *y) {
    typedef side_by_side<typename Work::Op> each_of;
    const uint32_t apart = grid.view.columns, bits = THREADS == BLOCK ? (uint32_t)BLOCK_BITS : grid.threads,
                   group = 1u << bits, beside = THREADS == BLOCK ? 0 : WARP_BITS - bits;
    TEAMS(team, (grid.groups + (1u << beside) - 1) >> beside, THREADS) {
        const uint32_t first = (uint32_t)team << beside;
        each<pack<typename Work::Value, V>, THREADS> folded;
        ALONE(t, THREADS) {
            const part part = part_of<V>(grid, first + (t >> bits), t & (group - 1));
            folded[t] = sum_of_part<Work, V>(grid, part, x, more, dy);
        }
        team_fold<each_of>(folded, THREADS == BLOCK ? (uint32_t)WARP : group, apart);
        if constexpr (THREADS == BLOCK) {
            SHARED(typename Work::Value, kept, BLOCK * V);
            EVERY(t, THREADS) if (t % WARP < apart) {
                UNROLL(8)
                for (uint32_t v = 0; v < V; v++)
                    kept[(t / WARP * apart + t % WARP) * V + v] = folded[t].at[v];
            }
            EVERY(t, THREADS) {
                part part = part_of<V>(grid, first, 0);
                part.i += t;
                if (t < apart * V && part.i < grid.view.inner) {
                    typename Work::Value all = kept[t];
                    UNROLL(7)
                    for (uint32_t warp = 1; warp < BLOCK / WARP; warp++)
                        all = Work::Op::of(all, kept[warp * apart * V + t]);
                    Work::write(y, result_of(grid, part, more), all);
                }
            }
        } else {
            ALONE(t, THREADS) {
                part part = part_of<V>(grid, first + (t >> bits), t & (group - 1));
                if (part.there && part.row == 0) {
                    UNROLL(8)
                    for (int v = 0; v < V; v++, part.i++)
                        Work::write(y, result_of(grid, part, more), folded[t].at[v]);
                }
            }
        }
    }
}

template <class Work, int V>
cudaError_t launch_parts_of(cudaStream_t stream, const parts_grid &grid, const typename Work::In *x,
                            const float *more, const float *dy, typename Work::Out *y) {
    const uint32_t group = 1u << grid.threads;
    if (group > WARP)
        return LAUNCH_TEAMS(stream, grid.groups, BLOCK, (make_parts<Work, V, BLOCK>), grid, x, more, dy, y);
    return LAUNCH_TEAMS(stream, (grid.groups + WARP / group - 1) / (WARP / group), WARP,
                        (make_parts<Work, V, WARP>), grid, x, more, dy, y);
}

/* The order of what is added does not depend on how many elements a thread reads at once. */
template <class Work>
cudaError_t launch_parts(cudaStream_t stream, const gpu_view &view, const typename Work::In *x,
                         const float *more, const float *dy, typename Work::Out *y, float number,
                         uint32_t all) {
    constexpr int wide = Work::wide ? full<typename Work::In>() : 1;
    if (wide > 1 && packs<typename Work::In>(view.inner, x, more, dy))
        return launch_parts_of<Work, wide>(stream, parts_grid_of(view, wide, number, all), x, more, dy, y);
    return launch_parts_of<Work, 1>(stream, parts_grid_of(view, 1, number, all), x, more, dy, y);
}

} // namespace

#endif
