/* Private to the .cu files: dividing by a number that host code knows, with a multiplication; the division of
 * a GPU is some twenty instructions. Source: Granlund and Montgomery, "Division by invariant integers using
 * multiplication", 1994. */
#ifndef TRAINER_CUDA_DIVIDE_H
#define TRAINER_CUDA_DIVIDE_H

#include "launch.h"

struct divisor {
    uint32_t by, factor, shift;
};

/* by: 1 to 2^31. */
static inline divisor divisor_of(uint32_t by) {
    divisor divisor = {by, 0, 0};
    while ((uint64_t)1 << divisor.shift < by) divisor.shift++;
    divisor.factor = (uint32_t)(((((uint64_t)1 << divisor.shift) - by) << 32) / by + 1);
    return divisor;
}

/* n / by, of an n below 2^31. */
DEVICE uint32_t over(uint32_t n, const divisor &divisor) {
    return ((uint32_t)((uint64_t)n * divisor.factor >> 32) + n) >> divisor.shift;
}
/* The same; *n becomes n % by. */
DEVICE uint32_t over_and_rest(uint32_t *n, const divisor &divisor) {
    const uint32_t times = over(*n, divisor);
    *n -= times * divisor.by;
    return times;
}

#endif
