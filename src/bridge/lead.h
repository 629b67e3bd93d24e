/* What the leader, the first parameter server, and its followers say to each other: the leader spreads the
 * windows at the start, says go for each segment, and fetches what came of it at each pause. */
#ifndef TRAINER_BRIDGE_LEAD_H
#define TRAINER_BRIDGE_LEAD_H

#include "frame.h"

enum { WINDOW_VECTORS = 4 }; /* weights, the optimizer's moments, the average of the weights */

/* A piece [begin, end) of vectors, each of which begins with float 0 of the whole. */
struct window {
    size_t begin, end;
    long version; /* updates it has had */
    int count;
    float *vectors[WINDOW_VECTORS]; /* [count] borrowed */
};

int window_send(struct endpoint *endpoint, const struct window *window, double patience_s,
                struct error *error);
/* Both sides know which window it is; its version is set. Errors: ERROR_PEER: another window, a peer that is
 * gone. */
int window_receive(struct endpoint *endpoint, const struct frame_header *header, struct window *window,
                   double patience_s, struct error *error);

/* Counters, in an order that both know. */
int tallies_send(struct endpoint *endpoint, const uint64_t *values, int count, double patience_s,
                 struct error *error);
int tallies_receive(struct endpoint *endpoint, const struct frame_header *header, uint64_t *values, int count,
                    double patience_s, struct error *error);

#endif
