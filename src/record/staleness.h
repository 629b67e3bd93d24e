/* How often each staleness was seen, in some rows of the log: mean, percentiles and buckets of it. */
#ifndef TRAINER_RECORD_STALENESS_H
#define TRAINER_RECORD_STALENESS_H

enum { STALENESS_MOST = 255 }; /* what is more counts as this, but for mean and maximum */

struct staleness {
    long counts[STALENESS_MOST + 1]; /* [staleness] gradients */
    long gradients, max;
    double sum;
};

void staleness_add(struct staleness *staleness, long value);
void staleness_merge(struct staleness *to, const struct staleness *from);
double staleness_mean(const struct staleness *staleness); /* NAN: there was none */
/* The smallest value that is not below this share of them. NAN: there was none. */
double staleness_percentile(const struct staleness *staleness, double share);

#endif
