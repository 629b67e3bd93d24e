/* Waits that can name the members they wait for: the barrier, the mailbox, and waiting with a timeout.
 *
 * A wait gives up when none of those it waits for showed a sign of life for the roster's timeout. Its
 * error (ERROR_PEER) names the place, who arrived, who did not, and the phase each is in. Time spent is
 * added to the waiter's member.waited_s. */
#ifndef TRAINER_WORLD_WAITS_H
#define TRAINER_WORLD_WAITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include "roster.h"

/* Waits on `event` until ready(argument), in the name of member `self`. `missing(argument, member)` tells
 * whether that member is one of those still awaited. `place` is a constant text ("the barrier of shard 0").
 * Sets the phase to PHASE_WAIT meanwhile and back after. Returns OK, ERROR_PEER (gave up, or the world was
 * stopped by another's failure). Costs nothing when ready is true at once. */
int wait_with_timeout(struct roster *roster, int self, struct event *event, bool (*ready)(void *argument),
                      bool (*missing)(void *argument, int member), void *argument, const char *place,
                      struct error *error);

/* Puts time down that a member waited, or was kept waiting: at a place, a constant text, for another
 * member (-1: for no particular member). On the member's thread, or while it is at rest. */
void note_wait(struct roster *roster, int self, const char *place, int awaited, double seconds);

/* Takes a lock in the name of a member: time it has to wait for it counts as waiting at `place`. Who holds it
 * waits for nobody, so it needs no timeout. */
void lock_take_as(struct lock *lock, struct roster *roster, int member, const char *place);

/* --- barrier: opens for a round when every active worker has arrived at it --- */
struct barrier_line {
    _Alignas(64) _Atomic long round; /* rounds this worker has arrived for: arrived at round r means > r */
};
struct barrier {
    struct roster *roster;      /* borrowed */
    struct barrier_line *lines; /* [roster->workers] */
    struct event event;         /* one post per arrival that may open it */
    const char *place;          /* for the words */
};
int barrier_open(struct barrier *barrier, struct roster *roster, const char *place, struct error *error);
void barrier_close(struct barrier *barrier); /* frees; safe on a zeroed one */
void barrier_arrive(struct barrier *barrier, int worker,
                    long round); /* rounds count from 0 and are arrived at in order; never waits */
bool barrier_is_open(const struct barrier *barrier, long round);
int barrier_wait(struct barrier *barrier, int worker, long round, struct error *error);
/* Of a round that is open: whether this worker arrived for it, and its place among those who did, in roster
 * order. Everyone who asks gets the same answer, whoever leaves meanwhile: no one arrives any more. */
bool barrier_has(const struct barrier *barrier, int worker, long round);
int barrier_rank(const struct barrier *barrier, int worker, long round, int *arrived);

/* --- mailbox: many senders, one receiver, bounded; in order of arrival; sending never blocks and takes no
 * lock --- */
struct mail {
    int worker; /* who sent it */
    int slot;   /* which of its gradient slots */
};
struct mailbox_cell {
    _Atomic uint64_t sequence;
    struct mail mail;
};
struct mailbox {
    struct mailbox_cell *cells; /* [capacity], capacity a power of two */
    uint64_t capacity;
    _Alignas(64) _Atomic uint64_t tail; /* next to write */
    _Alignas(64) _Atomic uint64_t head; /* next to read; written by the receiver alone */
};
/* capacity: the most mails there can be at once; senders see to it that there are never more (workers *
 * slots). */
int mailbox_open(struct mailbox *mailbox, int capacity, struct error *error);
void mailbox_close(struct mailbox *mailbox);
bool mailbox_send(struct mailbox *mailbox, struct mail mail); /* false: full, which is the sender's mistake */
bool mailbox_receive(struct mailbox *mailbox, struct mail *mail); /* false: empty */
bool mailbox_has_mail(const struct mailbox *mailbox);
long mailbox_mails(const struct mailbox *mailbox); /* how many there are, about */
/* Source: D. Vyukov, "Bounded MPMC queue", 1024cores.net, with one receiver. */

#endif
