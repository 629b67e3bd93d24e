/* The loss with what the decay of the weights adds to it, by the kernels of decayed.cu: the weights are read
 * where they lie, in float32 whatever the precision is. */
#include "problem.h"

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    (void)plan;
    return gpu_scratch_open(problem, SQUARES_PARTS * sizeof(float), instance, error);
}

static int run(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    struct gpu_squares of = {.count = problem->inputs - 1};
    _Static_assert(SQUARES_VALUES >= MAX_INPUTS - 1, "a launch takes all operands");
    for (int i = 0; i < of.count; i++) {
        of.values[i] = call->input[i + 1];
        of.floats[i] = gpu_count(&problem->input[i + 1].shape);
    }
    GPU_RUN(call, queue,
            launch_decayed(queue->stream, &of, call->input[0], problem->attributes->share, call->output,
                           gpu_scratch_of(call)),
            error);
}

const struct kernel gpu_decayed = {
    .name = "cuda:decayed", .prepare = gpu_wide, .bind = bind, .unbind = gpu_scratch_close, .run = run};
