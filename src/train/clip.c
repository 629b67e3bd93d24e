/* See clip.h. */
#include "clip.h"

#include <math.h>

/* Euclidean norm; eight partial sums, so that it vectorises and has the same bits everywhere. */
static double norm_of(const float *values, size_t floats) {
    double sums[8] = {0};
    for (size_t i = 0; i + 8 <= floats; i += 8)
        for (size_t k = 0; k < 8; k++) sums[k] += (double)values[i + k] * (double)values[i + k];
    double sum = 0.0;
    for (int k = 0; k < 8; k++) sum += sums[k];
    return sqrt(sum);
}

void gradient_clip(float *values, size_t floats, float most) {
    const double norm = norm_of(values, floats);
    if (!(norm > (double)most)) return;
    const float scale = (float)((double)most / norm);
    for (size_t i = 0; i < floats; i++) values[i] *= scale;
}
