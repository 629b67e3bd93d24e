/* GPU kernels of nets.cu: their descriptors. */
#include "problem.h"

static struct gpu_rows rows_of(const struct problem *problem) {
    const struct shape *shape = &problem->input[0].shape;
    const uint32_t length = (uint32_t)shape->dims[shape->rank - 1];
    return (struct gpu_rows){gpu_count(shape) / length, length};
}

static int run_softmax(const struct call *call, struct error *error) {
    GPU_RUN(call, queue, launch_softmax(queue->stream, rows_of(call->problem), call->input[0], call->output),
            error);
}
const struct kernel gpu_softmax = {.name = "cuda:softmax", .prepare = gpu_wide, .run = run_softmax};

static int run_softmax_grad(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_softmax_grad(queue->stream, rows_of(call->problem), call->input[0], call->input[1],
                                call->output),
            error);
}
const struct kernel gpu_softmax_grad = {
    .name = "cuda:softmax_grad", .prepare = gpu_wide, .run = run_softmax_grad};

static int run_cross_entropy(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_cross_entropy(queue->stream, rows_of(call->problem), call->input[0], call->input[1],
                                 call->output),
            error);
}
const struct kernel gpu_cross_entropy = {
    .name = "cuda:cross_entropy", .prepare = gpu_wide, .run = run_cross_entropy};

static int run_cross_entropy_grad(const struct call *call, struct error *error) {
    GPU_RUN(call, queue,
            launch_cross_entropy_grad(queue->stream, rows_of(call->problem), call->input[0], call->input[1],
                                      call->input[2], call->output),
            error);
}
const struct kernel gpu_cross_entropy_grad = {
    .name = "cuda:cross_entropy_grad", .prepare = gpu_wide, .run = run_cross_entropy_grad};

/* --- softmax and cross entropy together. A scalar result is the mean of the losses; then there may be two
 * more operands, a slope for all rows and the gradient of the logits, which is written (src/program/fuse.c)
 * --- */

static bool is_mean(const struct problem *problem) {
    return problem->output.shape.rank == 0;
}

/* Whether one block is enough for the mean: a thread of it has some rows, and is done as soon as a second
 * launch would begin. */
static bool is_for_one_block(struct gpu_rows rows) {
    return rows.rows <= 1024 && rows.length <= 64;
}

/* The losses, where they are no result. */
static int bind_softmax_cross_entropy(const struct problem *problem, const void *plan, void **instance,
                                      struct error *error) {
    const struct gpu_rows rows = rows_of(problem);
    (void)plan;
    return gpu_scratch_open(problem,
                            is_mean(problem) && !is_for_one_block(rows) ? rows.rows * sizeof(float) : 0,
                            instance, error);
}

static int run_mean(const struct call *call, cudaStream_t stream, const float *losses, struct error *error) {
    const uint32_t rows = rows_of(call->problem).rows;
    struct gpu_view all = gpu_passes_of(1, rows, 1, 1, 1).view[0];
    all.chunks = 1;
    GPU_TRY(call->problem->device, launch_sum(stream, all, losses, call->output, (float)rows), error);
    return OK;
}

static int run_softmax_cross_entropy(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    const struct gpu_rows rows = rows_of(problem);
    const float smoothing = problem->attributes->smoothing, *logits = call->input[0];
    const int *labels = call->input[1];
    const float *slope = problem->inputs > 2 ? call->input[2] : NULL;
    float *gradient = problem->inputs > 2 ? (float *)call->input[3] : NULL;
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (is_mean(problem) && is_for_one_block(rows)) {
        GPU_TRY(problem->device,
                launch_mean_softmax_cross_entropy(queue->stream, rows, logits, labels, smoothing,
                                                  call->output, slope, gradient),
                error);
        return OK;
    }
    float *losses = is_mean(problem) ? gpu_scratch_of(call) : call->output;
    GPU_TRY(problem->device,
            launch_softmax_cross_entropy(queue->stream, rows, logits, labels, smoothing, losses), error);
    if (is_mean(problem)) RETURN_IF(run_mean(call, queue->stream, losses, error));
    if (gradient)
        GPU_TRY(problem->device,
                launch_softmax_cross_entropy_grad(queue->stream, rows, logits, labels, smoothing, slope, 0,
                                                  gradient),
                error);
    return OK;
}
const struct kernel gpu_softmax_cross_entropy = {.name = "cuda:softmax_cross_entropy",
                                                 .prepare = gpu_wide,
                                                 .bind = bind_softmax_cross_entropy,
                                                 .unbind = gpu_scratch_close,
                                                 .run = run_softmax_cross_entropy,
                                                 .writes_host = true};

static int run_softmax_cross_entropy_grad(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    GPU_RUN(call, queue,
            launch_softmax_cross_entropy_grad(queue->stream, rows_of(problem), call->input[0], call->input[1],
                                              problem->attributes->smoothing, call->input[2],
                                              problem->input[2].shape.rank > 0, call->output),
            error);
}
const struct kernel gpu_softmax_cross_entropy_grad = {
    .name = "cuda:softmax_cross_entropy_grad", .prepare = gpu_wide, .run = run_softmax_cross_entropy_grad};
