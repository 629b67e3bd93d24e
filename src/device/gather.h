/* Batches from examples, on any device: what a file's examples need is done first. */
#ifndef TRAINER_DEVICE_GATHER_H
#define TRAINER_DEVICE_GATHER_H

#include "device.h"

/* Before the stored rows of these examples, or of one, are looked at on the host: those that a file holds are
 * checked when they are first used. Errors: ERROR_FILE. */
int examples_use(const struct examples *examples, const struct indices *indices, struct error *error);
int examples_use_one(const struct examples *examples, int number, struct error *error);

/* Builds the batch, as the backend's gather does, after examples_use; and has the file's rows read that the
 * indices say are wanted soon. */
int device_gather(const struct device *device, const struct examples *examples, const struct indices *indices,
                  float *out, struct error *error);

/* The same for a batch that is built later, by the gather of the backend's picker. */
int device_pick(const struct device *device, void *picks, const struct examples *examples,
                const struct indices *indices, int number, bool *picked, struct error *error);

#endif
