/* The layers of a trained network, read back out of its graph: what the formats of other programs are made
 * of. A product and the bias that is added to it are one layer, as are a normalisation and its statistics,
 * or the operations that make a layer normalisation; every other operation is a layer of its own. Only what
 * the logits need is there. */
#ifndef TRAINER_INFER_LAYERS_OF_H
#define TRAINER_INFER_LAYERS_OF_H

#include "../engine/network.h"

enum found_kind {
    FOUND_INPUT,
    FOUND_CONV,           /* kernel HWIO, bias or none */
    FOUND_DEPTHWISE,      /* kernel [rows, columns, channels, multiplier], bias or none */
    FOUND_DENSE,          /* kernel [in, out], bias or none */
    FOUND_EMBEDDING,      /* kernel [vocabulary, units] */
    FOUND_BATCH_NORM,     /* scale, shift, mean, variance */
    FOUND_LAYER_NORM,     /* scale, shift */
    FOUND_GLOBAL_AVERAGE, /* [batch, rows, columns, channels] -> [batch, channels] */
    FOUND_GLOBAL_MAX,     /* the same */
    FOUND_RESHAPE,        /* of each example; as a rule to one dimension */
    FOUND_OPERATION,      /* any other: `op` */
};

/* The ranges of a layer's weights. */
enum found_weight {
    WEIGHT_KERNEL,
    WEIGHT_BIAS,
    WEIGHT_SCALE,
    WEIGHT_SHIFT,
    WEIGHT_MEAN,
    WEIGHT_VARIANCE,
    FOUND_WEIGHTS
};

struct layer_of {
    enum found_kind kind;
    enum op op;
    node at;       /* whose value is the layer's: its shape; */
    node computes; /* whose attributes are the layer's: the convolution before its bias */
    float alpha;   /* of leaky_relu and elu, whose only operand it is beside x */
    float epsilon; /* of a layer normalisation */
    int inputs;
    int input[MAX_INPUTS];                      /* places in the list, each before this one */
    const struct range *weights[FOUND_WEIGHTS]; /* or NULL */
    char name[64]; /* no other layer's: "conv1", as its weights have it; "relu1", "maxpool2" */
};

struct layers_of {
    const struct graph *graph; /* borrowed */
    struct layer_of *layers;   /* [count]: the input first, the logits last */
    int count;
    int batch; /* of the graph: the first dimension of all values */
    enum task task;
};

/* network: for inference. Errors: ERROR_DEVICE (memory); ERROR_FILE: a weight that is no layer's (what is
 * computed from it is named). */
int layers_of_open(struct layers_of *of, const struct network *network, struct error *error);
void layers_of_close(struct layers_of *of); /* safe on a zeroed one */

/* The kernel of a convolution as it is computed with: [rows, columns, channels of a group, out]. */
const struct shape *layers_of_kernel(const struct layers_of *of, const struct layer_of *layer);

#endif
