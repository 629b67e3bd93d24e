/* A run that another process leads: what every parameter server but the first does. */
#ifndef TRAINER_CLUSTER_FOLLOW_H
#define TRAINER_CLUSTER_FOLLOW_H

#include "../run/run.h"
#include "members.h"

/* Takes part until the leader says that it is over, and how it ended. In a mirrored cluster the model goes to
 * worker-N below config.out, which the result then names. Errors: as their exit codes say; what the leader
 * ended with, in its words. */
int follow_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                 struct run_result *result, struct error *error);
/* One session of it; settings->session is set. */
int follow_session(const struct members_settings *settings, struct run_result *result, struct error *error);

#endif
