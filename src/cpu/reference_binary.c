/* Reference kernels: elementwise with two operands that broadcast. The output may lie over the first operand
 * when both have its shape (assign_add). */
#include "../device/formulas.h"
#include "reference.h"

/* The same two loops for each pair of types: a row of the walk (each operand runs along it or stands still),
 * and all rows. */
#define DEFINE_BINARY(name, in, out)                                                                         \
    INLINED void name##_row(size_t length, const in *a, size_t step_a, const in *b, size_t step_b, out *y,   \
                            out (*formula)(in, in)) {                                                        \
        if (step_a && step_b) {                                                                              \
            for (size_t i = 0; i < length; i++) y[i] = formula(a[i], b[i]);                                  \
        } else if (step_a) {                                                                                 \
            const in right = *b;                                                                             \
            for (size_t i = 0; i < length; i++) y[i] = formula(a[i], right);                                 \
        } else if (step_b) {                                                                                 \
            const in left = *a;                                                                              \
            for (size_t i = 0; i < length; i++) y[i] = formula(left, b[i]);                                  \
        } else {                                                                                             \
            const out value = formula(*a, *b);                                                               \
            for (size_t i = 0; i < length; i++) y[i] = value;                                                \
        }                                                                                                    \
    }                                                                                                        \
    INLINED int name(const struct call *call, out (*formula)(in, in)) {                                      \
        const struct task *task = call->task;                                                                \
        struct walk walk;                                                                                    \
        walk_broadcast(&walk, &task->output.shape, &task->input[0].shape, &task->input[1].shape);            \
        const in *a = call->input[0], *b = call->input[1];                                                   \
        const int last = walk.rank - 1;                                                                      \
        const size_t length = walk.dims[last];                                                               \
        out *y = call->output;                                                                               \
        for (size_t row = 0; row < walk.rows; row++, y += length, walk_row(&walk))                           \
            name##_row(length, a + walk.offset[0], walk.stride[0][last], b + walk.offset[1],                 \
                       walk.stride[1][last], y, formula);                                                    \
        return OK;                                                                                           \
    }

DEFINE_BINARY(on_floats, float, float)
DEFINE_BINARY(on_ints, int, int)
DEFINE_BINARY(compare_floats, float, uint8_t)
DEFINE_BINARY(compare_ints, int, uint8_t)

static bool ints(const struct call *call) {
    return call->task->input[0].type == TYPE_INT;
}

static int run_add(const struct call *call, struct error *error) {
    (void)error;
    return ints(call) ? on_ints(call, formula_add_int) : on_floats(call, formula_add);
}
const struct kernel reference_add = {.name = "reference:add", .run = run_add};

static int run_sub(const struct call *call, struct error *error) {
    (void)error;
    return ints(call) ? on_ints(call, formula_sub_int) : on_floats(call, formula_sub);
}
const struct kernel reference_sub = {.name = "reference:sub", .run = run_sub};

static int run_mul(const struct call *call, struct error *error) {
    (void)error;
    return ints(call) ? on_ints(call, formula_mul_int) : on_floats(call, formula_mul);
}
const struct kernel reference_mul = {.name = "reference:mul", .run = run_mul};

static int run_div(const struct call *call, struct error *error) {
    (void)error;
    return on_floats(call, formula_div);
}
const struct kernel reference_div = {.name = "reference:div", .run = run_div};

static int run_pow(const struct call *call, struct error *error) {
    (void)error;
    return on_floats(call, formula_pow);
}
const struct kernel reference_pow = {.name = "reference:pow", .run = run_pow};

static int run_greater(const struct call *call, struct error *error) {
    (void)error;
    return ints(call) ? compare_ints(call, formula_greater_int) : compare_floats(call, formula_greater);
}
const struct kernel reference_greater = {.name = "reference:greater", .run = run_greater};

static int run_less(const struct call *call, struct error *error) {
    (void)error;
    return ints(call) ? compare_ints(call, formula_less_int) : compare_floats(call, formula_less);
}
const struct kernel reference_less = {.name = "reference:less", .run = run_less};

static int run_equal(const struct call *call, struct error *error) {
    (void)error;
    return ints(call) ? compare_ints(call, formula_equal_int) : compare_floats(call, formula_equal);
}
const struct kernel reference_equal = {.name = "reference:equal", .run = run_equal};
