/* What Keras needs to go on with a training: the loss, the optimizer and its state. It is taken from a
 * checkpoint, as far as the optimizer has a counterpart there. */
#ifndef TRAINER_INFER_KERAS_TRAINING_H
#define TRAINER_INFER_KERAS_TRAINING_H

#include "../base/json.h"
#include "../store/optimizer.h"
#include "restore.h"

enum { KERAS_SLOTS = 2 };

/* Which Keras is to go on: 2 by its legacy optimizers, which all versions of it have, and which Keras 3 takes
 * for its own, but without their state. */
enum keras_reader { KERAS_NONE, KERAS_SECOND, KERAS_THIRD };

struct keras_training {
    bool there; /* else nothing but words is set */
    struct choice optimizer;
    double rate;
    long updates;
    int slots;                          /* arrays of each variable */
    const char *slot_name[KERAS_SLOTS]; /* as Keras 2 calls them: "momentum" */
    float *slot[KERAS_SLOTS];           /* [layout floats] as they are there, owned */
    const char *class_name, *loss;      /* there */
    char words[240];                    /* what is left out; or "" */
};

/* `path`: of the checkpoint, for the words. Without an optimizer's state in it there is nothing. Errors:
 * ERROR_FILE; ERROR_DEVICE (memory). */
int keras_training_open(struct keras_training *training, const struct restored *restored, const char *path,
                        enum keras_reader reader, struct error *error);
void keras_training_close(struct keras_training *training); /* safe on a zeroed or half-open one */

/* The members of an object: the loss and the optimizer, as Keras 3 has them in `compile_config`, and Keras 2
 * in `training_config`. */
void keras_training_put(struct json_writer *json, const struct keras_training *training,
                        enum keras_reader reader);

#endif
