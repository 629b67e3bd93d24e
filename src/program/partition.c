/* Partitions: compiling, pass by pass: prune the whole graph, give each node a device, split, and compile the
 * parts like any other graph. */
#include "partition.h"

#include "../base/memory.h"
#include "passes.h"
#include "split.h"
#include "transfer.h"

static int compile_part(struct partition *partition, int i, struct error *error) {
    struct part *part = &partition->parts[i];
    const struct device *device = &partition->devices[i];
    device->backend->enter(device);
    return program_compile(&part->program, &part->graph, part->fetches, part->fetch_count, device, error);
}

/* The last node of the forward half that a part computes; NONE: it has nothing but sources there. */
static node last_forward(const struct partition *partition, int part) {
    node n = partition->backward - 1;
    while (n >= 0 && (partition->part[n] != part || is_source(partition->graph->nodes[n].op))) n--;
    return n;
}

static void order_stages(struct partition *partition) {
    for (int i = 0; i < partition->count; i++) {
        const node last = last_forward(partition, i);
        for (int other = 0; other < partition->count; other++) {
            const node before = last_forward(partition, other);
            partition->parts[i].stage += before < last || (before == last && other < i);
        }
    }
}

static int compile(struct partition *partition, struct program *whole, const node *fetches, int count,
                   const struct placement *placement, struct error *error) {
    program_prune(whole, fetches, count);
    RETURN_IF(partition_place(partition, whole, placement, error));
    order_stages(partition);
    RETURN_IF(partition_split(partition, whole, error));
    for (int i = 0; i < partition->count; i++) RETURN_IF(compile_part(partition, i, error));
    return OK;
}

static int open_partition(struct partition **out, const struct graph *graph,
                          const struct placement *placement, struct error *error) {
    RETURN_IF(memory_array(out, 1, "partition", error));
    struct partition *partition = *out;
    const size_t devices = (size_t)placement->count, nodes = (size_t)graph->count;
    partition->graph = graph;
    partition->devices = placement->devices;
    partition->count = placement->count;
    partition->backward = placement->backward > 0 ? placement->backward : graph->count;
    RETURN_IF(memory_array(&partition->parts, devices, "parts", error));
    RETURN_IF(memory_array(&partition->part, nodes, "devices of nodes", error));
    return memory_array(&partition->local, devices * nodes, "nodes of parts", error);
}

int partition_compile(struct partition **out, const struct graph *graph, const node *fetches, int count,
                      const struct placement *placement, struct error *error) {
    *out = NULL;
    if (placement->count < 1)
        return error_set(error, ERROR_USAGE, "placement: no devices, expected one or more");
    RETURN_IF(program_check_fetches(graph, fetches, count, error));
    struct partition *partition = NULL;
    struct program *whole = NULL; /* never run: only pruned, and asked which kernels there are */
    int code = open_partition(&partition, graph, placement, error);
    if (code == OK) code = program_open(&whole, graph, &placement->devices[0], error);
    if (code == OK) whole->soft = false; /* it says itself what goes where */
    if (code == OK) code = compile(partition, whole, fetches, count, placement, error);
    program_close(whole);
    if (code != OK) {
        partition_close(partition);
        return code;
    }
    *out = partition;
    return OK;
}

void partition_close(struct partition *partition) {
    if (!partition) return;
    for (int i = 0; partition->parts && i < partition->count; i++) {
        struct part *part = &partition->parts[i];
        program_close(part->program);
        memory_free(part->fetches);
        memory_free(part->graph.nodes);
    }
    memory_free(partition->moves);
    memory_free(partition->crossings);
    memory_free(partition->local);
    memory_free(partition->part);
    memory_free(partition->parts);
    memory_free(partition);
}

static bool is_node(const struct partition *partition, node n) {
    return n >= 0 && n < partition->graph->count;
}

int partition_device(const struct partition *partition, node n) {
    return is_node(partition, n) ? partition->part[n] : NONE;
}

int partition_stage(const struct partition *partition, int part) {
    return partition->parts[part].stage;
}

const char *partition_words(const struct partition *partition, node n, char out[NODE_WORDS_BYTES]) {
    const struct node_info *info = &partition->graph->nodes[n];
    snprintf(out, NODE_WORDS_BYTES, "node %d (%s%s%s)", n, op_name(info->op), info->name[0] ? " " : "",
             info->name);
    return out;
}

const struct program *partition_program(const struct partition *partition, int part) {
    return partition->parts[part].program;
}

node partition_node(const struct partition *partition, int part, node n) {
    return is_node(partition, n) ? partition->local[part * partition->graph->count + n] : NONE;
}

size_t crossing_bytes(const struct partition *partition, const struct crossing *crossing) {
    const struct node_info *info = &partition->graph->nodes[crossing->value];
    return shape_count(&info->shape) * type_bytes(info->type);
}

node partition_crossing(const struct partition *partition, int i, int *from, int *to, size_t *bytes) {
    if (i >= partition->crossing_count) return NONE;
    const struct crossing *crossing = &partition->crossings[i];
    *from = crossing->from;
    *to = crossing->to;
    *bytes = crossing_bytes(partition, crossing);
    return crossing->value;
}

size_t partition_bytes(const struct partition *partition, const struct pipeline *pipeline, int part) {
    const int in_flight = pipeline_in_flight(pipeline, partition->parts[part].stage);
    size_t bytes = (size_t)in_flight * program_arena_bytes(partition->parts[part].program);
    for (int i = 0; i < partition->crossing_count; i++) {
        const struct crossing *crossing = &partition->crossings[i];
        const int sent = pipeline_in_flight(pipeline, partition->parts[crossing->from].stage);
        if (crossing->to == part && sent > in_flight) /* the rest of the sender's is in spare memory */
            bytes += (size_t)(sent - in_flight) * crossing_bytes(partition, crossing);
        const struct device *from = &partition->devices[crossing->from],
                            *to = &partition->devices[crossing->to];
        const int taken = pipeline_in_flight(pipeline, partition->parts[crossing->to].stage);
        if (crossing->from == part && crosses_beside(from, to))
            bytes += (size_t)(sent > taken ? sent : taken) * crossing_bytes(partition, crossing);
    }
    return bytes;
}

const char *partition_move(const struct partition *partition, int i) {
    return i < partition->move_count ? partition->moves[i].words : NULL;
}
