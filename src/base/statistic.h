/* Mean and spread of a few numbers that come one at a time. */
#ifndef TRAINER_BASE_STATISTIC_H
#define TRAINER_BASE_STATISTIC_H

struct statistic {
    long count;     /* numbers so far */
    double average; /* of them; 0 before the first */
    double squares; /* sum of the squares of their distances from it */
};

void statistic_add(struct statistic *statistic, double value); /* what is NAN is not counted */
double statistic_mean(const struct statistic *statistic);      /* NAN: there was none */
double statistic_deviation(const struct statistic *statistic); /* sample standard deviation, n-1 in the
                                                                  denominator; NAN: fewer than two */

#endif
