/* Many runs on many devices: each device has a thread, its lane, which takes the next run when it is free. */
#ifndef TRAINER_COMPARE_LANES_H
#define TRAINER_COMPARE_LANES_H

#include "../config/config.h"

enum lane_answer { LANE_TAKE, LANE_WAIT, LANE_END };

/* What is to be done. One lane at a time calls `take` and `ended`; `work` is called by all of them at once.
 */
struct lane_work {
    /* LANE_TAKE: *job is to be done; LANE_WAIT: ask again when another one has ended; LANE_END: there is
     * no more. */
    enum lane_answer (*take)(void *self, int *job);
    void (*work)(void *self, int lane, int job);
    void (*ended)(void *self, int lane, int job);
    void *self;
};

struct lanes {
    struct device *devices; /* [count] of --devices */
    int count;
};

/* Errors: as devices_open. */
int lanes_open(struct lanes *lanes, const struct config *config, struct error *error);
void lanes_close(struct lanes *lanes); /* safe on a zeroed one */
/* A run on this device alone: with its name and the threads that it has among the others. */
void lanes_settings(const struct lanes *lanes, int lane, struct config *config);
/* Returns when all lanes have ended. An interrupt is what `take` sees to. Errors: ERROR_DEVICE: a thread
 * cannot be started; what was begun is done. */
int lanes_run(const struct lanes *lanes, const struct lane_work *work, struct error *error);

#endif
