/* alexnet: the convolutional network of DistNet and of TensorFlow's CIFAR-10 tutorial, every constant as
 * there.
 *
 *   conv 5x5x64, ReLU, max pool 3x3/2, LRN, conv 5x5x64, ReLU, LRN, max pool 3x3/2, dense 384, ReLU, dense
 * 192, ReLU, dense [classes]
 *
 * On images of 24x24x3 and ten classes it has 1,068,298 parameters, and its loss before the first step is
 * 4.67 to 4.68: 2.30 of ten equal classes, and 2.37 of L2 on the two large dense layers. */
#include "../src/graph/model.h"

static const struct lrn lrn = {.radius = 4, .bias = 1.0f, .alpha = 0.001f / 9.0f, .beta = 0.75f};

enum initials { INITIALS_TUTORIAL, INITIALS_HE };

struct alexnet_settings {
    double l2; /* of the two large dense layers */
    int init;
};

static struct initial truncated(float deviation) {
    return (struct initial){.kind = INITIAL_TRUNCATED_NORMAL, .value = deviation};
}

static struct initial constant(float value) {
    return (struct initial){.kind = INITIAL_CONSTANT, .value = value};
}

static struct initial weights(const struct alexnet_settings *settings, float tutorial) {
    return settings->init == INITIALS_HE ? (struct initial){.kind = INITIAL_HE_NORMAL} : truncated(tutorial);
}

static struct initial biases(const struct alexnet_settings *settings, float tutorial) {
    return constant(settings->init == INITIALS_HE ? 0.0f : tutorial);
}

static node build(struct graph *g, node x, int classes, const void *settings) {
    const struct alexnet_settings *own = settings;
    const struct initial head = own->init == INITIALS_HE ? constant(0.0f) : truncated(1.0f / 192.0f);
    x = graph_image(g, x);
    x = graph_relu(g, graph_conv(g, x, 64, 5, 1, PADDING_SAME, weights(own, 0.05f), constant(0.0f)));
    x = graph_lrn(g, graph_maxpool(g, x, 3, 2, PADDING_SAME), lrn);
    x = graph_relu(g, graph_conv(g, x, 64, 5, 1, PADDING_SAME, weights(own, 0.05f), biases(own, 0.1f)));
    x = graph_maxpool(g, graph_lrn(g, x, lrn), 3, 2, PADDING_SAME);
    x = graph_relu(g, graph_dense(g, graph_flatten(g, x), 384, weights(own, 0.04f), biases(own, 0.1f)));
    graph_decay(g, graph_find(g, "dense1/kernel"), (float)own->l2);
    x = graph_relu(g, graph_dense(g, x, 192, weights(own, 0.04f), biases(own, 0.1f)));
    graph_decay(g, graph_find(g, "dense2/kernel"), (float)own->l2);
    return graph_dense(g, x, classes, head, constant(0.0f));
}

static const struct option rows[] = {
    OPTION_ROW(REAL, "l2", struct alexnet_settings, l2, .fallback = "0.004", .least = 0, .most = 1000,
               .help = "L2 of the two large dense layers"),
    OPTION_ROW(
        CHOICE, "init", struct alexnet_settings, init, .fallback = "tutorial", .choices = "tutorial|he",
        .help = "initial weights: the tutorial's, or by the number of inputs (He), with 0 in the last layer"),
    {0},
};

static const struct recipe recipe[] = {{"optimizer", "nesterov:rate=0.02"},
                                       {"schedule", "cosine:warmup=0.05"},
                                       {"batch", "32"},
                                       {"epochs", "16"},
                                       {0}};

const struct model model_alexnet = {
    .plugin = {.name = "alexnet",
               .help = "two 5x5 convolutions, three dense layers, two with L2 (DistNet's, for CIFAR-10)",
               .options = rows,
               .settings_bytes = sizeof(struct alexnet_settings)},
    .build = build,
    .recipe = recipe,
    .side = 4,
};
