/* GPUs that are open, and every thread's queue on them.
 *
 * A stream and the libraries' handles belong to one thread: nothing that a thread queues waits for a lock,
 * and what it captures is its own. So the thread remembers its queues, and the GPU a list of all of them,
 * because who closes the GPU is another thread, and the threads may have ended by then. These, and the plans
 * of a GPU, are all the state that the backend has outside of what its callers hold. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../src/base/memory.h"
#include "../src/device/plans.h"
#include "gpu.h"

/* [label] */
static struct {
    atomic_int devices;             /* open devices of it; changed by gpu_open and gpu_close alone */
    _Atomic(struct queue *) queues; /* of all threads */
    atomic_uint closings;           /* a queue of an earlier opening is gone */
    struct plans plans;             /* of the libraries' algorithms; as long as it is open */
} gpus[GPUS];

static _Thread_local struct {
    int current; /* the runtime's current GPU of this thread, plus 1; 0: not set yet */
    struct {
        struct queue *queue; /* NULL, or as long as `closings` is the GPU's */
        unsigned closings;
    } gpu[GPUS];
} mine;

int gpu_failed(const struct device *device, const char *call, int code, const char *why, const char *file,
               int line, struct error *error) {
    char number[24] = "";
    cudaGetLastError(); /* or the next launch would report it */
    const char *slash = strrchr(file, '/');
    if (code != 0) snprintf(number, sizeof number, "code %d, ", code);
    return error_set(error, ERROR_DEVICE, "%s: %s: %s (%s%s:%d)", device->name, call, why, number,
                     slash ? slash + 1 : file, line);
}

cudaError_t gpu_enter(const struct device *device) {
    if (mine.current == device->label + 1) return cudaSuccess;
    const cudaError_t code = cudaSetDevice(device->label);
    mine.current = code == cudaSuccess ? device->label + 1 : 0;
    return code;
}

/* --- queues --- */

static void close_queue(struct queue *queue) {
    if (queue->dnn) cudnnDestroy(queue->dnn);
    if (queue->blas) cublasLtDestroy(queue->blas);
    gpu_queue_scratch_close(queue);
    if (queue->ended) cudaEventDestroy(queue->ended);
    if (queue->side) cudaStreamDestroy(queue->side);
    if (queue->before) cudaEventDestroy(queue->before);
    if (queue->stream) cudaStreamDestroy(queue->stream);
    memory_free(queue);
}

struct queue *gpu_queue(const struct device *device, struct error *error) {
    const int label = device->label;
    const cudaError_t entered = gpu_enter(device);
    if (entered != cudaSuccess) {
        GPU_FAILED(device, "cudaSetDevice(label)", entered, error);
        return NULL;
    }
    const unsigned closings = atomic_load_explicit(&gpus[label].closings, memory_order_acquire);
    if (mine.gpu[label].queue && mine.gpu[label].closings == closings) return mine.gpu[label].queue;

    mine.gpu[label].queue = NULL;
    if (gpus[label].devices == 0) {
        error_set(error, ERROR_INTERNAL, "%s: used before it was opened", device->name);
        return NULL;
    }
    struct queue *queue = NULL;
    if (memory_array(&queue, 1, "a GPU's queue", error)) return NULL;
    queue->label = label;
    const cudaError_t code = cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking);
    if (code != cudaSuccess) {
        GPU_FAILED(device, "cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking)", code, error);
        memory_free(queue);
        return NULL;
    }
    queue->next = atomic_load(&gpus[label].queues);
    while (!atomic_compare_exchange_weak(&gpus[label].queues, &queue->next, queue)) {
    }
    mine.gpu[label].queue = queue;
    mine.gpu[label].closings = closings;
    return queue;
}

int gpu_blas(const struct device *device, struct queue *queue, struct error *error) {
    if (queue->blas) return OK;
    RETURN_IF(gpu_load(device, &cublaslt_library, error));
    BLAS_TRY(device, cublasLtCreate(&queue->blas), error);
    return OK;
}

