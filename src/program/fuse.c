/* Fusion: matmul, the add of a bias and the activation become one `dense`, which writes the result once
 * where three instructions would write and read it three times; conv2d becomes a `conv2d_bias` in the same
 * way. A lrn_grad absorbs the relu_grad after it, a conv2d_grad_kernel the maxpool_grad before it. On a
 * device that launches what it computes, a softmax_cross_entropy gives its mean, and its gradient takes one
 * slope for all; and what the decay of the weights adds to the loss becomes one `decayed`.
 *
 * The fused instruction replaces the last of them. Instructions are fused only if nothing else reads the
 * values in between; gradients do not, because they are computed from the activation's result. On a device
 * without kernels for `dense` or `conv2d_bias` nothing is fused. */
#include <string.h>

#include "../graph/window.h"
#include "passes.h"

static bool only_for_us(const struct value *value) {
    return value->readers == 1 && !value->fetched;
}

static bool has_kernel(const struct program *program, enum op op) {
    return program->device->backend->kernels(program->device, op)[0] != NULL;
}

/* What a product becomes with a bias; the same operation when it is none. */
static enum op with_bias(enum op op) {
    return op == OP_matmul ? OP_dense : op == OP_conv2d ? OP_conv2d_bias : op;
}

/* Is operand i of the add a product that can be fused with the other operand as its bias? */
static bool fuses(const struct program *program, const struct value *add, int i) {
    const struct value *product = &program->values[add->info.input[i]];
    const struct value *bias = &program->values[add->info.input[1 - i]];
    const enum op op = with_bias(product->info.op);
    return op != product->info.op && has_kernel(program, op) && only_for_us(product) &&
           !product->info.attributes.transpose_a && !product->info.attributes.transpose_b &&
           bias->info.shape.rank == 1 &&
           bias->info.shape.dims[0] == product->info.shape.dims[product->info.shape.rank - 1];
}

static void fuse_bias(struct program *program, struct value *add) {
    for (int i = 0; i < 2; i++) {
        if (!fuses(program, add, i)) continue;
        const node bias = add->info.input[1 - i];
        struct value *product = &program->values[add->info.input[i]];
        add->info.op = with_bias(product->info.op);
        add->info.attributes = product->info.attributes;
        add->info.attributes.activation = ACTIVATION_NONE;
        add->info.inputs = 3;
        add->info.input[0] = product->info.input[0];
        add->info.input[1] = product->info.input[1];
        add->info.input[2] = bias;
        product->kept = false;
        return;
    }
}

static void fuse_activation(struct program *program, struct value *activation, enum activation kind) {
    struct value *layer = &program->values[activation->info.input[0]];
    if ((layer->info.op != OP_dense && layer->info.op != OP_conv2d_bias) ||
        layer->info.attributes.activation != ACTIVATION_NONE || !only_for_us(layer))
        return;
    activation->info.op = layer->info.op;
    activation->info.attributes = layer->info.attributes;
    activation->info.attributes.activation = kind;
    activation->info.inputs = 3;
    for (int i = 0; i < 3; i++) activation->info.input[i] = layer->info.input[i];
    layer->kept = false;
}

/* Where the relu gave 0 its gradient is 0, and x of the lrn_grad is what the relu gave. */
static void fuse_relu_grad(struct program *program, struct value *relu_grad) {
    struct value *lrn_grad = &program->values[relu_grad->info.input[1]];
    const node y = relu_grad->info.input[0];
    if (lrn_grad->info.op != OP_lrn_grad || lrn_grad->info.input[0] != y || !only_for_us(lrn_grad)) return;
    relu_grad->info.op = OP_lrn_grad;
    relu_grad->info.attributes = lrn_grad->info.attributes;
    relu_grad->info.attributes.activation = ACTIVATION_RELU;
    relu_grad->info.input[1] = lrn_grad->info.input[1];
    program->values[y].readers--;
    lrn_grad->kept = false;
}

/* In the gradient of a maxpool all but one element a window are 0. The gradient of a small kernel, as of a
 * first layer, is found faster from those alone, and the rest need never be written. The sums of a large
 * kernel would not stay in the nearest cache. */
