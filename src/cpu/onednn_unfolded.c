/* The gradient of a convolution's kernel as matrix products, in bf16: dy, transposed, times x unfolded, which
 * has a row for each place of y, the window of x that the place sees. x is unfolded in parts that stay in
 * the cache; the products of the parts add up.
 *
 * It is for processors with tiles (AMX) and narrow images: oneDNN's own convolution sums over the columns of
 * y in tiles of 32, of which a narrow image fills a part. Measured on one core of a Xeon with AMX, GFLOP/s of
 * the convolution and of this, with oneDNN 2.6 and with 3.7:
 *
 *   batch 128, 5x5, 12 columns,  64 to  64 channels:  225, 415    582, 407
 *   batch 256, 3x3,  7 columns, 256 to 256 channels:  294, 621    278, 629
 *   batch 256, 3x3,  3 columns, 256 to 256 channels:   94, 479     80, 492
 *   batch 256, 3x3, 15 columns,  64 to  64 channels:  469, 407    602, 426
 *   batch 128, 5x5, 10 columns,   6 to  16 channels:  156,  94    235,  64 */
#include <stdio.h>
#include <string.h>
#include "../base/memory.h"
#include "../device/bf16.h"
#include "../graph/window.h"
#include "onednn.h"

enum { PART_BYTES = 1 << 20 }; /* of x unfolded: half of a core's own cache */
enum { MOST_COLUMNS = DNNL_VERSION_MAJOR == 2 ? 12 : 8, LEAST_CHANNELS = 32 };
enum { MOST_THREADS = 4 }; /* one of them unfolds, which is a quarter of the work */

struct unfolded {
    struct window rows, columns;
    size_t in, out;     /* channels of x and of y */
    size_t run, window; /* numbers of a row of the window; of the window */
    int lines, part;    /* rows of y in all images; as many of them as a product takes, which divides it */
    void *product;      /* onednn_plan's */
};

struct bound {
    void *product; /* onednn_bind's */
    bf16 *x;       /* [part][columns.out][window] */
    float *sums;   /* [out][window] */
};

/* The most rows of y that divide all of them, with which a part of x unfolded keeps to PART_BYTES. */
static int rows_of_part(const struct unfolded *u) {
    const size_t bytes = (size_t)u->columns.out * u->window * sizeof(bf16);
    int part = 1;
    for (int rows = 1; rows <= u->lines && (size_t)rows * bytes <= PART_BYTES; rows++)
        if (u->lines % rows == 0) part = rows;
    return part;
}

static struct unfolded unfolded_of(const struct problem *problem) {
    const struct attributes *a = problem->attributes;
    const struct shape *x = &problem->input[0].shape, *kernel = &problem->output.shape;
    struct unfolded u = {.rows = window_along(x->dims[1], kernel->dims[0], a->stride[0], a->padding),
                         .columns = window_along(x->dims[2], kernel->dims[1], a->stride[1], a->padding),
                         .in = (size_t)x->dims[3],
                         .out = (size_t)kernel->dims[3]};
    u.run = (size_t)u.columns.length * u.in;
    u.window = (size_t)u.rows.length * u.run;
    u.lines = x->dims[0] * u.rows.out;
    u.part = rows_of_part(&u);
    return u;
}

static bool takes(const struct problem *problem) {
    const struct shape *x = &problem->input[0].shape, *y = &problem->input[1].shape,
                       *kernel = &problem->output.shape;
    return problem->input[0].type == TYPE_BF16 && problem->input[1].type == TYPE_BF16 &&
           problem->output.type == TYPE_FLOAT && shape_count(y) > 0 && convolution_groups(x, kernel) == 1 &&
           y->dims[2] <= MOST_COLUMNS && kernel->dims[2] >= LEAST_CHANNELS &&
           kernel->dims[3] >= LEAST_CHANNELS && problem->device->threads <= MOST_THREADS;
}

/* sums [out][window] += the product of a part: dy [places][out], transposed, times x unfolded. */
static int plan_product(const struct problem *problem, struct unfolded *u, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DST, ONEDNN_OUTPUT}, {0}};
    const dnnl_dim_t out = (dnnl_dim_t)u->out, window = (dnnl_dim_t)u->window,
                     places = (dnnl_dim_t)u->part * u->columns.out;
    struct onednn_request request = {
        .operation = {.kind = ONEDNN_MATMUL,
                      .x = {.rank = 2, .dims = {out, places}, .strides = {1, out}, .type = dnnl_bf16},
                      .kernel =
                          {.rank = 2, .dims = {places, window}, .strides = {window, 1}, .type = dnnl_bf16},
                      .y = {.rank = 2, .dims = {out, window}, .strides = {window, 1}, .type = dnnl_f32},
                      .adds = true},
        .arguments = arguments,
        .multiply_adds = (double)out * (double)places * (double)window};
    request.plain[0] = request.operation.x;
    request.plain[1] = request.operation.kernel;
    request.plain[2] = request.operation.y;
    return onednn_plan(problem, &request, &u->product, error);
}

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    if (!takes(problem)) return KERNEL_DECLINED;
    struct unfolded *u = NULL;
    RETURN_IF(memory_array(&u, 1, "a gradient of unfolded images", error));
    *u = unfolded_of(problem);
    const int code = plan_product(problem, u, error);
    if (code)
        memory_free(u);
    else
        *plan = u;
    return code;
}

