/* fast: the network of K. Jordan's speed runs on CIFAR-10 ("94% on CIFAR-10 in 3.29 seconds on a single GPU",
 * 2024): on images of 32x32x3 and ten classes 236 million operations forward.
 *
 *   conv 2x2, norm, GELU, three times (conv 3x3, max pool 2x2, norm, GELU, conv 3x3, norm, GELU) with 64, 256
 *   and 256 filters, max pool over what is left, dense [classes]
 *
 * The first layer whitens: its filters are the cosines of 2x2 pixels and their channels, with both signs,
 * which are the principal components of patches of photographs but for a few degrees, and stay as they are;
 * the norm behind it brings each to deviation 1. So nothing has to be computed from the data set before. The
 * 3x3 filters begin by passing on what they are given. Norms have a shift alone, and convolutions no biases.
 * A small image is pooled as long as it has two rows and columns. */
#include "../src/graph/model.h"

struct fast_settings {
    double shift_rate;
};

static int least(int a, int b) {
    return a < b ? a : b;
}

static struct shape shape_of_node(const struct graph *g, node x) {
    return x == NONE ? SHAPE(1, 1, 1, 1) : g->nodes[x].shape;
}

static node conv(struct graph *g, node x, int filters, int window, enum padding padding,
                 enum initial_kind kind) {
    const struct pooling windows = {{window, window}, {1, 1}, padding};
    return graph_conv_of(g, x, filters, &windows,
                         &(struct weights){.kernel = {.kind = kind}, .no_bias = true});
}

/* Its scale stays 1. `number`: of the norm, for the names of its weights. */
static node norm(struct graph *g, node x, int number, const struct fast_settings *settings) {
    char scale[32], shift[32];
    snprintf(scale, sizeof scale, "norm%d/scale", number);
    snprintf(shift, sizeof shift, "norm%d/shift", number);
    x = graph_batch_norm(g, x, 0.6f, 1e-5f);
    graph_freeze(g, graph_find(g, scale));
    graph_rate(g, graph_find(g, shift), (float)settings->shift_rate);
    return graph_gelu(g, x);
}

static node pool(struct graph *g, node x, int most) {
    const struct shape shape = shape_of_node(g, x);
    const int rows = least(shape.dims[1], most), columns = least(shape.dims[2], most);
    return graph_maxpool_of(g, x, &(struct pooling){{rows, columns}, {rows, columns}, PADDING_VALID});
}

static node build(struct graph *g, node x, int classes, const void *settings) {
    static const int filters[] = {64, 256, 256};
    const struct initial head = {.kind = INITIAL_ZERO};
    x = graph_image(g, x);
    x = conv(g, x, 8 * shape_of_node(g, x).dims[3], 2, PADDING_VALID, INITIAL_COSINES);
    graph_freeze(g, graph_find(g, "conv1/kernel"));
    x = norm(g, x, 1, settings);
    for (int block = 0; block < 3; block++) {
        x = conv(g, x, filters[block], 3, PADDING_SAME, INITIAL_PASSING);
        x = norm(g, pool(g, x, 2), 2 * block + 2, settings);
        x = conv(g, x, filters[block], 3, PADDING_SAME, INITIAL_PASSING);
        x = norm(g, x, 2 * block + 3, settings);
    }
    return graph_dense(g, graph_flatten(g, pool(g, x, 1 << 20)), classes, head, head);
}

static const struct option rows[] = {
    OPTION_ROW(REAL, "shift-rate", struct fast_settings, shift_rate, .fallback = "1", .least = 0, .most = 1e6,
               .help = "what the learning rate of the norms' shifts is multiplied by"),
    {0},
};

static const struct recipe recipe[] = {{"optimizer", "nesterov:rate=0.05"},
                                       {"schedule", "linear:warmup=0.1"},
                                       {"batch", "32"},
                                       {"epochs", "10"},
                                       {0}};

const struct model model_fast = {
    .plugin = {.name = "fast",
               .help =
                   "seven small convolutions, each normalised, then one dense layer; the first whitens (for "
                   "CIFAR-10 in minutes)",
               .options = rows,
               .settings_bytes = sizeof(struct fast_settings)},
    .build = build,
    .recipe = recipe,
    .side = 4,
};
