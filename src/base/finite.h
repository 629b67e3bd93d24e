/* Numbers that are neither infinite nor NaN. */
#ifndef TRAINER_BASE_FINITE_H
#define TRAINER_BASE_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether all of values[floats] are finite. One pass, at the speed of memory. */
bool all_finite(const float *values, size_t floats);

#endif
