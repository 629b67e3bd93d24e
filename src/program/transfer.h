/* Private to src/program: the channel that a send and a receive share. */
#ifndef TRAINER_PROGRAM_TRANSFER_H
#define TRAINER_PROGRAM_TRANSFER_H

#include "split.h"

/* The path of one value from part to part: a ring with a place for each run that either end has in flight.
 * The value of a run is the receiver's to read from when it was sent until the receiver's run ends. */
struct channel {
    struct event sent;  /* posted by the sender alone, after the copy */
    struct event taken; /* posted by the receiver alone, at the end of each run */
    uint64_t received;  /* values that the receiver has waited for; its own */
    const struct rendezvous *rendezvous;
    const struct crossing *crossing;
    void *
        *values; /* [depth] of [bytes] each, on the receiver's device: in its arenas, then in spare memory */
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

#endif
