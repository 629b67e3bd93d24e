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

/* sizes[workers] = the shares, as shares_cut makes them. Takes two seconds. *abandoned: as batch_time has it.
 * Errors: those of batch_time and network_open. */
int paces_settle(const struct paces_work *work, int *sizes, bool *abandoned, struct error *error);

/* What sizes would take equally long, by two measurements of each worker: seconds[i] for count[i] examples,
 * which are taken for a constant and a part for each example. parts[workers] of `total`, not whole. */
struct pace {
    double count[2], seconds[2]; /* the earlier one, or 0; the later one */
};
void paces_level(const struct pace *pace, int workers, double total, double *parts);

#endif
