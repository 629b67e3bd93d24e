/* See arrays.h. */
#include "arrays.h"

#include <string.h>

#include "../base/memory.h"
#include "row_order.h"

static const char *const torch_names[FOUND_WEIGHTS] = {
    [WEIGHT_KERNEL] = "weight", [WEIGHT_BIAS] = "bias",         [WEIGHT_SCALE] = "weight",
    [WEIGHT_SHIFT] = "bias",    [WEIGHT_MEAN] = "running_mean", [WEIGHT_VARIANCE] = "running_var"};

void arrays_turn(float *to, const float *from, int places, int in, int out) {
    for (int p = 0; p < places; p++)
        for (int i = 0; i < in; i++)
            for (int o = 0; o < out; o++)
                to[((size_t)o * (size_t)in + (size_t)i) * (size_t)places + (size_t)p] =
                    from[((size_t)p * (size_t)in + (size_t)i) * (size_t)out + (size_t)o];
}

/* Kernels, dense matrices, and vectors along a row that was an image; the others are the same there.
 * channels: see row_order. */
static int turn_weights(const struct layers_of *of, const struct layer_of *layer, const int *channels,
                        struct array *array, struct error *error) {
    const struct shape shape = array->shape;
    const int *dims = shape.dims, in = channels[layer->input[0]], out = channels[layer - of->layers];
    const int count = (int)shape_count(&shape);
    const bool conv = (layer->kind == FOUND_CONV || layer->kind == FOUND_DEPTHWISE) && shape.rank == 4;
    const bool dense = layer->kind == FOUND_DENSE && shape.rank == 2;
    if (!conv && !dense && (out <= 1 || count <= out)) return OK;
    RETURN_IF(memory_array(&array->own, count, "turned weights", error));
    if (conv) {
        const int *kernel = layers_of_kernel(of, layer)->dims;
        arrays_turn(array->own, array->values, kernel[0] * kernel[1], kernel[2], kernel[3]);
        array->shape = SHAPE(kernel[3], kernel[2], kernel[0], kernel[1]);
    } else if (dense) {
        arrays_turn(array->own, array->values, dims[0] / in, in, dims[1]);
        array->shape = SHAPE(dims[1], dims[0]);
    } else {
        arrays_turn(array->own, array->values, count / out, out, 1);
    }
    array->values = array->own;
    return OK;
}

static int add_array(struct arrays *arrays, const struct exported *exported, const struct layer_of *layer,
                     int weight, const int *channels, struct error *error) {
    const struct range *range = layer->weights[weight];
    struct array *array = &arrays->arrays[arrays->count++];
    *array = (struct array){.shape = range->shape, .values = exported->restored->weights + range->begin};
    snprintf(array->name, sizeof array->name, "%s", range->name);
    if (!exported->torch) return OK;
    if (layer->kind != FOUND_OPERATION)
        snprintf(array->name, sizeof array->name, "%s.%s", layer->name, torch_names[weight]);
    for (char *slash; (slash = strchr(array->name, '/')) != NULL;) *slash = '.';
    return turn_weights(exported->layers, layer, channels, array, error);
}

int arrays_open(struct arrays *arrays, const struct exported *exported, struct error *error) {
    const struct layers_of *of = exported->layers;
    int *channels = NULL;
    *arrays = (struct arrays){0};
    int code = memory_array(&arrays->arrays, of->graph->layout.count, "the weights as arrays", error);
    if (code == OK && exported->torch) code = memory_array(&channels, of->count, "the order of rows", error);
    if (code == OK && exported->torch) code = row_order(channels, of, error);
    for (int l = 0; code == OK && l < of->count; l++)
        for (int w = 0; code == OK && w < FOUND_WEIGHTS; w++)
            if (of->layers[l].weights[w])
                code = add_array(arrays, exported, &of->layers[l], w, channels, error);
    memory_free(channels);
    return code;
}

void arrays_close(struct arrays *arrays) {
    for (int i = 0; i < arrays->count; i++) memory_free(arrays->arrays[i].own);
    memory_free(arrays->arrays);
    *arrays = (struct arrays){0};
}
