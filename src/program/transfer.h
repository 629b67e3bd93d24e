/* Private to src/program: the channel that a send and a receive share. */
#ifndef TRAINER_PROGRAM_TRANSFER_H
#define TRAINER_PROGRAM_TRANSFER_H

#include "split.h"

/* The path of one value from part to part. What was sent and what was taken are counted by the events:
 * when both counts are equal, the value is free to be written by the sender; when one more was sent, it is
 * the receiver's to read, until its run ends. */
struct channel {
    struct event sent;  /* posted by the sender alone, after the copy */
    struct event taken; /* posted by the receiver alone, at the end of each run */
    const struct rendezvous *rendezvous;
    const struct crossing *crossing;
    void *value; /* [bytes] in the receiver's arena, on its device */
    size_t bytes;
};

struct rendezvous {
    const struct partition *partition; /* borrowed */
    struct world *world;               /* borrowed */
    double timeout_s;
    struct arena **arenas;    /* [partition->count] */
    struct channel *channels; /* [partition->crossing_count] */
    _Atomic int failed;       /* number of the first part that failed, from 1; 0: none */
};

#endif
