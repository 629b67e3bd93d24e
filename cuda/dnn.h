/* Private to cuda/: a convolution in cuDNN's backend API (dnn.c): which of its engines can compute it, and a
 * plan of one, ready to run. */
#ifndef TRAINER_CUDA_DNN_H
#define TRAINER_CUDA_DNN_H

#include "gpu.h"

/* Which of x, kernel and y is the result. */
enum direction { FORWARD, GRAD_X, GRAD_KERNEL };

/* What cuDNN is told. In memory the channels come last: x and y [images, rows, columns, channels], the kernel
 * [out, rows, columns, in]; with only a part of x's channels it is grouped. */
struct dnn_convolution {
    enum direction direction;
    enum type type;                         /* of x, kernel, y and bias; sums are float32 */
    int64_t x[4], kernel[4], y[4];          /* images or out; channels or in; rows, columns */
    int64_t before[2], after[2], stride[2]; /* zeros around x */
    bool fused;                             /* FORWARD: y = activation(convolution + bias[out]) */
    bool relu;                              /* which activation; false: none */
};

/* One way to compute it: an engine and its settings. They are plain data, so that a way found by one thread
 * serves every thread; plans do not, as some engines' are not safe to share at the same time. */
enum { DNN_MOST_KNOBS = 20, DNN_NAMED_NOTES = 32 };
struct way {
    int64_t engine;
    int knobs;
    struct {
        cudnnBackendKnobType_t type;
        int64_t value;
    } knob[DNN_MOST_KNOBS];
    unsigned notes;   /* DNN_NOTE bits */
    bool compiled;    /* by cuDNN, when a plan is made of it */
    size_t workspace; /* bytes */
    bool fused;
};
#define DNN_NOTE(name) (1u << CUDNN_NUMERICAL_NOTE_##name)

/* The GPU that is meant, and the attributes by which a graph, heuristics, an engine and a plan are told of
 * it; DNN_UNTOLD: they are not. That of a handle; a test also asks about a GPU that is not here. */
enum { DNN_UNTOLD = -1 };
struct dnn_gpu {
    const struct device *device; /* for words */
    void *handle;                /* or another object of this type: */
    cudnnBackendAttributeType_t type;
    int graph, heuristics, engine, plan;
};
struct dnn_gpu dnn_gpu_of(const struct device *device, cudnnHandle_t handle);

/* Adds to ways[*count] those with none of the notes in `forbidden` and a workspace of at most `budget` bytes,
 * until there are `most`: by cuDNN's heuristics and, where these have few engines, its list of what runs
 * anything; those listed first, then those of other engines. Each has had a plan made of it. *count may stay
 * as it is; an error only if that is for another reason than that cuDNN cannot. */
int dnn_find_ways(const struct dnn_gpu *gpu, const struct dnn_convolution *convolution, unsigned forbidden,
                  size_t budget, struct way *ways, int most, int *count, struct error *error);

/* A plan, with all that it is made of; for one thread at a time. */
enum { DNN_OBJECTS = 80 };
struct dnn_objects {
    const struct device *device;
    int count;
    cudnnBackendDescriptor_t made[DNN_OBJECTS];
};
/* Where cuDNN finds or leaves its operands, and the workspace. */
struct dnn_operands {
    const void *x, *kernel, *y, *bias;
    void *workspace;
};
struct dnn_plan {
    struct dnn_objects objects;
    cudnnBackendDescriptor_t plan;
    cudnnBackendDescriptor_t pack; /* the operands as cuDNN has them; NULL: none yet */
    struct dnn_operands packed;    /* those */
};
/* *workspace: bytes. KERNEL_DECLINED: cuDNN cannot. Close it after a failure, too. */
int dnn_plan_open(const struct dnn_gpu *gpu, const struct dnn_convolution *convolution, const struct way *way,
                  struct dnn_plan *plan, size_t *workspace, struct error *error);
void dnn_plan_close(struct dnn_plan *plan);
/* Queues it on the stream of the handle, one of the plan's GPU. Allocates only when the operands are
 * others than the last time. KERNEL_DECLINED: cuDNN cannot after all. */
int dnn_plan_run(struct dnn_plan *plan, const struct dnn_convolution *convolution, cudnnHandle_t handle,
                 const struct dnn_operands *operands, struct error *error);

#endif
