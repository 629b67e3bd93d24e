/* Marks: events, by which the queues of several threads wait for each other on the GPU, and by which a thread
 * that waits once learns when the GPU came past places before that. Those that only order are made without
 * timing, which costs less. */
#include "../src/base/memory.h"
#include "gpu.h"

struct mark {
    cudaEvent_t event;
    bool timed;
};

static void close_mark(const struct device *device, void *mark) {
    if (!mark) return;
    gpu_enter(device);
    cudaEventDestroy(((struct mark *)mark)->event);
    cudaGetLastError();
    memory_free(mark);
}

static int open_mark(const struct device *device, bool timed, void **out, struct error *error) {
    const unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
    struct mark *mark = NULL;
    *out = NULL;
    GPU_TRY(device, gpu_enter(device), error);
    RETURN_IF(memory_array(&mark, 1, "a mark", error));
    const cudaError_t code = cudaEventCreateWithFlags(&mark->event, flags);
    if (code != cudaSuccess) {
        memory_free(mark);
        return GPU_FAILED(device, "cudaEventCreateWithFlags(&mark->event, flags)", code, error);
    }
    mark->timed = timed;
    *out = mark;
    return OK;
}

static int set(const struct device *device, void *argument, struct error *error) {
    const struct mark *mark = argument;
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (mark->timed && !queue->ended)
        GPU_TRY(device, cudaEventCreateWithFlags(&queue->ended, cudaEventDefault), error);
    GPU_TRY(device, cudaEventRecord(mark->event, queue->stream), error);
    return OK;
}

static int follow(const struct device *device, void *mark, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    GPU_TRY(device, cudaStreamWaitEvent(queue->stream, ((const struct mark *)mark)->event, 0), error);
    return OK;
}

static int reached(const struct device *device, void *mark, bool *is, struct error *error) {
    const cudaError_t code = cudaEventQuery(((const struct mark *)mark)->event);
    *is = code == cudaSuccess;
    if (code == cudaSuccess) return OK;
    if (code != cudaErrorNotReady) return GPU_FAILED(device, "cudaEventQuery(mark->event)", code, error);
    cudaGetLastError(); /* it counts as one */
    return OK;
}

static int await(const struct device *device, void *mark, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    GPU_TRY(device, cudaEventSynchronize(((const struct mark *)mark)->event), error);
    return gpu_tell_refused(device, queue, error);
}

static int open_side(const struct device *device, struct queue *queue, struct error *error) {
    if (!queue->before)
        GPU_TRY(device, cudaEventCreateWithFlags(&queue->before, cudaEventDisableTiming), error);
    if (!queue->side) GPU_TRY(device, cudaStreamCreateWithFlags(&queue->side, cudaStreamNonBlocking), error);
    return OK;
}

int gpu_send(const struct device *device, void *out, const void *in, size_t bytes, void *mark,
             struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    RETURN_IF(open_side(device, queue, error));
    GPU_TRY(device, cudaEventRecord(queue->before, queue->stream), error);
    GPU_TRY(device, cudaStreamWaitEvent(queue->side, queue->before, 0), error);
    GPU_TRY(device, cudaMemcpyAsync(out, in, bytes, cudaMemcpyDefault, queue->side), error);
    GPU_TRY(device, cudaEventRecord(((const struct mark *)mark)->event, queue->side), error);
    return OK;
}

static int since(const struct device *device, void *mark, double *seconds, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    float ms = 0.0f;
    *seconds = 0.0;
    if (!queue) return error->code;
    GPU_TRY(device, cudaEventElapsedTime(&ms, ((const struct mark *)mark)->event, queue->ended), error);
    *seconds = (double)ms / 1e3;
    return OK;
}

static int between(const struct device *device, void *from, void *to, double *seconds, struct error *error) {
    float ms = 0.0f;
    *seconds = 0.0;
    GPU_TRY(device,
            cudaEventElapsedTime(&ms, ((const struct mark *)from)->event, ((const struct mark *)to)->event),
            error);
    *seconds = (double)ms / 1e3;
    return OK;
}

const struct marks gpu_marks = {.open = open_mark,
                                .close = close_mark,
                                .set = set,
                                .wait = follow,
                                .reached = reached,
                                .await = await,
                                .since = since,
                                .between = between};
