/* Kernels: pooling and local response normalisation of [..., channels]. Neighbouring threads have
 * neighbouring channels, 16 bytes of them each where there are so many. A window's elements are read again
 * and again, but from the caches: what counts is each element once, 4 bytes, or 2 of bf16. */
#include "../src/device/formulas.h"
#include "divide.h"
#include "kernels.h"
#include "launch.h"
#include "narrow.h"

namespace {

/* --- pooling --- */

/* What each thread works on: V channels of an element of [batch, rows, columns, channels]. */
struct grid {
    gpu_pool pool;
    uint32_t count; /* of threads */
    divisor packs, columns, rows, row_stride, column_stride;
};

/* windows: elements of what the windows gave; else of what they were laid over. */
template <int V> grid grid_of(const gpu_pool &pool, bool windows) {
    const int rows = windows ? pool.rows.out : pool.rows.in;
    const int columns = windows ? pool.columns.out : pool.columns.in;
    grid grid;
    grid.pool = pool;
    grid.count = pool.batch * (uint32_t)rows * (uint32_t)columns * (pool.channels / V);
    grid.packs = divisor_of(pool.channels / V);
    grid.columns = divisor_of((uint32_t)columns);
    grid.rows = divisor_of((uint32_t)rows);
    grid.row_stride = divisor_of((uint32_t)pool.rows.stride);
    grid.column_stride = divisor_of((uint32_t)pool.columns.stride);
    return grid;
}

struct place {
    uint32_t image, channel;
    int row, column;
};
template <int V> DEVICE place place_of(const grid &grid, uint32_t i) {
    place place;
    uint32_t column = over(i, grid.packs);
    place.channel = (i - column * grid.packs.by) * V;
    uint32_t row = over_and_rest(&column, grid.columns);
    place.image = over_and_rest(&row, grid.rows);
    place.column = (int)column;
    place.row = (int)row;
    return place;
}

struct extent {
    int begin, end;
};
DEVICE int first_of(const gpu_window &window, int i) {
    return i * window.stride - window.before;
}
/* The elements of window i that are there, always one or more. */
DEVICE extent part_of(const gpu_window &window, int i) {
    const int first = first_of(window, i), last = first + window.length;
    const extent extent = {first < 0 ? 0 : first, last > window.in ? window.in : last};
    return extent;
}
/* The windows that element i is in, maybe none. */
DEVICE extent windows_of(const gpu_window &window, const divisor &stride, int i) {
    const int behind = i + window.before - window.length; /* the last element that window 0 must not have */
    const int last = (int)over((uint32_t)(i + window.before), stride);
    const extent extent = {behind < 0 ? 0 : (int)over((uint32_t)behind, stride) + 1,
                           last < window.out ? last + 1 : window.out};
    return extent;
}

/* Where V channels of an element are. */
DEVICE size_t in_at(const gpu_pool &pool, const place &at, int row, int column) {
    const size_t image_row = (size_t)at.image * (size_t)pool.rows.in + (size_t)row;
    return (image_row * (size_t)pool.columns.in + (size_t)column) * pool.channels + at.channel;
}
DEVICE size_t out_at(const gpu_pool &pool, const place &at, int row, int column) {
    const size_t image_row = (size_t)at.image * (size_t)pool.rows.out + (size_t)row;
    return (image_row * (size_t)pool.columns.out + (size_t)column) * pool.channels + at.channel;
}

/* The first largest of a window in each of V channels: its value, and where in the window it is, counted row
 * by row in the whole window, also in what of it is beside the image. */
template <int V> struct winners {
    float value[V];
    int which[V];
};
template <class T, int V> DEVICE winners<V> find_largest(const gpu_pool &pool, const place &at, const T *x) {
    const extent rows = part_of(pool.rows, at.row), columns = part_of(pool.columns, at.column);
    const int top = first_of(pool.rows, at.row), left = first_of(pool.columns, at.column);
    const pack<T, V> first = take<V>(x + in_at(pool, at, rows.begin, columns.begin));
    winners<V> best;
    UNROLL(8)
    for (int v = 0; v < V; v++) {
        best.which[v] = (rows.begin - top) * pool.columns.length + columns.begin - left;
        best.value[v] = widen(first.at[v]);
    }
    for (int row = rows.begin; row < rows.end; row++)
        for (int column = columns.begin; column < columns.end; column++) {
            const pack<T, V> elements = take<V>(x + in_at(pool, at, row, column));
            const int here = (row - top) * pool.columns.length + column - left;
            UNROLL(8)
            for (int v = 0; v < V; v++) {
                const float one = widen(elements.at[v]);
                best.which[v] = one > best.value[v] ? here : best.which[v];
                best.value[v] = formula_largest(best.value[v], one);
            }
        }
    return best;
}

template <class T, int V> KERNEL maxpool(CONSTANT grid grid, const T *x, T *y) {
    EACH(i, grid.count) {
        const winners<V> best = find_largest<T, V>(grid.pool, place_of<V>(grid, (uint32_t)i), x);
        pack<T, V> values;
        UNROLL(8)
        for (int v = 0; v < V; v++) put(&values.at[v], best.value[v]);
        give(y + i * V, values);
    }
}

/* Which: a byte, where a window has no more elements than it can tell apart. */
template <class T, int V, class Which> KERNEL find_all(CONSTANT grid grid, const T *x, Which *which) {
    EACH(i, grid.count) {
        const winners<V> best = find_largest<T, V>(grid.pool, place_of<V>(grid, (uint32_t)i), x);
        pack<Which, V> found;
        UNROLL(8)
        for (int v = 0; v < V; v++) found.at[v] = (Which)best.which[v];
        give(which + i * V, found);
    }
}

/* V elements of dx: the sum of what the windows that selected each pass on, in their order, rounded after
 * each as where dx itself is added to. */
template <class T, int V, class Which>
KERNEL give_back(CONSTANT grid grid, const Which *which, const T *dy, T *dx) {
    EACH(i, grid.count) {
        const gpu_pool &pool = grid.pool;
        const place at = place_of<V>(grid, (uint32_t)i);
        const extent rows = windows_of(pool.rows, grid.row_stride, at.row),
                     columns = windows_of(pool.columns, grid.column_stride, at.column);
        pack<T, V> sum;
        UNROLL(8)
        for (int v = 0; v < V; v++) put(&sum.at[v], 0.0f);
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                const int here = (at.row - first_of(pool.rows, row)) * pool.columns.length + at.column -
                                 first_of(pool.columns, column);
                const size_t window = out_at(pool, at, row, column);
                const pack<Which, V> chosen = take<V>(which + window);
                const pack<T, V> slope = take<V>(dy + window);
                UNROLL(8)
                for (int v = 0; v < V; v++)
                    if ((int)chosen.at[v] == here) put(&sum.at[v], widen(sum.at[v]) + widen(slope.at[v]));
            }
        give(dx + i * V, sum);
    }
}

