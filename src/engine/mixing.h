/* Mixing: mixup and cutmix of the examples of a batch, each with the one that follows it in the stream. Their
 * labels are not mixed: the loss is the weighted sum of two (network.h). */
#ifndef TRAINER_TRAIN_MIXING_H
#define TRAINER_TRAIN_MIXING_H

#include "../device/device.h"

/* What it takes beside the input buffers; of one replica. batch: of a micro-batch. */
struct mixing {
    float *rows;   /* [batch + 1, features] on the device: the examples before they are mixed */
    float *shares; /* [microbatches, batch] in host memory that the device copies from at full speed */
    struct augment_mix *mix; /* [batch] */
};

/* Where a batch goes, on the device. */
struct mixed {
    float *x;      /* [batch, features] */
    void *labels;  /* of the examples themselves: int [batch], or float [batch, outputs] */
    void *others;  /* likewise of those that they are mixed with */
    float *shares; /* [batch] what the former count; the latter count the rest */
};

int mixing_open(struct mixing *mixing, const struct device *device, const struct examples *examples,
                int batch, int microbatches, struct error *error);
void mixing_close(struct mixing *mixing, const struct device *device); /* safe on a zeroed one */

/* Builds micro-batch number `micro`, queued. indices->index and key have one more behind the last; key NULL:
 * nothing is mixed. */
int mixing_load(const struct mixing *mixing, const struct device *device, const struct examples *examples,
                int micro, const struct indices *indices, const struct mixed *out, struct error *error);

#endif
