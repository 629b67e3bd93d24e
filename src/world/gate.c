/* The gate: every worker counts its arrivals in a cache line of its own, and the gate is open for a round
 * when no active worker's count is behind it. So arriving is one store, nothing is shared that two workers
 * write, and a worker that leaves the roster needs no place at the gate to leave.
 *
 * Whoever arrives looks whether that opened the gate, and posts only then. Stores and loads are sequentially
 * consistent: of several that arrive at once, the last in their one order sees all the others. */
#include "waits.h"

#include <string.h>
#include "../base/memory.h"

struct at_gate {
    const struct gate *gate;
    long round;
};

int gate_open(struct gate *gate, struct roster *roster, const char *place, struct error *error) {
    memset(gate, 0, sizeof *gate);
    void *lines = 0;
    RETURN_IF(memory_zeroed(&lines, (size_t)roster->workers, sizeof *gate->lines, place, error));
    gate->roster = roster;
    gate->lines = lines;
    gate->place = place;
    event_open(&gate->event, roster->world);
    return OK;
}

void gate_close(struct gate *gate) {
    memory_free(gate->lines);
    memset(gate, 0, sizeof *gate);
}

void gate_arrive(struct gate *gate, int worker, long round) {
    atomic_store(&gate->lines[worker].round, round + 1);
    if (gate_is_open(gate, round))
        event_post(&gate->event);
    else
        world_yield(gate->roster->world);
}

static bool is_behind(void *argument, int member) {
    const struct at_gate *at = argument;
    const struct gate *gate = at->gate;
    return member < gate->roster->workers && atomic_load(&gate->lines[member].round) <= at->round &&
           atomic_load(&gate->roster->members[member].active);
}

static bool is_open(void *argument) {
    const struct at_gate *at = argument;
    for (int worker = 0; worker < at->gate->roster->workers; worker++)
        if (is_behind(argument, worker)) return false;
    return true;
}

bool gate_is_open(const struct gate *gate, long round) {
    struct at_gate at = {.gate = gate, .round = round};
    return is_open(&at);
}

int gate_wait(struct gate *gate, int worker, long round, struct error *error) {
    struct at_gate at = {.gate = gate, .round = round};
    return wait_patiently(gate->roster, worker, &gate->event, is_open, is_behind, &at, gate->place, error);
}

bool gate_has(const struct gate *gate, int worker, long round) {
    return atomic_load(&gate->lines[worker].round) > round;
}

int gate_rank(const struct gate *gate, int worker, long round, int *arrived) {
    int rank = 0;
    *arrived = 0;
    for (int w = 0; w < gate->roster->workers; w++) {
        if (!gate_has(gate, w, round)) continue;
        rank += w < worker;
        *arrived += 1;
    }
    return rank;
}
