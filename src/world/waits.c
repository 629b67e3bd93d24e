/* Waiting with timeout: as long as one of those awaited shows signs of life, but no longer than the
 * roster's timeout without any.
 *
 * The wait is cut into slices. After each it checks who is still missing and when the last of them changed
 * its phase. The slices also let a wait see what no event announces: that a member has left the roster. */
#include "waits.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include "../base/text.h"

#define SLICE_S 0.05
enum { MISSING_NAMED = 3, ARRIVED_NAMED = 5 }; /* so that the words fit for a thousand members, too */

struct wait {
    struct roster *roster;
    int self;
    bool (*missing)(void *argument, int member);
    void *argument;
    const char *place;
};

static bool is_missing(const struct wait *wait, int member) {
    return wait->missing && wait->missing(wait->argument, member);
}

/* The latest time at which one of the missing changed its phase; `start` when none did since. -1: nobody is
 * missing. */
static double last_life(const struct wait *wait, double start) {
    double last = -1.0;
    for (int i = 0; i < wait->roster->count; i++)
        if (is_missing(wait, i))
            last = fmax(fmax(last, start),
                        atomic_load_explicit(&wait->roster->members[i].since, memory_order_relaxed));
    return last;
}

/* --- whom and where the time went --- */

static void note_awaited(const struct wait *wait) {
    bool *awaited = wait->roster->members[wait->self].awaited;
    for (int i = 0; i < wait->roster->count; i++) awaited[i] = is_missing(wait, i);
}

/* Of the awaited ones [begin, end) the one that acted last: it came after all the others. -1: none is. */
static int last_to_come(const struct wait *wait, int begin, int end) {
    const struct roster *roster = wait->roster;
    int last = -1;
    double latest = -1.0;
    for (int i = begin; i < end; i++) {
        const double acted = atomic_load_explicit(&roster->members[i].acted, memory_order_relaxed);
        if (!roster->members[wait->self].awaited[i] || acted < latest) continue;
        last = i;
        latest = acted;
    }
    return last;
}

void note_wait(struct roster *roster, int self, const char *place, int awaited, double seconds) {
    struct member *member = &roster->members[self];
    struct waited_at *at = member->waited_at;
    while (at->place && at->place != place && at < &member->waited_at[WAIT_PLACES - 1]) at++;
    if (!at->place) at->place = place;
    at->seconds += seconds;
    if (awaited >= 0) member->waited_for[awaited] += seconds;
    member->waited_s += seconds;
}

/* A server acts after the workers that it serves: it is to blame when no worker was awaited. */
static void note_waited(const struct wait *wait, double start, double end) {
    struct roster *roster = wait->roster;
    const struct member *self = &roster->members[wait->self];
    const long step = self->earlier + atomic_load_explicit(&self->step, memory_order_relaxed);
    int last = last_to_come(wait, 0, roster->workers);
    if (last < 0) last = last_to_come(wait, roster->workers, roster->count);
    note_wait(roster, wait->self, wait->place, last, end - start);
    if (!trace_wants(roster->trace, step)) return;
    const struct trace_span span = {.kind = TRACE_WAIT,
                                    .begin_s = start,
                                    .end_s = end,
                                    .member = wait->self,
                                    .worker = last,
                                    .step = step,
                                    .place = wait->place};
    trace_put(roster->trace, &span);
}

/* --- the words --- */

static void name_missing(struct text *words, const struct wait *wait, double now) {
    int missing = 0;
    for (int i = 0; i < wait->roster->count; i++) {
        if (!is_missing(wait, i) || ++missing > MISSING_NAMED) continue;
        const struct member *member = &wait->roster->members[i];
        const enum phase phase = (enum phase)atomic_load(&member->phase);
        const char *place = atomic_load(&member->place);
        text_add(words, "%s%s, %s", missing == 1 ? ": waiting for " : "; ", member->name, phase_name(phase));
        if (phase == PHASE_WAIT && place) text_add(words, " at %s", place);
        text_add(words, " for %.1f s at step %ld", fmax(now - atomic_load(&member->since), 0.0),
                 member->earlier + atomic_load(&member->step));
    }
    if (missing == 0 && wait->missing) text_add(words, ": nobody is left to wait for");
    if (missing > MISSING_NAMED) text_add(words, "; and %d more", missing - MISSING_NAMED);
}

