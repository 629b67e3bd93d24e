/* Convolution and its gradients by oneDNN.
 *
 * Images stay plain, [batch, rows, columns, channels]; only the kernel is in a format that oneDNN chooses.
 * It is reordered in each run, or its gradient is reordered back to the graph's [rows, columns, in, out].
 * Where both formats are the same, as often in the forward pass in fp32, nothing is moved. Measured on one
 * Zen 4 core, batch 128, 12x12, 5x5, 64 to 64 channels, in GFLOP/s: 140 forward, 132 for the gradient of x
 * and 133 for that of the kernel (143, 142 and 137 with blocked images; 49, 87 and 80 when the kernel has
 * to stay plain). Kernels of grouped convolutions have an axis more in front, the groups. */
#include "../graph/window.h"
#include "onednn.h"

/* [batch, rows, columns, channels], which oneDNN counts as batch, channels, rows, columns. */
static struct onednn_form image(const struct shape *shape, dnnl_data_type_t type) {
    const int *d = shape->dims;
    const dnnl_dim_t row = (dnnl_dim_t)d[2] * d[3];
    return (struct onednn_form){
        .rank = 4, .dims = {d[0], d[3], d[1], d[2]}, .strides = {d[1] * row, 1, row, d[3]}, .type = type};
}

/* [rows, columns, in, out], which oneDNN counts as out, in, rows, columns; in groups as group, out and in of
 * a group, rows, columns. */
static struct onednn_form plain_kernel(const struct shape *shape, int groups) {
    const int *d = shape->dims;
    const dnnl_dim_t row = (dnnl_dim_t)d[1] * d[2] * d[3], column = (dnnl_dim_t)d[2] * d[3];
    if (groups > 1)
        return (struct onednn_form){.rank = 5,
                                    .dims = {groups, d[3] / groups, d[2], d[0], d[1]},
                                    .strides = {d[3] / groups, 1, d[3], row, column},
                                    .type = dnnl_f32};
    return (struct onednn_form){
        .rank = 4, .dims = {d[3], d[2], d[0], d[1]}, .strides = {1, d[3], row, column}, .type = dnnl_f32};
}

/* The same in whatever form oneDNN likes. */
static struct onednn_form any_kernel(const struct shape *shape, int groups, dnnl_data_type_t type) {
    struct onednn_form form = plain_kernel(shape, groups);
    form.type = type;
    form.any = true;
    return form;
}

static struct onednn_form bias_of(int channels) {
    return (struct onednn_form){.rank = 1, .dims = {channels}, .strides = {1}, .type = dnnl_f32};
}

/* An operand or result as it is in memory: an image, the kernel or the bias. Only images may be bf16: false
 * for others. */
static bool in_memory(struct onednn_form *form, const struct shape *shape, enum type type, int name,
                      int groups) {
    switch (name) {
    case DNNL_ARG_WEIGHTS:
    case DNNL_ARG_DIFF_WEIGHTS:
        *form = plain_kernel(shape, groups);
        return type == TYPE_FLOAT;
    case DNNL_ARG_BIAS:
        *form = bias_of(shape->dims[0]);
        return type == TYPE_FLOAT;
    default:
        *form = image(shape, onednn_type(type));
        return true;
    }
}

static bool all_in_memory(struct onednn_request *request, const struct problem *problem, int groups) {
    for (int i = 0; request->arguments[i].name != 0; i++) {
        const int operand = request->arguments[i].operand, name = request->arguments[i].name;
        if (operand == ONEDNN_OUTPUT
                ? !in_memory(&request->plain[i], &problem->output.shape, problem->output.type, name, groups)
                : !in_memory(&request->plain[i], &problem->input[operand].shape, problem->input[operand].type,
                             name, groups))
            return false;
    }
    return true;
}

/* How far oneDNN lets the last window reach beyond the image; less than 0 when a stride leaves some out. */
static dnnl_dim_t behind(const struct window *w) {
    return (dnnl_dim_t)(w->out - 1) * w->stride + w->length - w->in - w->before;
}

