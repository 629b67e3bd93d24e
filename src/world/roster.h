/* The roster: who takes part, and what each is doing. It can shrink while a run goes on.
 *
 * Each member writes its own phase; whoever waits reads the phases of those it waits for, so a wait that
 * gives up can name who arrived, who did not, and the phase each is in. A phase change is the sign of life.
 */
#ifndef TRAINER_WORLD_ROSTER_H
#define TRAINER_WORLD_ROSTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include "world.h"

enum phase {
    PHASE_STARTING,
    PHASE_INPUT,   /* building the batch */
    PHASE_PULL,    /* taking the weights */
    PHASE_COMPUTE, /* forward and backward */
    PHASE_PUSH,    /* giving the gradient */
    PHASE_WAIT,    /* for somebody else, at `place` */
    PHASE_APPLY,   /* a server applies a gradient */
    PHASE_IDLE,    /* a server without mail */
    PHASE_PAUSED,  /* at the border of an epoch or checkpoint */
    PHASE_DONE,    /* ended well */
    PHASE_FAILED,  /* ended with an error */
};
enum { PHASES = PHASE_FAILED + 1 };

struct member {
    _Alignas(64) char name[40]; /* "worker 1 (cpu:1)"; constant once the roster is open */
    _Atomic int phase;          /* enum phase; written by the member itself */
    _Atomic long step;          /* the step it is in; written by the member itself */
    _Atomic double since;       /* world_now of its last phase change */
    _Atomic bool active;        /* takes part; false once it left */
    const char *_Atomic place;  /* what it waits at, a constant text; NULL otherwise */
    double waited_s;            /* private to the member's thread: total time in PHASE_WAIT */
};

struct roster {
    struct world *world;
    int count;              /* members: workers first, in roster order, then servers */
    int workers;            /* of them workers */
    double timeout_s;       /* a wait gives up after this long without a sign of life */
    struct member *members; /* [count] */
};

int roster_open(struct roster *roster, struct world *world, int workers, int servers, double timeout_s,
                struct error *error);
void roster_close(struct roster *roster); /* safe on a zeroed one */

/* Sets the member's phase and returns world_now, so that one clock reading serves the log too. */
double roster_phase(struct roster *roster, int member, enum phase phase);

/* The member takes no further part (phase PHASE_DONE or PHASE_FAILED). */
void roster_leave(struct roster *roster, int member, enum phase phase);

int roster_active_workers(const struct roster *roster);
const char *phase_name(enum phase phase); /* "computing", "waiting", ... */

#endif
