/* Queues between graphs: a bounded number of values of one shape, which some programs put in and others take
 * out, each value once, in the order in which they came. Any number of threads may use one. */
#ifndef TRAINER_PROGRAM_QUEUE_H
#define TRAINER_PROGRAM_QUEUE_H

#include "../graph/graph.h"
#include "../world/world.h"

struct queue {
    struct world *world; /* borrowed */
    struct shape shape;
    size_t floats;    /* of a value */
    int capacity;     /* values */
    double timeout_s; /* of each wait */
    float *values;    /* [capacity][floats], a ring; guarded by `lock` */
    struct lock lock;
    _Atomic long put, taken; /* values so far; written with the lock */
    _Atomic bool closed;
    struct event changed; /* one post per value put or taken, and for closing */
};

int queue_open(struct queue *queue, struct world *world, struct shape shape, int capacity, double timeout_s,
               struct error *error);
void queue_free(struct queue *queue); /* when nobody uses it any more; safe on a zeroed one */

/* Puts a value [floats] in, or takes one out, when there is room, or one. Errors: ERROR_PEER: nobody came
 * within timeout_s; ERROR_INTERRUPTED: it is closed and, for who takes, empty. */
int queue_put(struct queue *queue, const float *value, struct error *error);
int queue_take(struct queue *queue, float *value, struct error *error);
/* Nothing more is put in; what is there can still be taken. Wakes all who wait. */
void queue_end(struct queue *queue);
long queue_length(const struct queue *queue);

#endif
