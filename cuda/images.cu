/* Kernels: pooling of [batch, rows, columns, channels]. Neighbouring threads have neighbouring channels,
 * 16 bytes of them each where there are so many. A window's elements are read again and again, but from the
 * caches: what counts is each element once, 4 bytes, or 2 of bf16. */
#include "../src/device/formulas.h"
#include "divide.h"
#include "kernels.h"
#include "launch.h"
#include "winners.h"

namespace {

/* --- pooling --- */

/* What each thread works on: V channels of a place of [batch, rows, columns]. */
struct grid {
    gpu_pool pool;
    uint32_t count; /* of threads */
    divisor packs, columns, rows, row_stride, column_stride;
};

template <int V> grid grid_over(const gpu_pool &pool, int rows, int columns) {
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
/* Elements of what the windows gave, and of what they were laid over. */
template <int V> grid grid_of_windows(const gpu_pool &pool) {
    return grid_over<V>(pool, pool.rows.out, pool.columns.out);
}
template <int V> grid grid_of_elements(const gpu_pool &pool) {
    return grid_over<V>(pool, pool.rows.in, pool.columns.in);
}
/* Cells of a stride each way, of which number i begins where window i does. */
static inline int cells_along(const gpu_window &window) {
    return (window.in - 1 + window.before) / window.stride + 1;
}
template <int V> grid grid_of_cells(const gpu_pool &pool) {
    return grid_over<V>(pool, cells_along(pool.rows), cells_along(pool.columns));
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
DEVICE uint32_t in_at(const gpu_pool &pool, const place &at, int row, int column) {
    const uint32_t image_row = at.image * (uint32_t)pool.rows.in + (uint32_t)row;
    return (image_row * (uint32_t)pool.columns.in + (uint32_t)column) * pool.channels + at.channel;
}
DEVICE uint32_t out_at(const gpu_pool &pool, const place &at, int row, int column) {
    const uint32_t image_row = at.image * (uint32_t)pool.rows.out + (uint32_t)row;
    return (image_row * (uint32_t)pool.columns.out + (uint32_t)column) * pool.channels + at.channel;
}

DEVICE int held_within(int i, int end) {
    return i < 0 ? 0 : i < end ? i : end - 1;
}
/* Where the compiler knows that the window is L by L, all of it is read at once; in the place of what is
 * beside the image its border, which is in the window, too, and so is no larger the second time. */
template <int L, class T, int V>
DEVICE auto find_largest_of(const gpu_pool &pool, const place &at, const T *x) {
    const int top = first_of(pool.rows, at.row), left = first_of(pool.columns, at.column);
    pack<T, V> elements[L * L];
    int here[L * L];
    UNROLL(9)
    for (int k = 0; k < L * L; k++) {
        const int row = held_within(top + k / L, pool.rows.in),
                  column = held_within(left + k % L, pool.columns.in);
        elements[k] = take<V>(x + in_at(pool, at, row, column));
        here[k] = (row - top) * L + column - left;
    }
    auto best = begin_small(elements[0], here[0]);
    UNROLL(9)
    for (int k = 1; k < L * L; k++) take_larger(&best, elements[k], here[k]);
    return best;
}

/* L: of a square window, or 0: any. */
template <int L, class T, int V> DEVICE auto find_largest(const gpu_pool &pool, const place &at, const T *x) {
    if constexpr (L > 0) {
        return find_largest_of<L, T, V>(pool, at, x);
    } else {
        const extent rows = part_of(pool.rows, at.row), columns = part_of(pool.columns, at.column);
        const int top = first_of(pool.rows, at.row), left = first_of(pool.columns, at.column);
        const pack<T, V> first = take<V>(x + in_at(pool, at, rows.begin, columns.begin));
        winners<V> best = begin_with(first, (rows.begin - top) * pool.columns.length + columns.begin - left);
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++)
                take_larger(&best, take<V>(x + in_at(pool, at, row, column)),
                            (row - top) * pool.columns.length + column - left);
        return best;
    }
}

template <int L, class T, int V> WIDE_KERNEL(4) maxpool(CONSTANT grid grid, const T *x, T *y) {
    EACH(i, grid.count) {
        const auto best = find_largest<L, T, V>(grid.pool, place_of<V>(grid, (uint32_t)i), x);
        give(y + i * V, values_of<T, V>(best));
    }
}

/* Which: a byte, where a window has no more elements than it can tell apart. */
template <class T, int V, class Which> WIDE_KERNEL(4) find_all(CONSTANT grid grid, const T *x, Which *which) {
    EACH(i, grid.count) {
        const auto best = find_largest<0, T, V>(grid.pool, place_of<V>(grid, (uint32_t)i), x);
        pack<Which, V> found;
        UNROLL(8)
        for (int v = 0; v < V; v++) found.at[v] = (Which)which_of(best, v);
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
                const uint32_t window = out_at(pool, at, row, column);
                const pack<Which, V> chosen = take<V>(which + window);
                const pack<T, V> slope = take<V>(dy + window);
                UNROLL(8)
                for (int v = 0; v < V; v++)
                    if ((int)chosen.at[v] == here) put(&sum.at[v], widen(sum.at[v]) + widen(slope.at[v]));
            }
        give(dx + i * V, sum);
    }
}

/* Windows L by L that are S apart, and cells S by S: a cell's elements may be in so many windows in each
 * direction. */
template <int L, int S> struct cell_of {
    enum { REACH = (L + S - 1) / S, ALL = REACH * REACH };
    /* Where element e of the cell is in window k, or a negative number: nowhere. */
    DEVICE int place(int e, int k) {
        const int down = e / S + (REACH - 1 - k / REACH) * S, across = e % S + (REACH - 1 - k % REACH) * S;
        return down < L && across < L ? down * L + across : -1;
    }
};

/* What is read of a window, and a number that makes all places none of it where it is not there. */
template <class T, int V> struct chosen {
    pack<uint8_t, V> which;
    pack<T, V> slope;
    int none;
};
template <int V> DEVICE void read_chosen(const uint8_t *which, const float *dy, chosen<float, V> *out) {
    out->which = take<V>(which);
    out->slope = take<V>(dy);
}
/* What element e of a cell gets. */
template <int L, int S, int V> DEVICE pack<float, V> given_back(const chosen<float, V> *windows, int e) {
    pack<float, V> sums = {};
    UNROLL(4)
    for (int k = 0; k < cell_of<L, S>::ALL; k++) {
        const int place = cell_of<L, S>::place(e, k);
        if (place < 0) continue;
        UNROLL(4)
        for (int v = 0; v < V; v++)
            if ((int)windows[k].which.at[v] == place + windows[k].none) sums.at[v] += windows[k].slope.at[v];
    }
    return sums;
}

/* Two channels at a time, of which each sum is rounded. */
template <int V> struct chosen<bf16, V> {
    pack<uint32_t, V / 4> which;
    pack<uint32_t, V / 2> slope;
    int none;
};
template <int V> DEVICE void read_chosen(const uint8_t *which, const bf16 *dy, chosen<bf16, V> *out) {
    out->which = take_words<V>(which);
    out->slope = take_words<V>(dy);
}
template <int L, int S, int V> DEVICE pack<bf16, V> given_back(const chosen<bf16, V> *windows, int e) {
    pack<uint32_t, V / 2> sums = {};
    int added = 0;
    UNROLL(4)
    for (int k = 0; k < cell_of<L, S>::ALL; k++) {
        const int place = cell_of<L, S>::place(e, k);
        if (place < 0) continue;
        const uint32_t here = (uint32_t)(place + windows[k].none) * 0x10001u;
        UNROLL(4)
        for (int p = 0; p < V / 2; p++) {
            const uint32_t which = bytes_apart(windows[k].which.at[p / 2], p % 2),
                           given = windows[k].slope.at[p] & halves_equal(which, here);
            sums.at[p] = added > 0 ? halves_sum(sums.at[p], given) : given;
        }
        added++;
    }
    pack<bf16, V> all;
    memcpy(&all, &sums, sizeof all);
    return all;
}

/* The same of such windows, in one launch: a block finds what the windows of its cells have selected, and of
 * the cells up to a row and a column before them, and keeps it for its threads, each of which then has a cell
 * and reads all of its windows at once. */
enum { CELLS_ROOM = 2048 };
struct cell_tiles {
    grid cells;
    uint32_t tile, halo; /* packs of V channels; together at most CELLS_ROOM, unless the halo is the larger */
};
template <int L, int S, int V> cell_tiles cell_tiles_of(const gpu_pool &pool) {
    cell_tiles tiles;
    tiles.cells = grid_of_cells<V>(pool);
    tiles.halo = (cell_of<L, S>::REACH - 1) * (tiles.cells.columns.by + 1) * tiles.cells.packs.by;
    tiles.tile = BLOCK;
    while (tiles.tile < 2 * tiles.halo && 2 * tiles.tile + tiles.halo <= CELLS_ROOM) tiles.tile *= 2;
    return tiles;
}

template <int L, int S, class T, int V>
WIDE_KERNEL(4)
give_back_cells(CONSTANT cell_tiles tiles, const T *x, const T *dy, T *dx) {
    enum { REACH = cell_of<L, S>::REACH, ALL = cell_of<L, S>::ALL };
    const grid &cells = tiles.cells;
    const gpu_pool &pool = cells.pool;
    TEAMS(number, (cells.count + tiles.tile - 1) / tiles.tile, BLOCK) {
        const uint32_t begin = (uint32_t)number * tiles.tile;
        typedef pack<uint8_t, V> selected;
        SHARED(selected, which, CELLS_ROOM);
        EVERY(t, BLOCK) for (uint32_t n = t; n < tiles.tile + tiles.halo; n += BLOCK) {
            const uint32_t i = begin + n - tiles.halo;
            if (begin + n < tiles.halo || i >= cells.count) continue;
            const place at = place_of<V>(cells, i);
            if (at.row >= pool.rows.out || at.column >= pool.columns.out) continue;
            const auto best = find_largest<L, T, V>(pool, at, x);
            UNROLL(8)
            for (int v = 0; v < V; v++) which[n].at[v] = (uint8_t)which_of(best, v);
        }
        EVERY(t, BLOCK) for (uint32_t n = t; n < tiles.tile && begin + n < cells.count; n += BLOCK) {
            const place at = place_of<V>(cells, begin + n);
            chosen<T, V> windows[ALL];
            UNROLL(4)
            for (int k = 0; k < ALL; k++) {
                const int up = REACH - 1 - k / REACH, left = REACH - 1 - k % REACH, row = at.row - up,
                          column = at.column - left;
                const bool there =
                    row >= 0 && row < pool.rows.out && column >= 0 && column < pool.columns.out;
                const uint32_t behind = ((uint32_t)up * cells.columns.by + (uint32_t)left) * cells.packs.by;
                read_chosen(which[n + tiles.halo - behind].at,
                            dy + (there ? out_at(pool, at, row, column) : at.channel), &windows[k]);
                windows[k].none = there ? 0 : 256;
            }
            UNROLL(4)
            for (int e = 0; e < S * S; e++) {
                const int row = at.row * S - pool.rows.before + e / S,
                          column = at.column * S - pool.columns.before + e % S;
                if (row >= 0 && row < pool.rows.in && column >= 0 && column < pool.columns.in)
                    give(dx + in_at(pool, at, row, column), given_back<L, S>(windows, e));
            }
        }
    }
}

/* Where every element is in one window: that one's gradient, or 0; what is read is read once. */
template <int L, class T, int V>
WIDE_KERNEL(3)
give_back_apart(CONSTANT grid grid, const T *x, const T *dy, T *dx) {
    EACH(i, grid.count) {
        const gpu_pool &pool = grid.pool;
        const place at = place_of<V>(grid, (uint32_t)i);
        const pack<T, V> slope = take<V>(dy + i * V);
        const auto best = find_largest<L, T, V>(pool, at, x);
        const extent rows = part_of(pool.rows, at.row), columns = part_of(pool.columns, at.column);
        const int top = first_of(pool.rows, at.row), left = first_of(pool.columns, at.column);
        for (int row = rows.begin; row < rows.end; row++)
            for (int column = columns.begin; column < columns.end; column++) {
                const int here = (row - top) * pool.columns.length + column - left;
                pack<T, V> gradient;
                UNROLL(8)
                for (int v = 0; v < V; v++)
                    put(&gradient.at[v], which_of(best, v) == here ? 0.0f + widen(slope.at[v]) : 0.0f);
                give(dx + in_at(pool, at, row, column), gradient);
            }
    }
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

/* --- launches: in packs of 16 bytes, or one by one --- */

/* The length of square windows of which there are kernels of their own, or 0. */
static inline int length_of(const gpu_pool &pool) {
    const int length = pool.rows.length;
    return length == pool.columns.length && (length == 2 || length == 3) ? length : 0;
}

template <int L, class T, int V>
cudaError_t maxpool_of(cudaStream_t stream, const gpu_pool &pool, const T *x, T *y) {
    const grid grid = grid_of_windows<V>(pool);
    return LAUNCH(stream, grid.count, (maxpool<L, T, V>), grid, x, y);
}
template <class T>
cudaError_t maxpool_to(cudaStream_t stream, const gpu_pool &pool, const void *x_, void *y_) {
    constexpr int wide = full<T>();
    const T *x = (const T *)x_;
    T *y = (T *)y_;
    if (!packs<T>(pool.channels, x, y, NULL)) return maxpool_of<0, T, 1>(stream, pool, x, y);
    switch (length_of(pool)) {
    case 2:
        return maxpool_of<2, T, wide>(stream, pool, x, y);
    case 3:
        return maxpool_of<3, T, wide>(stream, pool, x, y);
    default:
        return maxpool_of<0, T, wide>(stream, pool, x, y);
    }
}

template <int L, class T, int V>
cudaError_t maxpool_grad_apart(cudaStream_t stream, const gpu_pool &pool, const T *x, const T *dy, T *dx) {
    const grid windows = grid_of_windows<V>(pool);
    return LAUNCH(stream, windows.count, (give_back_apart<L, T, V>), windows, x, dy, dx);
}
template <class T, int V, class Which>
cudaError_t maxpool_grad(cudaStream_t stream, const gpu_pool &pool, const T *x, const T *dy, T *dx,
                         Which *which) {
    const grid windows = grid_of_windows<V>(pool), elements = grid_of_elements<V>(pool);
    const cudaError_t code = LAUNCH(stream, windows.count, (find_all<T, V, Which>), windows, x, which);
    if (code != cudaSuccess) return code;
    return LAUNCH(stream, elements.count, (give_back<T, V, Which>), elements, (const Which *)which, dy, dx);
}
template <class T>
cudaError_t maxpool_back(cudaStream_t stream, const gpu_pool &pool, const void *x_, const void *dy_,
                         void *dx_, void *which) {
    constexpr int wide = full<T>();
    const T *x = (const T *)x_, *dy = (const T *)dy_;
    T *dx = (T *)dx_;
    const bool in_packs = packs<T>(pool.channels, x, dy, dx);
    if (gpu_pool_tiles(&pool) && in_packs)
        return length_of(pool) == 2 ? maxpool_grad_apart<2, T, wide>(stream, pool, x, dy, dx)
                                    : maxpool_grad_apart<0, T, wide>(stream, pool, x, dy, dx);
    if (gpu_pool_tiles(&pool)) return maxpool_grad_apart<0, T, 1>(stream, pool, x, dy, dx);
    if (gpu_pool_which_bytes(&pool) > 1) return maxpool_grad<T, 1>(stream, pool, x, dy, dx, (int *)which);
    if (!in_packs) return maxpool_grad<T, 1>(stream, pool, x, dy, dx, (uint8_t *)which);
    if (length_of(pool) == 3 && pool.rows.stride == 2 && pool.columns.stride == 2) {
        const cell_tiles tiles = cell_tiles_of<3, 2, wide>(pool);
        if (tiles.halo <= tiles.tile)
            return LAUNCH_TEAMS(stream, (tiles.cells.count + tiles.tile - 1) / tiles.tile, BLOCK,
                                (give_back_cells<3, 2, T, wide>), tiles, x, dy, dx);
    }
    return maxpool_grad<T, wide>(stream, pool, x, dy, dx, (uint8_t *)which);
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
        const grid grid = grid_of_windows<full<float>()>(*pool);
        return LAUNCH(stream, grid.count, avgpool<full<float>()>, grid, x, y);
    }
    const grid grid = grid_of_windows<1>(*pool);
    return LAUNCH(stream, grid.count, avgpool<1>, grid, x, y);
}

cudaError_t launch_avgpool_grad(cudaStream_t stream, const struct gpu_pool *pool, const float *dy,
                                float *dx) {
    if (packs<float>(pool->channels, dy, dx, NULL)) {
        const grid grid = grid_of_elements<full<float>()>(*pool);
        return LAUNCH(stream, grid.count, avgpool_grad<full<float>()>, grid, dy, dx);
    }
    const grid grid = grid_of_elements<1>(*pool);
    return LAUNCH(stream, grid.count, avgpool_grad<1>, grid, dy, dx);
}
