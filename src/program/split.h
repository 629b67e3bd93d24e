/* Private to src/program: what a partition is made of, and the passes that make it, in their order. */
#ifndef TRAINER_PROGRAM_SPLIT_H
#define TRAINER_PROGRAM_SPLIT_H

#include "partition.h"

/* A value that goes from one part to another. */
struct crossing {
    node value; /* in the whole graph */
    int from, to;
    node send, receive; /* in the graphs of their parts */
};

struct part {
    struct graph graph; /* nodes are its own; layout and constants are those of the whole graph */
    node *fetches;      /* [fetch_count] in the part's graph: the caller's, and every send */
    int fetch_count;
    node backward; /* the first node of the part's backward half */
    int stage;     /* in a pipeline */
    struct program *program;
};

/* What soft placement moved: an operation from a device. */
struct move {
    enum op op;
    int from;
    char words[120];
};

struct partition {
    const struct graph *graph;    /* borrowed */
    const struct device *devices; /* [count] borrowed */
    int count;
    node backward;              /* the first node of the backward half */
    int *part;                  /* [graph->count] device of each node; NONE: in no part, or a constant */
    struct part *parts;         /* [count] */
    node *local;                /* [count][graph->count] number of a node in a part; NONE: not there */
    struct crossing *crossings; /* [crossing_count] */
    int crossing_count;
    struct move *moves; /* [move_count] */
    int move_count;
};

/* assign.c: fills partition->part for the kept nodes of `whole`, which is pruned. */
int partition_place(struct partition *partition, struct program *whole, const struct placement *placement,
                    struct error *error);
/* split.c: the graphs of the parts and the crossings between them. */
int partition_split(struct partition *partition, const struct program *whole, struct error *error);

size_t crossing_bytes(const struct partition *partition, const struct crossing *crossing); /* partition.c */

/* rehearse.c: whether the parts can take the turns of this pipeline, where a crossing has room for depth[i]
 * values. Errors: ERROR_USAGE: they would wait for each other for ever. */
int partition_rehearse(const struct partition *partition, const struct pipeline *pipeline, const int *depth,
                       struct error *error);

#endif
