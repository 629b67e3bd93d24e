/* Spans: what a member of a run did from when to when, for whoever draws it. Of chosen steps only, gathered
 * without a lock and without waiting: what does not fit is left out and counted. */
#ifndef TRAINER_WORLD_TRACE_H
#define TRAINER_WORLD_TRACE_H

#include <stdbool.h>
#include "../base/error.h"

enum trace_kind {
    TRACE_INPUT,
    TRACE_PULL,
    TRACE_COMPUTE,
    TRACE_PUSH,
    TRACE_WAIT,  /* within pull or push */
    TRACE_SERVE, /* a server has a gradient in hand */
    TRACE_APPLY, /* a shard is stepped with it */
    TRACE_QUEUE, /* a device with a queue of its own computes */
};

struct trace_span {
    enum trace_kind kind;
    double begin_s, end_s; /* world time */
    int member;            /* whose it is; APPLY: who may step the shard at the same time as others, or -1 */
    int worker;            /* SERVE, APPLY: whose gradient; WAIT: the member waited for, or -1 */
    long step;             /* of that worker, from 1 in this part of the run */
    int shard;             /* SERVE, APPLY */
    long version;          /* PULL: that was read of shard 0; APPLY: that the shard has then */
    long waiting;          /* SERVE: gradients that were in the shard's mailbox */
    const char *place;     /* WAIT: a constant text */
};

struct trace;

/* Of each worker's first `first` steps, and then of every `every`-th one (0: of none). Errors: ERROR_DEVICE
 * (memory). */
int trace_open(struct trace **out, long first, long every, struct error *error);
void trace_close(struct trace *trace); /* NULL is fine */

/* Whether a step is one of those; false for NULL. */
bool trace_wants(const struct trace *trace, long step);
/* By any thread. */
void trace_put(struct trace *trace, const struct trace_span *span);
/* The oldest, by one thread alone; false: there is none. */
bool trace_take(struct trace *trace, struct trace_span *span);
long trace_left_out(const struct trace *trace); /* so far */

#endif