static void release(void *plan) {
    struct unfolded *u = plan;
    if (!u) return;
    onednn_release(u->product);
    memory_free(u);
}

static void unbind(void *instance) {
    struct bound *bound = instance;
    if (!bound) return;
    onednn_unbind(bound->product);
    memory_free(bound->x);
    memory_free(bound->sums);
    memory_free(bound);
}

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    const struct unfolded *u = plan;
    const size_t places = (size_t)u->part * (size_t)u->columns.out;
    struct bound *bound = NULL;
    RETURN_IF(memory_array(&bound, 1, "a gradient of unfolded images", error));
    int code = onednn_bind(problem, u->product, &bound->product, error);
    if (code == OK) code = memory_array(&bound->x, places * u->window, "unfolded images", error);
    if (code == OK) code = memory_array(&bound->sums, u->out * u->window, "sums of a gradient", error);
    if (code == OK)
        *instance = bound;
    else
        unbind(bound);
    return code;
}

/* One row of the windows of a row of y: of the columns [columns.out], each `window` numbers after the one
 * before. from: the row of x that they see; NULL: one of the padding. */
static void unfold_row(const struct unfolded *u, const bf16 *from, bf16 *out) {
    for (int column = 0; column < u->columns.out; column++, out += u->window) {
        int left, right;
        const size_t place = (size_t)window_part(&u->columns, column, &left, &right) * u->in,
                     there = from ? (size_t)(right - left) * u->in : 0;
        if (there < u->run) memset(out, 0, u->run * sizeof *out);
        if (there > 0) memcpy(out + place, from + (size_t)left * u->in, there * sizeof *out);
    }
}

/* The windows of `part` rows of y from `line`, counted through all images. */
static void unfold(const struct unfolded *u, const bf16 *x, int line, bf16 *out) {
    const size_t row_numbers = (size_t)u->columns.in * u->in;
    for (int end = line + u->part; line < end; line++, out += (size_t)u->columns.out * u->window) {
        const bf16 *image = x + (size_t)(line / u->rows.out) * (size_t)u->rows.in * row_numbers;
        const int top = line % u->rows.out * u->rows.stride - u->rows.before;
        for (int row = 0; row < u->rows.length; row++) {
            const bool there = top + row >= 0 && top + row < u->rows.in;
            unfold_row(u, there ? image + (size_t)(top + row) * row_numbers : NULL,
                       out + (size_t)row * u->run);
        }
    }
}

/* [out][window] into the graph's [window][out], in blocks that are read and written by whole lines. */
static void transpose(const struct unfolded *u, const float *sums, float *out) {
    enum { BLOCK = 16 };
    for (size_t w = 0; w < u->window; w += BLOCK)
        for (size_t o = 0; o < u->out; o += BLOCK)
            for (size_t i = w; i < w + BLOCK && i < u->window; i++)
                for (size_t k = o; k < o + BLOCK && k < u->out; k++)
                    out[i * u->out + k] = sums[k * u->window + i];
}

/* x, dy */
static int run(const struct call *call, struct error *error) {
    const struct unfolded *u = call->plan;
    const struct bound *bound = call->instance;
    const bf16 *dy = call->input[1];
    struct call product = {.problem = call->problem,
                           .plan = u->product,
                           .instance = bound->product,
                           .input = {NULL, bound->x},
                           .output = bound->sums};
    memset(bound->sums, 0, u->out * u->window * sizeof *bound->sums);
    for (int line = 0; line < u->lines; line += u->part) {
        unfold(u, call->input[0], line, bound->x);
        product.input[0] = dy + (size_t)line * (size_t)u->columns.out * u->out;
        RETURN_IF(onednn_run(&product, error));
    }
    transpose(u, bound->sums, call->output);
    return OK;
}

static void describe(const void *plan, char *out, size_t bytes) {
    const struct unfolded *u = plan;
    onednn_describe(u->product, out, bytes);
    snprintf(out + strlen(out), bytes - strlen(out), ", unfolded x");
}

const struct kernel onednn_unfolded = {.name = "onednn:conv2d_grad_kernel of unfolded images",
                                       .prepare = prepare,
                                       .release = release,
                                       .bind = bind,
                                       .unbind = unbind,
                                       .describe = describe,
                                       .run = run};
