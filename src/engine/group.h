/* A group: several devices that compute as one worker, on one replica. The network's graph is cut into a part
 * for each device (program/partition.h); the worker's own thread runs the first device's part, a thread
 * beside it each other one. Batches are built on the first device, where weights and gradients are, too.
 *
 * The micro-batches of a batch go through the parts in the order of a pipeline (program/pipeline.h). Each
 * part adds up the gradients of its own weights, in the order of the micro-batches: loss and gradient do not
 * depend on the pipeline. */
#ifndef TRAINER_ENGINE_GROUP_H
#define TRAINER_ENGINE_GROUP_H

#include "../program/partition.h"
#include "network.h"

struct group;

/* Of all workers of this process. */
struct groups {
    struct device *devices; /* [workers * size] in the order of groups_spread; borrowed */
    int workers, size;
    const char *place;  /* "conv*=cpu:0,dense*=cpu:1": a device stands for its place in its group */
    const char *placed; /* how these places were found, in words; NULL: they were typed */
    bool soft;          /* what a device has no kernel for may go to a CPU of the group */
    enum pipeline_schedule schedule;
    int microbatches; /* of a batch */
    struct world *world;
    double timeout_s; /* of a batch: who waits for another device gives up before it is over, and a device
                         that has not ended then is named */
};

static inline struct pipeline groups_pipeline(const struct groups *groups) {
    return (struct pipeline){groups->schedule, groups->size, groups->microbatches};
}

/* A batch to compute, and where its results go. */
struct group_batch {
    float *weights, *gradients; /* [layout floats] on the first device */
    float *losses;              /* [microbatches] in host memory */
    /* Sets the inputs of a micro-batch (group_set_input). Called for each in turn, on the worker's thread,
     * before it begins. */
    void (*feed)(void *argument, int micro);
    void *argument;
};

/* Of a placement for a network, the argument: what the host writes or reads is on the first device, 0. */
int group_pin(const void *network, node n);

/* Opens the group of a worker, on its thread, which has entered its first device and has done so after the
 * call. Errors: those of partition_compile and rendezvous_open; ERROR_DEVICE. */
int group_open(struct group **out, const struct groups *groups, int worker, const struct network *network,
               struct error *error);
/* Ends and joins the threads. false: one hangs; it is left behind, and what it may use must stay: the group,
 * its network, the memory of its batches and the world. NULL is fine. */
bool group_close(struct group *group);

/* Micro-batches that the first device has in flight, at most. */
int group_in_flight(const struct group *group);
/* As those of an arena, of that micro-batch; only of the network's placeholders. Of those in flight at the
 * same time each has memory of its own. */
void *group_address(const struct group *group, int micro, node n);
void group_set_input(struct group *group, int micro, node n, const void *address);

/* Runs all parts once for each micro-batch: gradients are the mean of theirs. It takes timeout_s at most, in
 * which a device may compute for as long as the others can wait. Errors: that of the part that failed first,
 * with its device; ERROR_PEER: one did not end in time, with its node, or was stopped. */
int group_run(struct group *group, const struct group_batch *batch, struct error *error);

/* The device that has not ended its part of a batch, and its node, as "cpu:1 has not ended node 7 (matmul)";
 * "": all have. Also on another thread than the group's, while it runs. Returns out. */
enum { GROUP_HANGS_BYTES = 160 };
const char *group_hangs(const struct group *group, char out[GROUP_HANGS_BYTES]);

/* Share of the devices' time that they have waited for each other, in all runs so far; NAN: there were none.
 */
double group_idle(const struct group *group);

/* Line i of what the run says of the group, NULL after the last: how it was placed; what lies where ("conv1,
 * conv2 on cpu:0; dense1 to dense9 on cpu:1; 1.2 MB cross in each forward and backward pass"), what the
 * pipeline is, what soft placement moved.
 */
enum { GROUP_LINE_BYTES = 1000 };
const char *group_line(const struct group *group, int i);

/* For --explain: what each device computes, and which values cross. On a thread that may enter the devices.
 */
int group_explain(const struct groups *groups, const struct network *network, FILE *file,
                  struct error *error);

#endif
