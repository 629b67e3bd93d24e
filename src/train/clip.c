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

/* Sum of squares of a range of `values`, which lie on `home`, or, without one, in the host's memory. */
static int add_squares(const struct range *range, const struct device *home, const float *values, double *sum,
                       struct error *error) {
    const float *first = values + range->begin;
    double squares = 0.0;
    if (home)
        RETURN_IF(home->backend->vectors->squares(home, first, range->floats, &squares, error));
    else
        squares = squares_of(first, range_floats(range));
    *sum += squares;
    return OK;
}

static int scale_range(const struct range *range, const struct device *home, float *values, float factor,
                       struct error *error) {
    float *first = values + range->begin;
    if (home) return home->backend->vectors->scale(home, first, range->floats, factor, error);
    for (size_t i = 0; i < range->floats; i++) first[i] *= factor;
    return OK;
}

/* What a statistic follows is no gradient, and is left as it is. */
int gradient_clip(const struct layout *layout, const struct device *home, float *values, float most,
                  struct error *error) {
    double squares = 0.0;
    for (int r = 0; r < layout->count; r++)
        if (layout->ranges[r].kind != RANGE_STATISTIC)
            RETURN_IF(add_squares(&layout->ranges[r], home, values, &squares, error));
    if (!(sqrt(squares) > (double)most)) return OK;
    const float factor = (float)((double)most / sqrt(squares));
    for (int r = 0; r < layout->count; r++)
        if (layout->ranges[r].kind != RANGE_STATISTIC)
            RETURN_IF(scale_range(&layout->ranges[r], home, values, factor, error));
    return home ? home->backend->finish(home, error) : OK;
}
