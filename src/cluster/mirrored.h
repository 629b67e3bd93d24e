/* A process of a mirrored cluster: there are no separate parameter servers; each worker's process holds a
 * slice of the weights beside its devices. With W processes each sends and receives 2(W-1)/W of the vector
 * per step over the network, as in a ring all-reduce. With --workers=LEAST..MOST the first LEAST processes
 * hold the weights, and stay; the others come and go, as workers of parameter servers do. */
#ifndef TRAINER_CLUSTER_MIRRORED_H
#define TRAINER_CLUSTER_MIRRORED_H

#include "../run/run.h"
#include "worker.h"

/* Takes part in the training until it is over, its halves in worlds beside this one. The chief leads: it
 * evaluates and writes all results; the others that hold weights write the model. *result: the chief's, which
 * is freed with run_result_free; of the others settings and figures alone. *abandoned: as of worker_train.
 * Errors: those of either half, the one that failed first, or for a reason of its own. */
int mirrored_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                   struct finish *finish, struct run_result *result, bool *abandoned, struct error *error);

#endif
