/* See clip.h. */
#include "clip.h"

#include <math.h>

#include "../base/memory.h"

/* Sum of squares; eight partial sums, so that it vectorises and has the same bits everywhere. */
static double squares_of(const float *values, size_t floats) {
    double sums[8] = {0};
    for (size_t i = 0; i + 8 <= floats; i += 8)
        for (size_t k = 0; k < 8; k++) sums[k] += (double)values[i + k] * (double)values[i + k];
    double sum = 0.0;
    for (int k = 0; k < 8; k++) sum += sums[k];
    return sum;
}

/* Floats from a range's first to the next one's, padding included. */
static size_t range_floats(const struct range *range) {
    return (range->floats + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
}

/* What a statistic follows is no gradient, and is left as it is. */
void gradient_clip(const struct layout *layout, float *values, float most) {
    double squares = 0.0;
    for (int r = 0; r < layout->count; r++)
        if (layout->ranges[r].kind != RANGE_STATISTIC)
            squares += squares_of(values + layout->ranges[r].begin, range_floats(&layout->ranges[r]));
    if (!(sqrt(squares) > (double)most)) return;
    const float scale = (float)((double)most / sqrt(squares));
    for (int r = 0; r < layout->count; r++) {
        const struct range *range = &layout->ranges[r];
        for (size_t i = 0; i < range->floats && range->kind != RANGE_STATISTIC; i++)
            values[range->begin + i] *= scale;
    }
}
