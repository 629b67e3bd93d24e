/* Kernels: local response normalisation of [..., channels]. Neighbouring threads have neighbouring channels,
 * 16 bytes of them each where there are so many. An element of 4 bytes, or 2 of bf16, is read once from
 * memory, its neighbours from caches. */
#include "../src/device/formulas.h"
#include "divide.h"
#include "kernels.h"
#include "launch.h"
#include "narrow.h"

namespace {

/* s^-beta and s^(-beta - 1) of V elements. */
template <int V> struct many_powers { formula_powers of[V]; };

/* --- rows of which a block has many as a whole ---
 *
 * Each thread has V neighbours, and finds all that they need in the V before them and the V behind: they are
 * read as they are, so that all loads of a thread are in flight at once, and only the gradient's shares go
 * through shared memory. beta is 3/4. */

struct whole_rows {
    gpu_lrn lrn;
    uint32_t count, tile; /* of V elements: in all; of a block, whole rows */
    divisor row;          /* so many in a row */
};
template <int V> whole_rows whole_rows_of(const gpu_lrn &lrn) {
    whole_rows rows;
    rows.lrn = lrn;
    rows.count = lrn.count / V;
    rows.row = divisor_of(lrn.channels / V);
    rows.tile = BLOCK / rows.row.by * rows.row.by;
    return rows;
}
template <class T> bool has_whole_rows(const gpu_lrn &lrn, const void *a, const void *b, const void *c) {
    return packs<T>(lrn.channels, a, b, c) && lrn.radius <= full<T>() && lrn.channels <= BLOCK * full<T>() &&
           lrn.beta == 0.75f;
}

/* V elements, those before them and those behind them, which are 0 beyond the row. */
template <int V> struct nearby { float of[3 * V]; };
/* Of each of V elements the sum of its neighbours, from the lowest channel on. */
template <int V> DEVICE pack<float, V> sums_of(const nearby<V> &near, int radius) {
    pack<float, V> sum = {};
    UNROLL(17)
    for (int m = -V; m <= V; m++)
        if (m >= -radius && m <= radius) {
            UNROLL(8)
            for (int v = 0; v < V; v++) sum.at[v] += near.of[V + v + m];
        }
    return sum;
}

/* sqrtf(x) and 1 / x of numbers from 2^-60 to 2^60, to the same bits: what nvcc makes of these, but for the
 * question whether x is an extreme, which has a branch for each. */
DEVICE float plain_root(float x) {
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    const float root = x * inverse;
    return fmaf(fmaf(-root, root, x), 0.5f * inverse, root);
#else
    return sqrtf(x);
#endif
}
DEVICE float plain_inverse(float x) {
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(x));
    return fmaf(inverse, -fmaf(inverse, x, -1.0f), inverse);
#else
    return 1.0f / x;
#endif
}
template <int V> DEVICE many_powers<V> quarters_of(const gpu_lrn &lrn, const pack<float, V> &squares) {
    const float least = 1.0f / (1ull << 60), most = 1ull << 60;
    many_powers<V> powers;
    pack<float, V> s;
    bool plain = true;
    UNROLL(8)
    for (int v = 0; v < V; v++) {
        s.at[v] = lrn.bias + lrn.alpha * squares.at[v];
        plain = plain && s.at[v] >= least && s.at[v] <= most;
    }
    if (plain) {
        UNROLL(8)
        for (int v = 0; v < V; v++)
            powers.of[v] = formula_lrn_of_root(plain_inverse(plain_root(plain_root(s.at[v]))));
    } else {
        UNROLL(8)
        for (int v = 0; v < V; v++) powers.of[v] = formula_lrn_quarters(s.at[v]);
    }
    return powers;
}

/* The powers of V elements, which are number i of all; *own: these elements. */
template <class T, int V>
DEVICE many_powers<V> powers_near(const whole_rows &rows, const T *x, uint32_t i, pack<T, V> *own) {
    uint32_t place = i;
    over_and_rest(&place, rows.row);
    const bool first = place == 0, last = place + 1 == rows.row.by;
    const pack<T, V> before = take<V>(x + (size_t)(first ? i : i - 1) * V),
                     behind = take<V>(x + (size_t)(last ? i : i + 1) * V);
    *own = take<V>(x + (size_t)i * V);
    nearby<V> squares;
    UNROLL(8)
    for (int v = 0; v < V; v++) {
        const float a = widen(before.at[v]), b = widen(own->at[v]), c = widen(behind.at[v]);
        squares.of[v] = first ? 0.0f : a * a;
        squares.of[V + v] = b * b;
        squares.of[2 * V + v] = last ? 0.0f : c * c;
    }
    return quarters_of(rows.lrn, sums_of(squares, rows.lrn.radius));
}

template <class T, int V> WIDE_KERNEL(4) lrn_whole(CONSTANT whole_rows rows, const T *x, T *y) {
    EACH(i, rows.count) {
        pack<T, V> elements;
        const many_powers<V> powers = powers_near<T, V>(rows, x, (uint32_t)i, &elements);
        UNROLL(8)
        for (int v = 0; v < V; v++) put(&elements.at[v], widen(elements.at[v]) * powers.of[v].power);
        give(y + i * V, elements);
    }
}

