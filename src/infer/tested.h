/* The examples that a trained network is tested on: those of its own data set, as training saw them, or of
 * another one. */
#ifndef TRAINER_INFER_TESTED_H
#define TRAINER_INFER_TESTED_H

#include "../data/dataset.h"
#include "restore.h"

enum tested_part { TESTED_TEST, TESTED_TRAIN, TESTED_VALIDATION };

struct tested_settings {
    const char *checkpoint; /* its path, for the words */
    const char *dataset;    /* as typed; "": the one of the training */
    const char *data_dir;   /* "": none */
    enum tested_part part;
};

struct tested {
    struct dataset dataset;
    struct examples *examples; /* that part of it */
    float *features;           /* [count][features] of these, likewise owned */
    float *targets; /* [count][outputs] of these, owned, where their units are others than the network's */
    enum tested_part part;
};

/* Errors: ERROR_USAGE: the typed data set, one of other examples or classes, a part that has no examples;
 * ERROR_FILE: that of the checkpoint, or its files. Says on standard error when the examples are not those of
 * the training. */
int tested_open(struct tested *tested, const struct restored *restored,
                const struct tested_settings *settings, struct error *error);
/* Says on standard error where the checkpoint is of this data set, in the same words, but more is held out
 * for validation now; or as much, while its training part had another number of examples: a file of it has
 * changed since. `who` is what was trained, in words. */
void tested_say_changed(const struct safetensors *checkpoint, const char *who, const char *dataset,
                        double validation, const char *slice, long examples);
void tested_close(struct tested *tested); /* safe on a zeroed or half-open one */

#endif
