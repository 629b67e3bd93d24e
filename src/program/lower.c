/* Lowering: on a device that is to compute in bf16, which values are kept in it.
 *
 * They are the values between layers that one of the operations below computes and that only such
 * operations read. Everything else stays float32: weights, their gradients, losses and sums. A kernel
 * converts where the two types meet. What no kernel of the device takes is widened again. */
#include "../base/memory.h"
#include "passes.h"

/* Their kernels read and write bf16. */
static bool writes_narrow(enum op op) {
    switch (op) {
    case OP_matmul:
    case OP_dense:
    case OP_conv2d:
    case OP_conv2d_bias:
    case OP_conv2d_grad_x:
    case OP_maxpool:
    case OP_maxpool_grad:
    case OP_lrn:
    case OP_lrn_grad:
    case OP_relu_grad:
    case OP_gelu:
    case OP_gelu_grad:
    case OP_batch_norm:
    case OP_batch_norm_grad:
        return true;
    default:
        return false;
    }
}

static bool reads_narrow(const struct program *program, node n) {
    const struct node_info *info = &program->values[n].info;
    if (info->op == OP_reduce_sum) /* rows, as the gradient of a bias sums them */
        return info->attributes.axis == 0 && info->shape.rank == 1;
    return writes_narrow(info->op) || info->op == OP_conv2d_grad_kernel ||
           info->op == OP_conv2d_pool_grad_kernel || info->op == OP_moments || info->op == OP_batch_norm_sums;
}

static bool is_instruction(const struct value *value, node n) {
    return value->kept && !is_source(value->info.op) && value->root == n;
}

/* narrow [values]: of roots. */
static void find_narrow(const struct program *program, bool *narrow) {
    for (node n = 0; n < program->count; n++) {
        const struct value *value = &program->values[n];
        narrow[n] = is_instruction(value, n) && writes_narrow(value->info.op) &&
                    value->info.shape.rank >= 2 && value->place.base == BASE_ARENA;
    }
    for (node n = 0; n < program->count; n++) {
        const struct value *value = &program->values[n];
        if (!value->kept) continue;
        if (value->fetched) narrow[value->root] = false;
        if (is_instruction(value, n) && !reads_narrow(program, n))
            for (int i = 0; i < value->info.inputs; i++)
                narrow[program->values[value->info.input[i]].root] = false;
    }
}

/* Sets the types of all values that are float32 or bf16. */
static void set_types(struct program *program, const bool *narrow) {
    for (node n = 0; n < program->count; n++) {
        struct value *value = &program->values[n];
        if (!value->kept || (value->info.type != TYPE_FLOAT && value->info.type != TYPE_BF16)) continue;
        value->info.type = narrow[value->root] ? TYPE_BF16 : TYPE_FLOAT;
    }
}

/* Widens what an instruction that has no kernel reads and writes; whether there was anything to widen. */
static bool widen(const struct program *program, node n, bool *narrow) {
    const struct value *value = &program->values[n];
    bool any = narrow[n];
    narrow[n] = false;
    for (int i = 0; i < value->info.inputs; i++) {
        bool *operand = &narrow[program->values[value->info.input[i]].root];
        any = any || *operand;
        *operand = false;
    }
    return any;
}

static int lower(struct program *program, bool *narrow, struct error *error) {
    find_narrow(program, narrow);
    for (bool again = true; again;) {
        again = false;
        set_types(program, narrow);
        for (node n = 0; n < program->count; n++) {
            if (!is_instruction(&program->values[n], n) || is_transfer(program->values[n].info.op)) continue;
            const int code = program_takes(program, n, error);
            if (code == KERNEL_DECLINED)
                again = widen(program, n, narrow) || again;
            else if (code != OK)
                return code;
        }
    }
    return OK;
}

int program_lower(struct program *program, struct error *error) {
    if (program->device->precision != PRECISION_BF16) return OK;
    bool *narrow = NULL;
    RETURN_IF(memory_array(&narrow, program->count, "narrow values", error));
    const int code = lower(program, narrow, error);
    memory_free(narrow);
    return code;
}
