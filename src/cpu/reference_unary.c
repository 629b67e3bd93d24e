/* Reference kernels: elementwise with one operand and the gradients of the activations, one for each row
 * UNARY and SLOPE of ops.def; casts, copies and dropout. */
#include <string.h>
#include "../device/formulas.h"
#include "bf16.h"
#include "reference.h"

/* y = formula(x) for each element. */
INLINED int map(const struct call *call, float (*formula)(float)) {
    const size_t count = shape_count(&call->problem->output.shape);
    const float *x = call->input[0];
    float *restrict y = call->output;
    for (size_t i = 0; i < count; i++) y[i] = formula(x[i]);
    return OK;
}

/* dx = formula(y, dy) for each element. */
INLINED int map_gradient(const struct call *call, float (*formula)(float, float)) {
    const size_t count = shape_count(&call->problem->output.shape);
    const float *y = call->input[0], *dy = call->input[1];
    float *restrict dx = call->output;
    for (size_t i = 0; i < count; i++) dx[i] = formula(y[i], dy[i]);
    return OK;
}

#define UNARY(op, ...)                                                                                       \
    static int run_##op(const struct call *call, struct error *error) {                                      \
        (void)error;                                                                                         \
        return map(call, formula_##op);                                                                      \
    }                                                                                                        \
    const struct kernel reference_##op = {.name = "reference:" #op, .run = run_##op};
#define SLOPE(op)                                                                                            \
    static int run_##op(const struct call *call, struct error *error) {                                      \
        (void)error;                                                                                         \
        return map_gradient(call, formula_##op);                                                             \
    }                                                                                                        \
    const struct kernel reference_##op = {.name = "reference:" #op, .run = run_##op};
#include "../graph/ops.def"

INLINED int relu_grad(const struct call *call, enum type y_type, enum type dy_type, enum type dx_type) {
    const size_t count = shape_count(&call->problem->output.shape);
    const void *y = call->input[0], *dy = call->input[1];
    void *restrict dx = call->output;
    for (size_t i = 0; i < count; i++)
        store(dx, dx_type, i, formula_relu_grad(load(y, y_type, i), load(dy, dy_type, i)));
    return OK;
}

static int run_relu_grad(const struct call *call, struct error *error) {
    (void)error;
    const enum type y = call->problem->input[0].type, dy = call->problem->input[1].type,
                    dx = call->problem->output.type;
    if (y == TYPE_BF16 && dy == TYPE_BF16 && dx == TYPE_BF16)
        return relu_grad(call, TYPE_BF16, TYPE_BF16, TYPE_BF16);
    if (y == TYPE_BF16 || dy == TYPE_BF16 || dx == TYPE_BF16) return relu_grad(call, y, dy, dx);
    return map_gradient(call, formula_relu_grad);
}
const struct kernel reference_relu_grad = {.name = "reference:relu_grad", .run = run_relu_grad};

static void copy_operand(const struct call *call, int i) {
    const struct problem *problem = call->problem;
    const size_t bytes = shape_count(&problem->output.shape) * type_bytes(problem->output.type);
    if (call->output != call->input[i]) memcpy(call->output, call->input[i], bytes);
}

static int run_copy(const struct call *call, struct error *error) {
    (void)error;
    copy_operand(call, 0);
    return OK;
}
const struct kernel reference_copy = {.name = "reference:copy", .run = run_copy};

/* Variable, value: the value over the variable, which is where the output is. */
static int run_assign(const struct call *call, struct error *error) {
    (void)error;
    copy_operand(call, 1);
    return OK;
}
const struct kernel reference_assign = {.name = "reference:assign", .run = run_assign};

/* Between two different types; a bool is 0 or 1, and what is not 0 is true. */
static int run_cast(const struct call *call, struct error *error) {
    (void)error;
    const enum type from = call->problem->input[0].type, to = call->problem->output.type;
    const size_t count = shape_count(&call->problem->output.shape);
    const float *floats = call->input[0];
    const int *ints = call->input[0];
    const uint8_t *bools = call->input[0];
    float *to_floats = call->output;
    int *to_ints = call->output;
    uint8_t *to_bools = call->output;
    if (from == to) copy_operand(call, 0);
    for (size_t i = 0; i < count && from != to; i++) switch (to) {
        case TYPE_FLOAT:
            to_floats[i] = from == TYPE_INT ? (float)ints[i] : (float)bools[i];
            break;
        case TYPE_INT:
            to_ints[i] = from == TYPE_FLOAT ? formula_int(floats[i]) : bools[i];
            break;
        case TYPE_BOOL:
            to_bools[i] = from == TYPE_FLOAT ? floats[i] != 0.0f : ints[i] != 0;
            break;
        case TYPE_BF16: /* no graph has it */
            break;
        }
    return OK;
}
const struct kernel reference_cast = {.name = "reference:cast", .run = run_cast};

/* x, step (int scalar). */
static int run_dropout(const struct call *call, struct error *error) {
    (void)error;
    const size_t count = shape_count(&call->problem->output.shape);
    const struct attributes *attributes = call->problem->attributes;
    const float *x = call->input[0];
    const int step = *(const int *)call->input[1];
    float *y = call->output;
    for (size_t i = 0; i < count; i += 4) {
        const struct rng_block draw = formula_dropout_draw(attributes->seed, step, i / 4);
        const size_t words = count - i < 4 ? count - i : 4;
        for (size_t k = 0; k < words; k++)
            y[i + k] = formula_dropout(x[i + k], draw.word[k], attributes->rate);
    }
    return OK;
}
const struct kernel reference_dropout = {.name = "reference:dropout", .run = run_dropout};
