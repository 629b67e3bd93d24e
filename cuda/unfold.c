/* A convolution as one matrix product: x is unfolded to a row for each output position, with the window that
 * the position sees. Rows times the kernel, which lies [window, out] in the graph, are y; and rows, turned,
 * times dy are the kernel's gradient, in float32 without a rounding to bf16. Where a pixel has few channels,
 * cuDNN's engines are slow, and this is a fraction of their time although each pixel is written some 25
 * times.
 *
 * Rows are padded with zeros to whole 16 bytes, which cuBLASLt wants of what it reads fast; the kernel gets
 * as many rows of zeros. The gradient is a sum over all positions, a long one of few results: the first
 * candidates make the sums of equal parts of the positions at once, which are then added in their order;
 * others are the product as it is, which cuBLASLt divides as it thinks best. */
#include "unfold.h"

#include <stdio.h>
#include "../src/base/memory.h"
#include "../src/graph/window.h"
#include "measure.h"

enum {
    PACK = 16,
    BUSY = 132 /* of a large GPU */,
    TILE = 128,
    LEAST_PARTS = 4,
    LEAST_PART = 256,
    ALIGNED = 32
};

struct instance {
    const struct device *device;
    cublasLtMatmulDesc_t descriptor;
    void *block; /* of GPU memory, owned; in it, NULL where the operand itself is used: */
    void *unfolded, *kernel, *bias, *dy, *parts, *workspace;
};

/* --- what it is --- */

static const struct product *product_of(const struct unfolding *u, int number, int *algorithm) {
    const int product = number < u->product[0].count ? 0 : 1;
    *algorithm = number - product * u->product[0].count;
    return &u->product[product];
}

static bool is_split(const struct unfolding *u, int number) {
    return u->splits > 1 && number < u->product[0].count;
}

static int round_up(int n, int by) {
    return (n + by - 1) / by * by;
}

/* As many as keep a GPU busy, all of one size whose bytes keep alignment; 1: not so many that it is worth it.
 */
static int splits_of(const struct unfolding *u) {
    const int tiles = (u->pitch + TILE - 1) / TILE * ((u->out + TILE - 1) / TILE);
    int splits = BUSY / tiles < u->positions / LEAST_PART ? BUSY / tiles : u->positions / LEAST_PART;
    while (splits >= LEAST_PARTS && u->positions % (splits * ALIGNED) > 0) splits--;
    return splits >= LEAST_PARTS ? splits : 1;
}

static void place_windows(const struct problem *problem, struct unfolding *u) {
    const struct attributes *attributes = problem->attributes;
    const int *x = problem->input[0].shape.dims;
    const int *kernel = u->gradient ? problem->output.shape.dims : problem->input[1].shape.dims;
    struct window w[2];
    for (int axis = 0; axis < 2; axis++) {
        w[axis] = window_along(x[axis + 1], kernel[axis], attributes->stride[axis], attributes->padding);
        u->windows.axis[axis] = (struct operand_window){.in = w[axis].in,
                                                        .out = w[axis].out,
                                                        .length = w[axis].length,
                                                        .stride = w[axis].stride,
                                                        .before = w[axis].before};
    }
    const enum type type = problem->input[0].type;
    const int pack = PACK / (int)type_bytes(u->computed);
    u->positions = x[0] * w[0].out * w[1].out;
    u->window = kernel[0] * kernel[1] * kernel[2];
    u->out = kernel[3];
    u->pitch = round_up(u->window, pack);
    u->windows.batch = x[0];
    u->windows.channels = x[3];
    u->windows.pitch = u->pitch;
    const bool pixels = kernel[0] == 1 && kernel[1] == 1 && w[0].stride == 1 && w[1].stride == 1;
    u->direct = pixels && type == u->computed && u->pitch == u->window;
    u->splits = u->gradient ? splits_of(u) : 1;
    if (!u->direct) u->unfolded_bytes = (size_t)u->positions * (size_t)u->pitch * type_bytes(u->computed);
    if (u->splits > 1) u->parts_bytes = (size_t)u->splits * (size_t)u->pitch * (size_t)u->out * sizeof(float);
}

static bool is_possible(const struct problem *problem) {
    const bool gradient = problem->op == OP_conv2d_grad_kernel;
    const bool forward = problem->op == OP_conv2d || problem->op == OP_conv2d_bias;
    const struct shape *kernel = gradient ? &problem->output.shape : &problem->input[1].shape;
    return (gradient || forward) && convolution_groups(&problem->input[0].shape, kernel) == 1 &&
           !(gradient && problem->output.type != TYPE_FLOAT);
}

/* --- its products --- */

