/* Reference kernels: pooling and local response normalisation. All loops run along the channels, which lie
 * side by side, so they fill vectors; these are the kernels that run everywhere, as they are bound by memory.
 */
#include <math.h>
#include <string.h>
#include "../graph/window.h"
#include "reference.h"

enum { CHANNELS = 256 }; /* at a time */

/* Pooling, and the window it is at. */
struct pool {
    struct window rows, columns;
    size_t batch, channels;
    int top, bottom, left, right; /* the part of the window that is there: rows, columns of x */
};

static struct pool pool_of(const struct task *task) {
    const struct attributes *a = task->attributes;
    const struct shape *x = &task->input[0].shape;
    return (struct pool){
        .rows = window_along(x->dims[1], a->window[0], a->stride[0], a->padding),
        .columns = window_along(x->dims[2], a->window[1], a->stride[1], a->padding),
        .batch = (size_t)x->dims[0],
        .channels = (size_t)x->dims[3],
    };
}

static void pool_at(struct pool *pool, int row, int column) {
    window_part(&pool->rows, row, &pool->top, &pool->bottom);
    window_part(&pool->columns, column, &pool->left, &pool->right);
}

/* Where element (row, column) begins in an image of x. */
static size_t place(const struct pool *pool, int row, int column) {
    return ((size_t)row * (size_t)pool->columns.in + (size_t)column) * pool->channels;
}

/* y [channels] = the largest of the window in image x. Not a number stays when it comes first. */
static void largest(const struct pool *pool, const float *x, float *restrict y) {
    memcpy(y, x + place(pool, pool->top, pool->left), pool->channels * sizeof *y);
    for (int row = pool->top; row < pool->bottom; row++)
        for (int column = pool->left; column < pool->right; column++) {
            const float *from = x + place(pool, row, column);
            for (size_t c = 0; c < pool->channels; c++) y[c] = from[c] > y[c] ? from[c] : y[c];
        }
}

static int run_maxpool(const struct call *call, struct error *error) {
    (void)error;
    struct pool pool = pool_of(call->task);
    const float *x = call->input[0];
    float *y = call->output;
    for (size_t image = 0; image < pool.batch; image++, x += place(&pool, pool.rows.in, 0))
        for (int row = 0; row < pool.rows.out; row++)
            for (int column = 0; column < pool.columns.out; column++, y += pool.channels) {
                pool_at(&pool, row, column);
                largest(&pool, x, y);
            }
    return OK;
}
const struct kernel reference_maxpool = {.name = "reference:maxpool", .run = run_maxpool};

/* Adds dy to the first largest of the window, for `count` channels; x and dx point at the first of them. */
static void give_back(const struct pool *pool, const float *x, const float *dy, size_t count,
                      float *restrict dx) {
    float most[CHANNELS];
    int which[CHANNELS], number = 0;
    memcpy(most, x + place(pool, pool->top, pool->left), count * sizeof *most);
    memset(which, 0, count * sizeof *which);
    for (int row = pool->top; row < pool->bottom; row++)
        for (int column = pool->left; column < pool->right; column++, number++) {
            const float *from = x + place(pool, row, column);
            for (size_t c = 0; c < count; c++) {
                which[c] = from[c] > most[c] ? number : which[c];
                most[c] = from[c] > most[c] ? from[c] : most[c];
            }
        }
    number = 0;
    for (int row = pool->top; row < pool->bottom; row++)
        for (int column = pool->left; column < pool->right; column++, number++) {
            float *to = dx + place(pool, row, column);
            for (size_t c = 0; c < count; c++) to[c] += which[c] == number ? dy[c] : 0.0f;
        }
}

/* Image by image, so that its dx is still in the near caches when the windows add to it. */
static int run_maxpool_grad(const struct call *call, struct error *error) {
    (void)error;
    struct pool pool = pool_of(call->task);
    const float *x = call->input[0], *dy = call->input[1];
    float *dx = call->output;
    const size_t floats = place(&pool, pool.rows.in, 0);
    for (size_t image = 0; image < pool.batch; image++, x += floats, dx += floats) {
        memset(dx, 0, floats * sizeof *dx);
        for (int row = 0; row < pool.rows.out; row++)
            for (int column = 0; column < pool.columns.out; column++, dy += pool.channels) {
                pool_at(&pool, row, column);
                for (size_t c = 0; c < pool.channels; c += CHANNELS)
                    give_back(&pool, x + c, dy + c,
                              pool.channels - c < CHANNELS ? pool.channels - c : CHANNELS, dx + c);
            }
    }
    return OK;
}
const struct kernel reference_maxpool_grad = {.name = "reference:maxpool_grad", .run = run_maxpool_grad};

/* --- local response normalisation --- */

enum { HALO = 2 * MAX_LRN_RADIUS, ROOM = CHANNELS + 2 * HALO };

/* sum [count] = of the 2 radius + 1 elements around each; values reach that far to both sides. */
static void sum_around(const float *values, int radius, size_t count, float *restrict sum) {
    memcpy(sum, values - radius, count * sizeof *sum);
    for (int offset = 1 - radius; offset <= radius; offset++) {
        const float *from = values + offset;
        for (size_t c = 0; c < count; c++) sum[c] += from[c];
    }
}

