/* Which device each node lives on; partition.h has the rules.
 *
 * One pass in the graph's order. A node that soft placement moves is remembered with the device that it
 * was meant for, so that the nodes that follow it stay there. */
#include <string.h>

#include "../base/memory.h"
#include "passes.h"
#include "split.h"

/* "dense1=cpu:0" */
struct layer {
    char name[64];
    int device;
};

struct assigner {
    struct partition *partition;
    struct program *whole;
    const struct placement *placement;
    int *wanted;          /* [graph->count] the device of each node before soft placement; NONE: none yet */
    struct layer *layers; /* [layer_count] */
    int layer_count;
    int begun; /* the device of the layer that the pass is in, or NONE */
};

/* --- layers --- */

static int find_device(const struct partition *partition, const char *name, size_t length) {
    for (int i = 0; i < partition->count; i++)
        if (strlen(partition->devices[i].name) == length &&
            memcmp(partition->devices[i].name, name, length) == 0)
            return i;
    return NONE;
}

/* item[length] is "dense1=cpu:0". */
static int add_layer(struct assigner *assigner, const char *item, size_t length, struct error *error) {
    const char *equals = memchr(item, '=', length);
    struct layer *layer = &assigner->layers[assigner->layer_count++];
    const size_t name_length = equals ? (size_t)(equals - item) : 0;
    if (name_length == 0 || name_length >= sizeof layer->name)
        return error_set(error, ERROR_USAGE, "placement: '%.*s', expected LAYER=DEVICE, as in dense1=cpu:0",
                         (int)length, item);
    memcpy(layer->name, item, name_length);
    layer->device = find_device(assigner->partition, equals + 1, length - name_length - 1);
    if (layer->device == NONE)
        return error_set(error, ERROR_USAGE, "placement: '%.*s' names a device that is not in use",
                         (int)length, item);
    const struct layout *layout = &assigner->whole->graph->layout;
    for (int i = 0; i < layout->count; i++)
        if (layout_matches(layer->name, layout->ranges[i].name)) return OK;
    return error_set(error, ERROR_USAGE, "placement: '%.*s', but the model has no variables in a layer '%s'",
                     (int)length, item, layer->name);
}

static int read_layers(struct assigner *assigner, struct error *error) {
    const char *text = assigner->placement->layers;
    if (!text) return OK;
    size_t count = 1;
    for (const char *c = text; *c; c++) count += *c == ',';
    RETURN_IF(memory_array(&assigner->layers, count, "layers", error));
    for (;;) {
        const size_t length = strcspn(text, ",");
        RETURN_IF(add_layer(assigner, text, length, error));
        if (text[length] == '\0') return OK;
        text += length + 1;
    }
}

/* The layer that begins with a reader of this variable, if any does. */
static void begin_layer(struct assigner *assigner, const char *variable) {
    for (int i = 0; i < assigner->layer_count; i++)
        if (layout_matches(assigner->layers[i].name, variable)) assigner->begun = assigner->layers[i].device;
}

/* --- one node --- */

static int pinned(const struct assigner *assigner, node n, int *device, struct error *error) {
    const struct placement *placement = assigner->placement;
    *device = placement->pin ? placement->pin(placement->argument, n) : NONE;
    if (*device >= NONE && *device < placement->count) return OK;
    return error_set(error, ERROR_USAGE, "placement: node %d is pinned to device %d of %d", n, *device,
                     placement->count);
}

static int follow(struct assigner *assigner, const struct node_info *info) {
    if (info->follows != NONE && assigner->wanted[info->follows] != NONE)
        return assigner->wanted[info->follows];
    const struct node_info *nodes = assigner->whole->graph->nodes;
    for (int i = 0; i < info->inputs && info->follows == NONE; i++)
        if (nodes[info->input[i]].op == OP_variable) begin_layer(assigner, nodes[info->input[i]].name);
    if (assigner->begun != NONE && info->follows == NONE) return assigner->begun;
    for (int i = 0; i < info->inputs; i++)
        if (assigner->wanted[info->input[i]] != NONE) return assigner->wanted[info->input[i]];
    return 0;
}

static bool is_cpu(const struct partition *partition, int device) {
    return strcmp(partition->devices[device].backend->name, "cpu") == 0;
}

static int first_cpu(const struct partition *partition) {
    for (int i = 0; i < partition->count; i++)
        if (is_cpu(partition, i)) return i;
    return NONE;
}

