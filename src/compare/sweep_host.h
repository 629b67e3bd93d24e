/* The host of a sweep and the lanes that have joined it, as sweep_host.c and sweep_guest.c know them. */
#ifndef TRAINER_COMPARE_SWEEP_HOST_H
#define TRAINER_COMPARE_SWEEP_HOST_H

#include "sweep.h"
#include "sweep_arrivals.h"

enum { GUESTS = 256 }; /* lanes of other machines at a time */

/* A lane of another machine. */
struct guest {
    struct sweep_host *host;
    struct world_thread *thread;
    struct endpoint *endpoint;
    struct lane_hello hello; /* what it came with */
    struct lane_link link;
    struct lane_run run; /* the one in hand; its number is 0: none */
    bool failed;         /* that was lost too often, so no other lane takes it */
    char name[96];       /* "127.0.0.1:4000 cpu:0" */
    atomic_bool ended;   /* its thread is to be joined */
};

struct sweep_host {
    struct sweep *sweep;
    struct listener *listener;
    struct arrivals arrivals;
    char no_room[500];           /* what was last said of it */
    struct shared_lanes *shared; /* while the lanes run */
    struct guest *guests[GUESTS];
    int here;         /* lanes that have joined, under the lock of the lanes */
    atomic_bool over; /* nobody more is let in */
};

/* A line on standard error; `always`: also with --quiet. */
void host_say(struct sweep_host *host, bool always, const char *words);
/* The sweep was interrupted, or cannot go on. */
bool host_must_end(const struct sweep_host *host);

/* A lane's thread, once it has said hello: lets it in or refuses it, then gives it runs for as long as there
 * are some. */
void guest_body(void *guest);

#endif
