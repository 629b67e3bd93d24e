/* Private to the reference kernels: their names.
 *
 * The reference kernels are plain loops: what every other kernel is compared with, and what runs where
 * nothing better is installed. They are deterministic and use no scratch memory. The hot ones are written so
 * that the compiler vectorises them. */
#ifndef TRAINER_CPU_REFERENCE_H
#define TRAINER_CPU_REFERENCE_H

#include "../device/device.h"
#include "../device/walk.h"

/* One kernel an operation; `source` names none. */
#define OP(name, inputs, shape, gradient, reference, ...) extern const struct kernel reference_##reference;
#include "../graph/ops.def"

/* Lets a loop over a formula be compiled once for each formula, with the formula inside. */
#define INLINED static inline __attribute__((always_inline))

/* Sum of a[i] * b[i], in LANES partial sums of fixed order. */
float reference_dot(const float *a, const float *b, size_t length);
/* row [n] += sum over k of a[k * step] times row k of b [inner, n]. */
void reference_add_rows(const float *a, size_t step, size_t inner, const float *b, size_t n, float *row);
void reference_activate(float *row, size_t n, enum activation activation);

/* For `prepare`: declines what is not float32 throughout. */
int reference_wide(const struct problem *problem, void **plan, struct error *error);
/* The same for kernels that do not convert between operands and result: declines what is not of one type. */
int reference_one_type(const struct problem *problem, void **plan, struct error *error);

#endif
