/* What a worker keeps where it steps its own copies of the weights, because its strategy averages them only
 * now and then (strategy.h, shares): so these steps cost no bytes. A store with one worker, whose vectors are
 * the copies. */
#ifndef TRAINER_CLUSTER_FAR_H
#define TRAINER_CLUSTER_FAR_H

#include "../run/setup.h"
#include "../store/strategy.h"

struct far {
    struct roster roster;
    struct store store; /* store.host: the copies */
    bool is_on;
};

/* Does nothing where the strategy steps elsewhere, or what is sent is compressed. */
int far_open(struct far *far, const struct setup *setup, struct world *world, struct error *error);
void far_close(struct far *far); /* safe on a zeroed one */

/* Steps the copies; false: the gradient is not finite, so it does not. number, rate: as the host has them. */
bool far_step(struct far *far, const float *gradient, long number, double rate);

#endif
