/* A trial: a network's program on one device as a replica has it, with first weights and the first examples,
 * to be run and timed, and thrown away again. */
#ifndef TRAINER_ENGINE_TRIAL_H
#define TRAINER_ENGINE_TRIAL_H

#include "../data/dataset.h"
#include "../program/program.h"
#include "network.h"

struct trial {
    const struct device *device; /* borrowed */
    struct program *program;
    struct arena *arena;
    size_t floats;
    float *weights, *gradients; /* [floats] on the device */
};

/* For a network for training. The calling thread has the device for itself, which it enters here. Errors:
 * those of program_compile; ERROR_DEVICE. */
int trial_open(struct trial *trial, const struct network *network, const struct device *device,
               const struct examples *examples, struct error *error);
void trial_close(struct trial *trial); /* safe on a zeroed or half-open one */

/* As program_run, and complete on return. Errors: ERROR_DEVICE. */
int trial_run(const struct trial *trial, struct error *error);
/* As program_time. Errors: ERROR_DEVICE. */
int trial_time(struct trial *trial, const struct world *world, double *seconds, struct error *error);
/* Adds a vector as long as the gradient to it, as is done after each micro-batch but the first. */
int trial_sum(struct trial *trial, struct error *error);

#endif
