/* A worker's process in a cluster with a parameter server: its devices compute what the ps asks for. */
#ifndef TRAINER_TRAIN_REMOTE_RUN_H
#define TRAINER_TRAIN_REMOTE_RUN_H

#include "../bridge/cluster.h"
#include "../bridge/terms.h"
#include "settings.h"

/* Takes part in the training until the ps says that it is over, and how it ended. Step lines go to standard
 * output, as in a run in one process. Errors: as their exit codes say; what the ps ended with, in its words.
 */
int remote_train(const struct run_settings *settings, const struct cluster *cluster, struct finish *finish,
                 struct error *error);

/* What this process asks for, to be compared with the other side's. */
struct network;
struct dataset;
void terms_fill(struct terms *terms, const struct run_settings *settings, const struct network *network,
                const struct dataset *dataset);

#endif
