/* The calls that build a graph of images: convolution, pooling, normalisation. */
#include <math.h>
#include <stdio.h>
#include "graph.h"
#include "rules.h"

/* The shape of a node with so many dimensions; NULL after a mistake, which is remembered. */
static const struct shape *expect_dims(struct graph *g, const char *what, node x, int least, int most) {
    if (g->error.code != OK) return NULL;
    if (x < 0 || x >= g->count) {
        graph_mistake(g, "%s: operand 1 is not a node of this graph", what);
        return NULL;
    }
    const struct shape *shape = &g->nodes[x].shape;
    if (shape->rank >= least && shape->rank <= most) return shape;
    graph_mistake(g, "%s: operand 1 is %s, expected %d%s dimensions", what, TEXT(shape), least,
                  most > least ? " or more" : "");
    return NULL;
}

node graph_conv2d(struct graph *g, node x, node kernel, int stride, enum padding padding) {
    struct node_info info = {.op = OP_conv2d, .inputs = 2, .input = {x, kernel}};
    info.attributes.stride[0] = info.attributes.stride[1] = stride;
    info.attributes.padding = padding;
    return graph_make(g, &info);
}

node graph_conv(struct graph *g, node x, int out, int window, int stride, enum padding padding,
                struct initial kernel, struct initial bias) {
    const struct shape *shape = expect_dims(g, "conv", x, 4, 4);
    if (!shape) return NONE;
    const int channels = shape->dims[3], layer = ++g->convolutions;
    char name[64];
    snprintf(name, sizeof name, "conv%d/kernel", layer);
    const node w = graph_variable(g, name, SHAPE(window, window, channels, out), kernel);
    snprintf(name, sizeof name, "conv%d/bias", layer);
    const node b = graph_variable(g, name, SHAPE(out), bias);
    return graph_add(g, graph_conv2d(g, x, w, stride, padding), b);
}

node graph_maxpool(struct graph *g, node x, int window, int stride, enum padding padding) {
    struct node_info info = {.op = OP_maxpool, .inputs = 1, .input = {x}};
    info.attributes.window[0] = info.attributes.window[1] = window;
    info.attributes.stride[0] = info.attributes.stride[1] = stride;
    info.attributes.padding = padding;
    return graph_make(g, &info);
}

node graph_global_average(struct graph *g, node x) {
    const struct shape *shape = expect_dims(g, "global average", x, 4, 4);
    if (!shape) return NONE;
    const struct shape pixels = SHAPE(shape->dims[0], shape->dims[1] * shape->dims[2], shape->dims[3]);
    return graph_reduce_mean(g, graph_reshape(g, x, pixels), 1, false);
}

node graph_lrn(struct graph *g, node x, struct lrn lrn) {
    struct node_info info = {.op = OP_lrn, .inputs = 1, .input = {x}};
    info.attributes.lrn = lrn;
    return graph_make(g, &info);
}

/* Variable "norm<layer>/<what>" of so many channels. */
static node norm_variable(struct graph *g, int layer, const char *what, int channels, float value) {
    char name[64];
    snprintf(name, sizeof name, "norm%d/%s", layer, what);
    return graph_variable(g, name, SHAPE(channels),
                          (struct initial){.kind = INITIAL_CONSTANT, .value = value});
}

/* The mean and the variance as one value; in training those of x, which the statistics follow. */
static node norm_moments(struct graph *g, node x, node mean, node variance, int channels, float momentum) {
    const node statistics[] = {mean, variance};
    const struct shape row = SHAPE(1, channels);
    if (!g->training) {
        for (int i = 0; i < 2 && g->error.code == OK; i++)
            g->layout.ranges[g->nodes[statistics[i]].attributes.variable].kind = RANGE_STATISTIC;
        return graph_concat(g, (node[]){graph_reshape(g, mean, row), graph_reshape(g, variance, row)}, 2, 0);
    }
    const node moments = graph_make(g, &(struct node_info){.op = OP_moments, .inputs = 1, .input = {x}});
    for (int i = 0; i < 2; i++)
        graph_statistic(g, statistics[i],
                        graph_reshape(g, graph_slice(g, moments, (int[]){i, 0}, row), SHAPE(channels)),
                        momentum);
    return moments;
}

node graph_batch_norm(struct graph *g, node x, float momentum, float epsilon) {
    const struct shape *shape = expect_dims(g, "batch_norm", x, 2, MAX_RANK);
    if (!shape) return NONE;
    const int channels = shape->dims[shape->rank - 1], layer = ++g->norms;
    const node scale = norm_variable(g, layer, "scale", channels, 1.0f);
    const node shift = norm_variable(g, layer, "shift", channels, 0.0f);
    const node mean = norm_variable(g, layer, "mean", channels, 0.0f);
    const node variance = norm_variable(g, layer, "variance", channels, 1.0f);
    const node moments = norm_moments(g, x, mean, variance, channels, momentum);
    struct node_info info = {.op = OP_batch_norm, .inputs = 4, .input = {x, moments, scale, shift}};
    info.attributes.epsilon = epsilon;
    return graph_make(g, &info);
}

node graph_image(struct graph *g, node x) {
    const struct shape *shape = expect_dims(g, "image", x, 2, 4);
    if (!shape || shape->rank == 4) return shape ? x : NONE;
    const int pixels = shape->dims[1], side = (int)lround(sqrt(pixels));
    if (shape->rank == 2 && side * side == pixels) return graph_reshape(g, x, SHAPE(-1, side, side, 1));
    graph_mistake(
        g, "image: examples of %s, expected [batch, rows, columns, channels] or a square image's pixels",
        TEXT(shape));
    return NONE;
}

node graph_flatten(struct graph *g, node x) {
    const struct shape *shape = expect_dims(g, "flatten", x, 1, MAX_RANK);
    if (shape && shape->rank == 2) return x;
    return shape ? graph_reshape(g, x, SHAPE(shape->dims[0], -1)) : NONE;
}

node graph_pad(struct graph *g, node x, const int *before, const int *after) {
    const struct shape *shape = expect_dims(g, "pad", x, 0, MAX_RANK);
    if (!shape) return NONE;
    struct node_info info = {.op = OP_pad, .inputs = 1, .input = {x}, .attributes.shape = *shape};
    for (int axis = 0; axis < shape->rank; axis++) {
        if (before[axis] < 0 || after[axis] < 0) {
            graph_mistake(g, "pad: %d and %d around axis %d, expected 0 or more", before[axis], after[axis],
                          axis);
            return NONE;
        }
        info.attributes.begin[axis] = before[axis];
        info.attributes.shape.dims[axis] += before[axis] + after[axis];
    }
    return graph_make(g, &info);
}
