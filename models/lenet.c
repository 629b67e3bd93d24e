/* lenet: LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document recognition", 1998
 * (LeNet-5), as it is built today: max pooling and ReLU. Both convolutions are padded, so that small images
 * fit, too. */
#include "../src/graph/model.h"

static node build(struct graph *g, node x, int classes, const void *settings) {
    const struct initial kernel = {.kind = INITIAL_GLOROT_UNIFORM}, bias = {.kind = INITIAL_ZERO};
    (void)settings;
    x = graph_relu(g, graph_conv(g, graph_image(g, x), 6, 5, 1, PADDING_SAME, kernel, bias));
    x = graph_maxpool(g, x, 2, 2, PADDING_VALID);
    x = graph_relu(g, graph_conv(g, x, 16, 5, 1, PADDING_SAME, kernel, bias));
    x = graph_maxpool(g, x, 2, 2, PADDING_VALID);
    x = graph_relu(g, graph_dense(g, graph_flatten(g, x), 120, kernel, bias));
    x = graph_relu(g, graph_dense(g, x, 84, kernel, bias));
    return graph_dense(g, x, classes, kernel, bias);
}

static const struct option rows[] = {{0}};

static const struct recipe recipe[] = {
    {"optimizer", "adam:rate=0.002"}, {"schedule", "cosine"}, {"batch", "32"}, {"epochs", "12"}, {0}};

const struct model model_lenet = {
    .plugin = {.name = "lenet",
               .help = "two 5x5 convolutions with max pooling, three dense layers (like LeNet-5)",
               .options = rows},
    .build = build,
    .recipe = recipe,
    .side = 4,
};
