/* Recordings: what a thread queues, captured as a CUDA graph, so that a step is one launch.
 *
 * Capture is of this thread alone (thread-local): others go on allocating and waiting meanwhile. What cannot
 * be captured ends the capture, not the run: the caller goes on queueing step by step. */
#include "gpu.h"

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

int gpu_recorded(const struct device *device, void **recording, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    *recording = NULL;
    if (!queue) return error->code;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    const char *call = "cudaStreamEndCapture(queue->stream, &graph)";
    cudaError_t code = cudaStreamEndCapture(queue->stream, &graph);
    if (code == cudaSuccess) {
        call = "cudaGraphInstantiate(&exec, graph, 0)";
        code = cudaGraphInstantiate(&exec, graph, 0);
    }
    if (graph) cudaGraphDestroy(graph);
    if (not_capturable(code)) {
        cudaGetLastError();
        return OK;
    }
    if (code != cudaSuccess) return GPU_FAILED(device, call, code, error);
    *recording = exec;
    return OK;
}

int gpu_replay(const struct device *device, void *recording, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    GPU_TRY(device, cudaGraphLaunch(recording, queue->stream), error);
    return OK;
}

void gpu_forget(const struct device *device, void *recording) {
    (void)device;
    if (recording) cudaGraphExecDestroy(recording);
    cudaGetLastError();
}
