/* The first parameter server, or the chief of a mirrored cluster: it trains as any run does, with the members
 * of the cluster as its crew. */
#ifndef TRAINER_CLUSTER_LEADER_H
#define TRAINER_CLUSTER_LEADER_H

#include "../run/run.h"
#include "members.h"

/* As run_train. With --restart-wait it goes on from the checkpoint that the run has in its folder already,
 * and begins again from there when a process was lost and has come back. Errors: ERROR_USAGE: --restart-wait
 * without a folder, or with --replace; another setting than the run in the folder has. */
int leader_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                 struct run_result *result, struct error *error);
/* One session of it; settings->session is set. */
int leader_session(const struct members_settings *settings, struct run_result *result, struct error *error);

#endif
