/* The roster: the members of a run, and what each is doing. It can shrink during the run, and workers can
 * take part again.
 *
 * Each member writes its own phase; whoever waits reads the phases of those it waits for, so a wait that
 * gives up can name who arrived, who did not, and the phase each is in. A new phase is a sign of life. */
#ifndef TRAINER_WORLD_ROSTER_H
#define TRAINER_WORLD_ROSTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include "trace.h"
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
    PHASE_PAUSED,  /* at the end of an epoch or checkpoint */
    PHASE_DONE,    /* ended well */
    PHASE_FAILED,  /* ended with an error */
};
enum { PHASES = PHASE_FAILED + 1 };

/* Others take a worker off the roster only while it is on its own, never in the middle of an exchange. */
enum roster_standing { STANDING_ALONE, STANDING_EXCHANGING, STANDING_EXPELLED };

enum { WAIT_PLACES = 16, MEMBER_NAME_BYTES = 128 };

struct member {
    _Alignas(64) char name[MEMBER_NAME_BYTES]; /* "worker 1 (cpu:1)"; constant but while all are at rest */
    _Atomic int phase;                         /* enum phase; written by the member itself */
    _Atomic long step;                         /* the step it is in; written by the member itself */
    long earlier; /* steps of this part of the run before those, under other strategies; written while all are
                     paused */
    _Atomic double since; /* world_now of its last phase change */
    _Atomic double acted; /* world_now of the last one that was its own doing: not into or out of a wait */
    _Atomic bool active;  /* takes part; false before it has come, and once it left */
    const char *_Atomic place; /* what it waits at, a constant text; NULL otherwise */
    _Atomic int standing;      /* enum roster_standing: whether it could be removed just now */
    double waited_s;           /* private to the member's thread, as all below: total time in PHASE_WAIT */
    double *waited_for;        /* [roster count] of it, for whom: who was the last to come */
    struct waited_at {
        const char *place; /* NULL: this place in the list is free */
        double seconds;
    } waited_at[WAIT_PLACES]; /* and where */
    bool *awaited;            /* [roster count] of the wait it is in */
};

struct roster {
    struct world *world;
    int count;              /* members: workers first, in roster order, then servers */
    int workers;            /* of them workers */
    double timeout_s;       /* a wait gives up after this long without a sign of life */
    struct member *members; /* [count] */
    void *waits;            /* the members' waited_for and awaited */
    /* Called by whoever waits in vain for a silent member, before giving up: takes it off the roster if
     * the others can go on without it, and returns whether it did. NULL: no member may be lost. */
    bool (*remove)(void *argument, int member);
    void *remove_argument;
    struct trace *trace; /* where members put down what they did; borrowed; NULL: nobody wants to know */
};

int roster_open(struct roster *roster, struct world *world, int workers, int servers, double timeout_s,
                struct error *error);
void roster_close(struct roster *roster); /* safe on a zeroed one */

/* Sets the member's phase and returns world_now, so that one clock reading serves the log too. For waits:
 * into PHASE_WAIT, and back with roster_resume. */
double roster_phase(struct roster *roster, int member, enum phase phase);
void roster_phase_at(struct roster *roster, int member, enum phase phase, double now); /* was just read */
double roster_resume(struct roster *roster, int member, enum phase phase);

/* The member takes no further part (phase PHASE_DONE or PHASE_FAILED). */
void roster_leave(struct roster *roster, int member, enum phase phase);

/* While all others are at rest: a worker that had left takes part (again). */
void roster_join(struct roster *roster, int member);

/* Before an exchange: false when the member was expelled and must end. After it: roster_alone. */
bool roster_enter(struct roster *roster, int member);
void roster_alone(struct roster *roster, int member);
/* Bars the member from every later exchange; false when it is in the middle of one, or was expelled already.
 * The caller then puts in order what the member leaves behind, and ends with roster_leave in its name. */
bool roster_expel(struct roster *roster, int member);
bool roster_expelled(const struct roster *roster, int member);

int roster_active_workers(const struct roster *roster);
const char *phase_name(enum phase phase); /* "computing", "waiting", ... */

#endif
