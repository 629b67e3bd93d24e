/* How one who has connected to a host comes in, or is refused: hello, settings, ready (terms.h). Used inside
 * this folder, by the host while it waits for all to come. Nobody waits for a guest: it is heard once a whole
 * frame of it is there, and what is said to it is what goes at once. */
#ifndef TRAINER_BRIDGE_HANDSHAKE_H
#define TRAINER_BRIDGE_HANDSHAKE_H

#include "host.h"

#define HANDSHAKE_S 5.0 /* a peer that connects says hello within this */

/* Of those below, the guests alone; once all have come each is refused, but who asks how this host is. */
int handshake_hear_guests(struct host *host, bool *moved, struct error *error);

/* Hears the guests who have spoken, the peers that build what they compute with, and the leader: each takes
 * its place, or is refused with words that both sides see; who has gone, or is silent for too long, gives its
 * place up. *moved: something has come. Errors: ERROR_DEVICE (memory). */
int handshake_hear(struct host *host, bool *moved, struct error *error);
bool handshake_is_busy(const struct host *host); /* somebody who has come is still to speak */
/* Those who wait see whom they wait for, or with no words that we are there. Nobody is waited for: who has
 * taken nothing for too long gives its place up. */
void handshake_tell(struct host *host, const char *words);

/* Once all have come: errors: ERROR_PEER: one has gone, or is silent. */
int handshake_watch(struct host *host, struct error *error);

/* How long a process that waits with us may be silent. It beats more often (remote.h). */
double handshake_silence_s(const struct host *host);
/* A heartbeat, where it can be taken at once. False: the other side is no longer to be spoken to. */
bool handshake_beat(struct host *host, struct endpoint *endpoint, const char *words, double *took_s);

/* A device of that worker that has come, device < 0: any; or NULL. */
struct peer *handshake_find_peer(const struct host *host, int task, int device);
void handshake_say_gone(struct host *host, const char *name, const char *why); /* why: NULL: as is seen */

#endif
