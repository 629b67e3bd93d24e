/* Plans that are kept with a device, for kernels whose `prepare` takes long, as one that measures does: a
 * plan is made once for a problem, whoever asks and how often, and while it is made nobody else measures. */
#ifndef TRAINER_DEVICE_PLANS_H
#define TRAINER_DEVICE_PLANS_H

#include "device.h"

struct kept_plan;

struct plans {
    struct world *world;     /* of the lock alone */
    struct lock lock;        /* guards the list, and is held while a plan is made */
    struct kept_plan *first; /* a list */
};

/* Errors: ERROR_DEVICE: memory. */
int plans_open(struct plans *plans, struct error *error);
/* Releases all plans, when nobody uses them any more; safe on a zeroed one. */
void plans_close(struct plans *plans);
/* As kernel->prepare, but that *plan stays the list's, and is not to be released. That a kernel declines is
 * kept too; an error is not. */
int plans_prepare(struct plans *plans, const struct kernel *kernel, const struct problem *problem,
                  void **plan, struct error *error);

#endif
