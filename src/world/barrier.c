/* The barrier: every worker counts its arrivals in its own cache line, and the barrier is open for a round
 * when no active worker's count is behind it. So arriving is one store, no two workers write the same
 * line, and a worker that leaves the roster has nothing to undo here.
 *
 * A worker that arrives checks whether that opened the barrier, and posts only then. Stores and loads are
 * sequentially consistent: of several that arrive at once, the last in the total order sees all the
 * others. */
#include "waits.h"

#include <string.h>
#include "../base/memory.h"

struct at_barrier {
    const struct barrier *barrier;
    long round;
};

int barrier_open(struct barrier *barrier, struct roster *roster, const char *place, struct error *error) {
    memset(barrier, 0, sizeof *barrier);
    RETURN_IF(memory_array(&barrier->lines, roster->workers, place, error));
    barrier->roster = roster;
    barrier->place = place;
    event_open(&barrier->event, roster->world);
    return OK;
}

void barrier_close(struct barrier *barrier) {
    memory_free(barrier->lines);
    memset(barrier, 0, sizeof *barrier);
}

void barrier_arrive(struct barrier *barrier, int worker, long round) {
    atomic_store(&barrier->lines[worker].round, round + 1);
    if (barrier_is_open(barrier, round))
        event_post(&barrier->event);
    else
        world_yield(barrier->roster->world);
}

static bool is_behind(void *argument, int member) {
    const struct at_barrier *at = argument;
    const struct barrier *barrier = at->barrier;
    return member < barrier->roster->workers && atomic_load(&barrier->lines[member].round) <= at->round &&
           atomic_load(&barrier->roster->members[member].active);
}

static bool is_open(void *argument) {
    const struct at_barrier *at = argument;
    for (int worker = 0; worker < at->barrier->roster->workers; worker++)
        if (is_behind(argument, worker)) return false;
    return true;
}

bool barrier_is_open(const struct barrier *barrier, long round) {
    struct at_barrier at = {.barrier = barrier, .round = round};
    return is_open(&at);
}

int barrier_wait(struct barrier *barrier, int worker, long round, struct error *error) {
    struct at_barrier at = {.barrier = barrier, .round = round};
    return wait_with_timeout(barrier->roster, worker, &barrier->event, is_open, is_behind, &at,
                             barrier->place, error);
}

bool barrier_has(const struct barrier *barrier, int worker, long round) {
    return atomic_load(&barrier->lines[worker].round) > round;
}

int barrier_rank(const struct barrier *barrier, int worker, long round, int *arrived) {
    int rank = 0;
    *arrived = 0;
    for (int w = 0; w < barrier->roster->workers; w++) {
        if (!barrier_has(barrier, w, round)) continue;
        rank += w < worker;
        *arrived += 1;
    }
    return rank;
}