/* Where every element is in one window: that one's gradient, or 0; what is read is read once. */
template <class T, int V> KERNEL give_back_apart(CONSTANT grid grid, const T *x, const T *dy, T *dx) {
    EACH(i, grid.count) {
        const gpu_pool &pool = grid.pool;
        const place at = place_of<V>(grid, (uint32_t)i);
        const winners<V> best = find_largest<T, V>(pool, at, x);
        const extent rows = part_of(pool.rows, at.row), columns = part_of(pool.columns, at.column);
        const int top = first_of(pool.rows, at.row), left = first_of(pool.columns, at.column);
        const pack<T, V> slope = take<V>(dy + i * V);
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                const int here = (row - top) * pool.columns.length + column - left;
                pack<T, V> gradient;
                UNROLL(8)
                for (int v = 0; v < V; v++)
                    put(&gradient.at[v], best.which[v] == here ? 0.0f + widen(slope.at[v]) : 0.0f);
                give(dx + in_at(pool, at, row, column), gradient);
            }
    }
}

template <class T, int V>
cudaError_t maxpool_grad_apart(cudaStream_t stream, const gpu_pool &pool, const T *x, const T *dy, T *dx) {
    const grid windows = grid_of<V>(pool, true);
    return LAUNCH(stream, windows.count, (give_back_apart<T, V>), windows, x, dy, dx);
}

