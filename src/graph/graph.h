/* The graph: a dataflow of operations on arrays, built by calls, without a device in sight.
 *
 * `graph_dense(g, graph_relu(g, x), 128)` states no shapes and checks no errors: shapes are inferred as
 * nodes are made, and the first mistake is remembered in the graph and reported when the graph is compiled
 * (graph_check). After a mistake every call returns NONE and accepts NONE. The gradient of an operation is
 * more graph (graph_gradients), so that pruning, fusion and planning treat forward and backward the same
 * way. Layouts as in TensorFlow and Keras: activations NHWC, dense weights [in, out], convolution weights
 * HWIO. */
#ifndef TRAINER_GRAPH_GRAPH_H
#define TRAINER_GRAPH_GRAPH_H

#include <stdint.h>
#include "../base/error.h"
#include "layout.h"
#include "shape.h"

/* ops.def has one row per operation; this makes the numbers. */
enum op {
#define OP(name, ...) OP_##name,
#include "ops.def"
    OPS
};

typedef int node; /* position in graph->nodes */
enum { NONE = -1, MAX_INPUTS = 8 };

/* As TensorFlow pads: VALID not at all; SAME with so much around that the result has ceil(length / stride)
 * rows, the odd one behind. */
enum padding { PADDING_VALID, PADDING_SAME };

struct inner;  /* control.h */
struct custom; /* custom.h */
struct queue;  /* src/program/queue.h; not looked into here */

/* What a graph frees when it is closed; the first member of something larger. */
struct owned {
    struct owned *next;
    void (*free)(struct owned *owned);
};

enum activation { ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_SIGMOID, ACTIVATION_TANH };

/* Settings of a node; which of them matter stands beside the operation's row in ops.def. */
struct attributes {
    int axis;  /* reduce_*, argmax, concat; ALL_AXES: over everything */
    bool keep; /* reduce_*: keep the axis with length 1; decayed: all operands are values */
    bool transpose_a, transpose_b; /* matmul: last two axes of an operand swapped */
    enum activation activation;    /* dense, conv2d_bias, lrn_grad */
    int order[MAX_RANK];           /* transpose: output axis i is input axis order[i] */
    int begin[MAX_RANK];           /* slice, pad: first element per axis */
    int window[2], stride[2];      /* conv2d (whose window is its kernel's), pooling: rows, columns */
    enum padding padding;          /* conv2d, pooling */
    struct pooling {
        int window[2], stride[2];
        enum padding padding;
    } pool; /* conv2d_pool_grad_kernel: of the maxpool behind the convolution */
    struct lrn {
        int radius; /* 2 radius + 1 neighbours, itself included */
        float bias, alpha, beta;
    } lrn;
    float epsilon;      /* batch_norm and its gradients */
    float momentum;     /* batch_norm: of what follows its moments, for other programs' files */
    struct shape shape; /* reshape, broadcast_to, slice (sizes), pad (full shape), placeholder, constant,
                           conv2d_grad_x, conv2d_grad_kernel, avgpool_grad, embedding_grad, cond, dequeue */
    float rate;         /* dropout: share that is dropped */
    float smoothing; /* softmax_cross_entropy and its gradient: share of the label that all classes divide */
    float share;     /* decayed: that each square counts for */
    uint64_t seed;   /* dropout, shuffle: key of its random numbers */
    int variable;    /* variable, assign, assign_add: range number in the layout */
    int limit;       /* while: rounds at most */
    const struct inner *inner;   /* while, cond and their gradients; the graph's */
    const struct custom *custom; /* custom; the graph's, or borrowed */
    struct queue *queue;         /* enqueue, dequeue; borrowed */
};
enum { ALL_AXES = -100, MAX_LRN_RADIUS = 16 };

struct node_info {
    enum op op;
    enum type type;
    struct shape shape;
    int inputs;
    node input[MAX_INPUTS];
    struct attributes attributes;
    const void *constant; /* OP_constant: [shape_count] of type, owned by the graph */
    int gradient_of; /* range whose gradient this node is (its value goes straight into the gradient slab);
                        -1: none */
    node follows;  /* the forward node that this one helps to differentiate, or the variable whose decay it is
                      a part of: it can be computed where that one is; NONE: neither */
    char name[64]; /* placeholders, variables and layers; else empty */
};

