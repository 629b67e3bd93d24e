/* How old gradients were, in updates: mean, percentiles, and how many there were of each age. Every age up to
 * 63 has a bin of its own, and each power of two above has 32. So the table has a fixed size, two of them can
 * be added, and what is said of high ages is right to a thirty-second. */
#ifndef TRAINER_STORE_STALENESS_H
#define TRAINER_STORE_STALENESS_H

enum {
    STALENESS_PARTS = 32,                  /* bins per power of two */
    STALENESS_EXACT = 2 * STALENESS_PARTS, /* the first age whose bin has more than one */
    STALENESS_POWERS = 14,                 /* 2^6 to 2^19; the last bin has all that is above, too */
    STALENESS_BINS = STALENESS_EXACT + STALENESS_PARTS * STALENESS_POWERS
};

struct staleness {
    long counts[STALENESS_BINS]; /* gradients in each bin */
    long gradients, max;
    double sum;
};

/* Bins without an end, as if there were any number of powers. */
int staleness_bin(long value); /* value: from 0 */
long staleness_begin(int bin); /* the lowest age in it */

void staleness_add(struct staleness *staleness, long value);
void staleness_merge(struct staleness *to, const struct staleness *from);
double staleness_mean(const struct staleness *staleness); /* NAN: there was none */
/* The highest age in the bin up to which this share of them are, and no more than the maximum: this share was
 * at most so old. -1: there was none. */
long staleness_percentile(const struct staleness *staleness, double share);

#endif
