/* A probe: the gradient of one and the same batch, the first of the training part, at whatever weights. So
 * that gradients can be compared over epochs, strategies and numbers of workers: each worker's own come from
 * other batches and are gone when an epoch ends. */
#ifndef TRAINER_TRAIN_PROBE_H
#define TRAINER_TRAIN_PROBE_H

#include "replica.h"

struct probe {
    struct replicas replicas;
    struct device device;
    float *gradient; /* [layout floats] of the last probe_run */
};

/* network: for training, borrowed as the examples are; its batch, so many times, is the probe's. The device
 * is copied; the calling thread enters it. Errors: those of program_compile, ERROR_DEVICE. */
int probe_open(struct probe *probe, const struct network *network, const struct device *device,
               const struct examples *train, int microbatches, struct error *error);
bool probe_is_open(const struct probe *probe);
/* weights: [layout floats], in the host's memory. Fills probe->gradient, without --clip. Errors:
 * ERROR_DEVICE. */
int probe_run(struct probe *probe, float *weights, struct error *error);
void probe_close(struct probe *probe); /* safe on a zeroed or half-open one */

#endif
