/* Hosting: the compute of a run whose workers are in other processes. Each worker's thread here is a proxy:
 * it sends the weights and the number of a batch to its peer, and gets the gradient. */
#ifndef TRAINER_TRAIN_HOSTING_H
#define TRAINER_TRAIN_HOSTING_H

#include "../bridge/host.h"
#include "training.h"

struct hosting {
    struct host *host; /* borrowed, as all here; open, with all peers */
    const struct store *store;
    const struct dealer *dealer;
    const struct roster *roster;
    double patience_s;
    long *numbers; /* [workers] owned: the batch in hand */
};

int hosting_open(struct hosting *hosting, struct host *host, const struct store *store,
                 const struct dealer *dealer, const struct roster *roster, double patience_s,
                 struct error *error);
void hosting_close(struct hosting *hosting); /* safe on a zeroed one */
struct compute hosting_compute(struct hosting *hosting);

#endif
