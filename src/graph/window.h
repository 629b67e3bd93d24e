/* Windows that slide along an axis, as in convolution and pooling: how many there are and where they
 * begin. Shared by the shape rules and all kernels. */
#ifndef TRAINER_GRAPH_WINDOW_H
#define TRAINER_GRAPH_WINDOW_H

#include "graph.h"

struct window {
    int in, out;        /* elements, windows */
    int length, stride; /* of a window; from window to window */
    int before, after;  /* padding: elements that are not there, seen by the first and the last window */
};

/* Where TensorFlow puts the windows. out is less than 1 when not even one fits. */
static inline struct window window_along(int in, int length, int stride, enum padding padding) {
    struct window w = {.in = in, .length = length, .stride = stride};
    if (padding == PADDING_VALID) {
        w.out = in < length ? 0 : (in - length) / stride + 1;
        return w;
    }
    w.out = (in + stride - 1) / stride;
    const int padded = (w.out - 1) * stride + length - in;
    w.before = padded > 0 ? padded / 2 : 0;
    w.after = padded > 0 ? padded - w.before : 0;
    return w;
}

/* Into how many groups a convolution parts its channels: each group of results is computed from its own group
 * of channels of x, of which the kernel [rows, columns, channels of a group, out] has one. 1: all from all.
 */
static inline int convolution_groups(const struct shape *x, const struct shape *kernel) {
    return x->dims[3] / kernel->dims[2];
}

/* *begin and *end: the elements of window number i that are there, always one or more. Returns the place of
 * the first of them in the window. */
static inline int window_part(const struct window *w, int i, int *begin, int *end) {
    const int first = i * w->stride - w->before;
    *begin = first < 0 ? 0 : first;
    *end = first + w->length > w->in ? w->in : first + w->length;
    return *begin - first;
}

#endif