template <class T, int V, class Which>
cudaError_t maxpool_grad(cudaStream_t stream, const gpu_pool &pool, const T *x, const T *dy, T *dx,
                         Which *which) {
    const grid windows = grid_of<V>(pool, true), elements = grid_of<V>(pool, false);
    const cudaError_t code = LAUNCH(stream, windows.count, (find_all<T, V, Which>), windows, x, which);
    if (code != cudaSuccess) return code;
    return LAUNCH(stream, elements.count, (give_back<T, V, Which>), elements, (const Which *)which, dy, dx);
}

/* The mean of what is there of a window: its sum, in the order of its rows, times this. */
DEVICE float inverse_count(const gpu_pool &pool, int row, int column) {
    const extent rows = part_of(pool.rows, row), columns = part_of(pool.columns, column);
    return 1.0f / (float)((rows.end - rows.begin) * (columns.end - columns.begin));
}

template <int V> KERNEL avgpool(CONSTANT grid grid, const float *x, float *y) {
    EACH(i, grid.count) {
        const gpu_pool &pool = grid.pool;
        const place at = place_of<V>(grid, (uint32_t)i);
        const extent rows = part_of(pool.rows, at.row), columns = part_of(pool.columns, at.column);
        const float inverse = inverse_count(pool, at.row, at.column);
        pack<float, V> sum = {};
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                const pack<float, V> elements = take<V>(x + in_at(pool, at, row, column));
                UNROLL(4)
                for (int v = 0; v < V; v++) sum.at[v] += elements.at[v];
            }
        UNROLL(4)
        for (int v = 0; v < V; v++) sum.at[v] *= inverse;
        give(y + i * V, sum);
    }
}

/* V elements of dx: what the windows that they are in pass on, in their order. */
template <int V> KERNEL avgpool_grad(CONSTANT grid grid, const float *dy, float *dx) {
    EACH(i, grid.count) {
        const gpu_pool &pool = grid.pool;
        const place at = place_of<V>(grid, (uint32_t)i);
        const extent rows = windows_of(pool.rows, grid.row_stride, at.row),
                     columns = windows_of(pool.columns, grid.column_stride, at.column);
        pack<float, V> sum = {};
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                const float inverse = inverse_count(pool, row, column);
                const pack<float, V> slope = take<V>(dy + out_at(pool, at, row, column));
                UNROLL(4)
                for (int v = 0; v < V; v++) sum.at[v] += inverse * slope.at[v];
            }
        give(dx + i * V, sum);
    }
}

/* --- local response normalisation ---
 *
 * A block works on a tile of neighbouring elements, whose squares it keeps for all of its threads, and those
 * of a halo on either side of it that the tile's first and last elements have as neighbours. Each thread has
 * V elements, of one row of channels. */

enum { LRN_ROOM = 2048, LRN_SLOTS = LRN_ROOM + LRN_ROOM / 8 };

struct tiles {
    gpu_lrn lrn;
    uint32_t tile, halo; /* elements; tile + 2 halo is LRN_ROOM, and all of them are multiples of V */
    divisor channels;
};
/* reach: how far an element's neighbours' neighbours are, in radii. */
template <int V> tiles tiles_of(const gpu_lrn &lrn, uint32_t reach) {
    tiles tiles;
    tiles.lrn = lrn;
    tiles.halo = ((uint32_t)lrn.radius + V - 1) / V * V * reach;
    tiles.tile = LRN_ROOM - 2 * tiles.halo;
    tiles.channels = divisor_of(lrn.channels);
    return tiles;
}

/* Where element e of what a block looks at is kept: one in eight is left out, so that threads whose elements
 * are eight apart do not wait for the same bank. */
