/* Models: one plug-in per file in models/. A model is one function that builds a graph. */
#ifndef TRAINER_GRAPH_MODEL_H
#define TRAINER_GRAPH_MODEL_H

#include "../base/option.h"
#include "graph.h"

struct model {
    struct plugin plugin;
    /* Builds the network on x [batch, features...] and returns the logits [batch, classes]. */
    node (*build)(struct graph *g, node x, int classes, const void *settings);
};

extern const struct model *const models[];  /* generated, ended by NULL */
extern const struct plugin_kind model_kind; /* generated: the same */

static inline const struct model *model_of(const struct choice *choice) {
    return (const struct model *)(const void *)choice->plugin;
}

#endif
