/* softmax: one dense layer, also known as multinomial logistic regression. */
#include "../src/graph/model.h"

static node build(struct graph *g, node x, int classes, const void *settings) {
    (void)settings;
    if (x != NONE && g->nodes[x].shape.rank > 2) /* images are rows of numbers here */
        x = graph_reshape(g, x, SHAPE(g->nodes[x].shape.dims[0], -1));
    return graph_dense(g, x, classes, (struct initial){.kind = INITIAL_ZERO},
                       (struct initial){.kind = INITIAL_ZERO});
}

static const struct option rows[] = {{0}};

const struct model model_softmax = {
    .plugin = {.name = "softmax",
               .help = "one dense layer (multinomial logistic regression)",
               .options = rows},
    .build = build,
};
