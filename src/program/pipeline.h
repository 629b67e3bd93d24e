/* Pipelines: the order in which the parts of a network compute the micro-batches of a batch.
 *
 * A part is a *stage*; stage 0 computes the first layers. It has two halves for each micro-batch: forward,
 * and backward. A schedule is a list of turns for each stage, each a half of one micro-batch. Either half
 * takes the micro-batches in their order, so gradients are added in that order under every schedule.
 *
 *   none    one micro-batch after the other, forward and backward: the stages wait for each other
 *   gpipe   all forward, then all backward (Huang et al., "GPipe", 2019)
 *   1f1b    as many forward as it takes until the first comes back, then one forward, one backward in turn
 *           (Narayanan et al., "PipeDream", 2019)
 *
 * Where all halves take equally long, (S-1)/(M+S-1) of the stages' time is idle under the last two. They
 * differ in memory: values of a micro-batch are kept from its forward to its backward half. */
#ifndef TRAINER_PROGRAM_PIPELINE_H
#define TRAINER_PROGRAM_PIPELINE_H

#include <stdbool.h>

/* In the order of the choices of --schedule-pipeline. */
enum pipeline_schedule { PIPELINE_NONE, PIPELINE_GPIPE, PIPELINE_1F1B };

struct pipeline {
    enum pipeline_schedule schedule;
    int stages, microbatches;
};

struct turn {
    bool backward;
    int micro; /* from 0 */
};

/* Turn i of a stage, of 2 * microbatches. */
struct turn pipeline_turn(const struct pipeline *pipeline, int stage, int i);

/* Micro-batches that a stage has begun and not ended, at most: gpipe all, 1f1b min(M, S - stage), none 1. */
int pipeline_in_flight(const struct pipeline *pipeline, int stage);

/* Share of the stages' time that they idle where all halves take equally long: (S-1)/(M+S-1); without a
 * pipeline (S-1)/S. */
double pipeline_bubble(const struct pipeline *pipeline);

const char *pipeline_name(enum pipeline_schedule schedule); /* "gpipe" */

#endif
