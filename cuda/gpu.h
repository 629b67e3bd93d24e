/* Private to cuda/: what the files of the GPU backend share.
 *
 * Host code is C and calls the CUDA runtime, cuBLASLt and cuDNN; device code is in the .cu files, behind the
 * plain functions of kernels.h. Every thread that uses a GPU has a queue there: a stream, and the libraries'
 * handles, which are not shared between threads. All that a thread queues runs in order; nothing is known to
 * be done before gpu_finish. */
#ifndef TRAINER_CUDA_GPU_H
#define TRAINER_CUDA_GPU_H

#include <cuda_runtime.h>

#include "../src/device/device.h"
#include "libraries.h"

enum { GPUS = 64 }; /* labels run from 0 to at most GPUS - 1 */

enum { OUTBOXES = 2 }; /* of a queue */

struct queue {
    int label; /* of the GPU */
    cudaStream_t stream;
    cublasLtHandle_t blas; /* NULL until gpu_blas */
    cudnnHandle_t dnn;     /* NULL until gpu_dnn */
    struct queue *next;    /* of those of this GPU */
    void *scratch;         /* on the GPU, for functions of several passes; NULL until gpu_queue_scratch */
    size_t scratch_bytes;
    struct outbox {
        void *block;      /* pinned; NULL until gpu_outbox */
        size_t bytes;     /* of the block */
        cudaEvent_t sent; /* what was last sent from it has arrived */
    } outbox[OUTBOXES];
    unsigned turn;      /* of the outboxes */
    int *refused;       /* pinned: 1: a step met a gradient that is not finite; NULL until the first step */
    cudaStream_t side;  /* of copies to other GPUs, beside the stream; NULL until gpu_send */
    cudaEvent_t before; /* what such a copy waits for; likewise */
    cudaEvent_t ended;  /* what the last gpu_finish waited for; NULL until a timed mark is set */
    int recorded;       /* nodes of what was recorded last; 0: it could not be recorded */
    const char *unrecorded; /* why not, a constant text */
};

/* queue.c */

/* The calling thread's queue on the device's GPU, which it makes the thread's current GPU; opened at its
 * first use, closed when the last device of that GPU is. NULL: error says why. */
struct queue *gpu_queue(const struct device *device, struct error *error);
/* Give the queue its handle of the library, at the first use: not every thread needs them. */
int gpu_blas(const struct device *device, struct queue *queue, struct error *error);
int gpu_dnn(const struct device *device, struct queue *queue, struct error *error);
/* Makes the device's GPU the calling thread's current one. */
cudaError_t gpu_enter(const struct device *device);
/* The slots open and close: the first device of a GPU opens it, the last one closes it, with the queues of
 * all threads. Called by one thread at a time, close when nobody uses the GPU any more. */
int gpu_open(const struct device *device, struct error *error);
void gpu_close(const struct device *device);
/* Those of the device's GPU, as long as it is open; then NULL. */
struct plans *gpu_plans(const struct device *device);

/* Reports a failed call in one line: "gpu:0: cudaMalloc(&block, bytes): out of memory (code 2, memory.c:41)",
 * and has the runtime forget it. code: the runtime's or the library's; 0: none to tell. Returns ERROR_DEVICE.
 */
int gpu_failed(const struct device *device, const char *call, int code, const char *why, const char *file,
               int line, struct error *error);

/* The same for a code that was looked at before it is reported. */
#define GPU_FAILED(device, call, code, error)                                                                \
    gpu_failed(device, call, (int)(code), cudaGetErrorString(code), __FILE__, __LINE__, error)
#define BLAS_FAILED(device, call, code, error)                                                               \
    gpu_failed(device, call, (int)(code), cublasLtGetStatusString(code), __FILE__, __LINE__, error)
#define DNN_FAILED(device, call, code, error)                                                                \
    gpu_failed(device, call, (int)(code), cudnnGetErrorString(code), __FILE__, __LINE__, error)