static int report(struct partition *partition, enum op op, int from, int to, struct error *error) {
    for (int i = 0; i < partition->move_count; i++)
        if (partition->moves[i].op == op && partition->moves[i].from == from) return OK;
    const int count = partition->move_count;
    RETURN_IF(memory_grow(&partition->moves, count, count + 1, "moved operations", error));
    struct move *move = &partition->moves[partition->move_count++];
    *move = (struct move){.op = op, .from = from};
    snprintf(move->words, sizeof move->words, "%s: %s has no kernel for it, it runs on %s", op_name(op),
             partition->devices[from].name, partition->devices[to].name);
    return OK;
}

/* Sets the device of node n to the device wanted, or to the first CPU device when that one has no kernel. */
static int settle(struct assigner *assigner, node n, int device, struct error *error) {
    struct partition *partition = assigner->partition;
    const enum op op = assigner->whole->values[n].info.op;
    assigner->wanted[n] = partition->part[n] = device;
    if (is_cpu(partition, device)) return OK; /* it has the reference kernels */
    assigner->whole->device = &partition->devices[device];
    const int code = program_takes(assigner->whole, n, error);
    if (code != KERNEL_DECLINED) return code;
    const int cpu = first_cpu(partition);
    if (!assigner->placement->soft || cpu == NONE || is_assign(op)) /* an assign cannot leave its variable */
        return program_no_kernel(assigner->whole, n, error);
    partition->part[n] = cpu;
    return report(partition, op, device, cpu, error);
}

/* An assign goes to its variable, or the variable to the assign when it is the first to need it. */
static int place_assign(struct assigner *assigner, node n, int pin, int *device, struct error *error) {
    const struct node_info *info = &assigner->whole->values[n].info;
    const int there = assigner->partition->part[info->input[0]];
    if (pin != NONE && there != NONE && pin != there)
        return error_set(error, ERROR_USAGE, "placement: %s of %s is pinned to %s, its variable is on %s",
                         op_name(info->op), assigner->whole->graph->nodes[info->input[0]].name,
                         assigner->partition->devices[pin].name, assigner->partition->devices[there].name);
    if (there != NONE) *device = there;
    return OK;
}

static int place_node(struct assigner *assigner, node n, struct error *error) {
    struct partition *partition = assigner->partition;
    const struct node_info *info = &assigner->whole->values[n].info;
    int pin = NONE;
    RETURN_IF(pinned(assigner, n, &pin, error));
    if (is_source(info->op)) {
        assigner->wanted[n] = partition->part[n] = info->op == OP_constant ? NONE : pin;
        return OK;
    }
    const int followed = follow(assigner, info); /* pinned or not, it may begin a layer */
    int device = pin != NONE ? pin : followed;
    if (is_assign(info->op)) RETURN_IF(place_assign(assigner, n, pin, &device, error));
    RETURN_IF(settle(assigner, n, device, error));
    for (int i = 0; i < info->inputs; i++) {
        const node source = info->input[i];
        if (partition->part[source] != NONE || assigner->whole->values[source].info.op == OP_constant)
            continue;
        assigner->wanted[source] = device;
        partition->part[source] = partition->part[n];
    }
    return OK;
}

static int assign_all(struct assigner *assigner, struct error *error) {
    struct program *whole = assigner->whole;
    RETURN_IF(read_layers(assigner, error));
    for (node n = 0; n < whole->count; n++)
        if (whole->values[n].kept) RETURN_IF(place_node(assigner, n, error));
    for (node n = 0; n < whole->count; n++) /* fetched, and read by nobody */
        if (whole->values[n].kept && assigner->partition->part[n] == NONE &&
            whole->values[n].info.op != OP_constant)
            assigner->partition->part[n] = 0;
    return OK;
}

int partition_place(struct partition *partition, struct program *whole, const struct placement *placement,
                    struct error *error) {
    struct assigner assigner = {
        .partition = partition, .whole = whole, .placement = placement, .begun = NONE};
    const size_t count = (size_t)whole->count;
    int code = memory_array(&assigner.wanted, count, "wanted devices", error);
    for (size_t n = 0; n < count && code == OK; n++) assigner.wanted[n] = partition->part[n] = NONE;
    if (code == OK) code = assign_all(&assigner, error);
    memory_free(assigner.layers);
    memory_free(assigner.wanted);
    return code;
}
