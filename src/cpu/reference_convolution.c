/* Reference kernels: convolution and its gradients. The inner loops run along the output channels, or,
 * where a sum over them is wanted, in the partial sums of a dot product; what is adjacent in a row of the
 * window is contiguous in x and in the kernel. In groups they run along the groups, which in a depthwise
 * convolution lie side by side. */
#include <string.h>
#include "../graph/window.h"
#include "reference.h"

struct convolution {
    struct window rows, columns;
    size_t batch, in, out; /* images; channels of x and of y */
    size_t groups;
};

static struct convolution convolution_of(const struct problem *problem, const struct shape *x,
                                         const struct shape *kernel) {
    const struct attributes *a = problem->attributes;
    return (struct convolution){
        .rows = window_along(x->dims[1], kernel->dims[0], a->stride[0], a->padding),
        .columns = window_along(x->dims[2], kernel->dims[1], a->stride[1], a->padding),
        .batch = (size_t)x->dims[0],
        .in = (size_t)x->dims[3],
        .out = (size_t)kernel->dims[3],
        .groups = (size_t)convolution_groups(x, kernel),
    };
}

/* What one row of a window covers: `length` floats of x, from `x` on, by as many rows of the kernel, from
 * `kernel` on; `y` is the window's place in the result. */
struct run {
    size_t x, kernel, y, length;
};

/* Walks over all windows and their rows, image by image; the runs of one window follow each other. */
struct runs {
    const struct convolution *c;
    size_t image;
    int row, column, from; /* of the window; its next row, in x; less than 0: a new window */
};

static bool next_run(struct runs *walk, struct run *run) {
    const struct convolution *c = walk->c;
    int begin, end, left, right;
    int top = window_part(&c->rows, walk->row, &begin, &end);
    if (walk->from >= end) {
        walk->from = -1;
        if (++walk->column == c->columns.out) {
            walk->column = 0;
            if (++walk->row == c->rows.out) {
                walk->row = 0;
                if (++walk->image == c->batch) return false;
            }
        }
        top = window_part(&c->rows, walk->row, &begin, &end);
    }
    if (walk->from < begin) walk->from = begin;
    const int place = window_part(&c->columns, walk->column, &left, &right);
    const size_t row = (size_t)(walk->from - begin + top);
    run->x =
        ((walk->image * (size_t)c->rows.in + (size_t)walk->from) * (size_t)c->columns.in + (size_t)left) *
        c->in;
    run->kernel = (row * (size_t)c->columns.length + (size_t)place) * (c->in / c->groups) * c->out;
    run->y = ((walk->image * (size_t)c->rows.out + (size_t)walk->row) * (size_t)c->columns.out +
              (size_t)walk->column) *
             c->out;
    run->length = (size_t)(right - left) * c->in;
    walk->from++;
    return true;
}

/* --- in groups --- */

/* sum[g * sum_step] += a[g * a_step] * b[g * b_step] for each group g. */
static void add_products(size_t groups, float *restrict sum, size_t sum_step, const float *a, size_t a_step,
                         const float *b, size_t b_step) {
    if (sum_step == 1 && a_step == 1 && b_step == 1)
        for (size_t g = 0; g < groups; g++) sum[g] += a[g] * b[g];
    else
        for (size_t g = 0; g < groups; g++) sum[g * sum_step] += a[g * a_step] * b[g * b_step];
}

enum role { X, KERNEL, Y };

/* Adds the products of a and b to sum, which are what `role` says, in this order: sum, a, b. */
static void convolve_groups(const struct convolution *c, const enum role *role, float *sum, const float *a,
                            const float *b) {
    const size_t in = c->in / c->groups, out = c->out / c->groups; /* of a group */
    const size_t step[] = {[X] = in, [KERNEL] = out, [Y] = out};   /* from group to group */
    struct runs walk = {.c = c, .from = -1};
    struct run run;
    while (next_run(&walk, &run))
        for (size_t k = 0; k < run.length; k += c->in)
            for (size_t i = 0; i < in; i++)
                for (size_t o = 0; o < out; o++) {
                    const size_t at[] = {[X] = run.x + k + i,
                                         [KERNEL] = run.kernel + (k / c->groups + i) * c->out + o,
                                         [Y] = run.y + o};
                    add_products(c->groups, sum + at[role[0]], step[role[0]], a + at[role[1]], step[role[1]],
                                 b + at[role[2]], step[role[2]]);
                }
}

