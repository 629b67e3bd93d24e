/* How long a step computes in a simulated run (--simulate): in the simulated world a worker's real computing
 * takes no virtual time, so the training loop sleeps this long there.
 *
 *   --simulate=20ms              every step of every worker takes 20 ms
 *   --simulate=20ms:spread=0.3   each takes a time of its own, drawn by seed, worker and step
 *
 * The times of a spread are log-normal, 20 ms in the mean, with a standard deviation of 0.3 times that. */
#ifndef TRAINER_ENGINE_STEP_TIME_H
#define TRAINER_ENGINE_STEP_TIME_H

#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"

struct step_time {
    double mean_s; /* 0: the run is not simulated */
    double spread; /* standard deviation, in parts of the mean */
    uint64_t seed;
};

/* Parses the option's text; "": all is 0. The seed is the caller's. Errors: ERROR_USAGE. */
int step_time_parse(struct step_time *time, const char *text, struct error *error);

/* Seconds that this step of a worker takes; steps count from 1, over all parts of a run, as in the log. */
double step_time_of(const struct step_time *time, int worker, long step);

/* "a step takes 20 ms of virtual time", in out[bytes]; "": the run is not simulated. Returns out. */
enum { STEP_TIME_BYTES = 100 };
const char *step_time_words(const struct step_time *time, char *out, size_t bytes);

#endif
