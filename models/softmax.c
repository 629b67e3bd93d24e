/* softmax: one dense layer, also known as multinomial logistic regression. */
#include "../src/graph/model.h"

static node build(struct graph *g, node x, int classes, const void *settings) {
    (void)settings;
    return graph_dense(g, graph_flatten(g, x), classes, (struct initial){.kind = INITIAL_ZERO},
                       (struct initial){.kind = INITIAL_ZERO});
}

static const struct option rows[] = {{0}};

static const struct recipe recipe[] = {
    {"optimizer", "momentum:rate=0.1"}, {"schedule", "cosine"}, {"batch", "32"}, {"epochs", "60"}, {0}};

const struct model model_softmax = {
    .plugin = {.name = "softmax",
               .help = "one dense layer (multinomial logistic regression)",
               .options = rows},
    .build = build,
    .recipe = recipe,
};
