/* Recordings: what a thread queues, captured as a CUDA graph, so that a step is one launch.
 *
 * Capture is of this thread alone (thread-local): others go on allocating and waiting meanwhile. What cannot
 * be captured ends the capture, not the run: the caller goes on queueing step by step. */
#include "../src/base/memory.h"
#include "gpu.h"

struct recording {
    cudaGraphExec_t exec;
    cudaStream_t stream; /* where it was replayed last; NULL: nowhere */
};

int gpu_record(const struct device *device, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    GPU_TRY(device, cudaStreamBeginCapture(queue->stream, cudaStreamCaptureModeThreadLocal), error);
    return OK;
}

static bool not_capturable(cudaError_t code) {
    return code == cudaErrorNotSupported ||
           (code >= cudaErrorStreamCaptureUnsupported && code <= cudaErrorStreamCaptureWrongThread);
}

/* *call: the one that has failed. */
static cudaError_t make(cudaGraph_t graph, struct recording *made, size_t *nodes, const char **call) {
    *call = "cudaGraphGetNodes(graph, NULL, &nodes)";
    const cudaError_t code = cudaGraphGetNodes(graph, NULL, nodes);
    if (code != cudaSuccess) return code;
    *call = "cudaGraphInstantiate(&exec, graph, 0)";
    return cudaGraphInstantiate(&made->exec, graph, 0);
}

int gpu_recorded(const struct device *device, void **recording, struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    struct recording *made = NULL;
    *recording = NULL;
    if (!queue) return error->code;
    cudaGraph_t graph = NULL;
    size_t nodes = 0;
    const char *call = "cudaStreamEndCapture(queue->stream, &graph)";
    cudaError_t code = cudaStreamEndCapture(queue->stream, &graph);
    const int room = memory_array(&made, 1, "a recording", error);
    if (code == cudaSuccess && room == OK) code = make(graph, made, &nodes, &call);
    if (graph) cudaGraphDestroy(graph);
    queue->recorded = code == cudaSuccess ? (int)nodes : 0;
    queue->unrecorded = code == cudaSuccess ? NULL : cudaGetErrorString(code);
    if (room == OK && code == cudaSuccess) {
        *recording = made;
        return OK;
    }
    memory_free(made);
    if (room != OK) return room;
    if (!not_capturable(code)) return GPU_FAILED(device, call, code, error);
    cudaGetLastError();
    return OK;
}

int gpu_recorded_nodes(const struct device *device, const char **why) {
    struct error ignored = {0};
    const struct queue *queue = gpu_queue(device, &ignored);
    *why = queue ? queue->unrecorded : "it has no queue";
    return queue ? queue->recorded : 0;
}

int gpu_replay(const struct device *device, void *self, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    struct recording *recording = self;
    if (!queue) return error->code;
    GPU_TRY(device, cudaGraphLaunch(recording->exec, queue->stream), error);
    recording->stream = queue->stream;
    return OK;
}

/* Not while the GPU may still run it. By any thread. */
void gpu_forget(const struct device *device, void *self) {
    struct recording *recording = self;
    if (!recording) return;
    gpu_enter(device);
    if (recording->stream) cudaStreamSynchronize(recording->stream);
    cudaGraphExecDestroy(recording->exec);
    cudaGetLastError();
    memory_free(recording);
}