DEVICE uint32_t slot(uint32_t e) {
    return e + e / 8;
}

/* Of each of V elements the sum of what is kept of its neighbours, itself included, from the lowest channel
 * on; e: of the first one, whose channel is c. */
template <int V> DEVICE pack<float, V> sums_around(const tiles &tiles, const float *kept, uint32_t e, int c) {
    const int radius = tiles.lrn.radius;
    pack<float, V> sum = {};
    for (int m = -radius; m < V + radius; m++) {
        const bool there = c + m >= 0 && c + m < (int)tiles.lrn.channels;
        const float value = there ? kept[slot((uint32_t)((int)e + m))] : 0.0f;
        UNROLL(8)
        for (int v = 0; v < V; v++)
            if (m - radius <= v && v <= m + radius) sum.at[v] += value;
    }
    return sum;
}

/* s^-beta and s^(-beta - 1) of V elements. */
template <int V> struct many_powers { formula_powers of[V]; };
template <int V> DEVICE many_powers<V> powers_of(const gpu_lrn &lrn, const pack<float, V> &squares) {
    many_powers<V> powers;
    if (lrn.beta == 0.75f) {
        UNROLL(8)
        for (int v = 0; v < V; v++) powers.of[v] = formula_lrn_quarters(lrn.bias + lrn.alpha * squares.at[v]);
    } else {
        UNROLL(8)
        for (int v = 0; v < V; v++)
            powers.of[v] = formula_lrn_powers(lrn.bias + lrn.alpha * squares.at[v], lrn.beta);
    }
    return powers;
}

/* The elements that thread t looks at, V from `e` on: from `first` to before `end` of those of its block. */
#define EACH_OF_TILE(e, t, V, first, end) for (uint32_t e = (first) + (t) * (V); e < (end); e += BLOCK * (V))

/* Keeps the squares of all that a block looks at; what is before the first element of x or behind its last
 * one is nobody's neighbour. begin: of element 0, may be below 0. */
template <int V, class T>
DEVICE void keep_squares(const tiles &tiles, const T *x, int64_t begin, uint32_t t, float *squares) {
    EACH_OF_TILE(e, t, V, 0, LRN_ROOM) {
        const int64_t i = begin + e;
        if (i < 0 || i >= (int64_t)tiles.lrn.count) continue;
        const pack<T, V> elements = take<V>(x + i);
        UNROLL(8)
        for (int v = 0; v < V; v++)
            squares[slot(e + (uint32_t)v)] = widen(elements.at[v]) * widen(elements.at[v]);
    }
}

/* The channel of element i. */
DEVICE int channel_of(const tiles &tiles, int64_t i) {
    uint32_t c = (uint32_t)i;
    over_and_rest(&c, tiles.channels);
    return (int)c;
}

template <class T, int V> KERNEL lrn(CONSTANT tiles tiles, const T *x, T *y) {
    TEAMS(number, (tiles.lrn.count + tiles.tile - 1) / tiles.tile, BLOCK) {
        const int64_t begin = (int64_t)number * tiles.tile - tiles.halo;
        SHARED(float, squares, LRN_SLOTS);
        EVERY(t, BLOCK) keep_squares<V>(tiles, x, begin, t, squares);
        EVERY(t, BLOCK) EACH_OF_TILE(e, t, V, tiles.halo, tiles.halo + tiles.tile) {
            const int64_t i = begin + e;
            if (i >= (int64_t)tiles.lrn.count) continue;
            const many_powers<V> powers =
                powers_of(tiles.lrn, sums_around<V>(tiles, squares, e, channel_of(tiles, i)));
            pack<T, V> elements = take<V>(x + i);
            UNROLL(8)
            for (int v = 0; v < V; v++) put(&elements.at[v], widen(elements.at[v]) * powers.of[v].power);
            give(y + i, elements);
        }
    }
}

