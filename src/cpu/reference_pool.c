/* Reference kernels: pooling. All loops run along the channels, which are adjacent in memory, so they
 * vectorise. These kernels are used even where oneDNN is there, because they are bound by memory. */
#include <string.h>
#include "../device/formulas.h"
#include "../graph/window.h"
#include "bf16.h"
#include "reference.h"

enum { CHANNELS = 256 }; /* at a time */

/* Pooling, and the window it is at. */
struct pool {
    struct window rows, columns;
    size_t batch, channels;
    int top, bottom, left, right; /* the part of the window that is there: rows, columns of x */
};

/* x: the shape of what is pooled. */
static struct pool pool_of(const struct problem *problem, const struct shape *x) {
    const struct attributes *a = problem->attributes;
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

/* y [count] = the largest of the window in image x, both from the same channel on. Not a number stays when it
 * comes first. */
INLINED void largest(const struct pool *pool, const void *x, size_t count, void *restrict y, enum type type) {
    float most[CHANNELS];
    const void *first = element(x, type, place(pool, pool->top, pool->left));
    for (size_t c = 0; c < count; c++) most[c] = load(first, type, c);
    for (int row = pool->top; row < pool->bottom; row++)
        for (int column = pool->left; column < pool->right; column++) {
            const void *from = element(x, type, place(pool, row, column));
            for (size_t c = 0; c < count; c++) most[c] = formula_largest(most[c], load(from, type, c));
        }
    for (size_t c = 0; c < count; c++) store(y, type, c, most[c]);
}

INLINED int maxpool(const struct call *call, enum type type) {
    struct pool pool = pool_of(call->problem, &call->problem->input[0].shape);
    const char *x = call->input[0];
    char *y = call->output;
    const size_t image_bytes = place(&pool, pool.rows.in, 0) * type_bytes(type);
    for (size_t image = 0; image < pool.batch; image++, x += image_bytes)
        for (int row = 0; row < pool.rows.out; row++)
            for (int column = 0; column < pool.columns.out; column++, y += pool.channels * type_bytes(type)) {
                pool_at(&pool, row, column);
                for (size_t c = 0; c < pool.channels; c += CHANNELS)
                    largest(&pool, element(x, type, c),
                            pool.channels - c < CHANNELS ? pool.channels - c : CHANNELS,
                            element_to(y, type, c), type);
            }
    return OK;
}

static int run_maxpool(const struct call *call, struct error *error) {
    (void)error;
    return call->problem->input[0].type == TYPE_BF16 ? maxpool(call, TYPE_BF16) : maxpool(call, TYPE_FLOAT);
}

const struct kernel reference_maxpool = {
    .name = "reference:maxpool", .prepare = reference_one_type, .run = run_maxpool};

/* Adds dy to the first largest of the window, for `count` channels; x and dx point at the first of them.
 * Where windows lie apart, there is nothing yet that it would be added to. */
INLINED void give_back(const struct pool *pool, const void *x, const void *dy, size_t count,
                       void *restrict dx, enum type type, bool apart) {
    float most[CHANNELS];
    int which[CHANNELS], number = 0;
    const void *first = element(x, type, place(pool, pool->top, pool->left));
    for (size_t c = 0; c < count; c++) most[c] = load(first, type, c);
    memset(which, 0, count * sizeof *which);
    for (int row = pool->top; row < pool->bottom; row++)
        for (int column = pool->left; column < pool->right; column++, number++) {
            const void *from = element(x, type, place(pool, row, column));
            for (size_t c = 0; c < count; c++) {
                const float one = load(from, type, c);
                which[c] = one > most[c] ? number : which[c];
                most[c] = formula_largest(most[c], one);
            }
        }
    number = 0;
    for (int row = pool->top; row < pool->bottom; row++)
        for (int column = pool->left; column < pool->right; column++, number++) {
            void *to = element_to(dx, type, place(pool, row, column));
            for (size_t c = 0; c < count; c++)
                store(to, type, c,
                      (apart ? 0.0f : load(to, type, c)) + (which[c] == number ? load(dy, type, c) : 0.0f));
        }
}

/* The same for a window of 2x2 that is all there and touches no other: nothing is kept beside the registers.
 */
INLINED void give_back_four(const struct pool *pool, const void *x, const void *dy, size_t count,
                            void *restrict dx, enum type type) {
    const size_t upper = place(pool, pool->top, pool->left), lower = place(pool, pool->top + 1, pool->left),
                 right = pool->channels;
    for (size_t c = 0; c < count; c++) {
        const float one[] = {load(x, type, upper + c), load(x, type, upper + right + c),
                             load(x, type, lower + c), load(x, type, lower + right + c)};
        const float value = load(dy, type, c);
        float most = one[0];
        int which = 0;
        for (int i = 1; i < 4; i++) {
            which = one[i] > most ? i : which;
            most = formula_largest(most, one[i]);
        }
        store(dx, type, upper + c, 0.0f + (which == 0 ? value : 0.0f));
        store(dx, type, upper + right + c, 0.0f + (which == 1 ? value : 0.0f));
        store(dx, type, lower + c, 0.0f + (which == 2 ? value : 0.0f));
        store(dx, type, lower + right + c, 0.0f + (which == 3 ? value : 0.0f));
    }
}

/* Image by image, so that its dx is still in the near caches when the windows add to it. */
INLINED int maxpool_grad(const struct call *call, enum type type, bool apart) {
    struct pool pool = pool_of(call->problem, &call->problem->input[0].shape);
    const char *x = call->input[0], *dy = call->input[1];
    char *dx = call->output;
    const size_t bytes = place(&pool, pool.rows.in, 0) * type_bytes(type);
    for (size_t image = 0; image < pool.batch; image++, x += bytes, dx += bytes) {
        memset(dx, 0, bytes);
        for (int row = 0; row < pool.rows.out; row++)
            for (int column = 0; column < pool.columns.out;
                 column++, dy += pool.channels * type_bytes(type)) {
                pool_at(&pool, row, column);
                if (apart && pool.bottom - pool.top == 2 && pool.right - pool.left == 2) {
                    give_back_four(&pool, x, dy, pool.channels, dx, type);
                    continue;
                }
                for (size_t c = 0; c < pool.channels; c += CHANNELS)
                    give_back(&pool, element(x, type, c), element(dy, type, c),
                              pool.channels - c < CHANNELS ? pool.channels - c : CHANNELS,
                              element_to(dx, type, c), type, apart);
            }
    }
    return OK;
}

static int run_maxpool_grad(const struct call *call, struct error *error) {
    (void)error;
    const struct attributes *a = call->problem->attributes;
    const bool apart = a->stride[0] >= a->window[0] && a->stride[1] >= a->window[1];
    if (call->problem->input[0].type == TYPE_BF16)
        return apart ? maxpool_grad(call, TYPE_BF16, true) : maxpool_grad(call, TYPE_BF16, false);
    return apart ? maxpool_grad(call, TYPE_FLOAT, true) : maxpool_grad(call, TYPE_FLOAT, false);
}
const struct kernel reference_maxpool_grad = {
    .name = "reference:maxpool_grad", .prepare = reference_one_type, .run = run_maxpool_grad};

/* --- the mean of a window --- */

static float inverse_count(const struct pool *pool) {
    return 1.0f / (float)((pool->bottom - pool->top) * (pool->right - pool->left));
}

/* y [channels] = the mean of the window in image x. */
static void mean_of(const struct pool *pool, const float *x, float *restrict y) {
    const float share = inverse_count(pool);
    memset(y, 0, pool->channels * sizeof *y);
    for (int row = pool->top; row < pool->bottom; row++)
        for (int column = pool->left; column < pool->right; column++) {
            const float *from = x + place(pool, row, column);
            for (size_t c = 0; c < pool->channels; c++) y[c] += from[c];
        }
    for (size_t c = 0; c < pool->channels; c++) y[c] *= share;
}

static int run_avgpool(const struct call *call, struct error *error) {
    (void)error;
    struct pool pool = pool_of(call->problem, &call->problem->input[0].shape);
    const float *x = call->input[0];
    float *y = call->output;
    for (size_t image = 0; image < pool.batch; image++, x += place(&pool, pool.rows.in, 0))
        for (int row = 0; row < pool.rows.out; row++)
            for (int column = 0; column < pool.columns.out; column++, y += pool.channels) {
                pool_at(&pool, row, column);
                mean_of(&pool, x, y);
            }
    return OK;
}

const struct kernel reference_avgpool = {
    .name = "reference:avgpool", .prepare = reference_wide, .run = run_avgpool};

/* Adds its share of dy [channels] to each element of the window in image dx. */
static void share_out(const struct pool *pool, const float *dy, float *restrict dx) {
    const float share = inverse_count(pool);
    for (int row = pool->top; row < pool->bottom; row++)
        for (int column = pool->left; column < pool->right; column++) {
            float *to = dx + place(pool, row, column);
            for (size_t c = 0; c < pool->channels; c++) to[c] += share * dy[c];
        }
}

static int run_avgpool_grad(const struct call *call, struct error *error) {
    (void)error;
    struct pool pool = pool_of(call->problem, &call->problem->output.shape);
    const float *dy = call->input[0];
    float *dx = call->output;
    const size_t floats = place(&pool, pool.rows.in, 0);
    for (size_t image = 0; image < pool.batch; image++, dx += floats) {
        memset(dx, 0, floats * sizeof *dx);
        for (int row = 0; row < pool.rows.out; row++)
            for (int column = 0; column < pool.columns.out; column++, dy += pool.channels) {
                pool_at(&pool, row, column);
                share_out(&pool, dy, dx);
            }
    }
    return OK;
}

const struct kernel reference_avgpool_grad = {
    .name = "reference:avgpool_grad", .prepare = reference_wide, .run = run_avgpool_grad};
