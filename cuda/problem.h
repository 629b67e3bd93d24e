/* Private to cuda/: what the descriptors of our own kernels share. */
#ifndef TRAINER_CUDA_PROBLEM_H
#define TRAINER_CUDA_PROBLEM_H

#include "../src/device/walk.h"
#include "gpu.h"
#include "kernels.h"

/* Elements of a value that a kernel has taken: below 2^31. */
static inline uint32_t gpu_count(const struct shape *shape) {
    return (uint32_t)shape_count(shape);
}

/* Whether all values are small enough to be counted in 32 bits, and none is bf16. */
bool gpu_takes_wide(const struct problem *problem);
/* The same for values of any type. */
bool gpu_takes(const struct problem *problem);
/* For `prepare` of a kernel without a plan: declines what gpu_takes_wide does not take. */
int gpu_wide(const struct problem *problem, void **plan, struct error *error);
/* Every release of a plan that is one block. */
void gpu_plan_free(void *plan);

struct gpu_walk gpu_walk_of(const struct walk *walk);

/* The queue of the calling thread, or NULL: error says why. */
static inline struct queue *gpu_call_queue(const struct call *call, struct error *error) {
    return gpu_queue(call->problem->device, error);
}

/* The whole `run` of a kernel that is one launch, which finds its queue under the name `queue`. Returns. */
#define GPU_RUN(call, queue, launch, error)                                                                  \
    do {                                                                                                     \
        struct queue *queue = gpu_call_queue(call, error);                                                   \
        if (!queue) return error->code;                                                                      \
        GPU_TRY((call)->problem->device, launch, error);                                                     \
        return OK;                                                                                           \
    } while (0)

/* An arena's scratch memory on the device, as the instance of a kernel: the `bind` of a kernel with more than
 * one pass calls gpu_scratch_open, its unbind is gpu_scratch_close. With no bytes there is no instance. */
int gpu_scratch_open(const struct problem *problem, size_t bytes, void **instance, struct error *error);
void gpu_scratch_close(void *instance);
/* Where it is; NULL without an instance. */
void *gpu_scratch_of(const struct call *call);

/* How a sum over the middle axis of [outer, length, inner] is made: in one pass, or in two where one would
 * leave most of the GPU idle while its threads add up long rows of numbers. `wide`: elements of the inner
 * axis that a thread may read at once, and numbers that it may read of what the first pass left; only
 * `columns` and `rows` of the views depend on it. */
enum { GPU_MOST_PASSES = 2 };
struct gpu_passes {
    int count;
    struct gpu_view view[GPU_MOST_PASSES];
};
struct gpu_passes gpu_passes_of(size_t outer, size_t length, size_t inner, size_t wide, size_t wide_parts);
/* Numbers that all passes but the last leave in scratch memory. */
size_t gpu_passes_parts(const struct gpu_passes *passes);
/* Where pass number `pass` writes: 4-byte numbers in `scratch`, or the result itself. */
void *gpu_pass_result(const struct gpu_passes *passes, int pass, void *scratch, void *result);

#endif
