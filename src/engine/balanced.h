/* --place=auto: the places of a group's layers, by measured times. */
#ifndef TRAINER_ENGINE_BALANCED_H
#define TRAINER_ENGINE_BALANCED_H

#include "batch_time.h"

struct balanced {
    bool abandoned;    /* a device hangs in a trial: as of batch_time */
    double expected_s; /* of a batch, as batch_time has it; 0: nothing was measured */
    char words[300];   /* for the first lines: "placed by measured times, 12.3 ms expected per batch" */
};

/* Measures the devices of the first group, finds the best places by these times, and tries them; they are
 * taken if they are faster than one device alone, and written into place[bytes] as --place has them. Takes
 * about a second for each device and another one. What is measured varies, so the places may, too. Errors:
 * those of costs_open; ERROR_USAGE: too many devices; the list is too long. */
int balanced_place(struct balanced *balanced, char *place, size_t bytes, const struct groups *groups,
                   const struct batch_work *work, struct error *error);

#endif
