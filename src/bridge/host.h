/* The host: the side of a parameter server that remote workers come to.
 *
 * A remote machine is a worker whose compute happens elsewhere: in the run of the ps each device of a remote
 * worker has a thread of its own, the proxy, which goes through the training loop as any worker does. Only
 * its compute is another: it sends weights and the number of a batch, and gets loss and gradient. So
 * strategies, data order, pauses, checkpoints and losses know nothing of the network. */
#ifndef TRAINER_BRIDGE_HOST_H
#define TRAINER_BRIDGE_HOST_H

#include "cluster.h"
#include "terms.h"

/* One device of a remote worker. */
struct peer {
    struct endpoint *endpoint;
    int task, device, devices; /* of which worker's process; which of its devices, of how many */
    char device_name[16];
    char name[96]; /* "worker 1 (127.0.0.1:4000 cpu:0)" */
};

struct host {
    struct listener *listener;
    const struct cluster *cluster; /* borrowed */
    const struct terms *terms;     /* borrowed */
    struct peer *peers; /* [count], room for as many as `room`; by task, then by device once open */
    int count, room;
};

/* Is told in words, now and then, who is still missing, and who was refused. */
typedef void host_say(void *argument, const char *words);

/* Listens at the ps's address and waits until every worker of the cluster has come with all its devices. A
 * peer that is none, or has other terms, is refused with words, and the waiting goes on. Errors: ERROR_DEVICE
 * (the port is in use), ERROR_PEER (somebody is missing after `patience_s`), ERROR_INTERRUPTED. */
int host_open(struct host *host, struct world *world, const struct cluster *cluster,
              const struct terms *terms, double patience_s, host_say *say, void *argument,
              struct error *error);
void host_close(struct host *host); /* safe on a zeroed or half-open one */

/* Tells all that the training begins. Their places in the roster are those in host->peers. */
int host_welcome(struct host *host, uint64_t seed, int sharding, double patience_s, struct error *error);

/* Has a batch computed there: weights[floats] go, the loss and gradient[floats] come. Errors: ERROR_PEER, the
 * worker's own failure. */
int peer_compute(struct peer *peer, const struct request *request, const float *weights, float *gradient,
                 float *loss, size_t floats, double patience_s, struct error *error);

/* The last word to all that are still there. */
void host_finish(struct host *host, const struct finish *finish);

#endif
