/* Memory that a queue keeps for functions of several passes, and host memory that batches are sent from: made
 * at the first use, grown when a later one wants more. */
#include "gpu.h"

int gpu_queue_scratch(const struct device *device, struct queue *queue, size_t bytes, void **out,
                      struct error *error) {
    if (queue->scratch_bytes < bytes) {
        GPU_TRY(device, cudaStreamSynchronize(queue->stream), error); /* what is queued may still use it */
        gpu_release(device, queue->scratch);
        queue->scratch = NULL;
        queue->scratch_bytes = 0;
        RETURN_IF(gpu_allocate(device, &queue->scratch, bytes, "a queue's scratch memory", error));
        queue->scratch_bytes = bytes;
    }
    *out = queue->scratch;
    return OK;
}

int gpu_outbox(const struct device *device, struct queue *queue, size_t bytes, struct outbox **out,
               struct error *error) {
    struct outbox *box = &queue->outbox[queue->turn++ % OUTBOXES];
    if (!box->sent) GPU_TRY(device, cudaEventCreateWithFlags(&box->sent, cudaEventDisableTiming), error);
    if (box->bytes > 0) GPU_TRY(device, cudaEventSynchronize(box->sent), error);
    if (box->bytes < bytes) {
        gpu_release_host(device, box->block);
        box->block = NULL;
        box->bytes = 0;
        RETURN_IF(gpu_allocate_host(device, &box->block, bytes, "a batch on its way", error));
        box->bytes = bytes;
    }
    *out = box;
    return OK;
}

int gpu_outbox_send(const struct device *device, const struct queue *queue, const struct outbox *box,
                    size_t bytes, void *to, struct error *error) {
    GPU_TRY(device, cudaMemcpyAsync(to, box->block, bytes, cudaMemcpyHostToDevice, queue->stream), error);
    GPU_TRY(device, cudaEventRecord(box->sent, queue->stream), error);
    return OK;
}

int gpu_queue_refused(const struct device *device, struct queue *queue, struct error *error) {
    if (queue->refused) return OK;
    void *block = NULL;
    GPU_TRY(device, cudaHostAlloc(&block, sizeof *queue->refused, cudaHostAllocPortable), error);
    queue->refused = block;
    *queue->refused = 0;
    return OK;
}

void gpu_queue_scratch_close(struct queue *queue) {
    if (queue->refused) cudaFreeHost(queue->refused);
    for (int i = 0; i < OUTBOXES; i++) {
        if (queue->outbox[i].sent) cudaEventDestroy(queue->outbox[i].sent);
        if (queue->outbox[i].block) cudaFreeHost(queue->outbox[i].block);
    }
    if (queue->scratch) cudaFree(queue->scratch);
}
