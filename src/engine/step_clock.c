/* See step_clock.h. */
#include "step_clock.h"

#include <math.h>

struct step_clock step_clock_begin(struct roster *roster, int worker, double since_s, double *wait_ms) {
    return (struct step_clock){.roster = roster,
                               .worker = worker,
                               .at = since_s,
                               .waited = roster->members[worker].waited_s,
                               .wait_ms = wait_ms};
}

double step_clock_read(struct step_clock *clock, double now_s) {
    const double all_waited = clock->roster->members[clock->worker].waited_s;
    /* Rounded, what took no time but waiting can come out below 0. */
    const double waited = all_waited - clock->waited, took = fmax(now_s - clock->at - waited, 0.0);
    *clock->wait_ms += waited * 1e3;
    clock->at = now_s;
    clock->waited = all_waited;
    return took * 1e3;
}

double step_clock_enter(struct step_clock *clock, enum phase phase) {
    return step_clock_read(clock, roster_phase(clock->roster, clock->worker, phase));
}

void step_clock_forget_wait(struct step_clock *clock) {
    clock->waited = clock->roster->members[clock->worker].waited_s;
}

static void move_ms(double *from, double *to, double seconds) {
    const double ms = seconds * 1e3 < *from ? seconds * 1e3 : *from;
    if (ms <= 0.0) return;
    *from -= ms;
    *to += ms;
}

void step_clock_share(struct log_row *row, const struct device_wait *wait, bool queued) {
    const struct outcome *outcome = &wait->outcome;
    const double waited_s = wait->at_s - wait->from_s;
    move_ms(&row->compute_ms, &row->push_ms, wait->wire_s);
    if (!outcome->timed) return;
    if (wait->later) move_ms(&row->push_ms, &row->compute_ms, waited_s - outcome->computed_s);
    if (queued) move_ms(&row->compute_ms, &row->pull_ms, waited_s - outcome->begun_s);
}