/* The active workers that are not missing; nothing when no worker is, as for a server's answer. */
static void name_arrived(struct text *words, const struct wait *wait) {
    const struct roster *roster = wait->roster;
    bool worker_missing = false;
    for (int i = 0; i < roster->workers; i++) worker_missing = worker_missing || is_missing(wait, i);
    if (!worker_missing) return;
    int arrived = 0;
    for (int i = 0; i < roster->workers; i++) {
        if (!atomic_load(&roster->members[i].active) || is_missing(wait, i) || ++arrived > ARRIVED_NAMED)
            continue;
        text_add(words, "%s%s", arrived == 1 ? "; arrived: " : ", ", roster->members[i].name);
    }
    if (arrived == 0) text_add(words, "; arrived: nobody");
    if (arrived > ARRIVED_NAMED) text_add(words, " and %d more", arrived - ARRIVED_NAMED);
}

static int gave_up(const struct wait *wait, double now, struct error *error) {
    char text[sizeof error->words];
    struct text words = text_into(text, sizeof text);
    text_add(&words, "%s gave up after %g s at %s", wait->roster->members[wait->self].name,
             wait->roster->timeout_s, wait->place);
    name_missing(&words, wait, now);
    name_arrived(&words, wait);
    return error_set(error, ERROR_PEER, "%s", text);
}

/* --- the wait --- */

/* Takes those who were silent for the whole timeout off the roster, if they can be spared. Who is missing
 * may have changed since timeout ended: what is awaited may be there now, and whoever lives is left alone.
 * False: somebody is silent, and none of them could be removed, or nobody is left to wait for. */
static bool remove_silent(const struct wait *wait, bool (*ready)(void *argument), double start, double now) {
    const struct roster *roster = wait->roster;
    bool removed = false, living = false;
    if (ready(wait->argument)) return true;
    for (int i = 0; i < roster->count; i++) {
        const double since = atomic_load_explicit(&roster->members[i].since, memory_order_relaxed);
        if (!is_missing(wait, i)) continue;
        if (now - fmax(start, since) < roster->timeout_s)
            living = true;
        else if (roster->remove && roster->remove(roster->remove_argument, i))
            removed = true;
    }
    return removed || living || ready(wait->argument);
}

static int wait_in_slices(const struct wait *wait, struct event *event, bool (*ready)(void *argument),
                          double start, struct error *error) {
    struct roster *roster = wait->roster;
    double now = start, alone_since = start; /* since when nobody is missing, and yet it is not ready */
    while (true) {
        const double life = last_life(wait, start);
        if (life >= 0.0) alone_since = now;
        const double give_up = (life >= 0.0 ? life : alone_since) + roster->timeout_s;
        if (now >= give_up && !remove_silent(wait, ready, start, now)) return gave_up(wait, now, error);
        const double deadline = now < give_up ? fmin(now + SLICE_S, give_up) : now + SLICE_S;
        switch (event_wait_until(event, ready, wait->argument, deadline)) {
        case WAIT_DONE:
            return OK;
        case WAIT_STOPPED:
            return error_set(error, ERROR_PEER, "%s was stopped while waiting at %s",
                             roster->members[wait->self].name, wait->place);
        case WAIT_TIMEOUT:
            break;
        }
        now = world_now(roster->world);
    }
}

int wait_with_timeout(struct roster *roster, int self, struct event *event, bool (*ready)(void *argument),
                      bool (*missing)(void *argument, int member), void *argument, const char *place,
                      struct error *error) {
    world_yield(roster->world);
    if (ready(argument)) return OK;
    struct member *member = &roster->members[self];
    const enum phase before = (enum phase)atomic_load_explicit(&member->phase, memory_order_relaxed);
    const char *place_before = atomic_load_explicit(&member->place, memory_order_relaxed);
    atomic_store(&member->place, place);
    const double start = roster_phase(roster, self, PHASE_WAIT);
    const struct wait wait = {roster, self, missing, argument, place};
    note_awaited(&wait);
    const int code = wait_in_slices(&wait, event, ready, start, error);
    note_waited(&wait, start, roster_resume(roster, self, before));
    atomic_store(&member->place, place_before);
    return code;
}

void lock_take_as(struct lock *lock, struct roster *roster, int member, const char *place) {
    if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0) {
        lock_take(lock);
        return;
    }
    const enum phase before =
        (enum phase)atomic_load_explicit(&roster->members[member].phase, memory_order_relaxed);
    const struct wait wait = {.roster = roster, .self = member, .place = place};
    const double start = roster_phase(roster, member, PHASE_WAIT);
    note_awaited(&wait);
    lock_take(lock);
    note_waited(&wait, start, roster_resume(roster, member, before));
}
