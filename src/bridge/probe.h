/* How a host is, asked by one who takes no part: readiness and liveness for whoever runs clusters. */
#ifndef TRAINER_BRIDGE_PROBE_H
#define TRAINER_BRIDGE_PROBE_H

#include "host.h"

enum { PROBE_BYTES = LAST_WORDS_BYTES + 1 };

/* The answer of the host at this address, "parameter server 0 of 1, training: epoch 3 of 20, step 120".
 * Errors: ERROR_PEER: nobody answers within timeout_s, or no host of a cluster; one without the key is told
 * less, or nothing; those of endpoint_connect. */
int probe_host(struct world *world, const char *address, double timeout_s, char words[PROBE_BYTES],
               struct error *error);

/* At the host. What this guest has said is the question. */
bool probe_is_next(struct endpoint *endpoint);
/* Then: takes it, and answers; one who does not hold the key is told less. The guest is to leave. */
void probe_answer(const struct host *host, struct guest *guest);

#endif
