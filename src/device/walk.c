/* See walk.h: strides of operands that broadcast, and the merging of axes that are contiguous. */
#include "walk.h"

/* Strides of a dense value of this shape along the axes of `out`; 0 where it broadcasts. */
static void strides_of(const struct shape *shape, const struct shape *out, size_t *stride) {
    size_t run = 1;
    for (int axis = out->rank - 1; axis >= 0; axis--) {
        const int own = axis - (out->rank - shape->rank);
        const int length = own >= 0 ? shape->dims[own] : 1;
        stride[axis] = length == 1 ? 0 : run;
        run *= (size_t)length;
    }
}

/* Leaves out axes of length 1 and merges an axis with the next one when for all operands a step along it is
 * as long as the whole next axis. */
static void merge(struct walk *walk, const struct shape *out) {
    walk->rank = 0;
    for (int axis = 0; axis < out->rank; axis++) {
        if (out->dims[axis] == 1) continue;
        const size_t length = (size_t)out->dims[axis];
        const size_t a = walk->stride[0][axis], b = walk->stride[1][axis];
        const int last = walk->rank - 1;
        if (last >= 0 && walk->stride[0][last] == a * length && walk->stride[1][last] == b * length) {
            walk->dims[last] *= length;
        } else {
            walk->rank++;
            walk->dims[last + 1] = length;
        }
        walk->stride[0][walk->rank - 1] = a;
        walk->stride[1][walk->rank - 1] = b;
    }
    if (walk->rank == 0) {
        walk->rank = 1;
        walk->dims[0] = 1;
        walk->stride[0][0] = walk->stride[1][0] = 0;
    }
    walk->rows = 1;
    for (int axis = 0; axis < walk->rank - 1; axis++) walk->rows *= walk->dims[axis];
}

void walk_broadcast(struct walk *walk, const struct shape *out, const struct shape *a,
                    const struct shape *b) {
    *walk = (struct walk){0};
    strides_of(a, out, walk->stride[0]);
    if (b) strides_of(b, out, walk->stride[1]);
    merge(walk, out);
}

void walk_strided(struct walk *walk, const struct shape *out, const size_t *a, const size_t *b) {
    *walk = (struct walk){0};
    for (int axis = 0; axis < out->rank; axis++) {
        walk->stride[0][axis] = a[axis];
        if (b) walk->stride[1][axis] = b[axis];
    }
    merge(walk, out);
}

void walk_strides(const struct shape *shape, size_t *stride) {
    size_t run = 1;
    for (int axis = shape->rank - 1; axis >= 0; axis--) {
        stride[axis] = run;
        run *= (size_t)shape->dims[axis];
    }
}
