/* From the nodes of an ONNX graph to a list of layers: what the network takes, node by node, and what it ends
 * in. See onnx_layers.h. */
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "onnx_layers.h"

/* --- what the network takes --- */

enum { FLOATS = 1, INTEGERS = 7, HALVES = 10 };

/* What ONNX calls a type of elements. */
static const char *element_name(int type) {
    static const char *const names[] = {"no type", "float32", "uint8",   "int8",    "uint16",  "int16",
                                        "int32",   "int64",   "string",  "bool",    "float16", "float64",
                                        "uint32",  "uint64",  "complex", "complex", "bfloat16"};
    return type >= 0 && type < (int)(sizeof names / sizeof *names) ? names[type] : "another type";
}

/* The shape of the input as the file has it, without the batch. */
static int read_input_shape(struct onnx_graph *graph, struct shape *theirs) {
    enum { LENGTH_MOST = 1000000 };
    const Onnx__ValueInfoProto *input = graph->input;
    const Onnx__TypeProto__Tensor *tensor = input->type ? input->type->tensor_type : NULL;
    const Onnx__TensorShapeProto *shape = tensor ? tensor->shape : NULL;
    const int type = tensor ? tensor->elem_type : 0;
    char words[160];
    struct text text = text_into(words, sizeof words);
    bool known = shape && (type == FLOATS || type == HALVES || type == INTEGERS);
    *theirs = (struct shape){0};
    if (shape && !known) text_add(&text, "%s of ", element_name(type));
    text_add(&text, shape ? "[" : "no shape");
    for (size_t i = 0; shape && i < shape->n_dim && i < 8; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
        const int64_t length = dim->dim_value;
        if (i > 0) text_add(&text, ", ");
        if (length > 0) text_add(&text, "%lld", (long long)length);
        if (length <= 0) text_add(&text, "%.20s", dim->dim_param ? dim->dim_param : "?");
        if (i == 0) graph->batch = length > 0 ? length : 0;
        if (i > 0 && theirs->rank < MAX_RANK)
            theirs->dims[theirs->rank++] = length > 0 && length <= LENGTH_MOST ? (int)length : 0;
    }
    if (shape) text_add(&text, "]");
    for (int i = 0; i < theirs->rank; i++) known = known && theirs->dims[i] > 0;
    if (known && theirs->rank >= 1 && theirs->rank <= 3 && shape->n_dim <= 4) return OK;
    return error_set(
        graph->error, ERROR_FILE,
        "%s: input %.80s: found %s, expected floats or int64 of [batch, numbers] or [batch, channels, rows, "
        "columns], each known but the batch",
        graph->path, input->name, words);
}

/* Whether the images of the input have their channels last: if a node turns them, if this program wrote the
 * file, or else if the last size is that of colours and the first is not. */
static bool channels_are_last(const struct onnx_graph *graph, const Onnx__ModelProto *model,
                              const struct shape *theirs) {
    static const int64_t to_first[4] = {0, 3, 1, 2};
    const char *producer = model->producer_name ? model->producer_name : "";
    if (strcmp(producer, "trainer") == 0) return true;
    for (size_t i = 0; i < graph->proto->n_node; i++) {
        const onnx_op *op = graph->proto->node[i];
        const char *operation = op->op_type ? op->op_type : "";
        int64_t order[4] = {0};
        struct onnx_graph quiet = *graph;
        struct error ignored = {0};
        quiet.error = &ignored;
        if (strcmp(onnx_input_name(op, 0), graph->input->name) != 0) continue;
        if (strcmp(operation, "Transpose") == 0)
            return onnx_ints_of(&quiet, op, "perm", order, 4) == OK &&
                   memcmp(order, to_first, sizeof order) == 0;
        if (strcmp(operation, "Conv") == 0 || strcmp(operation, "BatchNormalization") == 0 ||
            strstr(operation, "Pool"))
            return false;
    }
    const int first = theirs->dims[0], last = theirs->dims[2];
    return (last == 1 || last == 3 || last == 4) && first != 1 && first != 3 && first != 4;
}

static int lay_input(struct onnx_reading *reading, const Onnx__ModelProto *model) {
    struct onnx_graph *graph = &reading->graph;
    struct onnx_flow flow = {.layer = LAYER_INPUT};
    struct onnx_value *value = onnx_value(graph, graph->input->name);
    RETURN_IF(read_input_shape(graph, &flow.theirs));
    const int *dims = flow.theirs.dims;
    flow.ours = flow.theirs;
    if (flow.theirs.rank == 2) flow.ours = SHAPE(dims[0], dims[1], 1);
    if (flow.theirs.rank == 3 && !channels_are_last(graph, model, &flow.theirs))
        onnx_lay_image(&flow, dims[1], dims[2], dims[0]);
    reading->file->input = flow.ours;
    struct option_sizes *input = &reading->file->list.input;
    input->count = flow.ours.rank;
    memcpy(input->at, flow.ours.dims, sizeof flow.ours.dims);
    value->flow = flow;
    value->state = ONNX_FLOW;
    return OK;
}