static int open_forward(const struct problem *problem, struct unfolding *u, struct error *error) {
    const struct product_wish wish = {
        .a = {u->positions, u->pitch, u->pitch, 0, u->computed},
        .b = {u->pitch, u->out, u->out, 0, u->computed},
        .y = {u->positions, u->out, u->out, 0, problem->output.type},
    };
    const bool bias = problem->op == OP_conv2d_bias;
    const cublasLtEpilogue_t epilogue =
        bias ? product_epilogue(problem->attributes->activation) : CUBLASLT_EPILOGUE_DEFAULT;
    struct product *product = &u->product[0];
    RETURN_IF(product_open(product, problem->device, &wish, error));
    RETURN_IF(product_find(product, epilogue, error));
    if (product->count > 0 || epilogue == CUBLASLT_EPILOGUE_DEFAULT) return OK;
    return product_find(product, CUBLASLT_EPILOGUE_DEFAULT, error);
}

static int open_gradient(const struct problem *problem, struct unfolding *u, struct error *error) {
    const int part = u->positions / u->splits;
    const struct product_wish whole = {
        .a = {u->positions, u->window, u->pitch, 0, u->computed},
        .b = {u->positions, u->out, u->out, 0, u->computed},
        .y = {u->window, u->out, u->out, 0, TYPE_FLOAT},
        .turned = {true, false},
    };
    const struct product_wish parts = {
        .a = {part, u->pitch, u->pitch, (int64_t)part * u->pitch, u->computed},
        .b = {part, u->out, u->out, (int64_t)part * u->out, u->computed},
        .y = {u->pitch, u->out, u->out, (int64_t)u->pitch * u->out, TYPE_FLOAT},
        .turned = {true, false},
        .count = u->splits,
    };
    const struct product_wish *wishes[] = {&parts, &whole};
    for (int i = u->splits > 1 ? 0 : 1, next = 0; i < 2; i++, next++) {
        RETURN_IF(product_open(&u->product[next], problem->device, wishes[i], error));
        RETURN_IF(product_find(&u->product[next], CUBLASLT_EPILOGUE_DEFAULT, error));
    }
    return OK;
}

int unfold_open(const struct problem *problem, size_t budget, struct unfolding **unfolding,
                struct error *error) {
    struct unfolding *u = NULL;
    if (!is_possible(problem)) return OK;
    RETURN_IF(memory_array(&u, 1, "the plan of a convolution", error));
    u->gradient = problem->op == OP_conv2d_grad_kernel;
    u->computed = problem->device->precision == PRECISION_BF16 ? TYPE_BF16 : TYPE_FLOAT;
    place_windows(problem, u);
    int code = OK;
    if (u->unfolded_bytes + u->parts_bytes + PRODUCT_WORKSPACE <= budget)
        code = u->gradient ? open_gradient(problem, u, error) : open_forward(problem, u, error);
    u->count = u->product[0].count + u->product[1].count;
    if (code == OK && u->count > 0)
        *unfolding = u;
    else
        unfold_close(u);
    return code;
}

void unfold_close(struct unfolding *unfolding) {
    if (!unfolding) return;
    for (int i = 0; i < UNFOLD_PRODUCTS; i++) product_close(&unfolding->product[i]);
    memory_free(unfolding);
}

/* --- an arena's own --- */

/* Whether the kernel, in this type, is another one to the product. */
static bool is_kernel_brought(const struct problem *problem, const struct unfolding *u) {
    return problem->input[1].type != u->computed || u->pitch != u->window;
}

static bool is_ready(const struct problem *problem, int operand) {
    return problem->ready >> operand & 1;
}

bool unfold_wants(const struct problem *problem, const struct unfolding *u, int number, int i,
                  struct form *form) {
    int algorithm;
    const struct product *product = product_of(u, number, &algorithm);
    *form = (struct form){.type = u->computed, .rows = 1, .columns = u->out};
    if (u->gradient || i == 0) return false;
    if (i == 2) return product_narrows_bias(product);
    form->rows = u->window;
    form->padded = u->pitch;
    return is_kernel_brought(problem, u);
}

static size_t bytes_of(const struct unfolding *u, int rows) {
    return (size_t)rows * (size_t)u->out * type_bytes(u->computed);
}

static int add_memory(const struct problem *problem, const struct unfolding *u, int number,
                      struct instance *made, struct error *error) {
    int algorithm;
    const struct product *product = product_of(u, number, &algorithm);
    const bool kernel = !u->gradient && is_kernel_brought(problem, u) && !is_ready(problem, 1);
    const bool bias = !u->gradient && product_narrows_bias(product) && !is_ready(problem, 2);
    const bool dy = u->gradient && problem->input[1].type != u->computed;
    const struct {
        void **at;
        size_t bytes;
    } rooms[] = {{&made->unfolded, u->unfolded_bytes},
                 {&made->kernel, kernel ? bytes_of(u, u->pitch) : 0},
                 {&made->bias, bias ? bytes_of(u, 1) : 0},
                 {&made->dy, dy ? bytes_of(u, u->positions) : 0},
                 {&made->parts, is_split(u, number) ? u->parts_bytes : 0},
                 {&made->workspace, product->found[algorithm].workspaceSize}};
    enum { ROOMS = sizeof rooms / sizeof *rooms };
    size_t bytes = 0, begin[ROOMS];
    for (int i = 0; i < ROOMS; i++) begin[i] = gpu_part(&bytes, rooms[i].bytes);
    if (bytes == 0) return OK;
    RETURN_IF(gpu_allocate(problem->device, &made->block, bytes, "room for a convolution", error));
    for (int i = 0; i < ROOMS; i++)
        if (rooms[i].bytes > 0) *rooms[i].at = (char *)made->block + begin[i];
    return OK;
}

