/* The clock of a step: the time between two readings is charged to a phase, except for waiting, which is
 * charged to waiting. The five times of a step are disjoint and add up to it. */
#ifndef TRAINER_ENGINE_STEP_CLOCK_H
#define TRAINER_ENGINE_STEP_CLOCK_H

#include "training.h"

/* When a worker waited for what its device computes, and what that came to. */
struct device_wait {
    struct outcome outcome;
    double from_s, at_s; /* world time when it began to wait, and when it was done */
    bool later;          /* in push, which waits for the device itself */
    double wire_s;       /* of computing, that weights and gradient were on their way */
};

struct step_clock {
    struct roster *roster;
    int worker;
    double at, waited; /* world time of the last reading, and member.waited_s then */
    double *wait_ms;   /* of the step's row */
};

/* Of a step that begins when the one before was over. */
struct step_clock step_clock_begin(struct roster *roster, int worker, double since_s, double *wait_ms);
/* The worker enters `phase`. Returns the milliseconds since the last reading, without those waited. */
double step_clock_enter(struct step_clock *clock, enum phase phase);
/* The same without another phase. */
double step_clock_read(struct step_clock *clock, double now_s);
/* What was waited since the last reading is no waiting: it belongs to the phase. */
void step_clock_forget_wait(struct step_clock *clock);

/* Where the worker waited once for what a device did of several phases, each gets its part of that wait:
 * until the device was through with what pull had queued, and until the gradient was there. */
void step_clock_share(struct log_row *row, const struct device_wait *wait, bool queued);

#endif
