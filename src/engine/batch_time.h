/* The time of a batch: how long a worker computes one in training, found by computing some. */
#ifndef TRAINER_ENGINE_BATCH_TIME_H
#define TRAINER_ENGINE_BATCH_TIME_H

#include "../data/dataset.h"
#include "group.h"
#include "network.h"

/* The training that is to come. */
struct batch_work {
    const struct network *network; /* for training, of a micro-batch */
    const struct examples *examples;
    const struct choice *strategy, *optimizer, *schedule; /* as the store takes them; none is asked */
    bool on_devices;  /* the weights live on the devices that have memory of their own */
    double average;   /* of the weights, as the store takes it */
    float clip;       /* of the gradient's norm; 0: none */
    uint64_t seed;    /* of the stream of batches */
    int microbatches; /* of a batch */
    double slowness;  /* by which the worker is slowed down (--slow); 0: it is not */
    bool with_input;  /* building the batch counts, which nobody else does meanwhile */
    struct world *world;
    double timeout_s;
};

/* *seconds: from the moment when a worker has its batch, or begins to build it, until it has looked at the
 * gradient; of some batches, the one in the middle. The worker has the first group of `groups`, with its
 * places, or, where that is NULL, `device` alone. Between two batches it does what comes there in training:
 * builds a batch of other examples, and steps the weights with the gradient, with the learning rate 0, so
 * that they stay the first ones; who is slowed down rests, as long as in training, but a tenth of a second at
 * most. On a thread of its own on the device's cores; takes half a second, or a few batches. *abandoned: a
 * device of the group hangs (replicas_close), and the work, the groups and all that they name must stay.
 * Errors: those of replicas and the store: ERROR_DEVICE, ERROR_PEER, ERROR_FILE; ERROR_INTERRUPTED. */
int batch_time(const struct batch_work *work, const struct device *device, const struct groups *groups,
               double *seconds, bool *abandoned, struct error *error);

#endif
