/* What an endpoint is made of: for endpoint.c, which makes and ends it, and transfer.c, which moves its
 * bytes.
 */
#ifndef TRAINER_WORLD_ENDPOINT_PARTS_H
#define TRAINER_WORLD_ENDPOINT_PARTS_H

#include <poll.h>
#include <stdatomic.h>
#include "netname.h"
#include "endpoint.h"

struct endpoint {
    struct world *world; /* borrowed */
    int socket;          /* never blocks */
    bool loopback;
    _Atomic bool interrupted; /* by endpoint_interrupt */
    _Atomic long long sent, received;
    char name[NETNAME_TEXT_BYTES]; /* the peer's */
};

/* Polls until one of them is ready, for `seconds` or a slice, whichever is shorter: after each slice the
 * caller looks whether the world was stopped. A pipe of the world in every poll would wake at once, but
 * costs a descriptor and an entry in each call for what happens once per run; sleepers on events do the
 * same (threads.c). */
void endpoint_poll(struct pollfd *waits, int count, double seconds);

#endif
