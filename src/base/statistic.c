/* Mean and spread without a list of the numbers, and without the cancellation of a sum of squares.
 * Source: B. P. Welford, "Note on a method for calculating corrected sums of squares", 1962. */
#include "statistic.h"

#include <math.h>

void statistic_add(struct statistic *statistic, double value) {
    if (isnan(value)) return;
    const double before = value - statistic->average;
    statistic->count++;
    statistic->average += before / (double)statistic->count;
    statistic->squares += before * (value - statistic->average);
}

double statistic_mean(const struct statistic *statistic) {
    return statistic->count > 0 ? statistic->average : (double)NAN;
}

double statistic_deviation(const struct statistic *statistic) {
    return statistic->count > 1 ? sqrt(statistic->squares / (double)(statistic->count - 1)) : (double)NAN;
}
