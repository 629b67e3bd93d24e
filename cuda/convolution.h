/* Private to cuda/: a convolution as cuDNN is told of it (convolution_plan.c), for the one that runs it
 * (convolution.c). */
#ifndef TRAINER_CUDA_CONVOLUTION_H
#define TRAINER_CUDA_CONVOLUTION_H

#include "dnn.h"
#include "measure.h"
#include "operands.h"

enum { MOST_WAYS = 12, OUTPUT = -1 };

/* Plain data: any thread may use it. */
struct convolution_plan {
    const struct device *device;
    int x, kernel, y; /* which input each is; OUTPUT */
    int window, out;  /* elements of the kernel for an output channel, output channels */
    bool fuses;       /* bias and activation may be cuDNN's */
    struct dnn_convolution told;
    int count, taken; /* ways; the one that is used */
    struct way ways[MOST_WAYS];
    struct outcome outcome; /* of the contest between them */
};

/* Fills a zeroed plan with all but ways; KERNEL_DECLINED: it is none of cuDNN's. */
int convolution_open(const struct problem *problem, struct convolution_plan *plan);
/* The notes of engines that may not be taken: fp32 is float32 throughout; sums are float32 always; on a
 * device that is to be deterministic, a run repeats bit for bit. */
unsigned convolution_forbidden(const struct device *device);
/* The most bytes of GPU memory that a way may work in. */
size_t convolution_budget(void);
/* Fills the list of ways with those that cuDNN thinks fast, best first. It may stay empty. */
int convolution_find_ways(const struct dnn_gpu *gpu, struct convolution_plan *plan, struct error *error);
/* What cuDNN is told where a way is taken. */
struct dnn_convolution convolution_told(const struct convolution_plan *plan, const struct way *way);

#endif
