/* See placeable.h. The pass that gives nodes their devices (assign.c) is run once with a device of its own
 * for every layer: what a node gets is its layer. */
#include "placeable.h"

#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "passes.h"
#include "split.h"

/* "conv1" of "conv1/kernel"; false: a placement cannot name it. */
static bool layer_of(const char *variable, char name[64]) {
    const char *slash = strrchr(variable, '/');
    snprintf(name, 64, "%.*s", slash ? (int)(slash - variable) : (int)strlen(variable), variable);
    return name[0] != '\0' && !strpbrk(name, ",=*?[\\");
}

static bool is_listed(const struct placeable *placeable, const char *name) {
    for (int l = 0; l < placeable->count; l++)
        if (strcmp(placeable->name[l], name) == 0) return true;
    return false;
}

static int list_layers(struct placeable *placeable, const struct program *whole, struct error *error) {
    for (node n = 0; n < whole->count; n++) {
        char name[64];
        if (!whole->values[n].kept || whole->values[n].info.op != OP_variable) continue;
        if (!layer_of(whole->values[n].info.name, name) || is_listed(placeable, name)) continue;
        RETURN_IF(
            memory_grow(&placeable->name, placeable->count, placeable->count + 1, "layers to place", error));
        memcpy(placeable->name[placeable->count++], name, sizeof name);
    }
    return OK;
}

/* Device 0 is the first one, device l + 1 that of layer l. */
static int place_each(struct placeable *placeable, struct program *whole, struct device *devices,
                      struct placement *placement, struct error *error) {
    struct text list = text_growing(error);
    for (int d = 0; d <= placeable->count; d++) {
        devices[d] = device_processor(); /* which has a kernel for every operation */
        snprintf(devices[d].name, sizeof devices[d].name, "%d", d);
        if (d > 0) text_item(&list, ",", "%s=%d", placeable->name[d - 1], d);
    }
    placement->devices = devices;
    placement->count = placeable->count + 1;
    placement->layers = placeable->count > 0 ? list.bytes : NULL;
    struct partition partition = {
        .graph = whole->graph, .devices = devices, .count = placement->count, .part = placeable->layer};
    int code = text_end(&list);
    if (code == OK) code = partition_place(&partition, whole, placement, error);
    memory_free(list.bytes);
    return code;
}

static int find(struct placeable *placeable, struct program *whole, struct placement *placement,
                struct error *error) {
    struct device *devices = NULL;
    RETURN_IF(list_layers(placeable, whole, error));
    RETURN_IF(memory_array(&devices, placeable->count + 1, "layers to place", error));
    RETURN_IF(memory_array(&placeable->layer, whole->count, "layers to place", error));
    const int code = place_each(placeable, whole, devices, placement, error);
    memory_free(devices);
    for (node n = 0; n < whole->count && code == OK; n++)
        placeable->layer[n] = placeable->layer[n] == NONE ? PLACEABLE_NOWHERE : placeable->layer[n] - 1;
    return code;
}

int placeable_find(struct placeable *placeable, const struct graph *graph, const node *fetches, int count,
                   int (*pin)(const void *argument, node n), const void *argument, struct error *error) {
    const struct device processor = device_processor();
    struct placement placement = {.pin = pin, .argument = argument};
    struct program *whole = NULL; /* never run: only pruned */
    *placeable = (struct placeable){0};
    RETURN_IF(program_check_fetches(graph, fetches, count, error));
    RETURN_IF(program_open(&whole, graph, &processor, error));
    whole->soft = false;
    program_prune(whole, fetches, count);
    const int code = find(placeable, whole, &placement, error);
    program_close(whole);
    return code;
}

void placeable_free(struct placeable *placeable) {
    memory_free(placeable->name);
    memory_free(placeable->layer);
    *placeable = (struct placeable){0};
}
