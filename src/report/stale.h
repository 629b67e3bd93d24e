/* How many gradients had which staleness, in the bins of staleness.h, but for ages as high as a table may
 * have: what a picture needs, whatever the highest number is. */
#ifndef TRAINER_REPORT_STALE_H
#define TRAINER_REPORT_STALE_H

#include <stdbool.h>
#include "../store/staleness.h"

enum {
    STALE_POWERS = 44, /* 2^6 to 2^49, more than the 1e15 that a table may have */
    STALE_BINS = STALENESS_EXACT + STALENESS_PARTS * STALE_POWERS,
    STALE_BARS = 24 /* that a picture has room for, beside the one of all above */
};

struct stale {
    long counts[STALE_BINS], gradients, max;
    double sum;
};

/* value: from 0 to 1e15. */
void stale_add(struct stale *stale, long value);

/* The bars of a picture: bar i is of the numbers from i * width to before (i + 1) * width. One more follows
 * if `above`: of all numbers from count * width on. */
struct stale_bars {
    long width;
    int count;
    bool above;
};

void stale_merge(struct stale *to, const struct stale *from);
/* A bar per number up to the 99th percentile as far as there is room, and up to the highest where that is not
 * far. Where more than a tenth would be above, each bar is of 2, 4, 8, ... numbers. */
struct stale_bars stale_bars(const struct stale *all);
/* The share of the gradients in a bar; bar == count: of all above. 0 where there is no gradient. */
double stale_share(const struct stale *stale, const struct stale_bars *bars, int bar);

#endif
