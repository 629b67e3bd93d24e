/* Private to cuda/: of the algorithms that a library has for a problem, the one to take. */
#ifndef TRAINER_CUDA_MEASURE_H
#define TRAINER_CUDA_MEASURE_H

#include "gpu.h"

/* What became of the algorithms that were not taken. */
struct outcome {
    int impossible; /* they declined or failed when they were run */
    int wrong;      /* what they computed is not finite, or not what the first one computed */
};

struct contest {
    int count; /* algorithms, the one that the library thinks best first */
    /* Makes the plan that of algorithm `number`. */
    int (*take)(const struct problem *problem, void *plan, int number, struct error *error);
    /* As a kernel's slots are; but `bind` and `run` may return KERNEL_DECLINED, when this algorithm cannot do
     * the problem after all. */
    int (*bind)(const struct problem *problem, const void *plan, void **instance, struct error *error);
    void (*unbind)(void *instance);
    int (*run)(const struct call *call, struct error *error);
    struct outcome *outcome; /* zeroed; filled in; NULL: nobody asks */
};

/* Leaves the plan with the algorithm to take: the first that can do the problem, or another one that takes at
 * least 5 % less time and computes the same; on a device that is to be deterministic, the first. The operands
 * are random numbers, in memory that is taken for it and given back. Waits for the calling thread's queue,
 * which records nothing now. KERNEL_DECLINED: none can do it. */
int gpu_measure(const struct problem *problem, void *plan, const struct contest *contest,
                struct error *error);

/* Where parts of one block of GPU memory begin: on boundaries that every library is content with. */
size_t gpu_part(size_t *bytes, size_t more);

#endif
