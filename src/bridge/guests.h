/* Guests: those who have connected to a host, and have said nothing yet that is complete, or were refused.
 * There are only so many at a time, and so many of one address; and so many lines a second about them. Used
 * inside this folder. */
#ifndef TRAINER_BRIDGE_GUESTS_H
#define TRAINER_BRIDGE_GUESTS_H

#include "host.h"

#define GUEST_STAYS_S 1.0 /* a worker's hello has come by then: sooner nobody makes room for another */

/* A guest more, who takes the endpoint over. Where its address has too many already, one of these goes; or it
 * goes itself, when they are all new. A worker comes again. */
void guests_add(struct host *host, const struct guest *guest);
/* Whether one more can come; one who has been there for GUEST_STAYS_S goes for it, those first who have sent
 * nothing. */
bool guests_make_room(struct host *host);
/* Also to make room for what is no guest: false: all are new. */
bool guests_drop_one(struct host *host);
void guests_end(struct host *host); /* closes all */

/* Whether it may learn why it is refused: what settings were expected here, or who has come. */
bool guest_is_trusted(const struct host *host, const struct endpoint *endpoint);
/* Says so here, and there, as FAILURE with these flags. A trainer takes the words and then closes, for which
 * it has some time; a stranger is closed. */
void guest_refuse(struct host *host, struct guest *guest, const char *why, uint32_t flags, bool is_ours);
/* How many were refused without a line, once a second has passed; at the end: `now` is INFINITY. */
void guests_say_unsaid(struct host *host, double now);

#endif