struct graph {
    struct node_info *nodes; /* [count] */
    int count, capacity;
    struct layout layout; /* of its variables */
    struct error error;   /* the first mistake; code 0: none */
    int layers;           /* dense layers so far, for their names */
    int convolutions;     /* convolution layers so far, for theirs */
    int depthwises;       /* depthwise convolution layers so far, for theirs */
    int embeddings;       /* embedding layers so far, for theirs */
    int norms;            /* batch normalisations so far, for theirs */
    uint64_t seed;        /* of dropout masks */
    bool training;        /* false: dropout passes its input through */
    const char
        *frozen; /* patterns (layout_matches) of variables that are RANGE_FROZEN; NULL: none; borrowed */
    struct owned *owned; /* a list */
};

void graph_open(struct graph *g, bool training, uint64_t seed);
void graph_close(struct graph *g);                           /* safe on a zeroed graph */
int graph_check(const struct graph *g, struct error *error); /* the first mistake, if any */

/* --- sources --- */
node graph_placeholder(struct graph *g, const char *name, enum type type, struct shape shape);
node graph_constant(struct graph *g, struct shape shape, const float *values); /* copied */
node graph_constant_int(struct graph *g, struct shape shape, const int *values);
node graph_scalar(struct graph *g, float value);
node graph_variable(struct graph *g, const char *name, struct shape shape, struct initial initial);
void graph_freeze(struct graph *g, node variable);                 /* RANGE_FROZEN */
void graph_decay(struct graph *g, node variable, float decay);     /* L2 of that range */
void graph_rate(struct graph *g, node variable, float multiplier); /* of its learning rate */
/* RANGE_STATISTIC: from now on it follows a value of each batch, of its shape, the old counting `momentum`.
 * Its "gradient" is the node returned, which must be fetched; NONE: the variable is frozen, and stays. */
node graph_statistic(struct graph *g, node variable, node batch_value, float momentum);
/* The placeholder or variable of that name, or NONE. */
node graph_find(const struct graph *g, const char *name);
node graph_assign(struct graph *g, node variable,
                  node value); /* runs when fetched; its value is the new one */
node graph_assign_add(struct graph *g, node variable, node value);

/* --- elementwise; shapes broadcast as in NumPy --- */
/* graph_add(g, a, b), graph_exp(g, x), ...: one for each elementwise row of ops.def. */
#define UNARY(name, ...) node graph_##name(struct graph *g, node x);
#define BINARY(name, ...) node graph_##name(struct graph *g, node a, node b);
#define SLOPE(name) node graph_##name(struct graph *g, node y, node dy);
#include "ops.def"
node graph_activate(struct graph *g, node x, enum activation activation);
node graph_cast(struct graph *g, node x, enum type type);
node graph_dropout(struct graph *g, node x,
                   float rate); /* draws by (graph seed, node, the step fed to the placeholder "step") */

/* The rows (along the first axis) in another order, which is drawn by (graph seed, node, the step fed to the
 * placeholder "step"). */
node graph_shuffle(struct graph *g, node x);

/* --- matrix --- */
node graph_matmul(struct graph *g, node a, node b, bool transpose_a, bool transpose_b); /* rank 2 */
/* Of a square matrix. That of a singular one is an error of the run (ERROR_USAGE), as is the gradient of a
 * determinant of 0. */
node graph_inverse(struct graph *g, node x);
node graph_determinant(struct graph *g, node x); /* a scalar */
/* The weights of a layer. */
struct weights {
    const char *name; /* of the layer; NULL: dense1, dense2, ..., conv1, ... */
    struct initial kernel, bias;
    bool no_bias;
    float decay; /* L2 of the kernel; 0: the layout's */
};
/* x [B, in] times a new variable "<name>/kernel" [in, out] plus a new "<name>/bias" [out]; name "dense1",
 * "dense2", ... */
node graph_dense(struct graph *g, node x, int out, struct initial kernel, struct initial bias);
node graph_dense_of(struct graph *g, node x, int out, const struct weights *weights);
/* x [batch, ...], whole numbers from 0 to vocabulary - 1, replaced by their rows of a new variable
 * "<name>/kernel" [vocabulary, units]: -> [batch, ..., units]; name "embedding1", ... Another number is an
 * error of the run (ERROR_FILE). */
node graph_embedding_of(struct graph *g, node x, int vocabulary, int units, const struct weights *weights);

/* --- images: [batch, rows, columns, channels] --- */
/* kernel [rows, columns, channels, out]; with only a part of x's channels, which divides them, the
 * convolution is grouped: so many channels of x make an equal part of `out`, the next ones the next part. */
node graph_conv2d(struct graph *g, node x, node kernel, int stride, enum padding padding);
/* x convolved with a new variable "<name>/kernel" [window, window, channels, out] plus a new "<name>/bias"
 * [out]; name "conv1", "conv2", ... */
node graph_conv(struct graph *g, node x, int out, int window, int stride, enum padding padding,
                struct initial kernel, struct initial bias);