enum { SMALL_KERNEL = 8192 };

static void fuse_pool_grad(struct program *program, struct value *value) {
    struct value *pool = &program->values[value->info.input[1]];
    const struct attributes *attributes = &pool->info.attributes;
    const struct shape *x = &program->values[value->info.input[0]].info.shape, *kernel = &value->info.shape;
    if (pool->info.op != OP_maxpool_grad || !only_for_us(pool) || convolution_groups(x, kernel) > 1 ||
        shape_count(kernel) > SMALL_KERNEL || !has_kernel(program, OP_conv2d_pool_grad_kernel))
        return;
    value->info.op = OP_conv2d_pool_grad_kernel;
    value->info.inputs = 3;
    value->info.input[1] = pool->info.input[0];
    value->info.input[2] = pool->info.input[1];
    value->info.attributes.pool = (struct pooling){.window = {attributes->window[0], attributes->window[1]},
                                                   .stride = {attributes->stride[0], attributes->stride[1]},
                                                   .padding = attributes->padding};
    pool->kept = false;
}

/* Where nothing is launched another instruction costs next to nothing, and sums keep their bits. A device
 * that records has kernels that know of all this; what runs softly instead knows of none. */
static bool is_loss_fused(const struct program *program, node logits) {
    return program->device->backend->record && has_kernel(program, OP_softmax_cross_entropy) &&
           !program->device->without[OP_softmax_cross_entropy] &&
           !program->device->without[OP_softmax_cross_entropy_grad] &&
           shape_count(&program->values[logits].info.shape) <= INT32_MAX;
}

static void fuse_mean_loss(struct program *program, struct value *mean) {
    struct value *loss = &program->values[mean->info.input[0]];
    if (loss->info.op != OP_softmax_cross_entropy || !is_loss_fused(program, loss->info.input[0]) ||
        mean->info.shape.rank > 0 || !only_for_us(loss))
        return;
    mean->info.op = loss->info.op;
    mean->info.attributes = loss->info.attributes;
    mean->info.inputs = loss->info.inputs;
    for (int i = 0; i < loss->info.inputs; i++) mean->info.input[i] = loss->info.input[i];
    loss->kept = false;
}

static void fuse_slope(struct program *program, struct value *grad) {
    struct value *slopes = &program->values[grad->info.input[2]];
    if (!is_loss_fused(program, grad->info.input[0]) || slopes->info.op != OP_broadcast_to ||
        !only_for_us(slopes) || program->values[slopes->info.input[0]].info.shape.rank > 0)
        return;
    grad->info.input[2] = slopes->info.input[0];
    slopes->kept = false;
}

/* The mean of a loss and the gradient of the logits are both made of a row's exponentials. An instruction has
 * one result, so the mean's gets the slope, which is known before anything runs, and the gradient as
 * operands, and writes the latter. For all the rest of the program the gradient is then a value that comes
 * from elsewhere: no instruction makes it, and its memory is its own. */
static void fuse_loss_grad(struct program *program, node n) {
    struct value *grad = &program->values[n];
    const struct node_info *info = &grad->info;
    const struct value *slope = &program->values[info->input[2]];
    if (!is_loss_fused(program, info->input[0]) || grad->fetched || slope->info.op != OP_constant ||
        slope->info.shape.rank > 0)
        return;
    for (node m = 0; m < n; m++) {
        struct value *mean = &program->values[m];
        if (!mean->kept || mean->info.op != OP_softmax_cross_entropy || mean->info.shape.rank > 0 ||
            mean->info.inputs != 2 || mean->info.input[0] != info->input[0] ||
            mean->info.input[1] != info->input[1] ||
            memcmp(&mean->info.attributes.smoothing, &info->attributes.smoothing, sizeof(float)) != 0)
            continue;
        program->values[info->input[0]].readers--;
        program->values[info->input[1]].readers--;
        mean->info.input[2] = info->input[2];
        mean->info.input[3] = n;
        mean->info.inputs = 4;
        grad->info.op = OP_placeholder;
        grad->info.inputs = 0;
        grad->readers++;
        return;
    }
}