/* --- convolution --- */

static void convolve(const struct convolution *c, const float *x, const float *kernel, float *y) {
    struct runs walk = {.c = c, .from = -1};
    struct run run;
    memset(y, 0, c->batch * (size_t)(c->rows.out * c->columns.out) * c->out * sizeof *y);
    if (c->groups > 1) {
        convolve_groups(c, (const enum role[]){Y, X, KERNEL}, y, x, kernel);
        return;
    }
    while (next_run(&walk, &run))
        reference_add_rows(x + run.x, 1, run.length, kernel + run.kernel, c->out, y + run.y);
}

static int run_conv2d(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const struct convolution c = convolution_of(problem, &problem->input[0].shape, &problem->input[1].shape);
    convolve(&c, call->input[0], call->input[1], call->output);
    return OK;
}
const struct kernel reference_conv2d = {
    .name = "reference:conv2d", .prepare = reference_wide, .run = run_conv2d};

/* Bit for bit what conv2d, add and the activation give. */
static int run_conv2d_bias(const struct call *call, struct error *error) {
    RETURN_IF(run_conv2d(call, error));
    const size_t out = (size_t)call->problem->output.shape.dims[3];
    const size_t rows = shape_count(&call->problem->output.shape) / out;
    const float *bias = call->input[2];
    float *y = call->output;
    for (size_t row = 0; row < rows; row++, y += out) {
        for (size_t o = 0; o < out; o++) y[o] += bias[o];
        reference_activate(y, out, call->problem->attributes->activation);
    }
    return OK;
}
const struct kernel reference_conv2d_bias = {
    .name = "reference:conv2d_bias", .prepare = reference_wide, .run = run_conv2d_bias};

/* kernel, dy: each element of x gets the dot product of its row of the kernel and dy, from each window that
 * it is in. */
static int run_conv2d_grad_x(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const struct convolution c = convolution_of(problem, &problem->output.shape, &problem->input[0].shape);
    const float *kernel = call->input[0], *dy = call->input[1];
    float *dx = call->output;
    struct runs walk = {.c = &c, .from = -1};
    struct run run;
    memset(dx, 0, shape_count(&problem->output.shape) * sizeof *dx);
    if (c.groups > 1) {
        convolve_groups(&c, (const enum role[]){X, KERNEL, Y}, dx, kernel, dy);
        return OK;
    }
    while (next_run(&walk, &run))
        for (size_t k = 0; k < run.length; k++)
            dx[run.x + k] += reference_dot(kernel + run.kernel + k * c.out, dy + run.y, c.out);
    return OK;
}
const struct kernel reference_conv2d_grad_x = {
    .name = "reference:conv2d_grad_x", .prepare = reference_wide, .run = run_conv2d_grad_x};

/* x, dy: the outer product of the two, from each window. */
static int run_conv2d_grad_kernel(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const struct convolution c = convolution_of(problem, &problem->input[0].shape, &problem->output.shape);
    const float *x = call->input[0], *dy = call->input[1];
    float *dkernel = call->output;
    struct runs walk = {.c = &c, .from = -1};
    struct run run;
    memset(dkernel, 0, shape_count(&problem->output.shape) * sizeof *dkernel);
    if (c.groups > 1) {
        convolve_groups(&c, (const enum role[]){KERNEL, X, Y}, dkernel, x, dy);
        return OK;
    }
    while (next_run(&walk, &run))
        for (size_t k = 0; k < run.length; k++)
            reference_add_rows(x + run.x + k, 1, 1, dy + run.y, c.out, dkernel + run.kernel + k * c.out);
    return OK;
}
const struct kernel reference_conv2d_grad_kernel = {
    .name = "reference:conv2d_grad_kernel", .prepare = reference_wide, .run = run_conv2d_grad_kernel};
