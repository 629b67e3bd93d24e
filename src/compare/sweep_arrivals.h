/* Who has connected to a sweep and has not said yet that it is a lane: anybody who reaches the port. Nobody
 * waits for them and none has a thread: each is heard once a whole frame of it is there. */
#ifndef TRAINER_COMPARE_SWEEP_ARRIVALS_H
#define TRAINER_COMPARE_SWEEP_ARRIVALS_H

#include "../bridge/lane_terms.h"

/* At a time, and of one address; who comes then takes the place of the one that has been there longest. */
enum { ARRIVALS = 64, ARRIVALS_OF_ONE = 32 };
#define HELLO_S 5.0 /* a peer that connects says hello within this */

struct arrivals {
    struct arrival {
        struct endpoint *endpoint;
        double since_s;
    } list[ARRIVALS]; /* [count], the longest there first */
    int count, most;
};

void arrivals_open(struct arrivals *arrivals);
void arrivals_close(struct arrivals *arrivals);
/* Takes the endpoint over. */
void arrivals_add(struct arrivals *arrivals, struct endpoint *endpoint, double now_s);
void arrivals_make_room(struct arrivals *arrivals); /* the first one goes */
/* One of them that has spoken, or was silent for too long, which is the caller's then: *hello, or in *why
 * what is wrong. NULL: there is none. */
struct endpoint *arrivals_hear(struct arrivals *arrivals, double now_s, struct lane_hello *hello,
                               struct error *why);

#endif
