/* Paces: how long each worker takes for a batch of a size, measured with all of them at once, and the shares
 * with which all take equally long (--share=auto). */
#ifndef TRAINER_ENGINE_PACES_H
#define TRAINER_ENGINE_PACES_H

#include "batch_time.h"

struct paces_work {
    struct batch_work batch;                /* its network is the one of an even share */
    const struct network_settings *network; /* that this was made from */
    const struct device *devices;           /* [workers] */
    const struct groups *groups;            /* whose devices they are the first of; or NULL */
    int workers, size;                      /* size: examples of an even share */
    const double *slowness;                 /* [workers] that they are slowed down by; NULL: none is */
};

/* How long a worker takes: for a batch without examples, and for each example more. */
struct pace {
    double constant_s, each_s;
};

/* sizes[workers] = the shares, as shares_cut makes them. Takes two seconds. *abandoned: as batch_time has it.
 * Errors: those of batch_time and network_open. */
int paces_settle(const struct paces_work *work, int *sizes, bool *abandoned, struct error *error);

/* For workers of several processes: paces[workers] of those here, from two sizes; without slowness. Takes a
 * second. Errors: the same. */
int paces_measure(const struct paces_work *work, struct pace *paces, bool *abandoned, struct error *error);
/* The sizes that take those equally long who are there, as shares_divide makes them, of `total` examples.
 * Errors: those of shares_write: too many workers. */
int paces_cut(const struct pace *paces, int workers, const bool *there, int total, int microbatches,
              int *sizes, struct error *error);

/* The line that is nearest to all measurements, of `count` examples each. */
enum { PACES_PASSES = 4 };
struct measurements {
    int passes;
    double count[PACES_PASSES], seconds[PACES_PASSES];
};
struct pace paces_line(const struct measurements *measurements);

#endif