/* A piece of one row of channels, with what lies around it and zeros beyond the row's ends. */
struct piece {
    float x[ROOM], dy[ROOM]; /* [HALO + count + HALO] */
    float sums[ROOM];        /* bias + alpha * the squares around; begins `radius` later than x */
    float power[ROOM];       /* the sums to the power of -beta */
    float squares[ROOM];
};

/* out [HALO + count + HALO]: elements first.. of a row of so many channels. */
static void take(const float *row, size_t channels, size_t first, size_t count, float *out) {
    const size_t before = first < HALO ? first : HALO;
    const size_t behind = channels - first - count < HALO ? channels - first - count : HALO;
    memset(out, 0, (HALO - before) * sizeof *out);
    memcpy(out + HALO - before, row + first - before, (before + count + behind) * sizeof *out);
    memset(out + HALO + count + behind, 0, (HALO - behind) * sizeof *out);
}

/* Sums and powers of `count` elements from piece->x[begin] on, at the same places. */
static void find_powers(struct piece *piece, const struct lrn *lrn, size_t begin, size_t count) {
    const size_t from = begin - (size_t)lrn->radius, all = count + 2 * (size_t)lrn->radius;
    float *sums = piece->sums + begin, *power = piece->power + begin;
    for (size_t i = from; i < from + all; i++) piece->squares[i] = piece->x[i] * piece->x[i];
    sum_around(piece->squares + begin, lrn->radius, count, sums);
    for (size_t i = 0; i < count; i++) sums[i] = lrn->bias + lrn->alpha * sums[i];
    if (lrn->beta == 0.75f) /* much faster than powf */
        for (size_t i = 0; i < count; i++) {
            const float root = sqrtf(sums[i]);
            power[i] = 1.0f / (root * sqrtf(root));
        }
    else
        for (size_t i = 0; i < count; i++) power[i] = powf(sums[i], -lrn->beta);
}

static int run_lrn(const struct call *call, struct error *error) {
    (void)error;
    const struct shape *shape = &call->task->output.shape;
    const size_t channels = (size_t)shape->dims[shape->rank - 1], rows = shape_count(shape) / channels;
    const struct lrn *lrn = &call->task->attributes->lrn;
    const float *x = call->input[0];
    float *y = call->output;
    struct piece piece;
    for (size_t row = 0; row < rows; row++, x += channels, y += channels)
        for (size_t c = 0; c < channels; c += CHANNELS) {
            const size_t count = channels - c < CHANNELS ? channels - c : CHANNELS;
            take(x, channels, c, count, piece.x);
            find_powers(&piece, lrn, HALO, count);
            for (size_t i = 0; i < count; i++) y[c + i] = x[c + i] * piece.power[HALO + i];
        }
    return OK;
}
const struct kernel reference_lrn = {.name = "reference:lrn", .run = run_lrn};

/* x, dy: with s the sum in y = x s^-beta,
 * dx_i = dy_i s_i^-beta - 2 alpha beta x_i * (sum of dy_j x_j s_j^(-beta-1) over the neighbours j of i). */
static void lrn_back(struct piece *piece, const struct lrn *lrn, size_t count, float *restrict dx) {
    const size_t radius = (size_t)lrn->radius, begin = HALO - radius, all = count + 2 * radius;
    const float factor = 2.0f * lrn->alpha * lrn->beta;
    const float *x = piece->x, *dy = piece->dy, *power = piece->power;
    find_powers(piece, lrn, begin, all);
    float *shares = piece->squares; /* no longer needed */
    for (size_t i = begin; i < begin + all; i++) shares[i] = dy[i] * x[i] * power[i] / piece->sums[i];
    sum_around(shares + HALO, lrn->radius, count, piece->sums + HALO);
    for (size_t i = 0; i < count; i++)
        dx[i] = dy[HALO + i] * power[HALO + i] - factor * x[HALO + i] * piece->sums[HALO + i];
}

static int run_lrn_grad(const struct call *call, struct error *error) {
    (void)error;
    const struct shape *shape = &call->task->output.shape;
    const size_t channels = (size_t)shape->dims[shape->rank - 1], rows = shape_count(shape) / channels;
    const struct attributes *attributes = call->task->attributes;
    const float *x = call->input[0], *dy = call->input[1];
    float *dx = call->output;
    struct piece piece;
    for (size_t row = 0; row < rows; row++, x += channels, dy += channels, dx += channels)
        for (size_t c = 0; c < channels; c += CHANNELS) {
            const size_t count = channels - c < CHANNELS ? channels - c : CHANNELS;
            take(x, channels, c, count, piece.x);
            take(dy, channels, c, count, piece.dy);
            lrn_back(&piece, &attributes->lrn, count, dx + c);
            if (attributes->activation == ACTIVATION_RELU)
                for (size_t i = c; i < c + count; i++) dx[i] = x[i] > 0.0f ? dx[i] : 0.0f;
        }
    return OK;
}
const struct kernel reference_lrn_grad = {.name = "reference:lrn_grad", .run = run_lrn_grad};
