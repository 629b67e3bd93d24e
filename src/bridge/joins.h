/* Who joins while the training runs (--workers=LEAST..MOST). The door's thread (door.h) brings newcomers
 * through the same handshake as before the start, in a *room* of their own: a host without a training, which
 * has their guests and peers. At a pause the training takes those who are ready. A place belongs to a process
 * until that is gone: before, nobody else comes in for it. */
#ifndef TRAINER_BRIDGE_JOINS_H
#define TRAINER_BRIDGE_JOINS_H

#include "host.h"

/* --workers, of this cluster: *least: how many workers begin, 0: all, and nobody joins them. Errors:
 * ERROR_USAGE: no range, another number of workers, a cluster that nobody can join. */
int joins_read(const struct config *config, const struct cluster *cluster, int *least, struct error *error);

/* With several parameter servers the leader chooses who takes part, and tells the others (ADMIT in lead.h).
 */

/* Whether so many are ready at the leader as are to begin. */
bool joins_enough(const struct host *host);
/* At a follower, while it waits: takes the leader's first word, once it is there. Errors: ERROR_PEER: it is
 * another one. */
int joins_hear_first(struct host *host, struct error *error);
/* Whether the leader has said it; whether this worker is among those with whom all begin, and is ready. */
bool joins_know_first(const struct host *host);
bool joins_is_first(const struct host *host, int task);
bool joins_has_come(const struct host *host, int task);
/* At the leader, before the first segment: says it. Errors: ERROR_PEER: a follower has gone. */
int joins_say_first(struct host *host, struct error *error);
/* Once all are there: host->peers becomes a place for each worker of the cluster, in their order; who does
 * not take part yet waits in the room. Errors: memory. */
int joins_open(struct host *host, struct error *error);
void joins_close(struct host *host); /* safe where there is none; behind the door's thread */

/* The door's thread, with its guests: hears and tells those in the room. */
void joins_attend(struct host *host, double seconds);

/* Of the room: whether another process has this worker's place in the training. */
bool joins_is_held(const struct host *room, int task);
/* Any thread: the worker in this place is gone. */
void joins_release(struct host *host, int place);
/* Whether somebody is ready for a place that is not held. */
bool joins_wait(struct host *host);
/* While all pause: the first who is ready for a place that is free, and the process that it is. */
bool joins_next(struct host *host, const bool *is_free, int *place, uint64_t *process);
/* It takes the place. False: it has gone meanwhile, or is not ready. */
bool joins_seat(struct host *host, int place, uint64_t process);
/* The place is free again. */
void joins_unseat(struct host *host, int place);
/* Another server has not met it: the door's thread tells it to come again. */
void joins_refuse(struct host *host, int place, uint64_t process);
/* Behind the door's thread: those who are in the room still; NULL behind the last. */
struct endpoint *joins_waiting(const struct host *host, int index);

#endif
