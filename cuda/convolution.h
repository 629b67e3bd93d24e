/* Private to cuda/: what a convolution can be computed by (convolution_plan.c), for the one that runs it
 * (convolution.c): ways of cuDNN, and a matrix product (unfold.h). */
#ifndef TRAINER_CUDA_CONVOLUTION_H
#define TRAINER_CUDA_CONVOLUTION_H

#include "dnn.h"
#include "measure.h"
#include "operands.h"
#include "unfold.h"

enum { WAYS_OF_A_KIND = 10, MOST_WAYS = 2 * WAYS_OF_A_KIND, OUTPUT = -1 };

/* Constant once it has been measured: any thread may use it. */
struct convolution_plan {
    const struct device *device;
    int x, kernel, y; /* which input each is; OUTPUT */
    int window, out;  /* elements of the kernel for an output channel, output channels */
    bool fuses;       /* bias and activation may be cuDNN's */
    struct dnn_convolution told;
    int count; /* ways */
    struct way ways[MOST_WAYS];
    struct unfolding *unfolding; /* as a matrix product; NULL: it is none; owned */
    int taken;                   /* the candidate that is used */
    struct outcome outcome;      /* of the contest between them */
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
/* The ways and the products together. */
int convolution_candidates(const struct convolution_plan *plan);
/* Whether candidate number `candidate` is a product; *number: which of those, or of the ways. */
bool convolution_is_unfolded(const struct convolution_plan *plan, int candidate, int *number);
/* What cuDNN is told where a way is taken. */
struct dnn_convolution convolution_told(const struct convolution_plan *plan, const struct way *way);

#endif
