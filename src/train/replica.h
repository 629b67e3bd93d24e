/* Replicas: what each worker computes with: the network's program on its own device, with an arena of its
 * own. */
#ifndef TRAINER_TRAIN_REPLICA_H
#define TRAINER_TRAIN_REPLICA_H

#include "../data/dataset.h"
#include "../program/program.h"
#include "network.h"
#include "training.h"

struct replica {
    struct program *program;
    struct arena *arena;
    float *x;    /* [batch, features] in the arena */
    int *labels; /* [batch] in the arena */
    int *step;   /* in the arena, or NULL */
    const float *loss;
};

/* All replicas of a run; the `self` of its compute. */
struct replicas {
    const struct network *network; /* for training */
    const struct device *devices;  /* [count] */
    const struct examples *examples;
    int count, batch;
    struct replica *replicas; /* [count]; each opened by its worker's thread */
};

int replicas_open(struct replicas *replicas, const struct network *network, const struct device *devices,
                  int count, const struct examples *examples, int batch, struct error *error);
void replicas_close(struct replicas *replicas); /* after training_end; safe on a zeroed one */
struct compute replicas_compute(struct replicas *replicas);

#endif
