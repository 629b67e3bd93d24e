/* See onnx_names.h. */
#include "onnx_names.h"

#include <stdio.h>

#include "../base/memory.h"

/* Short enough for what is put behind it: ":turned". */
static int take(struct names *names, struct onnx_name *to, const char *name, struct error *error) {
    enum { BYTES = 64 };
    snprintf(to->text, BYTES, "%s", name);
    return names_take(names, to->text, BYTES, error);
}

/* "x" goes to the first layer, which is the input. */
static int take_ends(struct onnx_names *names, struct names *values, const struct layers_of *of,
                     struct error *error) {
    static const char *const outputs[TASKS][2] = {[TASK_CLASSES] = {"probabilities", "logits"},
                                                  [TASK_LABELS] = {"probabilities", "logits"},
                                                  [TASK_VALUES] = {"outputs"}};
    struct onnx_name name;
    for (int i = 0; i < 2 && outputs[of->task][i]; i++)
        RETURN_IF(take(values, &name, outputs[of->task][i], error));
    return take(values, &names->values[0], "x", error);
}

/* A weight that is a layer has one name as both. */
static int take_values(struct onnx_names *names, struct names *values, const struct layers_of *of,
                       struct error *error) {
    const struct layout *layout = &of->graph->layout;
    RETURN_IF(take_ends(names, values, of, error));
    for (int r = 0; r < layout->count; r++)
        RETURN_IF(take(values, &names->weights[r], layout->ranges[r].name, error));
    for (int i = 1; i < of->count; i++) {
        const struct layer_of *layer = &of->layers[i];
        if (layer->op == OP_variable)
            names->values[i] = names->weights[layer->weights[WEIGHT_KERNEL] - layout->ranges];
        else
            RETURN_IF(take(values, &names->values[i], layer->name, error));
    }
    return OK;
}

static int take_nodes(struct onnx_names *names, const struct layers_of *of, struct error *error) {
    struct onnx_name name;
    for (int i = 0; i < of->count; i++) RETURN_IF(take(&names->nodes, &name, of->layers[i].name, error));
    return OK;
}

int onnx_names_open(struct onnx_names *names, const struct layers_of *of, struct error *error) {
    struct names values = {0};
    *names = (struct onnx_names){0};
    int code = memory_array(&names->values, of->count, "names of values", error);
    if (code == OK) code = memory_array(&names->weights, of->graph->layout.count, "names of weights", error);
    if (code == OK) code = take_values(names, &values, of, error);
    if (code == OK) code = take_nodes(names, of, error);
    names_close(&values);
    return code;
}

struct onnx_name onnx_part(const struct layer_of *layer, const char *what) {
    struct onnx_name name;
    snprintf(name.text, sizeof name.text, "%s:%s", layer->name, what);
    return name;
}

void onnx_names_close(struct onnx_names *names) {
    memory_free(names->values);
    memory_free(names->weights);
    names_close(&names->nodes);
}
