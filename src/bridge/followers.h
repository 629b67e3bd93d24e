/* The other parameter servers, as the first one, their leader, meets them: it connects to each, says hello,
 * and waits until all workers have come to them too. Used inside this folder. */
#ifndef TRAINER_BRIDGE_FOLLOWERS_H
#define TRAINER_BRIDGE_FOLLOWERS_H

#include "host.h"

int followers_open(struct host *host, struct error *error); /* none, where this is not the leader */
/* Goes on with those who have not taken our hello, as far as it can go now: who is not there is tried in a
 * while. Errors: ERROR_USAGE: an address that is none. */
int followers_meet(struct host *host, struct error *error);
/* What the others say. Now and then: a worker that comes meanwhile is told why we end. Errors: ERROR_PEER:
 * one refuses. */
int followers_look(struct host *host, struct error *error);
/* It has taken our hello, and where workers may join heard its session repeated: it hears with whom all
 * begin. */
bool followers_are_met(const struct host *host, int follower);
bool followers_are_busy(const struct host *host);     /* one is being connected to */
bool followers_wait_no_more(const struct host *host); /* all workers have come to one: it lets no other in */
void followers_tell(struct host *host);               /* that we are there */
/* Hears those who have not said yet that all have come to them. *missing: the first of these; NULL: none. */
int followers_hear(struct host *host, const struct follower **missing, struct error *error);
void followers_close(struct host *host);

#endif
