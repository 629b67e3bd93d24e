/* Convolution and its gradients by oneDNN.
 *
 * Images stay plain, [batch, rows, columns, channels]; only the kernel is in a form that oneDNN chooses, and
 * is brought into it in each run, or back into the graph's [rows, columns, in, out]. Where that form is the
 * same memory, as it often is forward in fp32, nothing is moved. Measured on one Zen 4 core, batch 128,
 * 12x12, 5x5, 64 to 64 channels, in GFLOP/s: 140 forward, 132 for the gradient of x and 133 for that of the
 * kernel (143, 142 and 137 with blocked images; 49, 87 and 80 when the kernel has to stay plain). */
#include "../graph/window.h"
#include "onednn.h"

/* What a convolution wants: x and the kernel in the type that is computed in, y too unless it is a result. */
struct forms {
    dnnl_memory_desc_t x, kernel, bias, y;
    dnnl_dims_t strides, before, after;
    double multiply_adds;
};

/* [batch, rows, columns, channels], which oneDNN counts as batch, channels, rows, columns. */
static dnnl_status_t image(dnnl_memory_desc_t *form, const struct shape *shape, dnnl_data_type_t type) {
    const dnnl_dims_t dims = {shape->dims[0], shape->dims[3], shape->dims[1], shape->dims[2]};
    return dnnl_memory_desc_init_by_tag(form, 4, dims, type, dnnl_nhwc);
}

/* [rows, columns, in, out], which oneDNN counts as out, in, rows, columns: as the graph has it, or in
 * whatever form oneDNN likes. */
static dnnl_status_t plain_kernel(dnnl_memory_desc_t *form, const struct shape *shape) {
    const int *d = shape->dims;
    const dnnl_dims_t dims = {d[3], d[2], d[0], d[1]};
    const dnnl_dims_t strides = {1, d[3], (dnnl_dim_t)d[1] * d[2] * d[3], (dnnl_dim_t)d[2] * d[3]};
    return dnnl_memory_desc_init_by_strides(form, 4, dims, dnnl_f32, strides);
}
static dnnl_status_t any_kernel(dnnl_memory_desc_t *form, const struct shape *shape, dnnl_data_type_t type) {
    const int *d = shape->dims;
    const dnnl_dims_t dims = {d[3], d[2], d[0], d[1]};
    return dnnl_memory_desc_init_by_tag(form, 4, dims, type, dnnl_format_tag_any);
}

/* An operand or result as it is in memory: an image, the kernel or the bias. Only images may be bf16. */
static dnnl_status_t in_memory(dnnl_memory_desc_t *form, const struct shape *shape, enum type type,
                               int name) {
    const dnnl_dims_t count = {shape->dims[0]};
    switch (name) {
    case DNNL_ARG_WEIGHTS:
    case DNNL_ARG_DIFF_WEIGHTS:
        return type == TYPE_FLOAT ? plain_kernel(form, shape) : dnnl_unimplemented;
    case DNNL_ARG_BIAS:
        if (type != TYPE_FLOAT) return dnnl_unimplemented;
        return dnnl_memory_desc_init_by_tag(form, 1, count, dnnl_f32, dnnl_a);
    default:
        return image(form, shape, onednn_type(type));
    }
}

static dnnl_status_t all_in_memory(struct onednn_request *request, const struct task *task) {
    dnnl_status_t status = dnnl_success;
    for (int i = 0; request->arguments[i].name != 0 && status == dnnl_success; i++) {
        const int operand = request->arguments[i].operand, name = request->arguments[i].name;
        status =
            operand == ONEDNN_OUTPUT
                ? in_memory(&request->plain[i], &task->output.shape, task->output.type, name)
                : in_memory(&request->plain[i], &task->input[operand].shape, task->input[operand].type, name);
    }
    return status;
}

/* How far oneDNN lets the last window reach beyond the image; less than 0 when a stride leaves some out. */
static dnnl_dim_t behind(const struct window *w) {
    return (dnnl_dim_t)(w->out - 1) * w->stride + w->length - w->in - w->before;
}

static bool is_possible(enum type type, const struct shape *shape) {
    return (type == TYPE_FLOAT || type == TYPE_BF16) && shape_count(shape) > 0;
}

/* All that a convolution of x and kernel to y needs; what the task computes is of the task's type. False when
 * oneDNN has no such thing. */
static bool find_forms(struct forms *forms, const struct task *task, const struct shape *x,
                       const struct shape *kernel, const struct shape *y) {
    const dnnl_data_type_t computed = onednn_compute_type(task), result = onednn_type(task->output.type);
    for (int i = 0; i < task->inputs; i++)
        if (!is_possible(task->input[i].type, &task->input[i].shape)) return false;
    if (!is_possible(task->output.type, &task->output.shape)) return false;
    const struct attributes *a = task->attributes;
    for (int axis = 0; axis < 2; axis++) {
        const struct window w =
            window_along(x->dims[axis + 1], kernel->dims[axis], a->stride[axis], a->padding);
        forms->strides[axis] = w.stride;
        forms->before[axis] = w.before;
        forms->after[axis] = behind(&w);
    }
    forms->multiply_adds = (double)shape_count(y) * (double)shape_count(kernel) / kernel->dims[3];
    const dnnl_dims_t bias = {kernel->dims[3]};
    const bool there = task->op == OP_conv2d || task->op == OP_conv2d_bias;
    return image(&forms->x, x, task->op == OP_conv2d_grad_x ? result : computed) == dnnl_success &&
           image(&forms->y, y, there ? result : computed) == dnnl_success &&
           any_kernel(&forms->kernel, kernel, task->op == OP_conv2d_grad_kernel ? result : computed) ==
               dnnl_success &&
           dnnl_memory_desc_init_by_tag(&forms->bias, 1, bias, dnnl_f32, dnnl_a) == dnnl_success;
}

