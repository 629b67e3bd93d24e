/* See row_order.h. */
#include "row_order.h"

/* Operations that work on each number by itself. */
static const bool elementwise[OPS] = {
#define UNARY(name, ...) [OP_##name] = true,
#define BINARY(name, ...) [OP_##name] = true,
#include "../graph/ops.def"
};

static const struct shape *shape_at(const struct layers_of *of, int place) {
    return &of->graph->nodes[of->layers[place].at].shape;
}

/* 1 for what is no image, and for one whose order is the same. */
static int image_channels(const struct shape *shape) {
    return shape->rank == 4 && shape->dims[1] * shape->dims[2] > 1 ? shape->dims[3] : 1;
}

static int last_dim(const struct shape *shape) {
    return shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
}

static int conflict(const struct layer_of *layer, struct error *error) {
    return error_set(
        error, ERROR_FILE,
        "%s: found %s of an image's numbers, which PyTorch has in another order (channels first): "
        "--names=torch cannot say it",
        layer->name, op_name(layer->op));
}

/* Image to row, row to image, or neither; the channels stay what they are. */
static int reshape_order(int *channels, const struct layers_of *of, int place, struct error *error) {
    const struct layer_of *layer = &of->layers[place];
    const struct shape *y = shape_at(of, place);
    const int before = channels[layer->input[0]], after = y->rank == 2 ? before : image_channels(y);
    channels[place] = after;
    return before == after && (before == 1 || y->dims[0] == of->batch) ? OK : conflict(layer, error);
}

/* All operands as wide as the result have one order, and a weight among them gets it. */
static int elementwise_order(int *channels, const struct layers_of *of, int place, struct error *error) {
    const struct layer_of *layer = &of->layers[place];
    int order = 0;
    for (int pass = 0; pass < 2; pass++) /* values, then weights */
        for (int i = 0; i < layer->inputs; i++) {
            const int from = layer->input[i];
            const bool is_weight = of->layers[from].kind == FOUND_OPERATION && of->layers[from].inputs == 0;
            if (is_weight != (pass == 1) || last_dim(shape_at(of, from)) != last_dim(shape_at(of, place)))
                continue;
            if (is_weight && channels[from] == 0) channels[from] = order;
            if (order == 0) order = channels[from];
            if (channels[from] != order) return conflict(layer, error);
        }
    channels[place] = order > 0 ? order : 1;
    return OK;
}

static int operation_order(int *channels, const struct layers_of *of, int place, struct error *error) {
    const struct layer_of *layer = &of->layers[place];
    const struct shape *x = shape_at(of, layer->input[0]), *y = shape_at(of, place);
    const struct attributes *attributes = &of->graph->nodes[layer->computes].attributes;
    const bool reduces = layer->op == OP_reduce_mean || layer->op == OP_reduce_max;
    channels[place] = image_channels(y);
    if (y->rank == 4 || (reduces && (attributes->axis == ALL_AXES || attributes->axis == x->rank - 1)))
        return OK;
    if (elementwise[layer->op] || layer->op == OP_softmax)
        return elementwise_order(channels, of, place, error);
    for (int i = 0; i < layer->inputs; i++)
        if (channels[layer->input[i]] > 1) return conflict(layer, error);
    return OK;
}

int row_order(int *channels, const struct layers_of *of, struct error *error) {
    for (int place = 0; place < of->count; place++) {
        const struct layer_of *layer = &of->layers[place];
        channels[place] = image_channels(shape_at(of, place));
        if (layer->kind == FOUND_RESHAPE) RETURN_IF(reshape_order(channels, of, place, error));
        if (layer->kind == FOUND_BATCH_NORM || layer->kind == FOUND_LAYER_NORM)
            channels[place] = channels[layer->input[0]];
        if (layer->kind != FOUND_OPERATION) continue;
        if (layer->inputs == 0)
            channels[place] = 0;
        else
            RETURN_IF(operation_order(channels, of, place, error));
    }
    return channels[of->count - 1] > 1 ? conflict(&of->layers[of->count - 1], error) : OK;
}
