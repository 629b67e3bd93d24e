/* A trained network taken from a checkpoint, ready to evaluate and predict. */
#ifndef TRAINER_TRAIN_RESTORE_H
#define TRAINER_TRAIN_RESTORE_H

#include "../data/columns.h"
#include "../data/light.h"
#include "../formats/checkpoint.h"
#include "evaluate.h"

struct restored {
    struct safetensors content;
    struct choice model;
    struct device *devices;
    struct evaluator evaluator;
    float *weights;     /* [layout floats] as they were tested: the moving average, where there is one */
    struct shape shape; /* of one example */
    enum task task;
    int features, classes;   /* classes: or labels or values */
    char **class_names;      /* [classes] */
    char **feature_names;    /* [features] or NULL */
    float scale;             /* raw features are multiplied by this */
    struct augment augment;  /* how an image is cut out and standardized; height 0: it is not */
    float *mean, *deviation; /* [features] or NULL: then x' = (x - mean) / deviation */
    struct units units;      /* of values */
    enum picture_fit fit;    /* how pictures became the examples; PICTURE_NONE: they were none */
    struct columns
        columns;        /* of a table, as files to predict have them; the label's values are the classes */
    struct light light; /* of the pictures that it was trained on */
    char *blocks[2];    /* memory of the names */
};

/* `path`: the folder of a run, of its checkpoint, or a file. Errors: ERROR_FILE. */
int restored_open(struct restored *restored, const char *path, bool reference_only, struct error *error);
/* seen = {height, width, channels} of the images that it is given, as far as the checkpoint tells. False: it
 * tells of none. */
bool restored_seen(const struct restored *restored, int seen[3]);
/* Numbers of an example as a file has them: those of a whole image, where training cut its own out of such.
 */
int restored_numbers(const struct restored *restored);
void restored_close(struct restored *restored); /* safe on a zeroed or half-open one */

#endif
