/* See graph_def.h.
 *
 * TensorBoard groups operations by the slashes in their names, and the graph names only its sources. So the
 * others are given names here: an operation belongs to the layer whose variable it uses or whose result it
 * goes on with; one of the backward pass to "gradients/" and the layer that it differentiates. */
#include "graph_def.h"

#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../device/groups.h"
#include "events.pb-c.h"

enum { GROUP_BYTES = 80, NAME_BYTES = 160, ATTRS = 4, WINDOW = 2 };
enum { PRODUCER = 22 }; /* the version of GraphDef that is written */
static const char gradients[] = "gradients", loss[] = "loss", decay[] = "decay";

/* One operation with all that its message points to. */
struct drawn {
    char group[GROUP_BYTES]; /* "dense1"; "": at the top */
    char name[NAME_BYTES], device[GROUP_NAME_BYTES];
    Tb__Node node;
    char *inputs[MAX_INPUTS];
    Tb__Node__Attr attrs[ATTRS], *attr_list[ATTRS];
    Tb__Node__Value values[ATTRS];
    Tb__Node__List lists[ATTRS];
    Tb__Shape shape, *shape_list[1];
    Tb__Shape__Dim dims[MAX_RANK], *dim_list[MAX_RANK];
    int64_t window[ATTRS][4];
};

/* --- names --- */

static bool is_source(enum op op) {
    return op == OP_placeholder || op == OP_constant || op == OP_variable;
}

static bool is_loss(enum op op) {
    return op == OP_cross_entropy || op == OP_softmax_cross_entropy || op == OP_sigmoid_cross_entropy;
}

/* "dense1/kernel" belongs to "dense1". */
static void group_of_name(char group[GROUP_BYTES], const char *name) {
    const char *slash = strrchr(name, '/');
    snprintf(group, GROUP_BYTES, "%.*s", slash ? (int)(slash - name) : 0, name);
}

/* The input whose group a forward operation joins: a variable, else the first that computes something. */
static node leading_input(const struct graph *graph, const struct node_info *info) {
    node first = NONE;
    for (int i = 0; i < info->inputs; i++) {
        const enum op op = graph->nodes[info->input[i]].op;
        if (op == OP_variable) return info->input[i];
        if (first == NONE && !is_source(op)) first = info->input[i];
    }
    return first;
}

static void choose_group(const struct graph *graph, struct drawn *drawn, node n, bool backward_began) {
    const struct node_info *info = &graph->nodes[n];
    char *group = drawn[n].group;
    group[0] = '\0';
    if (info->name[0] != '\0') {
        group_of_name(group, info->name);
    } else if (info->follows != NONE) {
        char layer[GROUP_BYTES];
        memcpy(layer, drawn[info->follows].group, sizeof layer);
        snprintf(group, GROUP_BYTES, "%s%s%.60s", gradients, layer[0] ? "/" : "", layer);
    } else if (is_loss(info->op)) {
        snprintf(group, GROUP_BYTES, "%s", loss);
    } else if (backward_began) { /* what is only looked at: the L2 of the weights */
        snprintf(group, GROUP_BYTES, "%s", decay);
    } else {
        const node input = leading_input(graph, info);
        if (input != NONE) memcpy(group, drawn[input].group, GROUP_BYTES);
    }
}

/* Constants belong where they are used first. */
static void choose_groups(const struct graph *graph, struct drawn *drawn) {
    bool backward_began = false;
    for (node n = 0; n < graph->count; n++) {
        backward_began = backward_began || graph->nodes[n].follows != NONE;
        choose_group(graph, drawn, n, backward_began);
    }
    for (node n = graph->count - 1; n >= 0; n--)
        for (int i = 0; i < graph->nodes[n].inputs; i++) {
            const node input = graph->nodes[n].input[i];
            if (graph->nodes[input].op == OP_constant)
                memcpy(drawn[input].group, drawn[n].group, GROUP_BYTES);
        }
}

static bool is_taken(const struct drawn *drawn, node before, const char *name) {
    for (node n = 0; n < before; n++)
        if (strcmp(drawn[n].name, name) == 0) return true;
    return false;
}

static void choose_name(const struct graph *graph, struct drawn *drawn, node n) {
    const struct node_info *info = &graph->nodes[n];
    const char *group = drawn[n].group, *slash = group[0] ? "/" : "";
    char *name = drawn[n].name;
    snprintf(name, NAME_BYTES, "%s", info->name);
    if (info->name[0] != '\0') return;
    snprintf(name, NAME_BYTES, "%s%s%s", group, slash, op_name(info->op));
    for (int more = 1; is_taken(drawn, n, name); more++)
        snprintf(name, NAME_BYTES, "%s%s%s_%d", group, slash, op_name(info->op), more);
}

/* Those that TensorBoard draws in ways of their own have TensorFlow's names. */
static const char *drawn_op(enum op op) {
    switch (op) {
    case OP_placeholder:
        return "Placeholder";
    case OP_constant:
        return "Const";
    case OP_variable:
        return "VariableV2";
    default:
        return op_name(op);
    }
}

