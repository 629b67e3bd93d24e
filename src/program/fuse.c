/* Fusion: matmul, the add of a bias and the activation become one `dense`, which writes the result once where
 * three steps would write and read it three times.
 *
 * It takes the place of the last of them. It is done when nobody else wants the values in between; the
 * gradients do not, as they are computed from the activation's result. On a device without kernels for
 * `dense` the three stay what they are. */
#include "parts.h"

static bool only_for_us(const struct value *value) {
    return value->readers == 1 && !value->fetched;
}

/* Is operand i of the add a matmul that can be fused with the other operand as its bias? */
static bool fuses(const struct program *program, const struct value *add, int i) {
    const struct value *product = &program->values[add->info.input[i]];
    const struct value *bias = &program->values[add->info.input[1 - i]];
    return product->info.op == OP_matmul && only_for_us(product) && !product->info.attributes.transpose_a &&
           !product->info.attributes.transpose_b && bias->info.shape.rank == 1 &&
           bias->info.shape.dims[0] == product->info.shape.dims[1];
}

static void fuse_bias(struct program *program, struct value *add) {
    for (int i = 0; i < 2; i++) {
        if (!fuses(program, add, i)) continue;
        const node bias = add->info.input[1 - i];
        struct value *product = &program->values[add->info.input[i]];
        add->info.op = OP_dense;
        add->info.attributes = (struct attributes){.activation = ACTIVATION_NONE};
        add->info.inputs = 3;
        add->info.input[0] = product->info.input[0];
        add->info.input[1] = product->info.input[1];
        add->info.input[2] = bias;
        product->kept = false;
        return;
    }
}

static void fuse_activation(struct program *program, struct value *activation, enum activation kind) {
    struct value *dense = &program->values[activation->info.input[0]];
    if (dense->info.op != OP_dense || dense->info.attributes.activation != ACTIVATION_NONE ||
        !only_for_us(dense))
        return;
    activation->info.op = OP_dense;
    activation->info.attributes = (struct attributes){.activation = kind};
    activation->info.inputs = 3;
    for (int i = 0; i < 3; i++) activation->info.input[i] = dense->info.input[i];
    dense->kept = false;
}

void program_fuse(struct program *program) {
    if (program->assigns || !program->device->backend->kernels(program->device, OP_dense)[0]) return;
    for (node n = 0; n < program->count; n++) {
        struct value *value = &program->values[n];
        if (!value->kept) continue;
        switch (value->info.op) {
        case OP_add:
            fuse_bias(program, value);
            break;
        case OP_relu:
            fuse_activation(program, value, ACTIVATION_RELU);
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
