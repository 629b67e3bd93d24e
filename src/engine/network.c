/* A model's graph with loss, prediction and gradients around it. */
#include "network.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "../graph/model.h"

/* Variables in the order of the layout, and their gradients; then those of the statistics. */
static int add_gradients(struct network *network, struct error *error) {
    struct graph *g = &network->graph;
    node *variables = NULL;
    int count = 0;
    RETURN_IF(memory_array(&network->gradients, g->layout.count, "gradients", error));
    RETURN_IF(memory_array(&variables, g->layout.count, "variables", error));
    for (node n = 0; n < g->count; n++)
        if (g->nodes[n].op == OP_variable &&
            g->layout.ranges[g->nodes[n].attributes.variable].kind == RANGE_TRAINABLE)
            variables[count++] = n;
    graph_gradients(g, network->loss, variables, count, network->gradients);
    for (node n = 0; n < network->loss; n++) /* what the statistics follow */
        if (g->nodes[n].gradient_of >= 0) network->gradients[count++] = n;
    network->gradient_count = count;
    memory_free(variables);
    return graph_check(g, error);
}

/* The loss plus decay/2 |w|^2 of every range. The optimizers add its gradient, decay * w, themselves, so this
 * is only for looking at: a dot product of the weights where they lie, on their device, too. */
static node add_decay(struct graph *g, node loss) {
    const int count = g->count;
    for (node n = 0; n < count; n++) {
        if (g->nodes[n].op != OP_variable) continue;
        const struct range *range = &g->layout.ranges[g->nodes[n].attributes.variable];
        if (range->kind != RANGE_TRAINABLE || !(range->decay > 0.0f)) continue;
        const float half = 0.5f * range->decay;
        const int before = g->count;
        const node row = graph_reshape(g, n, SHAPE(1, -1));
        const node square = graph_reshape(g, graph_matmul(g, row, row, false, true), SCALAR);
        const node part = graph_mul(g, square, graph_scalar(g, half));
        for (node i = before; i < g->count; i++) g->nodes[i].follows = n;
        loss = graph_add(g, loss, part);
    }
    return loss;
}

/* [batch]; labels are smoothed in training only. */
static node losses_of(struct network *network, const struct network_settings *settings, node labels) {
    return loss_build(&network->graph, settings->loss, network->logits, labels,
                      settings->training ? (float)settings->smoothing : 0.0f);
}

/* The cross entropy is linear in what the labels say, and so is the gradient of a squared error. */
static void mix_losses(struct network *network, const struct network_settings *settings) {
    struct graph *g = &network->graph;
    network->others = loss_labels(g, "other_labels", settings->task, settings->batch, settings->classes);
    network->shares = graph_placeholder(g, "shares", TYPE_FLOAT, SHAPE(settings->batch));
    const node rest = graph_sub(g, graph_scalar(g, 1.0f), network->shares);
    const node others = losses_of(network, settings, network->others);
    network->losses =
        graph_add(g, graph_mul(g, network->shares, network->losses), graph_mul(g, rest, others));
}

/* Rows and columns of an example as graph_image makes an image of it; 0: it makes none. */
static void image_size(const struct shape *shape, bool measured, int size[2]) {
    const int side = (int)lround(sqrt(shape->dims[0]));
    size[0] = shape->dims[0];
    size[1] = shape->dims[1];
    if (shape->rank == 1) size[0] = size[1] = !measured && side * side == shape->dims[0] ? side : 0;
}

int network_fits(const struct choice *model, const struct shape *shape, bool measured, const char *of,
                 struct error *error) {
    const char *name = model->plugin->name;
    const struct model *taker = model_of(model);
    const int side = taker->side_of ? taker->side_of(choice_settings(model)) : taker->side;
    int size[2];
    image_size(shape, measured, size);
    if (shape->rank == 0 || (size[0] >= side && size[1] >= side)) return OK;
    if (measured)
        return error_set(error, ERROR_USAGE,
                         "%s: found %d measurements per example of %.200s, expected an image", name,
                         shape->dims[0], of);
    if (size[0] == 0)
        return error_set(
            error, ERROR_USAGE,
            "%s: found %d numbers per example of %.200s, expected an image, or the pixels of a square one",
            name, shape->dims[0], of);
    return error_set(error, ERROR_USAGE, "%s: found images of %dx%d from %.200s, expected %dx%d or more",
                     name, size[0], size[1], of, side, side);
}

/* The graph's first mistake, and whose examples it cannot take. */
static int check_graph(const struct graph *g, const char *of, struct error *error) {
    struct error why = {0};
    const int code = graph_check(g, &why);
    if (code == ERROR_USAGE && of) return error_set(error, code, "%s (%.200s)", why.words, of);
    return code == OK ? OK : error_set(error, code, "%s", why.words);
}

int network_open(struct network *network, const struct network_settings *settings, struct error *error) {
    *network = (struct network){.task = settings->task, .others = NONE, .shares = NONE};
    struct graph *g = &network->graph;
    const struct model *model = model_of(settings->model);
    struct shape input = {.rank = settings->shape.rank + 1, .dims = {settings->batch}};
    for (int i = 0; i < settings->shape.rank; i++) input.dims[i + 1] = settings->shape.dims[i];
    graph_open(g, settings->training, settings->seed);
    g->frozen = settings->freeze && strcmp(settings->freeze, "none") != 0 ? settings->freeze : NULL;
    network->x = graph_placeholder(g, "x", TYPE_FLOAT, input);
    network->labels = loss_labels(g, "labels", settings->task, settings->batch, settings->classes);
    const node x = settings->codes.columns > 0 ? codes_embed(g, network->x, &settings->codes) : network->x;
    network->logits = model->build(g, x, settings->classes, choice_settings(settings->model));
    if (settings->task == TASK_LABELS && g->error.code == OK && g->nodes[network->logits].op == OP_sigmoid)
        network->logits = g->nodes[network->logits].input[0]; /* the loss has it, as it has a softmax */
    network->losses = losses_of(network, settings, network->labels);
    if (settings->mixed) mix_losses(network, settings);
    network->loss = graph_reduce_mean(g, network->losses, ALL_AXES, false);
    network->outputs = loss_outputs(g, settings->task, network->logits);
    network->predicted = graph_argmax(g, network->logits, 1);
    network->step = graph_find(g, "step");
    RETURN_IF(check_graph(g, settings->of, error));
    if (g->frozen) RETURN_IF(layout_check_patterns(&g->layout, "--freeze", g->frozen, error));
    for (int i = 0; i < g->layout.count; i++)
        if (g->layout.ranges[i].shape.rank >= 2 && g->layout.ranges[i].decay == 0.0f)
            g->layout.ranges[i].decay = (float)settings->decay;
    store_spread_ranges(&g->layout, settings->shards, settings->shard_by);
    network->decayed_loss = network->loss;
    if (!settings->training) return OK;
    RETURN_IF(add_gradients(network, error));
    network->decayed_loss = add_decay(g, network->loss);
    return graph_check(g, error);
}

void network_close(struct network *network) {
    memory_free(network->gradients);
    graph_close(&network->graph);
    *network = (struct network){0};
}