/* Shares of a block's threads, 16 bytes of each beside those of its neighbours. */
typedef pack<float, 4> quarter;
template <int V> DEVICE void keep_shares(quarter *kept, uint32_t t, const pack<float, V> &shares) {
    UNROLL(2)
    for (int q = 0; q < V / 4; q++) {
        quarter some;
        UNROLL(4)
        for (int v = 0; v < 4; v++) some.at[v] = shares.at[4 * q + v];
        kept[q * BLOCK + (int)t] = some;
    }
}
template <int V> DEVICE pack<float, V> kept_shares(const quarter *kept, uint32_t t, bool there) {
    pack<float, V> shares;
    UNROLL(2)
    for (int q = 0; q < V / 4; q++) {
        const quarter some = kept[q * BLOCK + (int)t];
        UNROLL(4)
        for (int v = 0; v < 4; v++) shares.at[4 * q + v] = there ? some.at[v] : 0.0f;
    }
    return shares;
}

/* What a thread keeps from the first turn for the second. */
template <class T, int V> struct lrn_thread {
    pack<T, V> x, dy;
    pack<float, V> power, shares;
};

template <class T, int V>
WIDE_KERNEL(4)
lrn_grad_whole(CONSTANT whole_rows rows, const T *x, const T *dy, T *dx) {
    const float factor = 2.0f * rows.lrn.alpha * rows.lrn.beta, least = rows.lrn.positive ? 0.0f : -INFINITY;
    TEAMS(number, (rows.count + rows.tile - 1) / rows.tile, BLOCK) {
        const uint32_t begin = (uint32_t)number * rows.tile,
                       end = rows.count - begin < rows.tile ? rows.count : begin + rows.tile;
        SHARED(quarter, kept, BLOCK * V / 4);
        each<lrn_thread<T, V>, BLOCK> own;
        EVERY(t, BLOCK) if (begin + t < end) {
            lrn_thread<T, V> &has = own[t];
            has.dy = take<V>(dy + (size_t)(begin + t) * V);
            const many_powers<V> powers = powers_near<T, V>(rows, x, begin + t, &has.x);
            UNROLL(8)
            for (int v = 0; v < V; v++) {
                has.power.at[v] = powers.of[v].power;
                has.shares.at[v] =
                    formula_lrn_share(widen(has.x.at[v]), widen(has.dy.at[v]), powers.of[v].steeper);
            }
            keep_shares<V>(kept, t, has.shares);
        }
        EVERY(t, BLOCK) if (begin + t < end) {
            const lrn_thread<T, V> &has = own[t];
            uint32_t place = begin + t;
            over_and_rest(&place, rows.row);
            const bool first = place == 0, last = place + 1 == rows.row.by;
            const pack<float, V> before = kept_shares<V>(kept, first ? t : t - 1, !first),
                                 behind = kept_shares<V>(kept, last ? t : t + 1, !last);
            nearby<V> shares;
            UNROLL(8)
            for (int v = 0; v < V; v++) {
                shares.of[v] = before.at[v];
                shares.of[V + v] = has.shares.at[v];
                shares.of[2 * V + v] = behind.at[v];
            }
            const pack<float, V> sums = sums_of(shares, rows.lrn.radius);
            pack<T, V> out;
            UNROLL(8)
            for (int v = 0; v < V; v++) {
                const float value = widen(has.x.at[v]);
                const float back =
                    formula_lrn_grad(value, widen(has.dy.at[v]), has.power.at[v], factor, sums.at[v]);
                put(&out.at[v], value <= least ? 0.0f : back);
            }
            give(dx + (size_t)(begin + t) * V, out);
        }
    }
}

/* --- all others ---
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

/* Of any beta. */
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

/* --- launches --- */

template <class T, int V> cudaError_t lrn_of(cudaStream_t stream, const gpu_lrn &settings, const T *x, T *y) {
    const tiles tiles = tiles_of<V>(settings, 1);
    const size_t count = ((size_t)settings.count + tiles.tile - 1) / tiles.tile;
    return LAUNCH_TEAMS(stream, count, BLOCK, (lrn<T, V>), tiles, x, y);
}
template <class T> cudaError_t lrn_to(cudaStream_t stream, const gpu_lrn &settings, const void *x, void *y) {
    constexpr int wide = full<T>();
    if (has_whole_rows<T>(settings, x, y, NULL)) {
        const whole_rows rows = whole_rows_of<wide>(settings);
        return LAUNCH(stream, rows.count, (lrn_whole<T, wide>), rows, (const T *)x, (T *)y);
    }
    if (packs<T>(settings.channels, x, y, NULL))
        return lrn_of<T, wide>(stream, settings, (const T *)x, (T *)y);
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
    constexpr int wide = full<T>();
    if (has_whole_rows<T>(settings, x, dy, dx)) {
        const whole_rows rows = whole_rows_of<wide>(settings);
        return LAUNCH_TEAMS(stream, (rows.count + rows.tile - 1) / rows.tile, BLOCK,
                            (lrn_grad_whole<T, wide>), rows, (const T *)x, (const T *)dy, (T *)dx);
    }
    if (packs<T>(settings.channels, x, dy, dx))
        return lrn_grad_of<T, wide>(stream, settings, (const T *)x, (const T *)dy, (T *)dx);
    return lrn_grad_of<T, 1>(stream, settings, (const T *)x, (const T *)dy, (T *)dx);
}

} // namespace

cudaError_t launch_lrn(cudaStream_t stream, const struct gpu_lrn *settings, int narrow, const void *x,
                       void *y) {
    return narrow ? lrn_to<bf16>(stream, *settings, x, y) : lrn_to<float>(stream, *settings, x, y);
}

cudaError_t launch_lrn_grad(cudaStream_t stream, const struct gpu_lrn *settings, int narrow, const void *x,
                            const void *dy, void *dx) {
    return narrow ? lrn_back<bf16>(stream, *settings, x, dy, dx)
                  : lrn_back<float>(stream, *settings, x, dy, dx);
}
