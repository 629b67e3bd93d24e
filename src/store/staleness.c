/* See staleness.h. */
#include "staleness.h"

#include <math.h>

int staleness_bin(long value) {
    int halvings = 0;
    while (value >> halvings >= STALENESS_EXACT) halvings++;
    return STALENESS_PARTS * halvings + (int)(value >> halvings);
}

long staleness_begin(int bin) {
    if (bin < STALENESS_EXACT) return bin;
    const int halvings = bin / STALENESS_PARTS - 1;
    return (long)(STALENESS_PARTS + bin % STALENESS_PARTS) << halvings;
}

void staleness_add(struct staleness *staleness, long value) {
    const int bin = value < 0 ? 0 : staleness_bin(value);
    staleness->counts[bin < STALENESS_BINS ? bin : STALENESS_BINS - 1]++;
    staleness->gradients++;
    staleness->sum += (double)value;
    if (value > staleness->max) staleness->max = value;
}

void staleness_merge(struct staleness *to, const struct staleness *from) {
    for (int b = 0; b < STALENESS_BINS; b++) to->counts[b] += from->counts[b];
    to->gradients += from->gradients;
    to->sum += from->sum;
    if (from->max > to->max) to->max = from->max;
}

double staleness_mean(const struct staleness *staleness) {
    return staleness->gradients > 0 ? staleness->sum / (double)staleness->gradients : (double)NAN;
}

long staleness_percentile(const struct staleness *staleness, double share) {
    long seen = 0;
    for (int b = 0; b < STALENESS_BINS - 1 && staleness->gradients > 0; b++) {
        seen += staleness->counts[b];
        const long highest = staleness_begin(b + 1) - 1;
        if ((double)seen >= share * (double)staleness->gradients)
            return highest < staleness->max ? highest : staleness->max;
    }
    return staleness->gradients > 0 ? staleness->max : -1;
}
