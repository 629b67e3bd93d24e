/* See costs.h. */
#include "costs.h"

#include <math.h>

#include "../base/memory.h"
#include "replica.h"
#include "trial.h"
#include "ways.h"

/* Of an operation the least time counts: it is the one that nobody disturbed, and the same in the next run.
 * All of them together are scaled to what a batch of a training takes. */
enum { LEAST_RUNS = 3, MOST_RUNS = 200 };
static const double seconds_of_runs = 0.3;

/* --- the operations of a network on a device --- */

struct measurement {
    const struct batch_work *work;
    const struct device *device;
    struct trial trial;
    double *of_instruction; /* [instructions] seconds */
    double sum_s;           /* the least of adding a gradient */
    double *seconds;        /* [graph count] of each node; borrowed */
    struct error error;
};

static int time_sum(struct measurement *m) {
    const double began = world_now(m->work->world);
    RETURN_IF(trial_sum(&m->trial, &m->error));
    m->sum_s = fmin(m->sum_s, world_now(m->work->world) - began);
    return OK;
}

static int time_all(struct measurement *m) {
    const struct world *world = m->work->world;
    const double end = world_now(world) + seconds_of_runs;
    m->sum_s = INFINITY;
    for (int run = 0; run < LEAST_RUNS || (run < MOST_RUNS && world_now(world) < end); run++) {
        if (world_interrupted())
            return error_set(&m->error, ERROR_INTERRUPTED, "interrupted while devices were measured");
        RETURN_IF(trial_time(&m->trial, world, m->of_instruction, &m->error));
        RETURN_IF(time_sum(m));
    }
    return OK;
}

static int measure(struct measurement *m) {
    const struct batch_work *work = m->work;
    RETURN_IF(trial_open(&m->trial, work->network, m->device, work->examples, &m->error));
    const struct program *program = m->trial.program;
    RETURN_IF(
        memory_array(&m->of_instruction, program_instructions(program), "times of operations", &m->error));
    RETURN_IF(time_all(m));
    for (int i = 0; i < program_instructions(program); i++)
        m->seconds[program_instruction(program, i)] = m->of_instruction[i];
    return OK;
}

static void measure_body(void *argument) {
    struct measurement *m = argument;
    measure(m);
    memory_free(m->of_instruction);
    trial_close(&m->trial);
}

/* The least seconds of each node, [graph count], and of adding a gradient. */
static int measure_operations(const struct batch_work *work, const struct device *device, double *seconds,
                              double *sum_s, struct error *error) {
    struct measurement m = {.work = work, .device = device, .seconds = seconds};
    struct world_thread *thread = NULL;
    RETURN_IF(world_spawn(work->world, "measure", device->pinned ? &device->cores : NULL, measure_body, &m,
                          &thread, error));
    world_join(thread);
    *sum_s = m.sum_s;
    return m.error.code == OK ? OK : error_set(error, m.error.code, "%s", m.error.words);
}

/* The same, scaled to a pass as it is in training. An operation that is timed alone finds warm caches, and a
 * device with a queue is waited for after each, which takes time itself. */
static int measure_device(const struct batch_work *work, const struct device *device, double *seconds,
                          double *sum_s, struct error *error) {
    const int count = work->network->graph.count;
    struct batch_work pass = *work;
    double all = 0.0, taken = 0.0;
    bool abandoned = false; /* one device alone is waited for */
    pass.microbatches = 1;
    RETURN_IF(measure_operations(work, device, seconds, sum_s, error));
    RETURN_IF(batch_time(&pass, device, NULL, &taken, &abandoned, error));
    for (node n = 0; n < count; n++) all += seconds[n];
    for (node n = 0; n < count && all > 0.0; n++) seconds[n] *= taken / all;
    return OK;
}

/* --- all of it --- */

/* The nodes that are in some part; number[graph count]: which of these a node is. */
static void list_nodes(struct costs *costs, const struct graph *g, int *number) {
    int count = 0;
    for (node n = 0; n < g->count; n++) {
        const struct node_info *info = &g->nodes[n];
        const int layer = costs->placeable.layer[n];
        number[n] = NONE;
        if (layer == PLACEABLE_NOWHERE) continue;
        struct balance_node *listed = &costs->node[count];
        *listed = (struct balance_node){.layer = layer,
                                        .bytes = shape_count(&info->shape) * type_bytes(info->type)};
        for (int i = 0; i < info->inputs; i++)
            if (number[info->input[i]] != NONE) listed->input[listed->inputs++] = number[info->input[i]];
        if (info->op == OP_variable && layer != NONE) {
            costs->weights[layer].arrays++;
            costs->weights[layer].bytes += g->layout.ranges[info->attributes.variable].floats * sizeof(float);
        }
        number[n] = count++;
    }
    costs->balance.nodes = count;
}

static int measure_all(struct costs *costs, const struct batch_work *work, const struct device *devices,
                       const int *number, struct error *error) {
    const struct graph *g = &work->network->graph;
    double *of_graph = NULL, sum_s = 0.0;
    int code = memory_array(&of_graph, g->count, "times of operations", error);
    for (int d = 0; d < costs->balance.devices && code == OK; d++) {
        for (node n = 0; n < g->count; n++) of_graph[n] = 0.0;
        code = measure_device(work, &devices[d], of_graph, &sum_s, error);
        if (d == 0) costs->balance.sum_s = sum_s;
        for (node n = 0; n < g->count; n++)
            if (number[n] != NONE) costs->seconds[d * costs->balance.nodes + number[n]] = of_graph[n];
    }
    memory_free(of_graph);
    return code == OK ? ways_measure(devices, costs->balance.devices, work->world, work->timeout_s,
                                     costs->ways, error)
                      : code;
}

static int fill(struct costs *costs, const struct batch_work *work, const struct device *devices, int count,
                struct error *error) {
    const struct network *network = work->network;
    const size_t nodes = (size_t)network->graph.count, pairs = (size_t)count * (size_t)count;
    int *number = NULL;
    RETURN_IF(replica_placeable(&costs->placeable, network, error));
    RETURN_IF(memory_array(&costs->node, nodes, "nodes to place", error));
    RETURN_IF(memory_array(&costs->seconds, (size_t)count * nodes, "times of operations", error));
    RETURN_IF(memory_array(&costs->ways, pairs, "ways between devices", error));
    RETURN_IF(memory_array(&costs->weights, costs->placeable.count, "sizes of layers", error));
    RETURN_IF(memory_array(&costs->apart, count, "devices", error));
    RETURN_IF(memory_array(&number, nodes, "nodes to place", error));
    list_nodes(costs, &network->graph, number);
    for (int d = 0; d < count; d++) costs->apart[d] = !device_same_memory(&devices[d], &devices[0]);
    const int code = measure_all(costs, work, devices, number, error);
    memory_free(number);
    return code;
}

int costs_open(struct costs *costs, const struct batch_work *work, const struct device *devices, int count,
               struct error *error) {
    *costs = (struct costs){.balance = {.devices = count, .microbatches = work->microbatches}};
    RETURN_IF(fill(costs, work, devices, count, error));
    struct balance *balance = &costs->balance;
    balance->layers = costs->placeable.count;
    balance->node = costs->node;
    balance->seconds = costs->seconds;
    balance->ways = costs->ways;
    balance->weights = costs->weights;
    balance->apart = costs->apart;
    return OK;
}

void costs_close(struct costs *costs) {
    memory_free(costs->apart);
    memory_free(costs->weights);
    memory_free(costs->ways);
    memory_free(costs->seconds);
    memory_free(costs->node);
    placeable_free(&costs->placeable);
    *costs = (struct costs){0};
}
