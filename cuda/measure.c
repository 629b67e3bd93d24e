/* The one place where a choice depends on time: of several algorithms for the same problem, each is run a few
 * times on memory of its size, and the fastest is taken.
 *
 * Two algorithms add up in different orders, so two runs of the program that choose differently differ in the
 * last bits of what they compute. Each algorithm that takes part is run here at least once; so its code is on
 * the GPU before anything is recorded. */
#include "measure.h"

/* Runs are timed until this has been spent on an algorithm. */
static const float ENOUGH_MS = 1.0f;
enum { MOST_RUNS = 10, BOUNDARY = 256 };

size_t gpu_part(size_t *bytes, size_t more) {
    const size_t begin = *bytes;
    *bytes += (more + BOUNDARY - 1) / BOUNDARY * BOUNDARY;
    return begin;
}

/* The problem's operands and its result, somewhere in one block. */
struct stage {
    const struct device *device;
    void *block;
    cudaEvent_t begin, end;
    struct call call;
};

static void close_stage(struct stage *stage) {
    if (stage->begin) cudaEventDestroy(stage->begin);
    if (stage->end) cudaEventDestroy(stage->end);
    if (stage->block) gpu_release(stage->device, stage->block);
}

static int open_stage(struct stage *stage, const struct problem *problem, struct error *error) {
    size_t bytes = 0, begin[MAX_INPUTS + 1];
    for (int i = 0; i <= problem->inputs; i++) {
        const struct shape *shape = i < problem->inputs ? &problem->input[i].shape : &problem->output.shape;
        const enum type type = i < problem->inputs ? problem->input[i].type : problem->output.type;
        begin[i] = gpu_part(&bytes, shape_count(shape) * type_bytes(type));
    }
    RETURN_IF(gpu_allocate(stage->device, &stage->block, bytes, "operands to measure with", error));
    GPU_TRY(stage->device, cudaEventCreateWithFlags(&stage->begin, cudaEventDefault), error);
    GPU_TRY(stage->device, cudaEventCreateWithFlags(&stage->end, cudaEventDefault), error);
    stage->call.problem = problem;
    for (int i = 0; i < problem->inputs; i++) stage->call.input[i] = (char *)stage->block + begin[i];
    stage->call.output = (char *)stage->block + begin[problem->inputs];
    return OK;
}

/* Milliseconds that `runs` runs take. */
static int time_runs(const struct stage *stage, const struct contest *contest, int runs, float *ms,
                     struct error *error) {
    const struct queue *queue = gpu_queue(stage->device, error);
    if (!queue) return error->code;
    GPU_TRY(stage->device, cudaEventRecord(stage->begin, queue->stream), error);
    for (int i = 0; i < runs; i++) RETURN_IF(contest->run(&stage->call, error));
    GPU_TRY(stage->device, cudaEventRecord(stage->end, queue->stream), error);
    GPU_TRY(stage->device, cudaEventSynchronize(stage->end), error);
    GPU_TRY(stage->device, cudaEventElapsedTime(ms, stage->begin, stage->end), error);
    return OK;
}

/* Milliseconds of one run, after one that is not counted; one that is far behind the best is not run on.
 * Where the first that runs is taken, that one is enough. */
static int time_algorithm(const struct stage *stage, const struct contest *contest, float best_ms, float *ms,
                          struct error *error) {
    RETURN_IF(time_runs(stage, contest, 1, ms, error));
    if (stage->device->deterministic) return OK;
    RETURN_IF(time_runs(stage, contest, 1, ms, error));
    if (*ms > 2.0f * best_ms || *ms > ENOUGH_MS) return OK;
    const int runs = *ms * MOST_RUNS > ENOUGH_MS ? (int)(ENOUGH_MS / *ms) : MOST_RUNS;
    RETURN_IF(time_runs(stage, contest, runs, ms, error));
    *ms /= (float)runs;
    return OK;
}

/* What keeps an algorithm from running, as a status of its library, is no reason to give up while another one
 * runs; that memory cannot be had is. */
static int try_all(struct stage *stage, void *plan, const struct contest *contest, int *best,
                   struct error *failure, struct error *error) {
    float best_ms = 1e30f;
    for (int number = 0; number < contest->count; number++) {
        struct error found = {0};
        float ms = 0.0f;
        RETURN_IF(contest->take(stage->call.problem, plan, number, error));
        RETURN_IF(contest->bind(stage->call.problem, plan, &stage->call.instance, error));
        const int code = time_algorithm(stage, contest, best_ms, &ms, &found);
        const int finished = gpu_finish(stage->device, error);
        contest->unbind(stage->call.instance);
        if (finished) return finished;
        if (code == OK && ms < best_ms) {
            best_ms = ms;
            *best = number;
        }
        if (code != OK && code != KERNEL_DECLINED) *failure = found;
        if (code == OK && stage->device->deterministic)
            break; /* which one is faster differs from run to run */
    }
    return OK;
}

int gpu_measure(const struct problem *problem, void *plan, const struct contest *contest,
                struct error *error) {
    struct stage stage = {.device = problem->device, .call = {.plan = plan}};
    struct error failure = {0};
    int best = -1;
    int code = open_stage(&stage, problem, error);
    if (code == OK) code = try_all(&stage, plan, contest, &best, &failure, error);
    close_stage(&stage);
    if (code) return code;
    if (best >= 0) return contest->take(problem, plan, best, error);
    if (failure.code == OK) return KERNEL_DECLINED;
    *error = failure;
    return failure.code;
}
