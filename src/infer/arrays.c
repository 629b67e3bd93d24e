/* See arrays.h. */
#include "arrays.h"

#include <string.h>

#include "../base/memory.h"

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

/* The image that a dense layer's inputs were before they were one row; NULL: they were none. */
static const struct shape *image_before(const struct layers_of *of, const struct layer_of *layer) {
    const struct layer_of *before = &of->layers[layer->input[0]];
    while (before->inputs == 1 && before->kind == FOUND_OPERATION)
        before = &of->layers[before->input[0]]; /* an activation */
    if (before->kind != FOUND_RESHAPE) return NULL;
    const struct shape *shape = &of->graph->nodes[of->layers[before->input[0]].at].shape;
    return shape->rank == 4 ? shape : NULL;
}

/* Kernels and dense matrices; the others are the same there. */
static int turn_kernel(const struct layers_of *of, const struct layer_of *layer, struct array *array,
                       struct error *error) {
    const struct shape shape = array->shape;
    const int *dims = shape.dims;
    if (layer->kind != FOUND_CONV && layer->kind != FOUND_DENSE) return OK;
    RETURN_IF(memory_array(&array->own, shape_count(&shape), "turned weights", error));
    if (layer->kind == FOUND_CONV) {
        arrays_turn(array->own, array->values, dims[0] * dims[1], dims[2], dims[3]);
        array->shape = SHAPE(dims[3], dims[2], dims[0], dims[1]);
    } else {
        const struct shape *image = image_before(of, layer);
        const int channels = image ? image->dims[3] : 1;
        arrays_turn(array->own, array->values, dims[0] / channels, channels, dims[1]);
        array->shape = SHAPE(dims[1], dims[0]);
    }
    array->values = array->own;
    return OK;
}

static int add_array(struct arrays *arrays, const struct exported *exported, const struct layer_of *layer,
                     int weight, struct error *error) {
    const struct range *range = layer->weights[weight];
    struct array *array = &arrays->arrays[arrays->count++];
    *array = (struct array){.shape = range->shape, .values = exported->restored->weights + range->begin};
    snprintf(array->name, sizeof array->name, "%s", range->name);
    if (!exported->torch) return OK;
    if (layer->kind != FOUND_OPERATION)
        snprintf(array->name, sizeof array->name, "%s.%s", layer->name, torch_names[weight]);
    for (char *slash; (slash = strchr(array->name, '/')) != NULL;) *slash = '.';
    return weight == WEIGHT_KERNEL ? turn_kernel(exported->layers, layer, array, error) : OK;
}

int arrays_open(struct arrays *arrays, const struct exported *exported, struct error *error) {
    const struct layers_of *of = exported->layers;
    *arrays = (struct arrays){0};
    RETURN_IF(memory_array(&arrays->arrays, of->graph->layout.count, "the weights as arrays", error));
    for (int l = 0; l < of->count; l++)
        for (int w = 0; w < FOUND_WEIGHTS; w++)
            if (of->layers[l].weights[w]) RETURN_IF(add_array(arrays, exported, &of->layers[l], w, error));
    return OK;
}

void arrays_close(struct arrays *arrays) {
    for (int i = 0; i < arrays->count; i++) memory_free(arrays->arrays[i].own);
    memory_free(arrays->arrays);
    *arrays = (struct arrays){0};
}
