/* The elementwise rows of ops.def, for tests that walk them, so that none is forgotten. */
#ifndef TRAINER_TESTS_ELEMENTWISE_H
#define TRAINER_TESTS_ELEMENTWISE_H

#include "../src/device/formulas.h"
#include "../src/graph/graph.h"

static const struct elementwise {
    enum op op;
    int inputs;
    bool slope;            /* its two operands have one shape */
    float (*unary)(float); /* one of these three formulas */
    float (*binary)(float, float);
    uint8_t (*truth)(float, float);
    int (*binary_int)(int, int); /* NULL: float32 only */
    uint8_t (*truth_int)(int, int);
    const char *gradient; /* of the first operand, as the row has it */
} elementwise_rows[] = {
#define ROW_float(name) .binary = formula_##name
#define ROW_number(name) .binary = formula_##name, .binary_int = formula_##name##_int
#define ROW_truth(name) .truth = formula_##name, .truth_int = formula_##name##_int
#define UNARY(name, dx) {.op = OP_##name, .inputs = 1, .unary = formula_##name, .gradient = #dx},
#define BINARY(name, types, da, ...) {.op = OP_##name, .inputs = 2, ROW_##types(name), .gradient = #da},
#define SLOPE(name) {.op = OP_##name, .inputs = 2, .slope = true, ROW_float(name), .gradient = "NONE"},
#include "../src/graph/ops.def"
};
enum { ROWS = sizeof elementwise_rows / sizeof *elementwise_rows };

static inline bool takes_ints(const struct elementwise *row) {
    return row->binary_int || row->truth_int;
}

#endif
