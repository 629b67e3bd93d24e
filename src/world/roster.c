/* The roster: members write what they do, anyone may read it. What is written here orders no other memory:
 * it serves timeouts and error messages. `active` alone is sequentially consistent, since barriers count
 * on it. */
#include "roster.h"

#include <stdio.h>
#include <string.h>
#include "../base/memory.h"

int roster_open(struct roster *roster, struct world *world, int workers, int servers, double timeout_s,
                struct error *error) {
    memset(roster, 0, sizeof *roster);
    const int count = workers + servers;
    const size_t each = (size_t)count * (sizeof(double) + sizeof(bool));
    RETURN_IF(memory_array(&roster->members, count, "the roster", error));
    RETURN_IF(memory_zeroed(&roster->waits, (size_t)count, each, "the roster's waits", error));
    roster->world = world;
    roster->workers = workers;
    roster->count = count;
    roster->timeout_s = timeout_s;
    for (int i = 0; i < count; i++) {
        struct member *member = &roster->members[i];
        const bool worker = i < workers;
        snprintf(member->name, sizeof member->name, "%s %d", worker ? "worker" : "server",
                 worker ? i : i - workers);
        atomic_init(&member->phase, PHASE_STARTING);
        atomic_init(&member->since, world_now(world));
        atomic_init(&member->active, true);
        member->waited_for = (double *)roster->waits + i * count;
        member->awaited = (bool *)((double *)roster->waits + count * count) + i * count;
    }
    return OK;
}

void roster_close(struct roster *roster) {
    memory_free(roster->waits);
    memory_free(roster->members);
    memset(roster, 0, sizeof *roster);
}

static void set_phase(struct member *self, enum phase phase, double now) {
    atomic_store_explicit(&self->phase, (int)phase, memory_order_relaxed);
    atomic_store_explicit(&self->since, now, memory_order_relaxed);
}

double roster_resume(struct roster *roster, int member, enum phase phase) {
    const double now = world_now(roster->world);
    set_phase(&roster->members[member], phase, now);
    return now;
}

void roster_phase_at(struct roster *roster, int member, enum phase phase, double now) {
    struct member *self = &roster->members[member];
    set_phase(self, phase, now);
    if (phase != PHASE_WAIT) atomic_store_explicit(&self->acted, now, memory_order_relaxed);
}

double roster_phase(struct roster *roster, int member, enum phase phase) {
    const double now = world_now(roster->world);
    roster_phase_at(roster, member, phase, now);
    return now;
}

void roster_leave(struct roster *roster, int member, enum phase phase) {
    roster_phase(roster, member, phase);
    atomic_store(&roster->members[member].active, false);
}

void roster_join(struct roster *roster, int member) {
    struct member *self = &roster->members[member];
    atomic_store(&self->standing, STANDING_ALONE);
    atomic_store(&self->place, NULL);
    roster_phase(roster, member, PHASE_STARTING);
    atomic_store(&self->active, true);
}

bool roster_enter(struct roster *roster, int member) {
    int alone = STANDING_ALONE;
    return atomic_compare_exchange_strong(&roster->members[member].standing, &alone, STANDING_EXCHANGING);
}

void roster_alone(struct roster *roster, int member) {
    atomic_store(&roster->members[member].standing, STANDING_ALONE);
}

bool roster_expel(struct roster *roster, int member) {
    int alone = STANDING_ALONE;
    return atomic_compare_exchange_strong(&roster->members[member].standing, &alone, STANDING_EXPELLED);
}

bool roster_expelled(const struct roster *roster, int member) {
    return atomic_load(&roster->members[member].standing) == STANDING_EXPELLED;
}

int roster_active_workers(const struct roster *roster) {
    int active = 0;
    for (int worker = 0; worker < roster->workers; worker++)
        active += atomic_load(&roster->members[worker].active);
    return active;
}

const char *phase_name(enum phase phase) {
    static const char *const names[PHASES] = {
        [PHASE_STARTING] = "starting", [PHASE_INPUT] = "building its batch",
        [PHASE_PULL] = "pulling",      [PHASE_COMPUTE] = "computing",
        [PHASE_PUSH] = "pushing",      [PHASE_WAIT] = "waiting",
        [PHASE_APPLY] = "applying",    [PHASE_IDLE] = "idle",
        [PHASE_PAUSED] = "paused",     [PHASE_DONE] = "done",
        [PHASE_FAILED] = "failed",
    };
    return (int)phase >= 0 && (int)phase < PHASES ? names[phase] : "in no known phase";
}
