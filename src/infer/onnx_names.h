/* The names in an ONNX file. Inputs, outputs and weights are values there like the results of layers, and no
 * two values have one name. Those that programs ask for stay: "x", "probabilities", "logits", "outputs". Then
 * come the weights, and what layers give gets a suffix where its name is taken. Names of nodes are apart from
 * those of values: the node of a layer always has the layer's. */
#ifndef TRAINER_INFER_ONNX_NAMES_H
#define TRAINER_INFER_ONNX_NAMES_H

#include "../base/names.h"
#include "layers_of.h"

struct onnx_name {
    char text[NAMES_BYTES];
};

struct onnx_names {
    struct onnx_name *values;  /* [layers] of their results; of the first layer: of the input */
    struct onnx_name *weights; /* [ranges] of the layout */
    struct names nodes;        /* that are taken */
};

/* Errors: ERROR_DEVICE (memory). */
int onnx_names_open(struct onnx_names *names, const struct layers_of *of, struct error *error);
/* Of what only the nodes of that layer have: "gelu1:erf". */
struct onnx_name onnx_part(const struct layer_of *layer, const char *what);
void onnx_names_close(struct onnx_names *names); /* safe on a zeroed or half-open one */

#endif
