/* Evaluation and prediction: a network's forward pass over whole sets, every example once, on all cores of
 * the run. */
#ifndef TRAINER_TRAIN_EVALUATE_H
#define TRAINER_TRAIN_EVALUATE_H

#include "../data/dataset.h"
#include "../program/program.h"
#include "../engine/network.h"

enum { EVALUATE_BATCH = 256 };

struct evaluator {
    struct network network;
    struct device device;
    struct program *program;
    struct arena *arena;
    int batch;
    int *index;     /* [batch] */
    float *losses;  /* [batch] of the batch in hand */
    int *predicted; /* [batch] likewise */
    float *weights; /* [layout floats] on a device that has memory of its own; else NULL */
};

struct evaluation {
    int examples;
    double accuracy, cost; /* share right; mean cross entropy */
};

/* settings: batch and training are set here. The device is copied; the calling thread enters it. */
int evaluator_open(struct evaluator *evaluator, const struct network_settings *settings,
                   const struct device *device, struct error *error);
void evaluator_close(struct evaluator *evaluator); /* safe on a zeroed or half-open one */

/* weights: [layout floats]. */
int evaluator_run(struct evaluator *evaluator, const struct examples *examples, float *weights,
                  struct evaluation *result, struct error *error);
/* probabilities[examples->count][classes]; predicted[examples->count], what evaluator_run counts, or NULL. */
int evaluator_predict(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *probabilities, int *predicted, struct error *error);

#endif
