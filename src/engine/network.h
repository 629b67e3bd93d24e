/* A network: the graph of a model with its loss, as replicas, evaluation and `describe` use it. */
#ifndef TRAINER_TRAIN_NETWORK_H
#define TRAINER_TRAIN_NETWORK_H

#include "../base/option.h"
#include "../graph/codes.h"
#include "../graph/loss.h"
#include "../store/store.h"

struct network {
    struct graph graph;
    enum task task;
    node x;            /* [batch, features...], as the data set has them */
    node labels;       /* int [batch], or float [batch, classes], as the task has them */
    node logits;       /* [batch, classes] */
    node outputs;      /* [batch, classes] probabilities, or values */
    node predicted;    /* int [batch]: the most probable class */
    node others;       /* labels of what the examples are mixed with, or NONE */
    node shares;       /* [batch]: what the examples' own labels count where they are mixed, or NONE */
    node losses;       /* [batch] of each example; of a mixed one, of both labels */
    node loss;         /* their mean, which the gradients are of */
    node decayed_loss; /* training only: plus decay/2 |w|^2, which the optimizers see to; else the loss */
    node step;         /* the int scalar that dropout draws by, or NONE */
    node *gradients;   /* [gradient_count], training only */
    int gradient_count;
};

/* What a network is made for. */
struct network_settings {
    const struct choice *model; /* descriptor: struct model */
    const char *of;             /* whose examples they are, for the words; NULL: that is not said */
    struct shape shape;         /* of one example */
    struct codes codes;         /* what of it is embedded before the model gets it; columns 0: nothing */
    int classes, batch;         /* classes: or labels or values, as many as the network has outputs */
    enum task task;
    enum loss loss;   /* one of the task's */
    double smoothing; /* of its labels, in training only */
    bool training;    /* with gradients and dropout */
    bool mixed;       /* examples have two labels (mixup, cutmix) */
    uint64_t seed;
    double decay;       /* L2 of every weight matrix (rank 2 and above) */
    const char *freeze; /* patterns of weights that stay as they are (layout_matches), borrowed; NULL or
                           empty: none */
    int shards;         /* for shard_by round-robin: decides the order of the flat vector */
    enum shard_by shard_by;
};

/* Whether a model can learn from such examples, before its graph is built. `measured`: their numbers are no
 * pixels; `of`: whose they are, in words. Errors: ERROR_USAGE: it takes images, and these are none or too
 * small. */
int network_fits(const struct choice *model, const struct shape *shape, bool measured, const char *of,
                 struct error *error);

/* Errors: the graph's first mistake. Closing a half-open one is safe. */
int network_open(struct network *network, const struct network_settings *settings, struct error *error);
void network_close(struct network *network);

#endif