/* In the second turn every element gets its power, and its share of the neighbours' gradients. */
template <class T, int V> KERNEL lrn_grad(CONSTANT tiles tiles, const T *x, const T *dy, T *dx) {
    const float factor = 2.0f * tiles.lrn.alpha * tiles.lrn.beta,
                least = tiles.lrn.positive ? 0.0f : -INFINITY;
    TEAMS(number, (tiles.lrn.count + tiles.tile - 1) / tiles.tile, BLOCK) {
        const int64_t begin = (int64_t)number * tiles.tile - tiles.halo;
        const uint32_t half = tiles.halo / 2;
        SHARED(float, squares, LRN_SLOTS);
        SHARED(float, power, LRN_SLOTS);
        SHARED(float, shares, LRN_SLOTS);
        EVERY(t, BLOCK) keep_squares<V>(tiles, x, begin, t, squares);
        EVERY(t, BLOCK) EACH_OF_TILE(e, t, V, half, LRN_ROOM - half) {
            const int64_t i = begin + e;
            if (i < 0 || i >= (int64_t)tiles.lrn.count) continue;
            const many_powers<V> powers =
                powers_of(tiles.lrn, sums_around<V>(tiles, squares, e, channel_of(tiles, i)));
            const pack<T, V> elements = take<V>(x + i), slopes = take<V>(dy + i);
            UNROLL(8)
            for (int v = 0; v < V; v++) {
                const uint32_t to = slot(e + (uint32_t)v);
                power[to] = powers.of[v].power;
                shares[to] =
                    formula_lrn_share(widen(elements.at[v]), widen(slopes.at[v]), powers.of[v].steeper);
            }
        }
        EVERY(t, BLOCK) EACH_OF_TILE(e, t, V, tiles.halo, tiles.halo + tiles.tile) {
            const int64_t i = begin + e;
            if (i >= (int64_t)tiles.lrn.count) continue;
            const pack<float, V> sums = sums_around<V>(tiles, shares, e, channel_of(tiles, i));
            const pack<T, V> elements = take<V>(x + i), slopes = take<V>(dy + i);
            pack<T, V> out;
            UNROLL(8)
            for (int v = 0; v < V; v++) {
                const float value = widen(elements.at[v]);
                const float back = formula_lrn_grad(value, widen(slopes.at[v]), power[slot(e + (uint32_t)v)],
                                                    factor, sums.at[v]);
                put(&out.at[v], value <= least ? 0.0f : back);
            }
            give(dx + i, out);
        }
    }
}

/* --- launches: in packs of 16 bytes, or one by one --- */

template <class T, int V>
cudaError_t maxpool_of(cudaStream_t stream, const gpu_pool &pool, const T *x, T *y) {
    const grid grid = grid_of<V>(pool, true);
    return LAUNCH(stream, grid.count, (maxpool<T, V>), grid, x, y);
}
template <class T> cudaError_t maxpool_to(cudaStream_t stream, const gpu_pool &pool, const void *x, void *y) {
    if (packs<T>(pool.channels, x, y, NULL))
        return maxpool_of<T, full<T>()>(stream, pool, (const T *)x, (T *)y);
    return maxpool_of<T, 1>(stream, pool, (const T *)x, (T *)y);
}

template <class T>
cudaError_t maxpool_back(cudaStream_t stream, const gpu_pool &pool, const void *x_, const void *dy_,
                         void *dx_, void *which) {
    const T *x = (const T *)x_, *dy = (const T *)dy_;
    T *dx = (T *)dx_;
    if (gpu_pool_tiles(&pool) && packs<T>(pool.channels, x, dy, dx))
        return maxpool_grad_apart<T, full<T>()>(stream, pool, x, dy, dx);
    if (gpu_pool_tiles(&pool)) return maxpool_grad_apart<T, 1>(stream, pool, x, dy, dx);
    if (gpu_pool_which_bytes(&pool) > 1) return maxpool_grad<T, 1>(stream, pool, x, dy, dx, (int *)which);
    if (packs<T>(pool.channels, x, dy, dx))
        return maxpool_grad<T, full<T>()>(stream, pool, x, dy, dx, (uint8_t *)which);
    return maxpool_grad<T, 1>(stream, pool, x, dy, dx, (uint8_t *)which);
}