int gpu_dnn(const struct device *device, struct queue *queue, struct error *error) {
    if (queue->dnn) return OK;
    cudnnHandle_t dnn = NULL;
    RETURN_IF(gpu_load(device, &cublaslt_library, error)); /* which cuDNN asks for by name alone */
    RETURN_IF(gpu_load(device, &cudnn_library, error));
    DNN_TRY(device, cudnnCreate(&dnn), error);
    const cudnnStatus_t code = cudnnSetStream(dnn, queue->stream);
    if (code != CUDNN_STATUS_SUCCESS) {
        cudnnDestroy(dnn);
        return DNN_FAILED(device, "cudnnSetStream(dnn, queue->stream)", code, error);
    }
    queue->dnn = dnn;
    return OK;
}

/* --- GPUs --- */

/* How a thread waits for the GPU: spinning answers soonest, but takes a core from those who have work. */
static unsigned waiting(void) {
    struct cores cores;
    int gpus_here = 0;
    world_cores(&cores);
    if (cudaGetDeviceCount(&gpus_here) != cudaSuccess) gpus_here = 1;
    return cores.count >= 4 * gpus_here ? cudaDeviceScheduleSpin : cudaDeviceScheduleYield;
}

/* Lets the kernels and copies of one GPU reach the memory of the other, where the machine can, and as long as
 * the GPU has not reached as many as it may: other copies go by the host's memory. */
static int reach(const struct device *device, int label, int other, struct error *error) {
    int can = 0;
    GPU_TRY(device, cudaDeviceCanAccessPeer(&can, label, other), error);
    if (!can) return OK;
    struct device from = *device;
    from.label = label;
    GPU_TRY(device, gpu_enter(&from), error);
    const cudaError_t code = cudaDeviceEnablePeerAccess(other, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled /* since an earlier opening */ ||
        code == cudaErrorTooManyPeers) {
        cudaGetLastError();
        return OK;
    }
    return code == cudaSuccess ? OK : GPU_FAILED(device, "cudaDeviceEnablePeerAccess(other, 0)", code, error);
}

/* The two halves of a mirrored process may open and close the same GPU at once. Mostly nobody else does, and
 * whoever does takes a moment. */
static atomic_flag is_opening = ATOMIC_FLAG_INIT;

static void enter_opening(void) {
    while (atomic_flag_test_and_set_explicit(&is_opening, memory_order_acquire)) {
    }
}

static void leave_opening(void) {
    atomic_flag_clear_explicit(&is_opening, memory_order_release);
}

static int open_first(const struct device *device, struct error *error) {
    const int label = device->label;
    GPU_TRY(device, cudaInitDevice(label, waiting(), cudaInitDeviceFlagsAreValid), error);
    for (int other = 0; other < GPUS; other++) {
        if (other == label || gpus[other].devices == 0) continue;
        RETURN_IF(reach(device, label, other, error));
        RETURN_IF(reach(device, other, label, error));
    }
    RETURN_IF(plans_open(&gpus[label].plans, error));
    gpus[label].devices = 1;
    return OK;
}

int gpu_open(const struct device *device, struct error *error) {
    int code = OK;
    enter_opening();
    if (gpus[device->label].devices > 0)
        gpus[device->label].devices++;
    else
        code = open_first(device, error);
    leave_opening();
    return code;
}

struct plans *gpu_plans(const struct device *device) {
    return gpus[device->label].devices > 0 ? &gpus[device->label].plans : NULL;
}

static void close_last(const struct device *device) {
    const int label = device->label;
    gpu_enter(device); /* a lost GPU may refuse; what is the host's is freed even so */
    plans_close(&gpus[label].plans);
    gpu_examples_close(device);
    atomic_fetch_add_explicit(&gpus[label].closings, 1, memory_order_release);
    struct queue *queue = atomic_exchange(&gpus[label].queues, NULL);
    while (queue) {
        struct queue *next = queue->next;
        close_queue(queue);
        queue = next;
    }
    cudaGetLastError();
}

void gpu_close(const struct device *device) {
    enter_opening();
    if (--gpus[device->label].devices == 0) close_last(device);
    leave_opening();
}
