/* --explain: what a worker's device runs in a step. */
#ifndef TRAINER_TRAIN_EXPLAIN_H
#define TRAINER_TRAIN_EXPLAIN_H

#include <stdio.h>
#include "../data/dataset.h"
#include "group.h"
#include "network.h"

/* Compiles the network, which is one for training, for the device as a replica does, runs it some times on
 * the first examples with weights of its own, and prints what it consists of and the least that each step
 * took; where the network has one of several micro-batches, of that one. On a thread of its own, on the
 * device's cores; complete on return. */
int explain_network(const struct network *network, const struct device *device,
                    const struct examples *examples, int microbatches, struct world *world, FILE *file,
                    struct error *error);

/* The same for the first of the groups, without times: its devices' programs, and what crosses between them.
 */
int explain_group(const struct groups *groups, const struct network *network, struct world *world, FILE *file,
                  struct error *error);

#endif
