/* What the leader, the first parameter server, and its followers say to each other: the leader spreads the
 * windows at the start, says go for each segment, and fetches what came of it at each pause. */
#ifndef TRAINER_BRIDGE_LEAD_H
#define TRAINER_BRIDGE_LEAD_H

#include "../device/update.h"
#include "frame.h"

/* A piece [begin, end) of a state's vectors, each of which begins with float 0 of the whole. */
struct window {
    size_t begin, end;
    long version;       /* updates it has had */
    struct state state; /* vectors borrowed */
};

int window_send(struct endpoint *endpoint, const struct window *window, double timeout_s,
                struct error *error);
/* Both sides know which window it is; its version is set. Errors: ERROR_PEER: another window, a peer that is
 * gone. */
int window_receive(struct endpoint *endpoint, const struct frame_header *header, struct window *window,
                   double timeout_s, struct error *error);

/* Counters, in an order that both know. */
int tallies_send(struct endpoint *endpoint, const uint64_t *values, int count, double timeout_s,
                 struct error *error);
int tallies_receive(struct endpoint *endpoint, const struct frame_header *header, uint64_t *values, int count,
                    double timeout_s, struct error *error);

#endif
