/* The sessions of a training. A session goes from the first hello to the end, or until a process is lost that
 * the run cannot do without. With --restart-wait those who are left then begin another one: they meet anew,
 * under new session numbers and over new connections, so nothing that was sent in one counts in the next; and
 * the leader goes on from its last checkpoint (leader.h). */
#ifndef TRAINER_CLUSTER_SESSIONS_H
#define TRAINER_CLUSTER_SESSIONS_H

#include <stdatomic.h>
#include "../bridge/cluster.h"
#include "../config/config.h"
#include "../world/world.h"

/* One of them. Threads of both halves of a mirrored process write to it. */
struct cluster_session {
    const struct typed *typed;     /* what was typed; later sessions wait for all as long as is left */
    const struct cluster *cluster; /* in which this process calls itself something else in each session */
    struct world *world;           /* its own, beside the one that the training was given */
    double until_s;    /* world time until when all may come, or somebody who was lost come back */
    bool again;        /* one has begun before */
    long seen_before;  /* updates of the newest weights that this process had in the session before */
    atomic_long seen;  /* the same of this one */
    atomic_bool met;   /* this process has been let in by one of the others, or lets them in */
    atomic_bool begun; /* all had come, and the training began */
    /* Of a mirrored leader, whose halves both print; a post by each of its devices at a pause, once all lines
     * of their steps are out; borrowed; NULL: of any other process. */
    struct event *printed;
    atomic_bool
        over; /* the leader has ended the run in order, or this process is refused: no other follows */
};

/* Whether another one follows when this one ends now because a process was lost; where there is
 * --restart-wait. */
bool session_is_followed(const struct cluster_session *session, double now);

/* Notes the updates of weights that have come. */
void session_see(struct cluster_session *session, long updates);

/* Trains until the session ends. *abandoned: a thread hangs: the session, its settings and its world stay as
 * long as the program does. */
typedef int session_train(void *argument, struct cluster_session *session, bool *abandoned,
                          struct error *error);

/* Calls `train` once; and again, whenever it ends with ERROR_PEER because one of those it has met was lost:
 * for
 * --restart-wait seconds, or where the training had not begun, for what is left of --start-timeout. Says whom
 * it waits for. Errors: those of the last session. */
int sessions_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                   session_train *train, void *argument, bool *abandoned, struct error *error);

#endif
