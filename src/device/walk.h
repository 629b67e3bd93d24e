/* How kernels of all devices go through operands that broadcast or lie in another order. */
#ifndef TRAINER_DEVICE_WALK_H
#define TRAINER_DEVICE_WALK_H

#include "../graph/shape.h"

/* How to go through an output in order while two operands follow with strides of their own (in elements; 0:
 * broadcast). Axes along which all three run on are merged, so equal shapes are one long row. */
struct walk {
    int rank;                   /* 1 or more; the last axis is the row */
    size_t dims[MAX_RANK];      /* of the output */
    size_t stride[2][MAX_RANK]; /* of the operands */
    size_t rows;                /* product of all dims but the last */
    size_t index[MAX_RANK];     /* where the walk is */
    size_t offset[2];           /* of the operands there */
};

/* Operands a and b (NULL: only a) that broadcast to `out`. */
void walk_broadcast(struct walk *walk, const struct shape *out, const struct shape *a, const struct shape *b);
/* Operands a and b (NULL: only a) with strides of their own along the axes of `out`. */
void walk_strided(struct walk *walk, const struct shape *out, const size_t *a, const size_t *b);
/* The strides of a dense value of this shape, along its own axes. */
void walk_strides(const struct shape *shape, size_t *stride);

/* On to the next row. */
static inline void walk_row(struct walk *walk) {
    for (int axis = walk->rank - 2; axis >= 0; axis--) {
        for (int k = 0; k < 2; k++) walk->offset[k] += walk->stride[k][axis];
        if (++walk->index[axis] < walk->dims[axis]) return;
        for (int k = 0; k < 2; k++) walk->offset[k] -= walk->stride[k][axis] * walk->dims[axis];
        walk->index[axis] = 0;
    }
}

#endif