static dnnl_status_t forward(dnnl_convolution_desc_t *descriptor, const struct forms *f, bool bias) {
    return dnnl_convolution_forward_desc_init(descriptor, dnnl_forward_training, dnnl_convolution_direct,
                                              &f->x, &f->kernel, bias ? &f->bias : NULL, &f->y, f->strides,
                                              f->before, f->after);
}

/* The convolution that a gradient is of: oneDNN wants to know it, all in the type that is computed in. */
static dnnl_status_t forward_of(dnnl_convolution_desc_t *descriptor, const struct forms *forms,
                                const struct task *task) {
    struct forms f = *forms;
    f.x.data_type = f.kernel.data_type = f.y.data_type = onednn_compute_type(task);
    return forward(descriptor, &f, false);
}

static int prepare_forward(const struct task *task, void **plan, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_DST, ONEDNN_OUTPUT}, {0}};
    static const struct onednn_argument with_bias[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_WEIGHTS, 1}, {DNNL_ARG_BIAS, 2}, {DNNL_ARG_DST, ONEDNN_OUTPUT}, {0}};
    const bool bias = task->op == OP_conv2d_bias;
    struct forms forms;
    dnnl_convolution_desc_t descriptor;
    dnnl_post_ops_t post_ops = NULL;
    if (!find_forms(&forms, task, &task->input[0].shape, &task->input[1].shape, &task->output.shape) ||
        forward(&descriptor, &forms, bias) != dnnl_success || dnnl_post_ops_create(&post_ops) != dnnl_success)
        return KERNEL_DECLINED;
    struct onednn_request request = {.descriptor = &descriptor,
                                     .post_ops = post_ops,
                                     .arguments = bias ? with_bias : arguments,
                                     .multiply_adds = forms.multiply_adds};
    const int code = onednn_append_activation(post_ops, task->attributes->activation) == dnnl_success &&
                             all_in_memory(&request, task) == dnnl_success
                         ? onednn_plan(task, &request, plan, error)
                         : KERNEL_DECLINED;
    dnnl_post_ops_destroy(post_ops);
    return code;
}

const struct kernel onednn_conv2d = {
    .name = "onednn:conv2d",
    .prepare = prepare_forward,
    .release = onednn_release,
    .bind = onednn_bind,
    .unbind = onednn_unbind,
    .describe = onednn_describe,
    .run = onednn_run,
};
const struct kernel onednn_conv2d_bias = {
    .name = "onednn:conv2d_bias",
    .prepare = prepare_forward,
    .release = onednn_release,
    .bind = onednn_bind,
    .unbind = onednn_unbind,
    .describe = onednn_describe,
    .run = onednn_run,
};

static int prepare_grad_x(const struct task *task, void **plan, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_WEIGHTS, 0}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_SRC, ONEDNN_OUTPUT}, {0}};
    struct forms f;
    dnnl_convolution_desc_t there, back;
    if (!find_forms(&f, task, &task->output.shape, &task->input[0].shape, &task->input[1].shape) ||
        forward_of(&there, &f, task) != dnnl_success ||
        dnnl_convolution_backward_data_desc_init(&back, dnnl_convolution_direct, &f.x, &f.kernel, &f.y,
                                                 f.strides, f.before, f.after) != dnnl_success)
        return KERNEL_DECLINED;
    struct onednn_request request = {
        .descriptor = &back, .forward = &there, .arguments = arguments, .multiply_adds = f.multiply_adds};
    if (all_in_memory(&request, task) != dnnl_success) return KERNEL_DECLINED;
    return onednn_plan(task, &request, plan, error);
}

const struct kernel onednn_conv2d_grad_x = {
    .name = "onednn:conv2d_grad_x",
    .prepare = prepare_grad_x,
    .release = onednn_release,
    .bind = onednn_bind,
    .unbind = onednn_unbind,
    .describe = onednn_describe,
    .run = onednn_run,
};

static int prepare_grad_kernel(const struct task *task, void **plan, struct error *error) {
    static const struct onednn_argument arguments[] = {
        {DNNL_ARG_SRC, 0}, {DNNL_ARG_DIFF_DST, 1}, {DNNL_ARG_DIFF_WEIGHTS, ONEDNN_OUTPUT}, {0}};
    struct forms f;
    dnnl_convolution_desc_t there, back;
    if (!find_forms(&f, task, &task->input[0].shape, &task->output.shape, &task->input[1].shape) ||
        forward_of(&there, &f, task) != dnnl_success ||
        dnnl_convolution_backward_weights_desc_init(&back, dnnl_convolution_direct, &f.x, &f.kernel, NULL,
                                                    &f.y, f.strides, f.before, f.after) != dnnl_success)
        return KERNEL_DECLINED;
    struct onednn_request request = {
        .descriptor = &back, .forward = &there, .arguments = arguments, .multiply_adds = f.multiply_adds};
    if (all_in_memory(&request, task) != dnnl_success) return KERNEL_DECLINED;
    return onednn_plan(task, &request, plan, error);
}

const struct kernel onednn_conv2d_grad_kernel = {
    .name = "onednn:conv2d_grad_kernel",
    .prepare = prepare_grad_kernel,
    .release = onednn_release,
    .bind = onednn_bind,
    .unbind = onednn_unbind,
    .describe = onednn_describe,
    .run = onednn_run,
};
