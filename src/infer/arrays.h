/* The weights of a trained network as named arrays, for the formats that have nothing else. */
#ifndef TRAINER_INFER_ARRAYS_H
#define TRAINER_INFER_ARRAYS_H

#include "export.h"

struct array {
    char name[80];
    struct shape shape;
    const float *values; /* [shape_count] */
    float *own;          /* the same, where they had to be turned: owned; or NULL */
};

struct arrays {
    struct array *arrays; /* [count] */
    int count;
};

/* In the order of the layers. exported->torch: names and layouts are those that PyTorch's modules load with
 * load_state_dict: "dense1.weight" [out, in], kernels OIHW, those of depthwise
 * convolutions [channels * multiplier, 1, rows, columns], "norm1.running_mean"; and what follows a flattened
 * image has its numbers in the order of channels, rows, columns (see row_order.h). Else as they are here and
 * in Keras: "dense1/kernel" [in, out], kernels HWIO. Errors: ERROR_DEVICE (memory); ERROR_FILE: a layer that
 * PyTorch's order does not go through. */
int arrays_open(struct arrays *arrays, const struct exported *exported, struct error *error);
void arrays_close(struct arrays *arrays); /* safe on a zeroed or half-open one */

/* [places][in][out] -> [out][in][places]: kernels HWIO as OIHW, places being rows x columns. */
void arrays_turn(float *to, const float *from, int places, int in, int out);

#endif