#define GPU_TRY(device, call, error)                                                                         \
    do {                                                                                                     \
        const cudaError_t gpu_code_ = (call);                                                                \
        if (gpu_code_ != cudaSuccess) return GPU_FAILED(device, #call, gpu_code_, error);                    \
    } while (0)
#define BLAS_TRY(device, call, error)                                                                        \
    do {                                                                                                     \
        const cublasStatus_t gpu_code_ = (call);                                                             \
        if (gpu_code_ != CUBLAS_STATUS_SUCCESS) return BLAS_FAILED(device, #call, gpu_code_, error);         \
    } while (0)
#define DNN_TRY(device, call, error)                                                                         \
    do {                                                                                                     \
        const cudnnStatus_t gpu_code_ = (call);                                                              \
        if (gpu_code_ != CUDNN_STATUS_SUCCESS) return DNN_FAILED(device, #call, gpu_code_, error);           \
    } while (0)

/* reform.c */
int gpu_reform(const struct device *device, const struct reforming *list, int count, struct error *error);

/* memory.c */
int gpu_allocate(const struct device *device, void **out, size_t bytes, const char *what,
                 struct error *error); /* zeroed */
void gpu_release(const struct device *device, void *block);
int gpu_allocate_host(const struct device *device, void **out, size_t bytes, const char *what,
                      struct error *error);
void gpu_release_host(const struct device *device, void *block);
int gpu_transfer(const struct device *device, void *out, const void *in, size_t bytes, struct error *error);
int gpu_queue_copy(const struct device *device, void *out, const void *in, size_t bytes, struct error *error);
int gpu_finish(const struct device *device, struct error *error);

/* record.c */
int gpu_record(const struct device *device, struct error *error);
int gpu_recorded(const struct device *device, void **recording, struct error *error);
int gpu_recorded_nodes(const struct device *device, const char **why);
int gpu_replay(const struct device *device, void *recording, struct error *error);
void gpu_forget(const struct device *device, void *recording);

/* scratch.c */

/* *out: memory of the queue's own on the GPU; what is queued next may write over it. Waits when it has to
 * grow. */
int gpu_queue_scratch(const struct device *device, struct queue *queue, size_t bytes, void **out,
                      struct error *error);
/* *out: host memory of so many bytes to be sent by gpu_outbox_send; waits until what it held before has gone.
 */
int gpu_outbox(const struct device *device, struct queue *queue, size_t bytes, struct outbox **out,
               struct error *error);
int gpu_outbox_send(const struct device *device, const struct queue *queue, const struct outbox *box,
                    size_t bytes, void *to, struct error *error);
/* Makes queue->refused, which gpu_finish looks at. */
int gpu_queue_refused(const struct device *device, struct queue *queue, struct error *error);
/* ERROR_DIVERGED, once, where a step since has met a gradient that is not finite. */
int gpu_tell_refused(const struct device *device, const struct queue *queue, struct error *error);
void gpu_queue_scratch_close(struct queue *queue);

/* gather.c */
int gpu_gather(const struct device *device, const struct examples *examples, const struct indices *indices,
               float *out, struct error *error);
int gpu_gather_labels(const struct device *device, const struct examples *examples,
                      const struct indices *indices, int *out, struct error *error);
int gpu_mix(const struct device *device, const struct augment *augment, const struct augment_mix *mix,
            int count, const float *rows, float *out, struct error *error);

/* Whether what an image gets depends on its pixels, or may; keyed: it has a key to draw by. */
bool gpu_is_measured(const struct augment *augment, bool keyed);

/* picks.c */
extern const struct picker gpu_picker;

/* examples.c */

/* Where the examples' bytes or floats lie on the GPU: brought there at their first use, kept until
 * the last device of the GPU is closed. NULL in *out: they do not fit, and are to be sent a batch at a time.
 */
int gpu_examples(const struct device *device, const void *host, size_t bytes, const void **out,
                 struct error *error);
/* Gives back what gpu_examples keeps on the device's GPU. */
void gpu_examples_close(const struct device *device);

/* vectors.c */
extern const struct vectors gpu_vectors;

/* marks.c */
extern const struct marks gpu_marks;
int gpu_send(const struct device *device, void *out, const void *in, size_t bytes, void *mark,
             struct error *error);

/* collective.c; only where NCCL's header was found */
extern const struct collective gpu_collective;

#endif
