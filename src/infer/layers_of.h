/* The layers of a trained network, read back out of its graph: what the formats of other programs are made
 * of. A product and the bias that is added to it are one layer, as are a normalisation and its statistics;
 * every other operation is a layer of its own. Only what the logits need is there. */
#ifndef TRAINER_INFER_LAYERS_OF_H
#define TRAINER_INFER_LAYERS_OF_H

#include "../engine/network.h"

enum layer_kind {
    LAYER_INPUT,
    LAYER_CONV,           /* kernel HWIO, bias or none */
    LAYER_DENSE,          /* kernel [in, out], bias or none */
    LAYER_BATCH_NORM,     /* scale, shift, mean, variance */
    LAYER_GLOBAL_AVERAGE, /* [batch, rows, columns, channels] -> [batch, channels] */
    LAYER_RESHAPE,        /* of each example; as a rule to one dimension */
    LAYER_OPERATION,      /* any other: `op` */
};

/* The ranges of a layer's weights. */
enum layer_weight {
    WEIGHT_KERNEL,
    WEIGHT_BIAS,
    WEIGHT_SCALE,
    WEIGHT_SHIFT,
    WEIGHT_MEAN,
    WEIGHT_VARIANCE,
    LAYER_WEIGHTS
};

struct layer_of {
    enum layer_kind kind;
    enum op op;
    node at;       /* whose value is the layer's: its shape; */
    node computes; /* whose attributes are the layer's: the convolution before its bias */
    int inputs;
    int input[MAX_INPUTS];                      /* places in the list, each before this one */
    const struct range *weights[LAYER_WEIGHTS]; /* or NULL */
    char name[64];                              /* "conv1", as its weights have it; "relu1", "maxpool2" */
};

struct layers_of {
    const struct graph *graph; /* borrowed */
    struct layer_of *layers;   /* [count]: the input first, the logits last */
    int count;
    int batch; /* of the graph: the first dimension of all values */
};

/* network: for inference. Errors: ERROR_DEVICE (memory); ERROR_FILE: a weight that is no layer's (what is
 * computed from it is named). */
int layers_of_open(struct layers_of *of, const struct network *network, struct error *error);
void layers_of_close(struct layers_of *of); /* safe on a zeroed one */

#endif
