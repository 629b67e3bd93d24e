/* Reference kernels: elementwise with two operands that broadcast, one for each row BINARY of ops.def. The
 * output may lie over the first operand when both have its shape (assign_add). */
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
        const struct problem *problem = call->problem;                                                       \
        struct walk walk;                                                                                    \
        walk_broadcast(&walk, &problem->output.shape, &problem->input[0].shape, &problem->input[1].shape);   \
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
    return call->problem->input[0].type == TYPE_INT;
}

/* By the types of a row. */
#define RUN_number(name) ints(call) ? on_ints(call, formula_##name##_int) : on_floats(call, formula_##name)
#define RUN_float(name) on_floats(call, formula_##name)
#define RUN_truth(name)                                                                                      \
    ints(call) ? compare_ints(call, formula_##name##_int) : compare_floats(call, formula_##name)

#define BINARY(op, types, ...)                                                                               \
    static int run_##op(const struct call *call, struct error *error) {                                      \
        (void)error;                                                                                         \
        return RUN_##types(op);                                                                              \
    }                                                                                                        \
    const struct kernel reference_##op = {.name = "reference:" #op, .run = run_##op};
#include "../graph/ops.def"
