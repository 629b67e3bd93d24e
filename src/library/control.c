/* Control flow, queues and a program's own operations, as trainer.h has them. */
#include "../base/memory.h"
#include "../graph/control.h"
#include "../graph/custom.h"
#include "../program/queue.h"
#include "../graph/rules.h"
#include "parts.h"

/* A graph within a graph is handed to the program as one of its own type, which has no other member. */
static struct trainer_graph *graph_out(struct graph *g) {
    _Static_assert(sizeof(struct trainer_graph) == sizeof(struct graph), "one is the other");
    return (struct trainer_graph *)(void *)g;
}

/* --- while, cond --- */

/* What the program gave, for the time of one call; [0] and [1] as control.h numbers branches. */
struct building {
    trainer_build *build[BRANCHES];
    void *argument;
};

static void build_first(void *argument, struct graph *g, const node *in, int count, node *out) {
    const struct building *building = argument;
    building->build[0](building->argument, graph_out(g), in, count, out);
}

static void build_second(void *argument, struct graph *g, const node *in, int count, node *out) {
    const struct building *building = argument;
    building->build[1](building->argument, graph_out(g), in, count, out);
}

void trainer_while(struct trainer_graph *graph, trainer_build *condition, trainer_build *body, void *argument,
                   int limit, const trainer_node *states, int count, trainer_node *results) {
    if (!condition || !body) graph_mistake(&graph->graph, "while: found no condition or no body");
    struct building building = {{condition, body}, argument};
    const struct loop loop = {build_first, build_second, &building, limit};
    graph_while(&graph->graph, &loop, states, count, results);
}

void trainer_cond(struct trainer_graph *graph, trainer_node predicate, trainer_build *if_true,
                  trainer_build *if_false, void *argument, const trainer_node *operands, int count,
                  trainer_node *results, int result_count) {
    if (!if_true || !if_false) graph_mistake(&graph->graph, "cond: found one branch, expected two");
    struct building building = {{if_true, if_false}, argument};
    const struct alternatives both = {build_first, build_second, &building};
    graph_cond(&graph->graph, predicate, &both, operands, count, results, result_count);
}

/* --- queues --- */

struct trainer_queue {
    struct queue queue;
    struct world *world;
};

static int open_queue(struct trainer_queue *queue, struct trainer_shape shape, int capacity, double timeout_s,
                      struct error *error) {
    bool right = shape.rank >= 0 && shape.rank <= MAX_RANK && capacity >= 1 && timeout_s > 0.0;
    double floats = capacity;
    for (int axis = 0; right && axis < shape.rank; axis++) {
        right = shape.dims[axis] >= 1;
        floats *= shape.dims[axis];
    }
    if (!right || floats > 1e12)
        return error_set(error, ERROR_USAGE,
                         "queue: found room for %d values, %d dimensions and %g s, expected 1 value or more, "
                         "0 to %d dimensions of 1 or more, more than 0 s, and at most 1e12 numbers",
                         capacity, shape.rank, timeout_s, MAX_RANK);
    RETURN_IF(world_open_threads(&queue->world, error));
    return queue_open(&queue->queue, queue->world, shape_in(shape), capacity, timeout_s, error);
}

int trainer_queue_open(struct trainer_queue **queue, struct trainer_shape shape, int capacity,
                       double timeout_s, struct trainer_error *error) {
    struct error why = {0};
    *queue = NULL;
    if (memory_array(queue, 1, "a queue", &why) == OK &&
        open_queue(*queue, shape, capacity, timeout_s, &why) != OK) {
        trainer_queue_close(*queue);
        *queue = NULL;
    }
    return library_tell(&why, error);
}

void trainer_queue_close(struct trainer_queue *queue) {
    if (!queue) return;
    queue_free(&queue->queue);
    world_close(queue->world);
    memory_free(queue);
}

void trainer_queue_end(struct trainer_queue *queue) {
    queue_end(&queue->queue);
}

long trainer_queue_length(const struct trainer_queue *queue) {
    return queue_length(&queue->queue);
}

trainer_node trainer_enqueue(struct trainer_graph *graph, struct trainer_queue *queue, trainer_node x) {
    struct graph *g = &graph->graph;
    char found[100], expected[100];
    if (!queue) {
        graph_mistake(g, "enqueue: found no queue");
        return NONE;
    }
    if (x >= 0 && x < g->count && !shape_equal(&g->nodes[x].shape, &queue->queue.shape))
        graph_mistake(g, "enqueue: found %s, expected %s as the queue has it",
                      shape_text(&g->nodes[x].shape, found, sizeof found),
                      shape_text(&queue->queue.shape, expected, sizeof expected));
    return graph_enqueue(g, &queue->queue, x);
}

trainer_node trainer_dequeue(struct trainer_graph *graph, struct trainer_queue *queue) {
    if (!queue) {
        graph_mistake(&graph->graph, "dequeue: found no queue");
        return NONE;
    }
    return graph_dequeue(&graph->graph, &queue->queue, queue->queue.shape);
}

/* --- operations of the program's own --- */

/* What the graph sees of one; the graph's. */
struct adapter {
    struct owned owned;
    struct custom custom;
    const struct trainer_operation *operation; /* borrowed */
};

static void shapes_out(struct trainer_shape *out, const struct shape *shapes, int count) {
    for (int i = 0; i < count; i++) {
        out[i] = (struct trainer_shape){.rank = shapes[i].rank};
        for (int axis = 0; axis < MAX_RANK; axis++) out[i].dims[axis] = shapes[i].dims[axis];
    }
}

static const char *find_shape(const void *self, const struct shape *operands, int count,
                              struct shape *result) {
    const struct trainer_operation *operation = ((const struct adapter *)self)->operation;
    struct trainer_shape shapes[MAX_INPUTS], found;
    shapes_out(shapes, operands, count);
    found = shapes[0];
    const char *wrong = operation->shape(operation->argument, shapes, count, &found);
    *result = shape_in(found);
    return wrong;
}

static const char *compute(const void *self, const float *const *operands, const struct shape *shapes,
                           int count, float *result, const struct shape *result_shape) {
    const struct trainer_operation *operation = ((const struct adapter *)self)->operation;
    struct trainer_shape out[MAX_INPUTS], own;
    shapes_out(out, shapes, count);
    shapes_out(&own, result_shape, 1);
    return operation->compute(operation->argument, operands, out, count, result, &own);
}

static node gradient(const void *self, struct graph *g, const node *x, int count, node y, node dy, int i) {
    const struct trainer_operation *operation = ((const struct adapter *)self)->operation;
    return operation->gradient(operation->argument, graph_out(g), x, count, y, dy, i);
}

static void free_adapter(struct owned *owned) {
    memory_free(owned);
}

trainer_node trainer_custom(struct trainer_graph *graph, const struct trainer_operation *operation,
                            const trainer_node *operands, int count) {
    struct graph *g = &graph->graph;
    struct adapter *adapter = NULL;
    if (g->error.code == OK && (!operation->name || !operation->compute))
        graph_mistake(g, "custom: found no %s, expected a name and a function that computes",
                      operation->name ? "compute" : "name");
    if (g->error.code != OK || memory_array(&adapter, 1, "an operation", &g->error) != OK) return NONE;
    *adapter = (struct adapter){.owned = {g->owned, free_adapter},
                                .custom = {.name = operation->name,
                                           .self = adapter,
                                           .shape = operation->shape ? find_shape : NULL,
                                           .compute = compute,
                                           .gradient = operation->gradient ? gradient : NULL},
                                .operation = operation};
    g->owned = &adapter->owned;
    return graph_custom(g, &adapter->custom, operands, count);
}
