/* Rounds of a shard that end as soon as enough workers have contributed a gradient, under the shard's lock,
 * on the thread of the one that completes them; halves of strategies that are made of such rounds. A worker
 * goes on when the round is over in which its gradient is. The others are still computing: what they bring
 * comes too late, or counts in a later round, though it is stale.
 *
 * A strategy's state (shard->state) begins with a struct quorum. */
#ifndef TRAINER_STORE_QUORUM_H
#define TRAINER_STORE_QUORUM_H

#include "strategy.h"

/* A worker at a shard. */
struct quorum_line {
    _Atomic bool resting; /* it has no batch until the next segment; written under the lock */
    _Atomic long waiting; /* for the end of this round of the shard, plus 1; 0: it does not wait */
    bool sent;  /* it has sent a gradient since it read the weights; this and the next are its own */
    long round; /* in which that gradient is: the version which that round began with */
};

struct quorum {
    _Atomic int needed;  /* gradients that a round waits for, 1 at least, where so many workers run; written
                            by the strategy, under the lock or before anybody trains */
    _Atomic int arrived; /* gradients contributed in this round; written under the lock */
    bool stale_counts;   /* the version counts gradients; else it counts rounds, and late ones are dropped */
    struct quorum_line *lines; /* [workers] */
};

/* shard->state is a zeroed struct quorum, or begins with one. Errors: ERROR_DEVICE: memory. */
int quorum_open(struct shard *shard, int needed, bool stale_counts, struct error *error);
void quorum_close(struct shard *shard); /* safe on a state that is NULL or zeroed; does not free it */

/* push, pull and rest of a strategy. */
int quorum_push(struct shard *shard, struct gradient *gradient, struct error *error);
int quorum_pull(struct shard *shard, struct worker_side *side, struct error *error);
int quorum_rest(struct shard *shard, struct worker_side *side, struct error *error);

#endif
