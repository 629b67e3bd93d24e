/* Hosting: the compute of a run whose workers are in other processes. Each worker's thread here is a proxy:
 * it sends the weights of this process's window and gets their gradient. Of several such processes the first,
 * the leader, deals the batches; the others follow: they are told by the workers what was dealt. */
#ifndef TRAINER_TRAIN_HOSTING_H
#define TRAINER_TRAIN_HOSTING_H

#include "../bridge/host.h"
#include "../bridge/lead.h"
#include "training.h"

struct hosting {
    struct host *host; /* borrowed, as all here; open, with all peers */
    struct store *store;
    struct dealer *dealer;
    const struct roster *roster;
    double patience_s,
        fetch_s;       /* for a worker's word; for a follower's window, which may be waiting itself */
    long *numbers;     /* [workers] owned: the batch in hand */
    struct tally *far; /* [workers] owned; of the leader: what the followers have counted */
    long far_lost_updates;
    long long sent_before, received_before; /* bytes, before the first batch */
};

int hosting_open(struct hosting *hosting, const struct hosting *from, struct error *error);
void hosting_close(struct hosting *hosting); /* safe on a zeroed one */
struct compute hosting_compute(struct hosting *hosting);

/* At the leader, while all are paused: the followers' windows and counters into the store here; the other way
 * round, at the start; the whole of it, at the end; and the go for the next segment. Without followers they
 * do nothing. Errors: ERROR_PEER. */
int hosting_fetch(struct hosting *hosting, struct error *error);
int hosting_spread(struct hosting *hosting, bool whole, struct error *error);
int hosting_go(struct hosting *hosting, struct error *error);

/* All that a step changes in [begin, end): weights, optimizer state, average. */
struct window hosting_window(const struct hosting *hosting, size_t begin, size_t end);

/* At a follower: answers a fetch. */
int hosting_answer(struct hosting *hosting, struct error *error);

/* Bytes that went between this process and the workers since the first batch. */
long long hosting_sent(const struct hosting *hosting);
long long hosting_received(const struct hosting *hosting);

#endif
