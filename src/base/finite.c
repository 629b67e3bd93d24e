/* See finite.h. */
#include "finite.h"

#include <math.h>

enum { LANES = 32 };

/* A sum with an infinity or a NaN in it is not finite, and needs one addition per number. Finite numbers can
 * add up to infinity, too, so each number is looked at only after that. */
bool all_finite(const float *values, size_t floats) {
    float sums[LANES] = {0}, sum = 0.0f;
    const size_t whole = floats - floats % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++) sums[k] += values[i + k];
    for (size_t k = 0; k < LANES; k++) sum += sums[k];
    for (size_t i = whole; i < floats; i++) sum += values[i];
    if (isfinite(sum)) return true;
    for (size_t i = 0; i < floats; i++)
        if (!isfinite(values[i])) return false;
    return true;
}
