/* Clusters started with what people have: mpirun, srun, torchrun, TF_CONFIG, or a list of hosts. What these
 * say by the environment becomes the addresses and the place of this process in its cluster
 * (bridge/cluster.h), so that none are typed.
 *
 * Addresses that are typed (--worker-hosts, --cluster) go first, then those of TF_CONFIG, then a launcher's.
 * Of a launcher's processes the first --ps are parameter servers, the others workers; each has a port of its
 * own, from one that all know from the number of the job. On one machine they speak over 127.0.0.1. */
#ifndef TRAINER_LAUNCH_LAUNCH_H
#define TRAINER_LAUNCH_LAUNCH_H

#include <stdint.h>
#include "../bridge/cluster.h"

/* A variable of the environment, or NULL: as getenv. */
typedef char *launch_variable(const char *name);

/* As cluster_resolve, whose errors it has; also where a launcher has started this process: cluster->by says
 * which. A launcher of one process, and --launcher=none: there is no cluster. Errors: ERROR_USAGE, too: a
 * variable that says nonsense, a launcher that does not say where the others are, --ps that leaves no worker.
 */
int launch_resolve(struct cluster *out, const struct config *settings, launch_variable *variable,
                   struct error *error);

enum { LAUNCH_ADDRESS_BYTES = ADDRESS_HOST_BYTES + 16 };

bool launch_is_loopback(const char *host);
/* "host:port", or "[::1]:port". */
void launch_address(const char *host, int port, char out[LAUNCH_ADDRESS_BYTES]);
/* The first of the ports of a job with this number, as many as any cluster on one machine wants. */
int launch_port(uint64_t job);

/* Whether --hosts asks this process to start those of the cluster: no launcher has started it. */
bool launch_starts(const struct config *settings, launch_variable *variable);

#endif
