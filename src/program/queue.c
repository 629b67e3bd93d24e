/* See queue.h; and the operations that use queues. */
#include "queue.h"

#include <string.h>
#include "../base/memory.h"
#include "passes.h"

int queue_open(struct queue *queue, struct world *world, struct shape shape, int capacity, double timeout_s,
               struct error *error) {
    *queue = (struct queue){.world = world,
                            .shape = shape,
                            .floats = shape_count(&shape),
                            .capacity = capacity,
                            .timeout_s = timeout_s};
    lock_open(&queue->lock, world);
    event_open(&queue->changed, world);
    return memory_array(&queue->values, (size_t)capacity * queue->floats, "a queue", error);
}

void queue_free(struct queue *queue) {
    memory_free(queue->values);
    queue->values = NULL;
}

long queue_length(const struct queue *queue) {
    return atomic_load(&queue->put) - atomic_load(&queue->taken);
}

static bool has_room(void *argument) {
    const struct queue *queue = argument;
    return queue_length(queue) < queue->capacity || atomic_load(&queue->closed);
}

static bool has_value(void *argument) {
    const struct queue *queue = argument;
    return queue_length(queue) > 0 || atomic_load(&queue->closed);
}

static int await(struct queue *queue, bool (*ready)(void *argument), const char *what, double deadline,
                 struct error *error) {
    const enum wait_result result = event_wait_until(&queue->changed, ready, queue, deadline);
    if (result == WAIT_DONE) return OK;
    return error_set(error, ERROR_PEER, "queue: %s within %g s", what, queue->timeout_s);
}

static float *place(const struct queue *queue, long number) {
    return queue->values + (size_t)(number % queue->capacity) * queue->floats;
}

/* Whoever was awake first may have taken the room, or the value: then it is waited for again. */

int queue_put(struct queue *queue, const float *value, struct error *error) {
    const double deadline = world_now(queue->world) + queue->timeout_s;
    for (bool done = false; !done;) {
        RETURN_IF(await(queue, has_room, "nobody made room", deadline, error));
        if (atomic_load(&queue->closed)) return error_set(error, ERROR_INTERRUPTED, "queue: it is closed");
        lock_take(&queue->lock);
        done = queue_length(queue) < queue->capacity;
        if (done) memcpy(place(queue, queue->put), value, queue->floats * sizeof *value);
        if (done) atomic_fetch_add(&queue->put, 1);
        lock_release(&queue->lock);
    }
    event_post(&queue->changed);
    return OK;
}

int queue_take(struct queue *queue, float *value, struct error *error) {
    const double deadline = world_now(queue->world) + queue->timeout_s;
    for (bool done = false; !done;) {
        RETURN_IF(await(queue, has_value, "no value came", deadline, error));
        lock_take(&queue->lock);
        done = queue_length(queue) > 0;
        if (done) memcpy(value, place(queue, queue->taken), queue->floats * sizeof *value);
        if (done) atomic_fetch_add(&queue->taken, 1);
        lock_release(&queue->lock);
        if (!done && atomic_load(&queue->closed))
            return error_set(error, ERROR_INTERRUPTED, "queue: it is closed and empty");
    }
    event_post(&queue->changed);
    return OK;
}

void queue_end(struct queue *queue) {
    atomic_store(&queue->closed, true);
    event_post(&queue->changed);
}

/* --- the operations --- */

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    const struct queue *queue = problem->attributes->queue;
    char found[96], expected[96];
    RETURN_IF(program_here(problem, plan, error));
    if (shape_equal(&problem->output.shape, &queue->shape)) return OK;
    return error_set(error, ERROR_USAGE, "%s: found %s, expected %s, as the queue has it",
                     op_name(problem->op), shape_text(&problem->output.shape, found, sizeof found),
                     shape_text(&queue->shape, expected, sizeof expected));
}

static int run_enqueue(const struct call *call, struct error *error) {
    struct queue *queue = call->problem->attributes->queue;
    memcpy(call->output, call->input[0], queue->floats * sizeof(float));
    return queue_put(queue, call->input[0], error);
}
const struct kernel program_enqueue = {.name = "program:enqueue", .prepare = prepare, .run = run_enqueue};

static int run_dequeue(const struct call *call, struct error *error) {
    return queue_take(call->problem->attributes->queue, call->output, error);
}
const struct kernel program_dequeue = {.name = "program:dequeue", .prepare = prepare, .run = run_dequeue};
