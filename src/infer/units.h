/* The units of values: a network is trained on values with mean 0 and deviation 1, other programs have them
 * as they are. The two differ in the weights of the last layer. */
#ifndef TRAINER_INFER_UNITS_H
#define TRAINER_INFER_UNITS_H

#include "../data/metric.h"
#include "../engine/network.h"
#include "../formats/checkpoint.h"

bool units_equal(const struct units *a, const struct units *b, int outputs);
/* The units of a checkpoint's values, by its texts; without them there are none. Owned by the caller, also
 * after an error. Errors: ERROR_FILE, ERROR_DEVICE (memory). */
int units_read(struct units *units, const struct safetensors *content, const char *path, int outputs,
               struct error *error);

/* The ranges of the last layer, where it is dense and has biases; else NULL both. */
struct last_layer {
    const struct range *kernel, *bias; /* [in, outputs], [outputs] */
};
struct last_layer units_layer(const struct network *network);

/* The weights become those of a network that says values in their units; and back. `units` without deviation:
 * they stay. path: of the file, for the words. Errors: ERROR_FILE: there is no such last layer. */
int units_give(const struct network *network, const struct units *units, const char *path, float *weights,
               struct error *error);
int units_take(const struct network *network, const struct units *units, const char *path, float *weights,
               struct error *error);

#endif