/* --- node by node --- */

static int read_node(struct onnx_reading *reading, size_t i) {
    struct onnx_graph *graph = &reading->graph;
    const onnx_op *op = graph->proto->node[i];
    if (!graph->needed[i] || reading->inside[i]) return OK;
    if (!op->op_type) return onnx_wrong(graph, op, "found no operator");
    if (reading->patterns[i].kind != LAYER_NONE)
        return onnx_translate_pattern(reading, op, &reading->patterns[i]);
    return onnx_folds(graph, op) ? onnx_fold(graph, op) : onnx_translate(reading, op);
}

/* --- what it ends in --- */

/* The layer that gives result i; a softmax of a row at the end is the loss's, so it is what that takes. */
static int end_of(const struct onnx_reading *reading, size_t i, int *layer, const struct onnx_value **value) {
    const struct onnx_graph *graph = &reading->graph;
    *value = onnx_value(graph, graph->proto->output[i]->name);
    if ((*value)->state != ONNX_FLOW || (*value)->flow.layer < 0)
        return error_set(graph->error, ERROR_FILE, "%s: output %.80s: no layer makes it", graph->path,
                         (*value)->name);
    const struct layer *last = &reading->file->list.layers[(*value)->flow.layer];
    const bool is_loss = last->kind == LAYER_softmax && (*value)->flow.ours.rank == 1;
    *layer = is_loss ? last->input[0] : (*value)->flow.layer;
    return OK;
}

/* The one that all results come to; *last of the list, and what it gives is a row. */
static int end_network(struct onnx_reading *reading) {
    const struct onnx_graph *graph = &reading->graph;
    struct layer_list *list = &reading->file->list;
    const struct onnx_value *value = NULL, *other = NULL;
    int layer = 0, other_layer = 0;
    char words[100];
    RETURN_IF(end_of(reading, 0, &layer, &value));
    for (size_t i = 1; i < graph->proto->n_output; i++) {
        RETURN_IF(end_of(reading, i, &other_layer, &other));
        if (other_layer != layer)
            return error_set(graph->error, ERROR_FILE,
                             "%s: found the outputs %.80s and %.80s, expected one output", graph->path,
                             value->name, other->name);
    }
    while (list->count > layer + 1 && list->layers[list->count - 1].kind == LAYER_softmax) list->count--;
    struct onnx_flow flow = value->flow;
    flow.layer = layer;
    const size_t numbers = shape_count(&flow.theirs);
    if (layer != list->count - 1 || flow.image.rank == 3 || (size_t)flow.theirs.dims[0] != numbers)
        return error_set(graph->error, ERROR_FILE,
                         "%s: output %.80s: found %s per example, expected one number per class", graph->path,
                         value->name, shape_text(&flow.theirs, words, sizeof words));
    RETURN_IF(onnx_as_row(reading, graph->proto->node[graph->proto->n_node - 1], &flow));
    reading->file->classes = (int)numbers;
    return OK;
}

/* Names for what layers refer to from afar: "relu3". */
static void name_layers(struct layer_list *list) {
    int made[LAYER_KINDS] = {0};
    bool far[LAYERS_MOST] = {false};
    for (int i = 0; i < list->count; i++)
        for (int k = 0; k < list->layers[i].inputs; k++)
            if (list->layers[i].input[k] >= 0 && list->layers[i].input[k] != i - 1)
                far[list->layers[i].input[k]] = true;
    for (int i = 0; i < list->count; i++) {
        struct layer *layer = &list->layers[i];
        char name[LAYER_NAME_BYTES];
        snprintf(name, sizeof name, "%s%d", layer_rows[layer->kind].name, ++made[layer->kind]);
        if (far[i] && !layer->name[0]) network_file_name(list, layer, name);
    }
}

static int read_all(struct onnx_reading *reading, const Onnx__ModelProto *model) {
    const size_t nodes = reading->graph.proto->n_node;
    struct error *error = reading->graph.error;
    RETURN_IF(memory_array(&reading->patterns, nodes, "an ONNX graph", error));
    RETURN_IF(memory_array(&reading->inside, nodes, "an ONNX graph", error));
    RETURN_IF(lay_input(reading, model));
    RETURN_IF(onnx_find_patterns(reading));
    for (size_t i = 0; i < nodes; i++) RETURN_IF(read_node(reading, i));
    RETURN_IF(end_network(reading));
    name_layers(&reading->file->list);
    return layers_check(&reading->file->list, reading->graph.path, ERROR_FILE, error);
}

int onnx_layers_read(struct network_file *file, const Onnx__ModelProto *model, const char *path,
                     size_t length, struct error *error) {
    struct onnx_reading reading = {.file = file, .length = length};
    int code = onnx_graph_open(&reading.graph, model, path, error);
    if (code == OK) code = read_all(&reading, model);
    memory_free(reading.inside);
    memory_free(reading.patterns);
    onnx_graph_close(&reading.graph);
    return code;
}