/* The same with windows of any form. */
node graph_conv_of(struct graph *g, node x, int out, const struct pooling *windows,
                   const struct weights *weights);
/* Each channel convolved by itself, with a new variable "<name>/kernel" [rows, columns, channels,
 * multiplier]: channel c becomes channels c * multiplier ... of the result; plus a new "<name>/bias"
 * [channels * multiplier]; name "depthwise1", ... */
node graph_depthwise_of(struct graph *g, node x, int multiplier, const struct pooling *windows,
                        const struct weights *weights);
node graph_maxpool(struct graph *g, node x, int window, int stride,
                   enum padding padding); /* what is padded never counts */
node graph_maxpool_of(struct graph *g, node x, const struct pooling *windows);
node graph_avgpool(struct graph *g, node x, const struct pooling *windows);
node graph_global_average(struct graph *g, node x); /* -> [batch, channels] */
node graph_global_max(struct graph *g, node x);     /* -> [batch, channels] */
node graph_lrn(struct graph *g, node x, struct lrn lrn);
/* Each channel (of the last axis) with mean 0 and variance 1, times a new variable "<name>/scale", plus a new
 * "<name>/shift"; name "norm1", ... In training by its own mean and variance over all other axes;
 * "<name>/mean" and "<name>/variance" are statistics that follow them, old values counting `momentum`; else,
 * and where these are frozen, by these. Source: Ioffe and Szegedy 2015. */
node graph_batch_norm(struct graph *g, node x, float momentum, float epsilon);
node graph_batch_norm_of(struct graph *g, node x, const char *name, float momentum, float epsilon);
/* [batch, rows, columns, channels]: x itself, or an image of one channel: of [batch, rows, columns], or, of
 * [batch, pixels], a square one. */
node graph_image(struct graph *g, node x);
node graph_flatten(struct graph *g, node x); /* -> [batch, everything else] */

/* --- arrays --- */
node graph_reshape(struct graph *g, node x, struct shape shape); /* one dimension may be -1 */
node graph_transpose(struct graph *g, node x, const int *order);
node graph_concat(struct graph *g, const node *parts, int count, int axis);     /* at most MAX_INPUTS */
node graph_slice(struct graph *g, node x, const int *begin, struct shape size); /* a size of -1: to the end */
/* Zeros around: before[axis] and after[axis] of them. */
node graph_pad(struct graph *g, node x, const int *before, const int *after);
void graph_split(struct graph *g, node x, int count, int axis, node *parts); /* equal parts */
node graph_shape(struct graph *g, node x);                                   /* int [rank] */
node graph_rank(struct graph *g, node x);                                    /* int scalar */
node graph_broadcast(struct graph *g, node x, struct shape shape);

/* --- queues: run when fetched, in the order of the nodes --- */
node graph_enqueue(struct graph *g, struct queue *queue, node x); /* waits for room; its value is x */
/* Waits for a value, which has that shape. float32. */
node graph_dequeue(struct graph *g, struct queue *queue, struct shape shape);

/* --- reductions --- */
node graph_reduce_sum(struct graph *g, node x, int axis, bool keep);
node graph_reduce_mean(struct graph *g, node x, int axis, bool keep);
node graph_reduce_max(struct graph *g, node x, int axis, bool keep);
node graph_argmax(struct graph *g, node x, int axis); /* int; the first of equal ones */

/* --- nets --- */
node graph_softmax(struct graph *g, node x); /* over the last axis */
node graph_cross_entropy(struct graph *g, node p,
                         node labels); /* -log p[label]; [B, classes], int [B] -> [B] */
node graph_softmax_cross_entropy(struct graph *g, node logits,
                                 node labels); /* the same from logits, stable; -> [B] */
/* The same where the label counts 1 - smoothing, and all classes divide the rest: Szegedy et al., "Rethinking
 * the Inception architecture", 2015. 0 <= smoothing < 1. */
node graph_smoothed_cross_entropy(struct graph *g, node logits, node labels, float smoothing);

/* Adds the gradient of the scalar `loss` with respect to `targets[count]` to the graph: gradients[i] is the
 * node, NONE when the loss does not depend on it. When a target is a variable, its node is marked gradient_of
 * that range (it lands in the gradient slab). */
void graph_gradients(struct graph *g, node loss, const node *targets, int count, node *gradients);

const char *op_name(enum op op);

/* Multiply-adds of one run of an operation on such operands, or of the node. */
double op_multiply_adds(enum op op, const struct attributes *attributes, const struct shape *const *operand,
                        const struct shape *result);
double graph_multiply_adds(const struct graph *g, node n);

#endif
