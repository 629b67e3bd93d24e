/* Balance: on which device each layer of a network computes soonest, where it is known how long every
 * operation takes on every device, and bytes between them. Nothing is measured here and no device is asked.
 *
 * The time of a batch is predicted by walking the graph in its order, as the parts of a partition do: each
 * device computes its nodes one after the other, and a node waits for what it reads. A value that crosses
 * takes time from the sender, and a little more until the receiver goes on.
 *
 * The search goes through the layers in their order and leaves out what cannot be best any more: a placement
 * of the first layers takes at least as long as the walk in which every other layer has all devices for
 * itself. It looks at cuts into stages first, runs of layers with a device each, then at every placement; in
 * a pipeline, where values must not go back, at stages on devices in their order alone. It ends early where
 * there are too many. */
#ifndef TRAINER_PROGRAM_BALANCE_H
#define TRAINER_PROGRAM_BALANCE_H

#include "../graph/graph.h"

enum { BALANCE_DEVICES = 64 }; /* at most */

struct balance_node {
    int layer;                     /* goes where this layer goes; NONE: on device 0 */
    int inputs, input[MAX_INPUTS]; /* earlier nodes */
    size_t bytes;                  /* of its value, which crosses to each other device that reads it */
};

/* From one device to another: a copy keeps the sender busy for copy_s and byte_s more for each byte; who
 * waits for it goes on wake_s later. */
struct balance_way {
    double copy_s, byte_s, wake_s;
};

/* The weights of a layer: so many arrays, with so many bytes in all. */
struct balance_weights {
    int arrays;
    size_t bytes;
};

struct balance {
    int nodes, layers, devices;
    const struct balance_node *node;       /* [nodes] in the order in which a device computes its own */
    const double *seconds;                 /* [devices][nodes] */
    const struct balance_way *ways;        /* [devices][devices]: from, to */
    const struct balance_weights *weights; /* [layers] */
    const bool *apart; /* [devices] has not the memory of device 0, with which it exchanges its layers'
                          weights and gradients in every batch */
    double sum_s;      /* to add the gradient of a pass to those before, where passes follow each other */
    int microbatches;  /* passes of a batch */
    bool pipelined;    /* several of them are under way at once */
    double margin;     /* a placement that is less simple must be faster by this share; 0: by anything */
};

/* *seconds: of a batch, with layer l on device on[l]. Without a pipeline: the passes and sums one after the
 * other; with one: the first pass, then the busiest device's work of each other one. Errors: ERROR_DEVICE
 * (memory). */
int balance_predict(const struct balance *balance, const int *on, double *seconds, struct error *error);

/* on[layers] and *seconds: the best placement that was found, which is the best there is where there are few
 * enough, and but for the margin; never worse, but for that, than any device alone, nor than stages of
 * equally many layers. Errors: ERROR_DEVICE (memory). */
int balance_search(const struct balance *balance, int *on, double *seconds, struct error *error);

/* The heaviest layer for the device that computes all of them soonest. */
struct balance_heavy {
    int layer;    /* NONE: there are no layers */
    int device;   /* this one */
    double share; /* of its work */
    double most;  /* as many times as fast as that device alone a placement can be at most, because of it */
};
struct balance_heavy balance_heaviest(const struct balance *balance);

#endif
