/* A file as a network's input: one picture, or rows of a table (table_rows.h), prepared as the examples were
 * in training. */
#ifndef TRAINER_TRAIN_FEATURES_H
#define TRAINER_TRAIN_FEATURES_H

#include "../base/file_reader.h"
#include "restore.h"

struct features {
    float *floats;      /* [count][restored->features], owned; NULL where there are bytes */
    uint8_t *bytes;     /* images as they were stored, where training cut them out of such; owned */
    int count;          /* examples; of a picture 1 */
    bool is_picture;    /* else rows of a table */
    struct light light; /* of a picture */
};

/* Whether the file, of which nothing has been read, is a picture; else it is taken for a table. Errors:
 * ERROR_FILE: it is neither. */
int features_is_picture(struct file_reader *file, bool *is_picture, struct error *error);
/* A picture. Errors: ERROR_FILE: the file, or its format; ERROR_USAGE: the network takes none. */
int features_read(struct features *features, const struct restored *restored, struct file_reader *file,
                  struct error *error);
/* What training did to its examples is done to these: floats[count][restored_numbers], as a file `name` has
 * them. Errors: ERROR_FILE: no bytes of images, where these are needed. */
int features_prepare(struct features *features, const struct restored *restored, const char *name,
                     struct error *error);
/* Several files' examples, one after the other; whether they are pictures is the first one's. */
int features_join(struct features *all, const struct features *files, int count,
                  const struct restored *restored, struct error *error);
/* As the evaluator wants them; borrowed from the features. */
struct examples features_examples(const struct features *features, const struct restored *restored);
void features_close(struct features *features); /* safe on a zeroed one */

#endif
