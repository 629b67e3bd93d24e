/* Replicas: each worker has one. It is the network's program on the worker's device, with its own arena
 * and input buffers. The program reads a batch where it was built.
 *
 * A batch may be several micro-batches, as large as the network says: the program runs once for each, in
 * their order, and loss and gradient are the means of theirs, added in this order. So the arena is that of
 * one micro-batch, while the input buffers have them all. */
#ifndef TRAINER_TRAIN_REPLICA_H
#define TRAINER_TRAIN_REPLICA_H

#include "../data/dataset.h"
#include "../program/placeable.h"
#include "group.h"
#include "mixing.h"
#include "network.h"
#include "training.h"

/* A worker that queues a run before it has waited for the one before uses two by turns of what the host
 * writes or reads beside the device. */
enum { TURNS = 2 };

struct input;

/* A batch that is built in the recording of a step. */
struct built {
    const struct device *device; /* borrowed */
    const struct input *input;
    void *picks; /* NULL: it is not built there */
};

struct replica_turn {
    float *losses;       /* [microbatches] in host memory that the device copies to at full speed */
    void *began, *ended; /* timed marks on such a device: of a run, and of its gradient; or NULL */
};

/* An input buffer for a micro-batch, on the device; the first ones of a replica are arenas' own. */
struct input {
    float *x;     /* [batch, features] */
    void *labels; /* int [batch], or float [batch, outputs] */
    int *step;    /* the number of the micro-batch; NULL when the program does not need it */
    /* Of a network for mixed examples; else NULL. */
    void *others;  /* labels of what they are mixed with */
    float *shares; /* [batch] what their own labels count */
    /* Where batches are built in the recording of a step. */
    struct built built[TURNS];
    bool picked; /* the one that was loaded last is */
};

struct replica {
    int batch;               /* examples of its micro-batches, where these are not the network's; or 0 */
    struct network resized;  /* then the network for so many, made by its worker's thread; else zeroed */
    char soft[200];          /* operations that run on the CPU, because the device has no kernel for them */
    int told;                /* by the coordinator: lines of this and of the group */
    _Atomic bool opened;     /* by its worker's thread: what is above is there */
    struct program *program; /* NULL where the worker has several devices, */
    struct arena *arena;     /* as this is, */
    struct group *group;     /* and then this is there */
    struct input *inputs;    /* [buffers, microbatches] */
    int own_inputs;          /* the first so many are memory of arenas */
    int loaded;              /* the one that the arena reads */
    struct mixing mixing;    /* zeroed where nothing is mixed */
    float *losses;           /* [TURNS, microbatches]; of all turns */
    struct replica_turn turns[TURNS];
    arena_step *step; /* is called before each of its instructions, or NULL, with: */
    void *step_argument;
    int turn;   /* of the last run */
    bool ahead; /* they take turns; else there is the first one alone */
    float *weights,
        *gradient; /* [layout floats] on the device, where those of the store are elsewhere; or NULL
                    */
    float *part;   /* [layout floats] on the device: the gradient of a later micro-batch; NULL: there is none,
                      or   the group has it */
};

/* All replicas of a run; the `self` of its compute. */
struct replicas {
    const struct network *network;           /* for training */
    const struct network_settings *settings; /* that it was made from; where a replica is resized */
    const struct device *devices;            /* [count] */
    const struct examples *examples;
    const struct store *store;   /* whose weights are computed on; NULL: some in the host's memory */
    const struct traits *traits; /* of the strategy; NULL: it has no part in what is computed on */
    int count;
    int batch;                   /* examples of a micro-batch, unless a replica has its own */
    int microbatches;            /* a batch */
    int buffers;                 /* a replica */
    const struct groups *groups; /* of devices that are one worker each; NULL: a device each */
    struct replica *replicas;    /* [count]; each opened by its worker's thread */
};

/* What a replica runs: the loss as it is reported, and all gradients. Errors: those of program_compile. */
int replica_compile(struct program **out, const struct network *network, const struct device *device,
                    struct error *error);

/* The same over several devices. Errors: those of partition_compile. */
int replica_partition(struct partition **out, const struct network *network,
                      const struct placement *placement, struct error *error);

/* Which of its layers a placement can move, with a group's pins. Errors: those of placeable_find. */
int replica_placeable(struct placeable *placeable, const struct network *network, struct error *error);

int replicas_open(struct replicas *replicas, const struct network *network, const struct device *devices,
                  int count, const struct examples *examples, int microbatches, int buffers,
                  struct error *error);
/* Before its worker's thread opens it: that replica computes batches of so many examples, a multiple of the
 * micro-batches. settings: the network's, borrowed. */
void replicas_resize(struct replicas *replicas, int worker, const struct network_settings *settings,
                     int examples);
/* By its worker's thread, between two batches, once it is open: the same from now on, for which its program
 * is made anew. Errors: those of opening it; ERROR_DEVICE: a device of its group hangs. */
int replicas_reopen(struct replicas *replicas, int worker, const struct network_settings *settings,
                    int examples, struct error *error);
/* After training_end; safe on a zeroed one. false: a device of a group hangs (group_close): these replicas,
 * and all that they were given, must stay. */
bool replicas_close(struct replicas *replicas);
/* What has become of the recording of a worker's step; by any thread. False: nothing is known yet, or nothing
 * is recorded there. */
bool replicas_recording(const struct replicas *replicas, int worker, struct recording_facts *facts);
struct compute replicas_compute(struct replicas *replicas);
/* From the next run of the worker on its program tells whoever brings the weights that the
 * run is given, and takes the gradient, how far it is (arena_set_step). Stays when it is reopened. False:
 * it cannot tell: it computes elsewhere, on several devices, or in micro-batches. */
bool replicas_set_step(struct replicas *replicas, int worker, arena_step *step, void *argument);
/* Where a worker's gradient is on its device, [layout floats], while the caller's is elsewhere; else NULL. A
 * run that is handed this memory for the gradient leaves it there. */
float *replicas_gradient(const struct replicas *replicas, int worker);
/* Of groups with a pipeline: the mean of group_idle, and pipeline_bubble; NAN without. While none computes.
 */
void replicas_idle(const struct replicas *replicas, double *idle, double *idle_equal);

#endif
