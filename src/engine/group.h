/* A group: several devices that compute as one worker, on one replica. The network's graph is cut into a part
 * for each device (program/partition.h); the worker's own thread runs the first device's part, a thread
 * beside it each other one. Batches are built on the first device, where weights, gradients and the loss are,
 * too. */
#ifndef TRAINER_ENGINE_GROUP_H
#define TRAINER_ENGINE_GROUP_H

#include "../program/partition.h"
#include "network.h"

struct group;

/* Of all workers of this process. */
struct groups {
    struct device *devices; /* [workers * size] in the order of groups_spread; borrowed */
    int workers, size;
    const char *place; /* "conv*=cpu:0,dense*=cpu:1": a device stands for its place in its group */
    bool soft;         /* what a device has no kernel for may go to a CPU of the group */
    struct world *world;
    double timeout_s; /* of a wait for another part */
};

/* Opens the group of a worker, on its thread, which has entered its first device and has done so after the
 * call. Errors: those of partition_compile; ERROR_DEVICE. */
int group_open(struct group **out, const struct groups *groups, int worker, const struct network *network,
               struct error *error);
/* Ends and joins the threads; one that hangs is left behind, with the memory that it may use. NULL is fine.
 */
void group_close(struct group *group);

/* As those of an arena; only of the network's placeholders and of its loss. */
void *group_address(const struct group *group, node n);
void group_set_input(struct group *group, node n, const void *address);

/* Runs all parts once, as program_run does; weights, gradients: [layout floats] on the first device. Errors:
 * that of the part that failed first, with its device; ERROR_PEER: one gave no value, or did not end, in
 * time. */
int group_run(struct group *group, float *weights, float *gradients, struct error *error);

/* What lies where, for the first lines: "conv1, conv2 on cpu:0; dense1 on cpu:1; 1.2 MB cross in each forward
 * and backward pass". */
const char *group_words(const struct group *group);
/* Line i of what soft placement moved; NULL after the last. */
const char *group_move(const struct group *group, int i);

/* For --explain: what each device computes, and which values cross. On a thread that may enter the devices.
 */
int group_explain(const struct groups *groups, const struct network *network, FILE *file,
                  struct error *error);

#endif