static bool is_possible(enum type type, const struct shape *shape) {
    return (type == TYPE_FLOAT || type == TYPE_BF16) && shape_count(shape) > 0;
}

/* All that a convolution of x and kernel to y asks for: x and the kernel in the type that is computed in, y
 * too unless it is a result; what the problem computes is of the problem's type. Needs arguments and kind.
 * False when oneDNN has no such thing. */
static bool fill_request(struct onednn_request *request, const struct problem *problem, const struct shape *x,
                         const struct shape *kernel, const struct shape *y) {
    const dnnl_data_type_t computed = onednn_compute_type(problem),
                           result = onednn_type(problem->output.type);
    struct onednn_operation *o = &request->operation;
    const int groups = convolution_groups(x, kernel);
    for (int i = 0; i < problem->inputs; i++)
        if (!is_possible(problem->input[i].type, &problem->input[i].shape)) return false;
    if (!is_possible(problem->output.type, &problem->output.shape)) return false;
    const struct attributes *a = problem->attributes;
    for (int axis = 0; axis < 2; axis++) {
        const struct window w =
            window_along(x->dims[axis + 1], kernel->dims[axis], a->stride[axis], a->padding);
        o->strides[axis] = w.stride;
        o->before[axis] = w.before;
        o->after[axis] = behind(&w);
    }
    request->multiply_adds = (double)shape_count(y) * (double)shape_count(kernel) / kernel->dims[3];
    o->computed = computed;
    o->x = image(x, o->kind == ONEDNN_CONVOLUTION_GRAD_X ? result : computed);
    o->y = image(y, o->kind == ONEDNN_CONVOLUTION ? result : computed);
    o->kernel = any_kernel(kernel, groups, o->kind == ONEDNN_CONVOLUTION_GRAD_KERNEL ? result : computed);
    o->bias = bias_of(kernel->dims[3]);
    return all_in_memory(request, problem, groups);
}

static int prepare_forward(const struct problem *problem, void **plan, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DST, ONEDNN_OUTPUT}, {0}};
    static const struct onednn_argument with_bias[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_BIAS, 2}, {DNNL_ARG_DST, ONEDNN_OUTPUT}, {0}};
    const bool bias = problem->op == OP_conv2d_bias;
    struct onednn_request request = {.operation = {.kind = ONEDNN_CONVOLUTION,
                                                   .has_bias = bias,
                                                   .activation = problem->attributes->activation},
                                     .arguments = bias ? with_bias : arguments};
    if (!fill_request(&request, problem, &problem->input[0].shape, &problem->input[1].shape,
                      &problem->output.shape))
        return KERNEL_DECLINED;
    return onednn_plan(problem, &request, plan, error);
}

ONEDNN_KERNEL(conv2d, prepare_forward);
ONEDNN_KERNEL(conv2d_bias, prepare_forward);

static int prepare_grad_x(const struct problem *problem, void **plan, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_SRC, ONEDNN_OUTPUT}, {0}};
    struct onednn_request request = {.operation = {.kind = ONEDNN_CONVOLUTION_GRAD_X},
                                     .arguments = arguments};
    if (!fill_request(&request, problem, &problem->output.shape, &problem->input[0].shape,
                      &problem->input[1].shape))
        return KERNEL_DECLINED;
    return onednn_plan(problem, &request, plan, error);
}

ONEDNN_KERNEL(conv2d_grad_x, prepare_grad_x);

static int prepare_grad_kernel(const struct problem *problem, void **plan, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_WEIGHTS, ONEDNN_OUTPUT}, {0}};
    struct onednn_request request = {.operation = {.kind = ONEDNN_CONVOLUTION_GRAD_KERNEL},
                                     .arguments = arguments};
    if (!fill_request(&request, problem, &problem->input[0].shape, &problem->output.shape,
                      &problem->input[1].shape))
        return KERNEL_DECLINED;
    return onednn_plan(problem, &request, plan, error);
}

ONEDNN_KERNEL(conv2d_grad_kernel, prepare_grad_kernel);
