/* Private to the reference kernels: their names, and the walk over operands that broadcast or lie in another
 * order.
 *
 * The reference kernels are plain loops: what every other kernel is compared with, and what runs where
 * nothing better is installed. They are deterministic and use no scratch memory. The hot ones are written so
 * that the compiler vectorises them. */
#ifndef TRAINER_CPU_REFERENCE_H
#define TRAINER_CPU_REFERENCE_H

#include "../device/device.h"

/* One kernel an operation; `source` names none. */
#define OP(name, inputs, shape, gradient, reference, ...) extern const struct kernel reference_##reference;
#include "../graph/ops.def"
#undef OP

/* Lets a loop over a formula be compiled once for each formula, with the formula inside. */
#define INLINED static inline __attribute__((always_inline))

/* Sum of a[i] * b[i], in LANES partial sums of fixed order. */
float reference_dot(const float *a, const float *b, size_t length);
/* row [n] += sum over k of a[k * step] times row k of b [inner, n]. */
void reference_add_rows(const float *a, size_t step, size_t inner, const float *b, size_t n, float *row);
void reference_activate(float *row, size_t n, enum activation activation);

/* For `prepare`: declines what is not float32 throughout. */
int reference_wide(const struct task *task, void **plan, struct error *error);

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
/* Operand a with a stride per output axis; rank at most MAX_RANK. */
void walk_strided(struct walk *walk, const struct shape *out, const size_t *stride);

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
