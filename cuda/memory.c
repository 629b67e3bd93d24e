/* Memory on a GPU, host memory that it copies at full speed, and copies.
 *
 * Zeroing is queued like anything else, and waited for, because the block may next be used by another thread,
 * whose queue knows nothing of this one. Nothing here is called inside a training step but the copies and
 * finish.
 */
#include "gpu.h"

#include <string.h>

static double megabytes(size_t bytes) {
    return (double)bytes / 1e6;
}

/* cudaMalloc gives addresses on borders of 256 bytes at least. */
static int get(const struct device *device, void **out, size_t bytes, const char *what, struct error *error) {
    const cudaError_t code = cudaMalloc(out, bytes);
    if (code == cudaSuccess) return OK;
    if (code != cudaErrorMemoryAllocation) return GPU_FAILED(device, "cudaMalloc(out, bytes)", code, error);
    size_t free_bytes = 0, total = 0;
    cudaGetLastError();
    GPU_TRY(device, cudaMemGetInfo(&free_bytes, &total), error);
    return error_set(error, ERROR_DEVICE, "%s: out of memory: %.1f MB wanted for %s, %.0f of %.0f MB free",
                     device->name, megabytes(bytes), what, megabytes(free_bytes), megabytes(total));
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
    if (code == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return error_set(error, ERROR_DEVICE, "%s: out of host memory: %.1f MB wanted for %s", device->name,
                         megabytes(bytes), what);
    }
    if (code != cudaSuccess)
        return GPU_FAILED(device, "cudaHostAlloc(out, bytes, cudaHostAllocPortable)", code, error);
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

int gpu_finish(const struct device *device, struct error *error) {
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    if (queue->ended) GPU_TRY(device, cudaEventRecord(queue->ended, queue->stream), error);
    GPU_TRY(device, cudaStreamSynchronize(queue->stream), error);
    return OK;
}
