/* The device of a mirrored worker as a rank: it adds its gradients with those of the workers of all
 * processes, by the collective of its backend, so that no gradient goes over the bridge. Each host receives
 * from its own process the sum of its slice. */
#ifndef TRAINER_CLUSTER_RANKS_H
#define TRAINER_CLUSTER_RANKS_H

#include "../bridge/remote.h"
#include "../config/config.h"

struct ranked {
    const struct collective *collective;
    const struct device *device; /* borrowed, as is the next */
    struct remote *remote;
    void *rank;                  /* NULL: the hosts add what the workers send */
    float *gradient;             /* [layout floats] on the device; borrowed */
    struct rank_window *windows; /* [remote hosts] the hosts' slices */
};

/* Whether the device can be one, for the hello; draws: with an id for all. Errors: ERROR_USAGE:
 * --links=collective was typed, and it cannot. */
int ranked_offer(const struct device *device, const struct config *config, bool mirrored, bool draws,
                 struct rank_offer *offer, struct error *error);
/* Once welcomed: becomes one where all agree. asked: else it is an error, ERROR_USAGE. */
int ranked_open(struct ranked *ranked, const struct device *device, struct remote *remote, float *gradient,
                bool asked, struct error *error);
/* The sum of all workers' gradients: the slices whose root this device is, in out[layout floats] in the
 * host's memory. */
int ranked_sum(struct ranked *ranked, float *out, struct error *error);
void ranked_close(struct ranked *ranked, bool well); /* safe on a zeroed one */

#endif
