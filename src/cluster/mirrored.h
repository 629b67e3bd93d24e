/* A process of a mirrored cluster: there are no separate parameter servers; each worker's process holds a
 * slice of the weights beside its devices. With W processes each sends and receives 2(W-1)/W of the vector
 * per step over the network, as in a ring all-reduce. */
#ifndef TRAINER_CLUSTER_MIRRORED_H
#define TRAINER_CLUSTER_MIRRORED_H

#include "worker.h"

/* Takes part in the training until it is over, its halves in worlds beside this one. The chief leads: it
 * evaluates and writes all results; the others write the model. The chief's closing sentence goes to
 * sentence[SENTENCE_BYTES], of the others "". *abandoned: as of worker_train. Errors: those of either half,
 * the one that failed first, or for a reason of its own. */
int mirrored_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                   struct finish *finish, char *sentence, bool *abandoned, struct error *error);

#endif
