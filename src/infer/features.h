/* A file as a network's input: the rows of a CSV file, or one picture, prepared as the examples were in
 * training. */
#ifndef TRAINER_TRAIN_FEATURES_H
#define TRAINER_TRAIN_FEATURES_H

#include "restore.h"

struct features {
    float *floats;      /* [count][restored->features], owned; NULL where there are bytes */
    uint8_t *bytes;     /* images as they were stored, where training cut them out of such; owned */
    int count;          /* examples; of a picture 1 */
    bool is_picture;    /* else a CSV file */
    struct light light; /* of a picture */
};

/* Errors: ERROR_FILE: the file, or its format; ERROR_USAGE: a picture for a network that takes none. */
int features_read(struct features *features, const struct restored *restored, const char *path,
                  struct error *error);
/* Several files' examples, one after the other; whether they are pictures is the first one's. */
int features_join(struct features *all, const struct features *files, int count,
                  const struct restored *restored, struct error *error);
/* As the evaluator wants them; borrowed from the features. */
struct examples features_examples(const struct features *features, const struct restored *restored);
void features_close(struct features *features); /* safe on a zeroed one */

#endif
