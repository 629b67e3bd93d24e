/* Kernels: x unfolded for a convolution that is a matrix product, and what such products of parts leave added
 * up (unfold.c). Each thread writes 16 bytes of a window at once; a pixel is read once for each window that
 * it is in, from the caches but for the first time. */
#include "divide.h"
#include "operands.h"
#include "parts.h"

namespace {

struct places {
    divisor packs, columns, rows,
        span; /* packs of a window, windows along each axis, numbers in a row of one */
    operand_window down, across;
    int channels;
};

/* Where a thread begins in a window, and what of the window is in the image. */
struct strip {
    int row, at;     /* which row of the window, which number of that row */
    int top, bottom; /* rows of the window that are in the image, */
    int begin, end;  /* and numbers of a row that are */
    int first;       /* number of x that the window begins with, if it is there */
};

template <int V> DEVICE strip strip_of(const places &p, uint32_t number) {
    strip s;
    uint32_t rest = number, column = over_and_rest(&rest, p.packs), at = rest * V;
    uint32_t row = over_and_rest(&column, p.columns);
    const int image = (int)over_and_rest(&row, p.rows);
    const int top = (int)row * p.down.stride - p.down.before,
              left = (int)column * p.across.stride - p.across.before;
    s.row = (int)over_and_rest(&at, p.span);
    s.at = (int)at;
    s.top = -top;
    s.bottom = p.down.in - top < p.down.length ? p.down.in - top : p.down.length;
    s.begin = -left * p.channels;
    s.end = (p.across.in - left) * p.channels;
    s.first = ((image * p.down.in + top) * p.across.in + left) * p.channels;
    return s;
}
DEVICE bool is_inside(const strip &s) {
    return s.row >= s.top && s.row < s.bottom && s.at >= s.begin && s.at < s.end;
}

/* V numbers a thread; WHOLE: they are of one pixel. */
template <class T, class X, int V, bool WHOLE>
KERNEL unfold(CONSTANT places p, const X *x, T *out, size_t packs) {
    EACH(n, packs) {
        strip s = strip_of<V>(p, (uint32_t)n);
        const int next_row = p.across.in * p.channels;
        pack<T, V> values;
        if constexpr (WHOLE) {
            pack<X, V> read;
            UNROLL(8)
            for (int v = 0; v < V; v++) put(&read.at[v], 0.0f);
            if (is_inside(s)) read = take<V>(x + (s.first + s.row * next_row + s.at));
            UNROLL(8)
            for (int v = 0; v < V; v++) put(&values.at[v], widen(read.at[v]));
        } else {
            UNROLL(8)
            for (int v = 0; v < V; v++) {
                put(&values.at[v], is_inside(s) ? widen(x[s.first + s.row * next_row + s.at]) : 0.0f);
                if (++s.at == (int)p.span.by) {
                    s.at = 0;
                    s.row++;
                }
            }
        }
        give(out + n * V, values);
    }
}

/* A block adds up 32 neighbouring packs, 8 parts at a time. */
template <int V> KERNEL fold(float *out, const float *parts, size_t packs, size_t apart, uint32_t number) {
    typedef side_by_side<add_up> sum_of;
    TEAMS(team, (packs + WARP - 1) / WARP, BLOCK) {
        each<pack<float, V>, BLOCK> sum;
        ALONE(t, BLOCK) {
            const size_t at = team * WARP + t % WARP;
            UNROLL(4)
            for (int v = 0; v < V; v++) sum[t].at[v] = 0.0f;
            UNROLL(8)
            for (uint32_t k = t / WARP; k < number && at < packs; k += BLOCK / WARP)
                sum[t] = sum_of::of(sum[t], take<V>(parts + k * apart + at * V));
        }
        team_fold<sum_of>(sum, BLOCK, WARP);
        ALONE(t, BLOCK) {
            const size_t at = team * WARP + t;
            if (t < WARP && at < packs) give(out + at * V, sum[t]);
        }
    }
}

} // namespace

template <class T, class X>
static cudaError_t launch_unfold(cudaStream_t stream, T *out, const X *x, const operand_windows &w) {
    constexpr int V = full<T>();
    const operand_window &down = w.axis[0], &across = w.axis[1];
    const size_t packs = (size_t)w.batch * (size_t)down.out * (size_t)across.out * (size_t)(w.pitch / V);
    const places p = {divisor_of((uint32_t)(w.pitch / V)),
                      divisor_of((uint32_t)across.out),
                      divisor_of((uint32_t)down.out),
                      divisor_of((uint32_t)(across.length * w.channels)),
                      down,
                      across,
                      w.channels};
    if (w.channels % V == 0 && (uintptr_t)x % (V * sizeof *x) == 0)
        return LAUNCH(stream, packs, (unfold<T, X, V, true>), p, x, out, packs);
    return LAUNCH(stream, packs, (unfold<T, X, V, false>), p, x, out, packs);
}

cudaError_t operand_unfold(cudaStream_t stream, void *out, enum type to, const void *x, enum type from,
                           const struct operand_windows *windows) {
    if (to == TYPE_FLOAT) return launch_unfold(stream, (float *)out, (const float *)x, *windows);
    if (from == TYPE_BF16) return launch_unfold(stream, (bf16 *)out, (const bf16 *)x, *windows);
    return launch_unfold(stream, (bf16 *)out, (const float *)x, *windows);
}

cudaError_t operand_fold(cudaStream_t stream, float *out, const float *parts, size_t count, size_t apart,
                         int number) {
    const uintptr_t places = (uintptr_t)out | (uintptr_t)parts;
    const size_t wide = count / 4;
    if (count % 4 == 0 && apart % 4 == 0 && places % 16 == 0)
        return LAUNCH_TEAMS(stream, (wide + WARP - 1) / WARP, BLOCK, fold<4>, out, parts, wide, apart,
                            (uint32_t)number);
    return LAUNCH_TEAMS(stream, (count + WARP - 1) / WARP, BLOCK, fold<1>, out, parts, count, apart,
                        (uint32_t)number);
}
