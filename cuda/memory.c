/* Memory on a GPU, host memory that it copies at full speed, and copies.
 *
 * Zeroing is queued like anything else, and waited for, because the block may next be used by another thread,
 * whose queue knows nothing of this one. Nothing here is called inside a training step but the copies and
 * finish.
 */
#include "gpu.h"

#include <stdio.h>
#include <string.h>

static double megabytes(size_t bytes) {
    return (double)bytes / 1e6;
}

/* What failed for lack of memory, and how much was wanted for what. */
static int out_of_memory(const struct device *device, const char *call, int line, size_t bytes,
                         const char *what, const char *left, struct error *error) {
    struct error failed = {0};
    gpu_failed(device, call, cudaErrorMemoryAllocation, cudaGetErrorString(cudaErrorMemoryAllocation),
               __FILE__, line, &failed);
    return error_set(error, ERROR_DEVICE, "%s: %.1f MB wanted for %s%s", failed.words, megabytes(bytes), what,
                     left);
}

/* cudaMalloc gives addresses on boundaries of 256 bytes at least. */
static int get(const struct device *device, void **out, size_t bytes, const char *what, struct error *error) {
    const cudaError_t code = cudaMalloc(out, bytes);
    if (code == cudaSuccess) return OK;
    if (code != cudaErrorMemoryAllocation) return GPU_FAILED(device, "cudaMalloc(out, bytes)", code, error);
    size_t free_bytes = 0, total = 0;
    char left[80] = "";
    cudaGetLastError();
    if (cudaMemGetInfo(&free_bytes, &total) == cudaSuccess)
        snprintf(left, sizeof left, ", %.0f of %.0f MB free", megabytes(free_bytes), megabytes(total));
    return out_of_memory(device, "cudaMalloc(out, bytes)", __LINE__, bytes, what, left, error);
}

static int zero(const struct device *device, const struct queue *queue, void *block, size_t bytes,
                struct error *error) {
    GPU_TRY(device, cudaMemsetAsync(block, 0, bytes, queue->stream), error);
    GPU_TRY(device, cudaStreamSynchronize(queue->stream), error);
    return OK;
}

int gpu_allocate(const struct device *device, void **out, size_t bytes, const char *what,
                 struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    *out = NULL;
    if (!queue) return error->code;
    if (bytes == 0) bytes = 1; /* an address even so */
    RETURN_IF(get(device, out, bytes, what, error));
    const int code = zero(device, queue, *out, bytes, error);
    if (code == OK) return OK;
    gpu_release(device, *out);
    *out = NULL;
    return code;
}

void gpu_release(const struct device *device, void *block) {
    (void)device; /* the runtime knows whose an address is */
    cudaFree(block);
    cudaGetLastError();
}

int gpu_allocate_host(const struct device *device, void **out, size_t bytes, const char *what,
                      struct error *error) {
    *out = NULL;
    GPU_TRY(device, gpu_enter(device), error);
    if (bytes == 0) bytes = 1;
    const cudaError_t code = cudaHostAlloc(out, bytes, cudaHostAllocPortable);
    static const char call[] = "cudaHostAlloc(out, bytes, cudaHostAllocPortable)";
    if (code == cudaErrorMemoryAllocation)
        return out_of_memory(device, call, __LINE__, bytes, what, " in pinned host memory", error);
    if (code != cudaSuccess) return GPU_FAILED(device, call, code, error);
    memset(*out, 0, bytes);
    return OK;
}

void gpu_release_host(const struct device *device, void *block) {
    (void)device;
    cudaFreeHost(block);
    cudaGetLastError();
}

int gpu_transfer(const struct device *device, void *out, const void *in, size_t bytes, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (bytes > 0) GPU_TRY(device, cudaMemcpyAsync(out, in, bytes, cudaMemcpyDefault, queue->stream), error);
    GPU_TRY(device, cudaStreamSynchronize(queue->stream), error);
    return OK;
}

int gpu_queue_copy(const struct device *device, void *out, const void *in, size_t bytes,
                   struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (bytes > 0) GPU_TRY(device, cudaMemcpyAsync(out, in, bytes, cudaMemcpyDefault, queue->stream), error);
    return OK;
}

int gpu_tell_refused(const struct device *device, const struct queue *queue, struct error *error) {
    if (!queue->refused || *(volatile int *)queue->refused == 0) return OK;
    *queue->refused = 0;
    return error_set(error, ERROR_DIVERGED,
                     "%s: a gradient is not finite and was not applied (a smaller rate may help)",
                     device->name);
}

int gpu_finish(const struct device *device, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (queue->ended) GPU_TRY(device, cudaEventRecord(queue->ended, queue->stream), error);
    GPU_TRY(device, cudaStreamSynchronize(queue->stream), error);
    return gpu_tell_refused(device, queue, error);
}