/* --- attributes --- */

/* protobuf-c's texts are not const, though packing only reads them. */
static char *unconst(const char *text) {
    union {
        const char *from;
        char *to;
    } same = {.from = text};
    return same.to;
}

static Tb__Node__Value *add_attr(struct drawn *to, const char *key) {
    const size_t i = to->node.n_attr++;
    tb__node__attr__init(&to->attrs[i]);
    tb__node__value__init(&to->values[i]);
    to->attrs[i].key = unconst(key);
    to->attrs[i].value = &to->values[i];
    to->attr_list[i] = &to->attrs[i];
    return &to->values[i];
}

static void add_type(struct drawn *to, enum type type) {
    static const int types[] = {[TYPE_FLOAT] = 1, [TYPE_INT] = 3, [TYPE_BOOL] = 10, [TYPE_BF16] = 14};
    Tb__Node__Value *value = add_attr(to, "dtype");
    value->has_type = 1;
    value->type = types[type];
}

static void add_shape(struct drawn *to, const struct shape *shape) {
    Tb__Node__Value *value = add_attr(to, "_output_shapes");
    Tb__Node__List *list = &to->lists[to->node.n_attr - 1];
    tb__node__list__init(list);
    tb__shape__init(&to->shape);
    for (int i = 0; i < shape->rank; i++) {
        tb__shape__dim__init(&to->dims[i]);
        to->dims[i].has_size = 1;
        to->dims[i].size = shape->dims[i];
        to->dim_list[i] = &to->dims[i];
    }
    to->shape.n_dim = (size_t)shape->rank;
    to->shape.dim = to->dim_list;
    to->shape_list[0] = &to->shape;
    list->n_shape = 1;
    list->shape = to->shape_list;
    value->list = list;
}

/* Rows and columns, as TensorFlow has them: over [batch, rows, columns, channels]. */
static void add_window(struct drawn *to, const char *key, const int size[WINDOW]) {
    Tb__Node__Value *value = add_attr(to, key);
    const size_t i = to->node.n_attr - 1;
    Tb__Node__List *list = &to->lists[i];
    const int64_t all[] = {1, size[0], size[1], 1};
    memcpy(to->window[i], all, sizeof all);
    tb__node__list__init(list);
    list->n_i = 4;
    list->i = to->window[i];
    value->list = list;
}

static bool is_pooling(enum op op) {
    return op == OP_maxpool || op == OP_maxpool_grad || op == OP_avgpool || op == OP_avgpool_grad;
}

static void draw(const struct graph *graph, struct drawn *drawn, node n, const char *device) {
    const struct node_info *info = &graph->nodes[n];
    struct drawn *to = &drawn[n];
    tb__node__init(&to->node);
    snprintf(to->device, sizeof to->device, "%s", device);
    to->node.name = to->name;
    to->node.op = unconst(drawn_op(info->op));
    to->node.device = to->device;
    to->node.n_input = (size_t)info->inputs;
    to->node.input = to->inputs;
    for (int i = 0; i < info->inputs; i++) to->inputs[i] = drawn[info->input[i]].name;
    to->node.attr = to->attr_list;
    add_type(to, info->type);
    add_shape(to, &info->shape);
    if (is_pooling(info->op)) add_window(to, "ksize", info->attributes.window);
    if (is_pooling(info->op) || info->op == OP_conv2d) add_window(to, "strides", info->attributes.stride);
}

static int pack(const struct graph *graph, struct drawn *drawn, Tb__Node **list, unsigned char **bytes,
                size_t *count, struct error *error) {
    Tb__GraphDef def = TB__GRAPH_DEF__INIT;
    Tb__GraphDef__Versions versions = TB__GRAPH_DEF__VERSIONS__INIT;
    for (node n = 0; n < graph->count; n++) list[n] = &drawn[n].node;
    versions.has_producer = 1;
    versions.producer = PRODUCER;
    def.n_node = (size_t)graph->count;
    def.node = list;
    def.versions = &versions;
    *count = tb__graph_def__get_packed_size(&def);
    RETURN_IF(memory_array(bytes, *count, "the drawing of the graph", error));
    tb__graph_def__pack(&def, *bytes);
    return OK;
}

int graph_def_pack(const struct graph *graph, const char *device, unsigned char **bytes, size_t *count,
                   struct error *error) {
    struct drawn *drawn = NULL;
    Tb__Node **list = NULL;
    int code = memory_array(&drawn, graph->count, "the drawing of the graph", error);
    if (code == OK) code = memory_array(&list, graph->count, "the drawing of the graph", error);
    if (code == OK) {
        choose_groups(graph, drawn);
        for (node n = 0; n < graph->count; n++) choose_name(graph, drawn, n);
        for (node n = 0; n < graph->count; n++) draw(graph, drawn, n, device);
        code = pack(graph, drawn, list, bytes, count, error);
    }
    memory_free(list);
    memory_free(drawn);
    return code;
}
