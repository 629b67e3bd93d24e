/* The loss with what the decay of the weights adds to it, by the kernels of decayed.cu: the weights are read
 * where they lie, in float32 whatever the precision is. */
#include "problem.h"

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    (void)plan;
    return gpu_scratch_open(problem, (size_t)problem->inputs * SQUARES_PARTS * sizeof(float), instance,
                            error);
}

static int run(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    const int first = problem->attributes->keep ? 0 : 1;
    struct gpu_squares of = {.count = problem->inputs - first};
    _Static_assert((int)SQUARES_VALUES >= (int)MAX_INPUTS, "a launch takes all operands");
    for (int i = 0; i < of.count; i++) {
        of.values[i] = call->input[i + first];
        of.floats[i] = gpu_count(&problem->input[i + first].shape);
    }
    GPU_RUN(call, queue,
            launch_decayed(queue->stream, &of, first ? call->input[0] : NULL, problem->attributes->share,
                           call->output, gpu_scratch_of(call)),
            error);
}

const struct kernel gpu_decayed = {.name = "cuda:decayed",
                                   .prepare = gpu_wide,
                                   .bind = bind,
                                   .unbind = gpu_scratch_close,
                                   .run = run,
                                   .writes_host = true};
