/* Reference kernel: the gradient of a convolution's kernel when max pooling follows it, computed only from
 * the elements that the pooling selected.
 *
 * Each of them adds its gradient times its window of x to the sums of its channel. The sums are kept
 * channel by channel, and a window's rows are padded to whole vectors, so that a window is a few vectors
 * to add: with a 5x5 kernel of 3 channels, five. x is laid out with its padding around it, one image at a
 * time, so that every window is whole. Measured within a step on one Zen 4 core, 128x24x24x3, 5x5, to 64
 * channels, pool 3x3/2: 5 ms instead of 4 for the maxpool_grad and 10 for oneDNN's conv2d_grad_kernel. */
#include <string.h>
#include "../base/memory.h"
#include "../graph/window.h"
#include "bf16.h"
#include "reference.h"

enum { LANES = 16, CHANNELS = 256 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

struct plan {
    struct window rows, columns;           /* of the convolution */
    struct window pool_rows, pool_columns; /* of the pooling, over y */
    size_t batch, in, out;                 /* images; channels of x and of y */
    size_t run, padded_run;                /* floats of a row of the kernel; the same in whole vectors */
    size_t wide, high;                     /* of x with its padding: floats of a row, rows */
};

struct scratch {
    float *x;    /* [high][wide], and as much as a vector reads too far */
    int *where;  /* [windows of the pooling][out] place in x of the window of the largest */
    float *dy;   /* [windows of the pooling][out] of an image */
    float *sums; /* [out][rows of the kernel][padded_run] */
};

static struct plan plan_of(const struct problem *problem) {
    const struct attributes *a = problem->attributes;
    const struct shape *x = &problem->input[0].shape, *y = &problem->input[1].shape,
                       *kernel = &problem->output.shape;
    struct plan plan = {
        .rows = window_along(x->dims[1], kernel->dims[0], a->stride[0], a->padding),
        .columns = window_along(x->dims[2], kernel->dims[1], a->stride[1], a->padding),
        .pool_rows = window_along(y->dims[1], a->pool.window[0], a->pool.stride[0], a->pool.padding),
        .pool_columns = window_along(y->dims[2], a->pool.window[1], a->pool.stride[1], a->pool.padding),
        .batch = (size_t)x->dims[0],
        .in = (size_t)x->dims[3],
        .out = (size_t)kernel->dims[3],
    };
    plan.run = (size_t)kernel->dims[1] * plan.in;
    plan.padded_run = (plan.run + LANES - 1) / LANES * LANES;
    plan.wide = (size_t)(plan.columns.before + plan.columns.in + plan.columns.after) * plan.in;
    plan.high = (size_t)(plan.rows.before + plan.rows.in + plan.rows.after);
    return plan;
}

static void unbind(void *instance) {
    struct scratch *scratch = instance;
    if (!scratch) return;
    memory_free(scratch->sums);
    memory_free(scratch->dy);
    memory_free(scratch->where);
    memory_free(scratch->x);
    memory_free(scratch);
}

static int bind(const struct problem *problem, const void *prepared, void **instance, struct error *error) {
    (void)prepared;
    const struct plan plan = plan_of(problem);
    const size_t pooled = (size_t)(plan.pool_rows.out * plan.pool_columns.out) * plan.out;
    struct scratch *scratch = NULL;
    RETURN_IF(memory_array(&scratch, 1, "a pooled gradient", error));
    int code = memory_array(&scratch->x, plan.high * plan.wide + LANES, "an image with its padding", error);
    if (code == OK) code = memory_array(&scratch->where, pooled, "places of a pooled gradient", error);
    if (code == OK) code = memory_array(&scratch->dy, pooled, "a pooled gradient of an image", error);
    if (code == OK)
        code = memory_array(&scratch->sums, plan.out * (size_t)plan.rows.length * plan.padded_run,
                            "sums of a pooled gradient", error);
    if (code == OK)
        *instance = scratch;
    else
        unbind(scratch);
    return code;
}

/* x [rows][columns][in] into the middle of the scratch image, whose padding is zero and stays so. */
static void lay_out(const struct plan *plan, const float *x, float *out) {
    const size_t row = (size_t)plan->columns.in * plan->in;
    out += (size_t)plan->rows.before * plan->wide + (size_t)plan->columns.before * plan->in;
    for (int r = 0; r < plan->rows.in; r++, x += row, out += plan->wide) memcpy(out, x, row * sizeof *out);
}

/* where[c] = offset, in the scratch image, of the window of the first largest y of a pooling window. */
INLINED void find_largest(const struct plan *plan, const void *y, int row, int column, size_t count,
                          int *restrict where, enum type type) {
    float most[CHANNELS];
    int top, bottom, left, right;
    window_part(&plan->pool_rows, row, &top, &bottom);
    window_part(&plan->pool_columns, column, &left, &right);
    for (int r = top; r < bottom; r++)
        for (int c = left; c < right; c++) {
            const void *from =
                element(y, type, ((size_t)r * (size_t)plan->pool_columns.in + (size_t)c) * plan->out);
            const int at = r * plan->rows.stride * (int)plan->wide + c * plan->columns.stride * (int)plan->in;
            if (r == top && c == left) {
                for (size_t i = 0; i < count; i++) where[i] = at;
                for (size_t i = 0; i < count; i++) most[i] = load(from, type, i);
                continue;
            }
            for (size_t i = 0; i < count; i++) {
                const float one = load(from, type, i);
                where[i] = one > most[i] ? at : where[i];
                most[i] = one > most[i] ? one : most[i];
            }
        }
}

INLINED void find_all(const struct plan *plan, const void *y, int *where, enum type type) {
    for (int row = 0; row < plan->pool_rows.out; row++)
        for (int column = 0; column < plan->pool_columns.out; column++, where += plan->out)
            for (size_t c = 0; c < plan->out; c += CHANNELS)
                find_largest(plan, element(y, type, c), row, column,
                             plan->out - c < CHANNELS ? plan->out - c : CHANNELS, where + c, type);
}

/* One channel of an image: sums, `rows` vectors `stride` floats apart, += dy times as many vectors of x,
 * `wide` floats apart, from where each says; over `windows` of the pooling. */
INLINED void add_windows(const float *x, size_t wide, const int *where, const float *dy, size_t windows,
                         size_t out, int rows, float *sums, size_t stride) {
    enum { MOST = 7 };
    lanes sum[MOST], part;
    for (int row = 0; row < rows; row++) memcpy(&sum[row], sums + (size_t)row * stride, sizeof part);
    for (size_t w = 0; w < windows; w++, where += out, dy += out) {
        const float *from = x + *where;
        for (int row = 0; row < rows; row++) {
            memcpy(&part, from + (size_t)row * wide, sizeof part);
            sum[row] += *dy * part;
        }
    }
    for (int row = 0; row < rows; row++) memcpy(sums + (size_t)row * stride, &sum[row], sizeof part);
}

static void add_channel(const struct plan *plan, const struct scratch *scratch, const float *dy, size_t o) {
    const size_t windows = (size_t)(plan->pool_rows.out * plan->pool_columns.out), stride = plan->padded_run;
    const int *where = scratch->where + o;
    float *sums = scratch->sums + o * (size_t)plan->rows.length * stride;
    for (size_t i = 0; i < stride; i += LANES) {
        const float *x = scratch->x + i;
        float *to = sums + i;
        switch (plan->rows.length) { /* loops of known length stay in registers */
        case 3:
            add_windows(x, plan->wide, where, dy + o, windows, plan->out, 3, to, stride);
            break;
        case 5:
            add_windows(x, plan->wide, where, dy + o, windows, plan->out, 5, to, stride);
            break;
        case 7:
            add_windows(x, plan->wide, where, dy + o, windows, plan->out, 7, to, stride);
            break;
        default:
            for (int row = 0; row < plan->rows.length; row++, x += plan->wide, to += stride)
                add_windows(x, plan->wide, where, dy + o, windows, plan->out, 1, to, stride);
        }
    }
}

/* x, y, dy */
static int run(const struct call *call, struct error *error) {
    (void)error;
    const struct plan plan = plan_of(call->problem);
    struct scratch *scratch = call->instance;
    const size_t window = (size_t)plan.rows.length * plan.padded_run;
    const size_t x_floats = (size_t)(plan.rows.in * plan.columns.in) * plan.in;
    const size_t y_floats = (size_t)(plan.pool_rows.in * plan.pool_columns.in) * plan.out;
    const size_t dy_floats = (size_t)(plan.pool_rows.out * plan.pool_columns.out) * plan.out;
    const float *x = call->input[0];
    const enum type y_type = call->problem->input[1].type, dy_type = call->problem->input[2].type;
    memset(scratch->sums, 0, plan.out * window * sizeof(float));
    for (size_t image = 0; image < plan.batch; image++) {
        lay_out(&plan, x + image * x_floats, scratch->x);
        const void *y = element(call->input[1], y_type, image * y_floats);
        if (y_type == TYPE_BF16)
            find_all(&plan, y, scratch->where, TYPE_BF16);
        else
            find_all(&plan, y, scratch->where, TYPE_FLOAT);
        for (size_t i = 0; i < dy_floats; i++)
            scratch->dy[i] = load(call->input[2], dy_type, image * dy_floats + i);
        for (size_t o = 0; o < plan.out; o++) add_channel(&plan, scratch, scratch->dy, o);
    }
    float *dkernel = call->output;
    for (size_t row = 0; row < (size_t)plan.rows.length; row++)
        for (size_t i = 0; i < plan.run; i++)
            for (size_t o = 0; o < plan.out; o++)
                *dkernel++ = scratch->sums[o * window + row * plan.padded_run + i];
    return OK;
}
/* An image is not kept in bf16 when it is the input; that of an inner layer may be. */
static int prepare(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    return problem->input[0].type == TYPE_FLOAT && problem->output.type == TYPE_FLOAT ? OK : KERNEL_DECLINED;
}
const struct kernel reference_conv2d_pool_grad_kernel = {.name = "reference:conv2d_pool_grad_kernel",
                                                         .prepare = prepare,
                                                         .bind = bind,
                                                         .unbind = unbind,
                                                         .run = run};
