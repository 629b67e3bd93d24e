/* A network as Keras has it: the class of each layer, its configuration as JSON, and its weights in their
 * order. Keras 2 and 3 read it. A softmax is added at its end, so that it predicts probabilities; of
 * labels, a sigmoid; of values, nothing that changes them. */
#ifndef TRAINER_INFER_KERAS_H
#define TRAINER_INFER_KERAS_H

#include "keras_training.h"
#include "layers_of.h"

enum { KERAS_WEIGHTS = 4 };

struct keras_layer {
    const char *class_name; /* "Conv2D" */
    const char *name;       /* "conv1" */
    int weights;            /* how many of the following */
    const struct range *weight[KERAS_WEIGHTS];
    int trained;                            /* the first so many of them are; the others are statistics */
    const char *weight_name[KERAS_WEIGHTS]; /* "kernel", "moving_mean" */
};

/* The layers under names that Keras takes, with the added one's behind them, layers[count], which has nothing
 * but a name: all functions below want these. Letters, digits, _ and - stay, others become _; a name begins
 * with a letter or digit. Names that stay as they are come first, so that the others, and the added one's,
 * get the suffixes. Errors: ERROR_DEVICE (memory); ERROR_FILE: Keras has no such layer, by its name. */
int keras_layers_open(struct layers_of *named, const struct layers_of *of, enum keras_reader reader,
                      struct error *error);

/* The layer at that place; of->count: the one that is added. Errors: ERROR_FILE: Keras has none like it, by
 * its name. */
int keras_layer(struct keras_layer *layer, const struct layers_of *of, int place, struct error *error);

/* Whether a layer is one that Keras 2 has not, or computes otherwise: it has another hard_sigmoid. */
bool keras_is_third(const struct layers_of *of);

/* order[of->count + 1]: the places of the layers, the added one's too, in the order in which Keras has them
 * once it has built the model, and by which it reads their weights: those farthest from the result first; of
 * equally far ones the one that is met first on the way from the result through the inputs. Errors:
 * ERROR_DEVICE (memory). */
int keras_order(int *order, const struct layers_of *of, struct error *error);

/* The whole model, Sequential where each layer has the one before as its only input, else Functional, as JSON
 * that the caller owns (free). For Keras 3 with what files in the format .keras have besides, of which
 * `training` is part. Errors: as above; ERROR_DEVICE (memory). */
int keras_config_text(char **text, const struct layers_of *of, const struct keras_training *training,
                      enum keras_reader reader, struct error *error);
/* The same of what Keras 2 has beside the model, of a training that is there. */
int keras_training_text(char **text, const struct keras_training *training, struct error *error);

#endif
