/* Private to cuda/: a convolution as cuDNN is told of it (convolution_plan.c), for the one that runs it
 * (convolution.c). */
#ifndef TRAINER_CUDA_CONVOLUTION_H
#define TRAINER_CUDA_CONVOLUTION_H

#include "gpu.h"
#include "operands.h"

/* Which of x, kernel and y is the result. */
enum direction { FORWARD, GRAD_X, GRAD_KERNEL };

/* One way to compute it. */
struct way {
    int algorithm; /* cudnnConvolutionFwdAlgo_t, ...BwdDataAlgo_t or ...BwdFilterAlgo_t */
    cudnnMathType_t math;
    size_t workspace; /* bytes */
    bool fused;       /* bias and activation by the same call */
};
enum { MOST_WAYS = 16, OUTPUT = -1 };

struct convolution_plan {
    const struct device *device;
    enum direction direction;
    int x, kernel, y;   /* which input each is; OUTPUT */
    enum type computed; /* of what cuDNN sees */
    cudnnTensorDescriptor_t x_form, y_form, bias_form;
    cudnnFilterDescriptor_t kernel_form;
    cudnnConvolutionDescriptor_t convolution;
    cudnnActivationDescriptor_t activation;
    /* cuDNN pads before and behind alike. Where TensorFlow pads one more behind, it is given x with its zeros
     * around: framed. */
    bool framed;
    struct frame frame; /* from x as the graph has it to x as cuDNN has it */
    int window, out;    /* elements of the kernel for an output channel, output channels */
    int groups;
    int count, taken; /* ways; the one that is used */
    struct way ways[MOST_WAYS];
};

/* Fills a zeroed plan with all but ways; KERNEL_DECLINED: it is none of cuDNN's. Close it after a failure,
 * too. */
int convolution_open(const struct problem *problem, struct convolution_plan *plan, struct error *error);
void convolution_close(struct convolution_plan *plan);
/* Fills the list of ways with those that cuDNN thinks fast, best first, and that are as exact as the device's
 * precision says and repeatable. It may stay empty. */
int convolution_find_ways(const struct problem *problem, struct convolution_plan *plan, struct error *error);
const char *convolution_algorithm_name(const struct convolution_plan *plan);

/* Of cuDNN's codes, those that say "cannot". */
static inline bool convolution_is_impossible(cudnnStatus_t status) {
    return (int)status / 1000 == 2 || (int)status / 1000 == 3;
}

#endif
