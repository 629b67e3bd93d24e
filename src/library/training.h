/* Private to src/library: what a training object is made of. */
#ifndef TRAINER_LIBRARY_TRAINING_H
#define TRAINER_LIBRARY_TRAINING_H

#include "../infer/evaluate.h"
#include "../run/run.h"
#include "../store/strategy.h"
#include "parts.h"

/* What a run has left: a network that can predict, and its weights. */
struct learnt {
    struct evaluator evaluator;
    struct device *devices; /* [1] */
    struct network_settings settings;
    struct choice model;
    struct units units;
    struct layout layout; /* of the training: names, shapes and places of the weights; owned */
    float *weights;       /* [layout floats] */
    float *ordered;       /* [evaluator's layout floats] the same, as the evaluator has them; NULL: not yet */
};

struct trainer_training {
    struct typed typed; /* the settings */
    struct trainer_data data;
    bool own_data; /* data is there */
    struct trainer_strategy strategy;
    bool own_strategy;          /* strategy is there */
    struct strategy descriptor; /* of it, as the run sees it; made when a run begins */
    struct traits traits;
    struct trainer_watcher watcher;
    bool as_program; /* it prints and heeds signals */
    atomic_bool stop;
    bool runs;              /* now */
    char wrote[PATH_BYTES]; /* the folder of the run before, which the next one replaces; or "" */
    bool hangs;             /* a thread of a run did not end: nothing may be freed */
    struct learnt learnt;   /* weights NULL: nothing is */
};

/* Instead of trainer_training_set, for a command line that has filled the record and checked it. */
void library_take_settings(struct trainer_training *training, const struct typed *typed);
/* data.c: the data set that the program's examples are. */
void library_choose_data(struct trainer_training *training, struct choice *choice);
/* strategy.c: the strategy that the program's functions are. */
void library_choose_strategy(struct trainer_training *training, struct choice *choice);
/* watch.c: the output through which a run tells the watcher, and leaves what it has learnt; its `self` is the
 * training. */
extern const struct output library_output;
/* learnt.c */
int learnt_keep(struct learnt *learnt, const struct output_scene *scene, const float *weights,
                struct error *error);
void learnt_forget(struct learnt *learnt); /* safe on a zeroed one */

#endif