void unfold_unbind(void *bound) {
    struct instance *instance = bound;
    if (!instance) return;
    if (instance->block) gpu_release(instance->device, instance->block);
    if (instance->descriptor) cublasLtMatmulDescDestroy(instance->descriptor);
    memory_free(instance);
}

int unfold_bind(const struct problem *problem, const struct unfolding *u, int number, void **instance,
                struct error *error) {
    struct instance *made = NULL;
    int algorithm;
    struct queue *queue = gpu_queue(problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(gpu_blas(problem->device, queue, error)); /* not while a run is recorded */
    RETURN_IF(memory_array(&made, 1, "a convolution", error));
    made->device = problem->device;
    int code = product_describe(product_of(u, number, &algorithm), &made->descriptor, error);
    if (code == OK) code = add_memory(problem, u, number, made, error);
    if (code == OK)
        *instance = made;
    else
        unfold_unbind(made);
    return code;
}

/* --- a run --- */

/* *to: the operand in the type that is multiplied, for which there is room where it has another. */
static int bring(const struct call *call, cudaStream_t stream, int i, void *room, enum type type,
                 const void **to, struct error *error) {
    const struct problem *problem = call->problem;
    *to = room ? room : call->input[i];
    if (!room) return OK;
    GPU_TRY(problem->device,
            operand_convert(stream, room, type, call->input[i], problem->input[i].type,
                            shape_count(&problem->input[i].shape)),
            error);
    return OK;
}

/* The zeros behind the kernel are those of the memory. */
static int bring_all(const struct call *call, const struct unfolding *u, const struct product *product,
                     const struct instance *instance, cudaStream_t stream, struct product_operands *o,
                     struct error *error) {
    const struct problem *problem = call->problem;
    o->workspace = instance->workspace;
    o->a = instance->unfolded ? instance->unfolded : call->input[0];
    if (instance->unfolded)
        GPU_TRY(problem->device,
                operand_unfold(stream, instance->unfolded, u->computed, call->input[0],
                               problem->input[0].type, &u->windows),
                error);
    if (u->gradient) return bring(call, stream, 1, instance->dy, u->computed, &o->b, error);
    if (product_has_bias(product))
        RETURN_IF(bring(call, stream, 2, instance->bias, TYPE_BF16, &o->bias, error));
    return bring(call, stream, 1, instance->kernel, u->computed, &o->b, error);
}

/* What the product has left to do. */
static int finish(const struct call *call, const struct unfolding *u, const struct product *product,
                  const struct instance *instance, cudaStream_t stream, struct error *error) {
    const struct problem *problem = call->problem;
    const enum type type = problem->output.type;
    if (instance->parts)
        GPU_TRY(problem->device,
                operand_fold(stream, call->output, instance->parts, shape_count(&problem->output.shape),
                             (size_t)u->pitch * (size_t)u->out, u->splits),
                error);
    if (problem->op == OP_conv2d_bias && !product_has_bias(product))
        GPU_TRY(problem->device,
                operand_finish(stream, call->output, type, call->output, type, call->input[2], u->positions,
                               u->out, (enum finish)problem->attributes->activation),
                error);
    return OK;
}

int unfold_run(const struct call *call, const struct unfolding *u, int number, void *bound, bool measured,
               struct error *error) {
    const struct instance *instance = bound;
    struct product_operands operands = {.y = instance->parts ? instance->parts : call->output};
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    int algorithm;
    const struct product *product = product_of(u, number, &algorithm);
    struct queue *queue = gpu_queue(call->problem->device, error);
    if (!queue) return error->code;
    RETURN_IF(bring_all(call, u, product, instance, queue->stream, &operands, error));
    RETURN_IF(product_run(product, algorithm, instance->descriptor, &operands,
                          measured ? &product->status[algorithm] : &status, error));
    return finish(call, u, product, instance, queue->stream, error);
}

void unfold_describe(const struct unfolding *u, int number, char *out, size_t bytes) {
    int algorithm;
    const struct product *product = product_of(u, number, &algorithm);
    const bool split = is_split(u, number);
    const size_t workspace =
        u->unfolded_bytes + (split ? u->parts_bytes : 0) + product->found[algorithm].workspaceSize;
    char parts[24] = "";
    if (split) snprintf(parts, sizeof parts, "%d parts, ", u->splits);
    const int used = snprintf(out, bytes, "%scublaslt:%s", u->direct ? "" : "unfold + ", parts);
    product_say(product, algorithm, workspace, out + used, bytes - (size_t)used);
}