/* The variable whose dot product with itself node n is, or NONE. */
static node squared_variable(const struct program *program, node n) {
    const struct value *scalar = &program->values[n];
    if (scalar->info.op != OP_reshape || scalar->info.shape.rank != 0 || !only_for_us(scalar)) return NONE;
    const struct value *product = &program->values[scalar->info.input[0]];
    if (product->info.op != OP_matmul || product->info.input[0] != product->info.input[1] ||
        !product->info.attributes.transpose_b || !only_for_us(product))
        return NONE;
    const struct value *row = &program->values[product->info.input[0]];
    if (row->info.op != OP_reshape || row->readers != 2 || row->fetched || row->info.shape.dims[0] != 1)
        return NONE;
    const node variable = row->info.input[0];
    return program->values[variable].info.op == OP_variable ? variable : NONE;
}

/* A share of the squares of a variable. On a CPU a product of matrices is as good, and of the same bits as
 * ever. */
static void fuse_squares(struct program *program, struct value *mul) {
    struct value *factor = &program->values[mul->info.input[1]];
    if (!device_apart(program->device) || !has_kernel(program, OP_decayed) || mul->info.shape.rank != 0)
        return;
    if (factor->info.op != OP_constant || factor->info.shape.rank != 0) return;
    const node squares = mul->info.input[0], variable = squared_variable(program, squares);
    if (variable == NONE) return;
    const node product = program->values[squares].info.input[0];
    program->values[squares].kept = program->values[product].kept = false;
    program->values[program->values[product].info.input[0]].kept = false;
    if (--factor->readers == 0 && !factor->fetched) factor->kept = false;
    mul->info.op = OP_decayed;
    mul->info.attributes = (struct attributes){.share = *(const float *)factor->info.constant, .keep = true};
    mul->info.inputs = 1;
    mul->info.input[0] = variable;
}

/* The loss plus that; with that of others before it where their shares are the same. */
static void fuse_decay(struct program *program, struct value *add) {
    struct value *part = &program->values[add->info.input[1]], *before = &program->values[add->info.input[0]];
    if (add->info.shape.rank != 0 || part->info.op != OP_decayed || !only_for_us(part)) return;
    const node variable = part->info.input[0];
    part->kept = false;
    add->info.op = OP_decayed;
    add->info.attributes = part->info.attributes;
    add->info.attributes.keep = false;
    add->info.inputs = 1;
    if (before->info.op == OP_decayed && !before->info.attributes.keep && only_for_us(before) &&
        before->info.inputs < MAX_INPUTS &&
        memcmp(&before->info.attributes.share, &add->info.attributes.share, sizeof(float)) == 0) {
        add->info.inputs = before->info.inputs;
        memcpy(add->info.input, before->info.input, sizeof add->info.input);
        before->kept = false;
    }
    add->info.input[add->info.inputs++] = variable;
}

void program_fuse(struct program *program) {
    if (program->assigns) return;
    for (node n = 0; n < program->count; n++) {
        struct value *value = &program->values[n];
        if (!value->kept) continue;
        switch (value->info.op) {
        case OP_add:
            fuse_bias(program, value);
            fuse_decay(program, value);
            break;
        case OP_mul:
            fuse_squares(program, value);
            break;
        case OP_relu:
            fuse_activation(program, value, ACTIVATION_RELU);
            break;
        case OP_relu_grad:
            fuse_relu_grad(program, value);
            break;
        case OP_conv2d_grad_kernel:
            fuse_pool_grad(program, value);
            break;
        case OP_reduce_mean:
            fuse_mean_loss(program, value);
            break;
        case OP_softmax_cross_entropy_grad:
            fuse_slope(program, value);
            fuse_loss_grad(program, n);
            break;
        case OP_sigmoid:
            fuse_activation(program, value, ACTIVATION_SIGMOID);
            break;
        case OP_tanh:
            fuse_activation(program, value, ACTIVATION_TANH);
            break;
        default:
            break;
        }
    }
}
