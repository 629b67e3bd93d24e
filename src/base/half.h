/* float16 (IEEE 754 binary16) in files: its bits as a float, exactly. */
#ifndef TRAINER_BASE_HALF_H
#define TRAINER_BASE_HALF_H

#include <math.h>

static inline float half_float(unsigned bits) {
    const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    const float size = exponent == 0    ? ldexpf((float)fraction, -24)
                       : exponent == 31 ? (fraction ? NAN : INFINITY)
                                        : ldexpf((float)(1024 + fraction), exponent - 25);
    return bits >> 15 & 1 ? -size : size;
}

#endif
