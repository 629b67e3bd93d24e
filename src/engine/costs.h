/* Costs: what a placement of a network on some devices is balanced by (program/balance.h), measured on these.
 */
#ifndef TRAINER_ENGINE_COSTS_H
#define TRAINER_ENGINE_COSTS_H

#include "../program/balance.h"
#include "../program/placeable.h"
#include "batch_time.h"

struct costs {
    struct balance balance;     /* of the arrays below; not pipelined */
    struct placeable placeable; /* its layers */
    struct balance_node *node;
    double *seconds;
    struct balance_way *ways;
    struct balance_weights *weights;
    bool *apart;
};

/* Runs the network on each of devices[count] alone, on a thread of the device: for a third of a second or a
 * few times, of which it takes the least time of every operation; and as in training (batch_time.h), with one
 * pass for a batch, to which it scales them. Then measures the ways between the devices. Errors: those of
 * program_compile and batch_time; ERROR_DEVICE: a device that cannot hold the network alone, too; those of
 * ways_measure. */
int costs_open(struct costs *costs, const struct batch_work *work, const struct device *devices, int count,
               struct error *error);
void costs_close(struct costs *costs); /* safe on a zeroed or half-open one */

#endif