template <class T, int V> cudaError_t lrn_of(cudaStream_t stream, const gpu_lrn &settings, const T *x, T *y) {
    const tiles tiles = tiles_of<V>(settings, 1);
    const size_t count = ((size_t)settings.count + tiles.tile - 1) / tiles.tile;
    return LAUNCH_TEAMS(stream, count, BLOCK, (lrn<T, V>), tiles, x, y);
}
template <class T> cudaError_t lrn_to(cudaStream_t stream, const gpu_lrn &settings, const void *x, void *y) {
    if (packs<T>(settings.channels, x, y, NULL))
        return lrn_of<T, full<T>()>(stream, settings, (const T *)x, (T *)y);
    return lrn_of<T, 1>(stream, settings, (const T *)x, (T *)y);
}

template <class T, int V>
cudaError_t lrn_grad_of(cudaStream_t stream, const gpu_lrn &settings, const T *x, const T *dy, T *dx) {
    const tiles tiles = tiles_of<V>(settings, 2);
    const size_t count = ((size_t)settings.count + tiles.tile - 1) / tiles.tile;
    return LAUNCH_TEAMS(stream, count, BLOCK, (lrn_grad<T, V>), tiles, x, dy, dx);
}
template <class T>
cudaError_t lrn_back(cudaStream_t stream, const gpu_lrn &settings, const void *x, const void *dy, void *dx) {
    if (packs<T>(settings.channels, x, dy, dx))
        return lrn_grad_of<T, full<T>()>(stream, settings, (const T *)x, (const T *)dy, (T *)dx);
    return lrn_grad_of<T, 1>(stream, settings, (const T *)x, (const T *)dy, (T *)dx);
}

} // namespace

cudaError_t launch_maxpool(cudaStream_t stream, const struct gpu_pool *pool, int narrow, const void *x,
                           void *y) {
    return narrow ? maxpool_to<bf16>(stream, *pool, x, y) : maxpool_to<float>(stream, *pool, x, y);
}

cudaError_t launch_maxpool_grad(cudaStream_t stream, const struct gpu_pool *pool, int narrow, const void *x,
                                const void *dy, void *dx, void *which) {
    return narrow ? maxpool_back<bf16>(stream, *pool, x, dy, dx, which)
                  : maxpool_back<float>(stream, *pool, x, dy, dx, which);
}

cudaError_t launch_avgpool(cudaStream_t stream, const struct gpu_pool *pool, const float *x, float *y) {
    if (packs<float>(pool->channels, x, y, NULL)) {
        const grid grid = grid_of<full<float>()>(*pool, true);
        return LAUNCH(stream, grid.count, avgpool<full<float>()>, grid, x, y);
    }
    const grid grid = grid_of<1>(*pool, true);
    return LAUNCH(stream, grid.count, avgpool<1>, grid, x, y);
}

cudaError_t launch_avgpool_grad(cudaStream_t stream, const struct gpu_pool *pool, const float *dy,
                                float *dx) {
    if (packs<float>(pool->channels, dy, dx, NULL)) {
        const grid grid = grid_of<full<float>()>(*pool, false);
        return LAUNCH(stream, grid.count, avgpool_grad<full<float>()>, grid, dy, dx);
    }
    const grid grid = grid_of<1>(*pool, false);
    return LAUNCH(stream, grid.count, avgpool_grad<1>, grid, dy, dx);
}

cudaError_t launch_lrn(cudaStream_t stream, const struct gpu_lrn *settings, int narrow, const void *x,
                       void *y) {
    return narrow ? lrn_to<bf16>(stream, *settings, x, y) : lrn_to<float>(stream, *settings, x, y);
}

cudaError_t launch_lrn_grad(cudaStream_t stream, const struct gpu_lrn *settings, int narrow, const void *x,
                            const void *dy, void *dx) {
    return narrow ? lrn_back<bf16>(stream, *settings, x, dy, dx)
                  : lrn_back<float>(stream, *settings, x, dy, dx);
}
