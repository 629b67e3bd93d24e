/* --hosts: the processes of a cluster, started over ssh. */
#ifndef TRAINER_LAUNCH_START_H
#define TRAINER_LAUNCH_START_H

#include "launch.h"

/* Starts them all, prints what they print with the host in front, and waits until they have ended. When one
 * fails, or this process is interrupted, the others are asked to end, and made to when they do not. A worker
 * that fails during the training ends nothing, unless --on-loss=stop: the leader ends the run, or goes on.
 * Errors: ERROR_USAGE: the list; those of secret_find; the exit code of the first that failed. */
int launch_start(const struct config *settings, launch_variable *variable, struct error *error);

#endif
