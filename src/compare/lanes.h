/* Many runs on many devices: each device has a thread, its lane, which takes the next run when it is free. */
#ifndef TRAINER_COMPARE_LANES_H
#define TRAINER_COMPARE_LANES_H

#include "../config/config.h"

enum lane_answer { LANE_TAKE, LANE_WAIT, LANE_END };

struct shared_lanes; /* what all lanes of a run share: lanes.c */

/* What is to be done. One lane at a time calls `take` and `ended`; `work` is called by all of them at once.
 */
struct lane_work {
    /* LANE_TAKE: *job is to be done; LANE_WAIT: ask again when another one has ended; LANE_END: there is
     * no more. */
    enum lane_answer (*take)(void *self, int *job);
    void (*work)(void *self, int lane, int job, struct error *failure);
    void (*ended)(void *self, int job, const struct error *failure);
    /* Called while the lanes work, by who called lanes_run; returns when there are no more jobs. For lanes
     * that are elsewhere, which take jobs between lanes_hold and lanes_release. NULL: there are none. */
    void (*serve)(void *self, struct shared_lanes *shared);
    void *self;
};

struct lanes {
    struct world *world;
    struct device *devices; /* [count] of --devices */
    int count;
};

/* Errors: as devices_open. */
int lanes_open(struct lanes *lanes, const struct config *config, struct error *error);
/* Without a device: all lanes are elsewhere. Errors: ERROR_DEVICE. */
int lanes_open_none(struct lanes *lanes, struct error *error);
void lanes_close(struct lanes *lanes); /* safe on a zeroed one */
/* A run on this device alone: with its name and the threads that it has among the others. */
void lanes_settings(const struct lanes *lanes, int lane, struct config *config);
/* Returns when all lanes have ended. An interrupt is what `take` sees to. Errors: ERROR_DEVICE: a thread
 * cannot be started; what was begun is done. */
int lanes_run(const struct lanes *lanes, const struct lane_work *work, struct error *error);

/* --- for `serve` and its threads --- */

void lanes_hold(struct shared_lanes *shared);    /* no lane takes a job, or ends one */
void lanes_release(struct shared_lanes *shared); /* after it */
void lanes_tell(struct shared_lanes *shared); /* those that wait ask again: a job has ended, or come back */
uint64_t lanes_told(const struct shared_lanes *shared); /* how often */

#endif
