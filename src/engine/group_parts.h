/* Private to the files of a group: what it is made of. */
#ifndef TRAINER_ENGINE_GROUP_PARTS_H
#define TRAINER_ENGINE_GROUP_PARTS_H

#include "group.h"

/* Floats [begin, end) of the flat vector. */
struct stretch {
    size_t begin, end;
};

/* A part on its device. */
struct helper {
    struct group *group;
    int part;
    struct world_thread *thread; /* NULL: the first one's is the worker's */
    struct event go, done;
    int code; /* of the last run */
    struct error error;
    float *weights, *gradients; /* [layout floats] on it, where its memory is not the first one's; or NULL */
    float *later;               /* [layout floats] in the same memory: the gradient of a later micro-batch */
    bool owns_later;            /* else it is the first one's; the parts' ranges do not meet */
    struct stretch *stretches;  /* [stretch_count] of the gradients that the part computes */
    int stretch_count, forward_count; /* the first so many of them in the forward half */
    double busy_s;                    /* of all runs: computing and copying */
};

struct group {
    const struct network *network;
    struct world *world;
    double timeout_s;
    struct device *devices; /* [size] */
    int size;
    struct partition *partition;
    struct pipeline pipeline;
    struct rendezvous *rendezvous;
    struct helper *helpers;       /* [size] */
    struct group_batch batch;     /* of this run */
    _Atomic uint64_t runs, ended; /* begun; those that the first device has ended */
    double run_s;                 /* of all runs */
    bool queued;                  /* the first device has a queue, which the others cannot see */
    bool hangs;                   /* a part did not end in time */
    _Atomic bool ending;
    const char *placed;                                                      /* of the groups */
    char places[GROUP_LINE_BYTES], schedule[GROUP_LINE_BYTES], balance[300]; /* its lines; "": not said */
};

/* group_part.c: a part runs its turns of a batch, on its thread; helper->code says how that went. */
void helper_run(struct helper *helper);
/* What it adds up: fills its stretches. */
int helper_find_stretches(struct helper *helper, struct error *error);

/* group_words.c: fills the lines; prints what --explain says. */
void group_describe(struct group *group);
void group_print(const struct group *group, FILE *file);

#endif
