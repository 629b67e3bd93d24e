/* Standardizing features: sums in double, in two passes, so that a large mean does not cancel the
 * deviation. */
#include "standardize.h"

#include <math.h>
#include <stddef.h>

static void measure_column(const float *column, int count, size_t stride, float *mean, float *deviation) {
    double sum = 0, squares = 0;
    for (int row = 0; row < count; row++) sum += (double)column[(size_t)row * stride];
    const double middle = sum / count;
    for (int row = 0; row < count; row++) {
        const double off = (double)column[(size_t)row * stride] - middle;
        squares += off * off;
    }
    *mean = (float)middle;
    *deviation = (float)sqrt(squares / count);
    if (*deviation == 0) *deviation = 1; /* exactly 0: equal floats add up in double without rounding */
}

void standardize_measure(const float *rows, int count, int features, float *mean, float *deviation) {
    for (int f = 0; f < features; f++)
        measure_column(rows + f, count, (size_t)features, &mean[f], &deviation[f]);
}

void standardize_apply(float *rows, int count, int features, const float *mean, const float *deviation) {
    for (int row = 0; row < count; row++, rows += features)
        for (int f = 0; f < features; f++)
            rows[f] = (float)(((double)rows[f] - (double)mean[f]) / (double)deviation[f]);
}
