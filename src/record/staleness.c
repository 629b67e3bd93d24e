/* See staleness.h. */
#include "staleness.h"

#include <math.h>

void staleness_add(struct staleness *staleness, long value) {
    staleness->counts[value < 0 ? 0 : value < STALENESS_MOST ? value : STALENESS_MOST]++;
    staleness->gradients++;
    staleness->sum += (double)value;
    if (value > staleness->max) staleness->max = value;
}

void staleness_merge(struct staleness *to, const struct staleness *from) {
    for (int i = 0; i <= STALENESS_MOST; i++) to->counts[i] += from->counts[i];
    to->gradients += from->gradients;
    to->sum += from->sum;
    if (from->max > to->max) to->max = from->max;
}

double staleness_mean(const struct staleness *staleness) {
    return staleness->gradients > 0 ? staleness->sum / (double)staleness->gradients : (double)NAN;
}

double staleness_percentile(const struct staleness *staleness, double share) {
    long below = 0;
    for (int i = 0; i < STALENESS_MOST; i++) {
        below += staleness->counts[i];
        if (staleness->gradients > 0 && (double)below >= share * (double)staleness->gradients) return i;
    }
    return staleness->gradients > 0 ? (double)staleness->max : (double)NAN;
}
