/* Private to src/program: the channel that a send and a receive share. */
#ifndef TRAINER_PROGRAM_TRANSFER_H
#define TRAINER_PROGRAM_TRANSFER_H

#include "split.h"

/* The path of one value from part to part. Between devices of one backend that has queues, the sender copies
 * the value within its own memory, in its queue, and from there it crosses beside the queue: the sender
 * computes on meanwhile, and may write over the value. Elsewhere the sender's thread copies it. It is a ring
 * with a place for each run that either end has in flight. The value of a run is the receiver's to read from
 * when it was sent until the receiver's run ends. */
struct channel {
    struct event
        sent; /* posted by the sender alone, after the copy; or when that is queued, before its mark */
    struct event taken; /* posted by the receiver alone, at the end of each run */
    uint64_t received;  /* values that the receiver has waited for; its own */
    const struct rendezvous *rendezvous;
    const struct crossing *crossing;
    void *
        *values; /* [depth] of [bytes] each, on the receiver's device: in its arenas, then in spare memory */
    void *
        *staged; /* [depth] of [bytes] each, on the sender's device: what crosses beside its queue; or NULL */
    void **marks; /* [depth] of the sender's device: it has crossed; NULL where `staged` is */
    int depth;
    size_t bytes;
};

/* What a part computes in. Only its own thread writes here while it runs. */
struct seat {
    struct arena **arenas; /* [in_flight] that of run r is number r modulo in_flight */
    int in_flight;
    long begun, ended; /* runs whose forward half is done, and those whose backward half is, too */
    double waited_s;
    _Atomic int at; /* the node of its graph that it has come to; read by others, too */
};

struct rendezvous {
    const struct partition *partition; /* borrowed */
    struct world *world;               /* borrowed */
    double timeout_s;
    double deadline_s;        /* world time after which no part waits any more; INFINITY: none */
    struct seat *seats;       /* [partition->count] */
    struct channel *channels; /* [partition->crossing_count] */
    _Atomic int failed;       /* number of the first part that failed, from 1; 0: none */
};

/* Whether such a value crosses beside the sender's queue. */
static inline bool crosses_beside(const struct device *from, const struct device *to) {
    return from->backend == to->backend && from->backend->own_memory && from->backend->send;
}

#endif
