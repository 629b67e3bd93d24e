/* For the tests of the reference kernels: constants full of known numbers, positions worked out naively, and
 * which operation is tested where. */
#ifndef TRAINER_TESTS_NAIVE_H
#define TRAINER_TESTS_NAIVE_H

#include "../src/graph/rules.h"
#include "reference_device.h"

/* The sections of ops.def that tests/cpu/reference_arrays.c and its neighbours test; all others are
 * tested in tests/cpu/reference.c. */
static inline bool is_of_arrays(int op) {
    return op >= OP_reshape && op <= OP_argmax;
}
static inline bool is_of_library(int op) { /* tests/cpu/reference_linear.c */
    return op >= OP_inverse && op <= OP_unshuffle;
}
static inline bool is_of_images(int op) {
    return op >= OP_conv2d && op <= OP_batch_norm_grad;
}

enum { MOST = 17 * 17 * 17 };

static bool covered[OPS];

/* Runs the graph for one node, notes what was covered, leaves the session open. */
static inline void evaluate(struct session *s, struct graph *g, node n) {
    session_open(s, g, &n, 1);
    session_run(s);
    if (n >= 0) covered[g->nodes[n].op] = true;
}

static inline void finish(struct session *s, struct graph *g) {
    session_close(s);
    graph_close(g);
}

static inline node whole(struct graph *g, struct shape shape, uint64_t seed) {
    float values[MOST];
    fill_whole(values, shape_count(&shape), seed);
    return graph_constant(g, shape, values);
}

static inline node between(struct graph *g, struct shape shape, uint64_t seed, float least, float most) {
    float values[MOST];
    fill_between(values, shape_count(&shape), seed, least, most);
    return graph_constant(g, shape, values);
}

static inline node whole_int(struct graph *g, struct shape shape, uint64_t seed) {
    float values[MOST];
    int ints[MOST];
    fill_whole(values, shape_count(&shape), seed);
    for (size_t i = 0; i < shape_count(&shape); i++) ints[i] = (int)values[i];
    return graph_constant_int(g, shape, ints);
}

static inline const float *constant(const struct graph *g, node n) {
    return g->nodes[n].constant;
}

/* Position in a value of shape `of` that element i of the broadcast `out` reads. */
static inline size_t broadcast_position(const struct shape *out, const struct shape *of, size_t i) {
    size_t position = 0, run = 1;
    for (int back = 1; back <= out->rank; back++) {
        const size_t length = (size_t)out->dims[out->rank - back], at = i % length;
        i /= length;
        if (back > of->rank) continue;
        const size_t own = (size_t)of->dims[of->rank - back];
        position += (own == 1 ? 0 : at) * run;
        run *= own;
    }
    return position;
}

/* Index along each axis of element i. */
static inline void unravel(const struct shape *shape, size_t i, int *index) {
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        index[axis] = (int)(i % (size_t)shape->dims[axis]);
        i /= (size_t)shape->dims[axis];
    }
}

static inline size_t ravel(const struct shape *shape, const int *index) {
    size_t i = 0;
    for (int axis = 0; axis < shape->rank; axis++) i = i * (size_t)shape->dims[axis] + (size_t)index[axis];
    return i;
}

#endif
