/* cnn: one convolution and two dense layers, the network of TensorFlow's multi-worker examples: on MNIST
 * 693,962 parameters. */
#include "../src/graph/model.h"

static node build(struct graph *g, node x, int classes, const void *settings) {
    const struct initial kernel = {.kind = INITIAL_GLOROT_UNIFORM}, bias = {.kind = INITIAL_ZERO};
    (void)settings;
    x = graph_relu(g, graph_conv(g, graph_image(g, x), 32, 3, 1, PADDING_VALID, kernel, bias));
    x = graph_maxpool(g, x, 2, 2, PADDING_VALID);
    x = graph_relu(g, graph_dense(g, graph_flatten(g, x), 128, kernel, bias));
    return graph_dense(g, x, classes, kernel, bias);
}

static const struct option rows[] = {{0}};

static const struct recipe recipe[] = {{"optimizer", "nesterov:rate=0.02"},
                                       {"schedule", "cosine"},
                                       {"decay", "0.0005"},
                                       {"batch", "8"},
                                       {"epochs", "24"},
                                       {0}};

const struct model model_cnn = {
    .plugin = {.name = "cnn", .help = "a 3x3 convolution, max pooling, two dense layers", .options = rows},
    .build = build,
    .recipe = recipe,
    .side = 4,
};
