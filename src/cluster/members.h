/* The crew of a run whose workers are members of a cluster. Each has a thread here, its proxy, which goes
 * through the training loop like any worker: it sends the weights of this process's slice and receives
 * their gradient. With several such processes the first, the leader, assigns the batches; the workers tell
 * the others what was assigned. */
#ifndef TRAINER_CLUSTER_MEMBERS_H
#define TRAINER_CLUSTER_MEMBERS_H

#include "../bridge/host.h"
#include "../bridge/lead.h"
#include "../engine/crew.h"
#include "sessions.h"

/* What the crew is made for; borrowed until it is closed. */
struct members_settings {
    const struct cluster *cluster;
    const _Atomic bool *give_up;     /* set when the rest of this process has failed; NULL: there is none */
    const struct error *because;     /* what it failed with, once give_up is set */
    struct cluster_session *session; /* told of what becomes of it; NULL: none */
};

/* The crew of this process, a parameter server of the cluster. */
struct crew members_crew(const struct members_settings *settings);

struct members {
    const struct crew_site *site; /* borrowed */
    struct members_settings settings;
    struct choice compressor;
    struct fingerprint fingerprint;
    struct host host;          /* where the workers are */
    double timeout_s, fetch_s; /* for a worker's word; for a follower's slice, which may be waiting itself */
    bool failed;               /* the run has: what is fetched is the rest */
    bool cut;                  /* the last fetch of a pause, by one that did not answer */
    long least;                /* version of all slices in the last fetch, this one included */
    const struct follower *failing; /* in the last fetch: a follower whose run has failed; NULL: none */
    uint64_t blamed;   /* by that follower, or at it: 1 + the member that failed first; 0: none */
    long *numbers;     /* [workers] the batch in hand */
    bool sums;         /* the workers' devices can add their gradients (means.h) */
    bool moves;        /* weights change while they are sent, which are then copied to: */
    float **copies;    /* [workers] each [floats of the slice]; NULL: none was needed yet */
    struct tally *far; /* [workers] of the leader: what the followers have counted */
    long far_lost_updates;
    /* Segments, fetches, changes and admissions so far: the turn of the last one. */
    uint64_t went, fetched, changed, admitted;
    uint64_t *taking; /* [workers] the process that takes this place at this pause; 0: none (admission.h) */
    bool counting;    /* bytes, since the first batch */
    long long sent_before, received_before;
};

/* For a follower: answers the fetch of this turn; the slice that is its own, or all that was tested. */
int members_answer(struct members *members, struct error *error);
/* For the leader, while workers run: errors: ERROR_PEER: a follower has gone without a word. */
int members_watch(void *members, struct error *error);
/* For the leader, at a pause: all slices, tallies and losses. Errors: ERROR_PEER, which names the follower.
 */
int members_fetch(void *members, struct error *error);
/* The same once the run has failed: a follower whose slice is not whole does not answer, but ends. */
int members_fetch_rest(void *members, struct error *error);
struct slice members_slice(const struct members *members, size_t begin, size_t end);
/* What is packed for it and by it, with --compress. Errors: memory. */
int members_open_packed(struct members *members, int worker, struct error *error);
/* A segment begins: so many share what is owed. */
void members_count_present(struct members *members);

#endif
