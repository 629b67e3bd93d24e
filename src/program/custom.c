/* The kernel of operations that a program brings itself (src/graph/custom.h). */
#include "../graph/custom.h"
#include "passes.h"

static int run_custom(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    const struct custom *custom = problem->attributes->custom;
    const float *operands[MAX_INPUTS] = {NULL};
    struct shape shapes[MAX_INPUTS];
    for (int i = 0; i < problem->inputs; i++) {
        operands[i] = call->input[i];
        shapes[i] = problem->input[i].shape;
    }
    const char *wrong = custom->compute(custom->self, operands, shapes, problem->inputs, call->output,
                                        &problem->output.shape);
    return wrong ? error_set(error, ERROR_DEVICE, "%s: %s", custom->name, wrong) : OK;
}
const struct kernel program_custom = {.name = "program:custom", .prepare = program_here, .run = run_custom};
