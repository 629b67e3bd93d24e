/* Reference kernels: pooling and local response normalisation. All loops run along the channels, which lie
 * side by side, so they fill vectors; these are the kernels that run everywhere, as they are bound by memory.
 */
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
