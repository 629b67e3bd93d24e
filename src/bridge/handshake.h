/* How one who has connected to a host comes in, or is refused: hello, settings, ready (terms.h). Used inside
 * this folder, by the host while it waits for all to come. Nobody waits for a guest: it is heard once a whole
 * frame of it is there, and what is said to it is what goes at once. */
#ifndef TRAINER_BRIDGE_HANDSHAKE_H
#define TRAINER_BRIDGE_HANDSHAKE_H

#include "host.h"

#define HANDSHAKE_S 5.0 /* a peer that connects says hello within this, and takes or ends a frame */

/* A guest more; where there are too many, of its address or in all, the first of these goes. Takes the
 * endpoint over. */
void handshake_begin(struct host *host, struct endpoint *endpoint);
void handshake_make_room(struct host *host); /* the first guest goes */
/* Hears the guests who have spoken, and the peers that build what they compute with: each takes its place, or
 * is refused with words that both sides see. Errors: ERROR_DEVICE (memory). */
int handshake_hear(struct host *host, struct error *error);
bool handshake_is_busy(const struct host *host); /* somebody who has come is still to speak */
/* Those who wait see whom they wait for, or with no words that we are there; and we see who has gone. */
void handshake_tell(struct host *host, const char *words);
void handshake_end(struct host *host); /* closes those who are guests still */

/* A device of that worker that has come, device < 0: any; or NULL. */
struct peer *handshake_find_peer(const struct host *host, int task, int device);
void handshake_say_gone(struct host *host, const char *name);

#endif
