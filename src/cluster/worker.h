/* A worker's process in a cluster with parameter servers: its devices compute what the ps asks for, with
 * the settings that the ps sends. */
#ifndef TRAINER_CLUSTER_WORKER_H
#define TRAINER_CLUSTER_WORKER_H

#include "../bridge/cluster.h"
#include "../bridge/terms.h"
#include "sessions.h"

/* Takes part, in this world, in the training until the ps says that it is over, and how it ended; or until
 * *give_up (NULL: there is none) is set. Step lines go to standard output, as in a run in one process.
 * *abandoned: a device of a group hangs: the world must stay as long as the program does. Errors: as their
 * exit codes say; what the ps ended with, in its words. */
int worker_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                 const _Atomic bool *give_up, struct finish *finish, bool *abandoned, struct error *error);
/* One session of it, in the session's world. */
int worker_session(struct cluster_session *session, const _Atomic bool *give_up, struct finish *finish,
                   bool *abandoned, struct error *error);

#endif
