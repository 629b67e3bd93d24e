/* The crew: who computes the gradients of a run. Either threads of this process (threads.h), or members of
 * a cluster, each represented by a thread here (src/cluster/members.h). A run is given its crew and does
 * not ask which kind it is. */
#ifndef TRAINER_ENGINE_CREW_H
#define TRAINER_ENGINE_CREW_H

#include "../config/config.h"
#include "../data/dataset.h"
#include "../device/groups.h"
#include "../record/summary.h"
#include "../store/phases.h"
#include "group.h"
#include "network.h"
#include "paces.h"
#include "training.h"

/* What a run has open, for its crew. What `open` is given may not be open yet: store, sampler and roster are
 * there when `compute` is called. All borrowed. */
struct crew_site {
    struct world *world;
    const struct config *config;
    const struct dataset *dataset;
    const struct network *network;
    const struct network_settings *network_settings; /* that it was made from */
    const struct device *devices;                    /* [device_count] of this process */
    int device_count;
    const struct groups *groups; /* that these are the first devices of; NULL: they are no groups */
    struct store *store;
    struct sampler *sampler;
    struct roster *roster;
    const struct traits *traits;
    int prefetch;                                   /* batches built ahead of a worker */
    void (*say)(void *argument, const char *words); /* to the user */
    void *argument;
};

/* One worker. */
struct crew_member {
    char name[MEMBER_NAME_BYTES];  /* "worker 1 (cpu:1)" */
    char device[GROUP_NAME_BYTES]; /* "cpu:1" */
    const struct cores *cores;     /* where its thread runs; NULL: anywhere */
    bool absent;                   /* it has not come yet: it takes part once `admit` has let it in */
};

/* What the crew alone has counted: outside this process, or between the devices of groups. */
struct crew_totals {
    int ps, workers;  /* processes of the cluster; ps 0: it is mirrored */
    long seen_before; /* updates of the newest weights that a worker had before this process was lost */
    long lost_updates;
    long long sent, received; /* bytes, to and from the workers, since the first batch */
    double idle, idle_equal;  /* of groups here, as group_idle; NAN where there is no pipeline */
};

/* Every slot but open, member, compute, totals and close may be NULL: nothing to do. All are called by the
 * coordinating thread; go, fetch and notice once or more for each segment, change between two or before the
 * first, the others once, in this order.
 * None is called after `close`. */
struct crew {
    /* The process has part number `part` of the `parts` that the shards are spread over, and so are others.
     */
    int part, parts;
    bool mirrored;  /* the parts are in the workers' processes */
    bool elsewhere; /* the workers are in other processes: they print, clip and build their batches */

    /* Brings all workers together: *self, and how many they are. Errors: ERROR_PEER: somebody is missing. */
    int (*open)(void **self, const void *settings, const struct crew_site *site, int *workers,
                struct error *error);
    const void *settings; /* of `open`, borrowed */
    void (*member)(const void *self, int worker, struct crew_member *member);
    /* How long a worker takes for its batches, as its process has measured; NULL: they are here, and nobody
     * has. */
    void (*pace)(const void *self, int worker, struct pace *pace);
    /* How they compute, with `site` all open. */
    int (*compute)(void *self, struct compute *compute, struct error *error);
    /* All threads of the run are there and wait for the first go. */
    int (*begin)(void *self, struct error *error);
    /* Something to tell the user since it was last asked; false: nothing. Also while workers run. */
    bool (*notice)(void *self, char *words, size_t bytes);
    /* Whether another process that the run needs has to go: it ends as if it was interrupted. Also while
     * workers run. */
    bool (*asked)(void *self);
    /* While workers run. Errors: ERROR_PEER: a process is gone without which the run cannot go on. */
    int (*watch)(void *self, struct error *error);
    int (*go)(void *self, struct error *error); /* a segment begins */
    /* Whether somebody is there who could take a worker's place, so that a pause is wanted. Also while
     * workers run. */
    bool (*joining)(void *self);
    /* While all pause: lets one in, for a worker that is_free[worker] is set of, which `member` describes
     * anew: *worker; -1: nobody. Errors: memory. */
    int (*admit)(void *self, const bool *is_free, int *worker, struct error *error);
    /* The strategy, or who takes part, has changed while all pause: site->traits are those of now. */
    int (*change)(void *self, const struct phase_change *change, struct error *error);
    /* A segment is over, all pause: what other parts have becomes what the store here has. */
    int (*fetch)(void *self, struct error *error);
    /* The run has failed, and all threads here have ended: the same, where the other parts are whole, too. */
    int (*fetch_rest)(void *self, struct error *error);
    /* Whether another part has lost this worker, as far as is known. Also while workers run. */
    bool (*lost)(const void *self, int worker);
    /* Adds what shards in other processes have counted for a worker; and everything else that is elsewhere.
     */
    void (*tally)(const void *self, int worker, struct tally *sum);
    void (*totals)(const void *self, struct crew_totals *totals);
    /* What has become of the recording of a worker's step; false: it is not known, or nothing is recorded. */
    bool (*recording)(const void *self, int worker, struct recording_facts *facts);
    /* At the end: how the run ended, and its results. */
    void (*finish)(void *self, const struct error *error, const struct summary *summary);
    /* Safe on NULL and a half-open one. false: a thread of the crew's hangs: what it was given must stay. */
    bool (*close)(void *self);
};

#endif
