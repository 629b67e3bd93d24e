/* Examples that are kept on a GPU: a copy of what lies at an address of the host's, so that a batch is built
 * without anything but its numbers going there.
 *
 * Workers of one GPU share the copies, and none waits for another: who comes first brings the examples, and
 * who comes meanwhile sends a batch or two by itself. */
#include <stdatomic.h>

#include "../src/base/memory.h"
#include "gpu.h"

struct kept {
    const void *host;
    size_t bytes;
    _Atomic(void *) there; /* on the GPU; NULL: not yet, or it does not fit */
    struct kept *next;
};

static _Atomic(struct kept *) kept[GPUS]; /* [label] */

static struct kept *find(struct kept *first, const void *host, size_t bytes) {
    for (; first; first = first->next)
        if (first->host == host && first->bytes == bytes) return first;
    return NULL;
}

/* An eighth of the GPU's memory stays free, for what is opened later. */
static int bring(const struct device *device, struct kept *examples, struct error *error) {
    size_t free_bytes = 0, total = 0;
    void *block = NULL;
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    GPU_TRY(device, cudaMemGetInfo(&free_bytes, &total), error);
    if (free_bytes < total / 8 || examples->bytes > free_bytes - total / 8) return OK;
    const cudaError_t code = cudaMalloc(&block, examples->bytes);
    if (code == cudaErrorMemoryAllocation) { /* free, but not in one piece */
        cudaGetLastError();
        return OK;
    }
    GPU_TRY(device, code, error);
    const int sent = gpu_transfer(device, block, examples->host, examples->bytes, error);
    if (sent == OK)
        atomic_store_explicit(&examples->there, block, memory_order_release);
    else
        gpu_release(device, block);
    return sent;
}

int gpu_examples(const struct device *device, const void *host, size_t bytes, const void **out,
                 struct error *error) {
    struct kept *own = NULL;
    struct kept *first = atomic_load_explicit(&kept[device->label], memory_order_acquire);
    do {
        const struct kept *found = find(first, host, bytes);
        if (found) {
            *out = atomic_load_explicit(&found->there, memory_order_acquire);
            memory_free(own);
            return OK;
        }
        if (!own) RETURN_IF(memory_array(&own, 1, "examples on a GPU", error));
        own->host = host;
        own->bytes = bytes;
        own->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&kept[device->label], &first, own, memory_order_acq_rel,
                                                    memory_order_acquire));
    RETURN_IF(bring(device, own, error));
    *out = atomic_load_explicit(&own->there, memory_order_relaxed);
    return OK;
}

void gpu_examples_close(const struct device *device) {
    struct kept *examples = atomic_exchange(&kept[device->label], NULL);
    while (examples) {
        struct kept *next = examples->next;
        gpu_release(device, atomic_load(&examples->there));
        memory_free(examples);
        examples = next;
    }
}
