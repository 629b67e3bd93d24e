/* Evaluation and prediction: a network's forward pass over whole sets, every example once, on all cores of
 * the run. */
#ifndef TRAINER_TRAIN_EVALUATE_H
#define TRAINER_TRAIN_EVALUATE_H

#include "../data/dataset.h"
#include "figures.h"
#include "../program/program.h"
#include "../engine/network.h"

enum { EVALUATE_BATCH = 256 };

struct evaluator {
    struct network network;
    struct device device;
    struct program *program;
    struct arena *arena;
    int batch;
    int classes;
    enum task task;
    struct units units; /* of values; borrowed, set by who opened it */
    int *index;         /* [batch] */
    float *losses;      /* [batch] of the batch in hand */
    float *outputs;     /* [batch][classes] likewise */
    int *predicted;     /* [batch] likewise */
    float *weights;     /* [layout floats] on a device that has memory of its own; else NULL */
};

struct evaluation {
    int examples;
    double cost;           /* mean loss */
    double score;          /* of the metric that the network is judged by */
    double value[METRICS]; /* of each metric; NAN: it is none of this network's */
};

/* settings: batch and training are set here. The device is copied. Only the network is there: how large its
 * weights are. */
int evaluator_open(struct evaluator *evaluator, const struct network_settings *settings,
                   const struct device *device, struct error *error);
/* Makes it ready to run; the calling thread enters the device. */
int evaluator_compile(struct evaluator *evaluator, struct error *error);
void evaluator_close(struct evaluator *evaluator); /* safe on a zeroed or half-open one */

/* weights: [layout floats]. */
int evaluator_run(struct evaluator *evaluator, const struct examples *examples, float *weights,
                  struct evaluation *result, struct error *error);
/* outputs[examples->count][classes]: probabilities, or values in their units; predicted[examples->count], the
 * classes that evaluator_run counts, or NULL. */
int evaluator_predict(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *outputs, int *predicted, struct error *error);
/* The same of values as the network says them: in units in which they have mean 0 and deviation 1. */
int evaluator_outputs(struct evaluator *evaluator, const struct examples *examples, float *weights,
                      float *outputs, int *predicted, struct error *error);

#endif
