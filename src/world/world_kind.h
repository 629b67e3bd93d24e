/* What the two worlds share inside this folder: a table of functions for each. Only this folder includes
 * it.
 *
 * world.c passes each public call on to the table of its world. Callers ensure that pointers are not NULL. */
#ifndef TRAINER_WORLD_WORLD_KIND_H
#define TRAINER_WORLD_WORLD_KIND_H

#include "sockets.h"

enum { THREAD_NAME_BYTES = 16 }; /* what Linux keeps, with the 0 at the end */

struct world_kind {
    bool simulated;
    void (*close)(struct world *world);
    int (*open_beside)(struct world **out, struct world *world, struct error *error);
    int (*spawn)(struct world *world, const char *name, const struct cores *cores, world_body *body,
                 void *argument, struct world_thread **out, struct error *error);
    bool (*join)(struct world_thread *thread, double seconds); /* INFINITY: as long as it takes */
    double (*now)(const struct world *world);
    void (*sleep)(struct world *world, double seconds);
    void (*work)(struct world *world, double seconds); /* NULL: costs no time here */
    void (*yield)(struct world *world);                /* NULL: not a scheduling point here */
    void (*stop)(struct world *world);                 /* called after `stopped` was set */
    void (*lock_take)(struct lock *lock);
    void (*lock_release)(struct lock *lock);
    void (*event_post)(struct event *event);
    const struct sockets *sockets; /* of its endpoints */
    enum wait_result (*event_wait_until)(struct event *event, bool (*ready)(void *argument), void *argument,
                                         double deadline);
};

/* Each world's struct begins with this one, and each thread's with the next. */
struct world {
    const struct world_kind *kind;
    _Atomic bool dismissed;
    _Atomic uint32_t stopped; /* 0 or 1; real sleepers sleep on it */
    struct tls *tls;          /* of its connections (endpoint.c); NULL: none */
    struct ucx *ucx;          /* as well (ucx.c) */
    /* Atomic, as one thread may say so while another connects. */
    _Atomic bool clear_anywhere; /* connections to other machines may be in clear */
    _Atomic bool shm_alone;      /* no connection goes out over TCP */
    _Atomic bool tcp_alone;      /* no memory is shared with other processes */
};
struct world_thread {
    struct world *world; /* borrowed */
};

#endif
