/* What the trained network says of the test part: which class it takes for which, and the examples that it is
 * most wrong about. A section for a page about the run. */
#ifndef TRAINER_REPORT_CONFUSED_H
#define TRAINER_REPORT_CONFUSED_H

#include "../pictures/confusion.h"
#include "../pictures/wrong.h"
#include "report.h"

struct confused {
    const struct dataset *dataset; /* borrowed */
    const int *said;               /* [test examples] class; borrowed */
    struct confusion confusion;
    struct mistake *mistakes; /* [count] owned; the surest first */
    int count;
    bool pictures; /* the examples can be shown */
    struct example_sizes sizes;
};

/* What `answers` points to is borrowed. Errors: ERROR_USAGE: more classes than a matrix has; ERROR_DEVICE
 * (memory). */
int confused_open(struct confused *confused, const struct dataset *dataset, const struct answers *answers,
                  struct error *error);
void confused_close(struct confused *confused); /* safe on a zeroed or half-open one */

/* The section; `confused` is borrowed. */
struct report_section confused_section(const struct confused *confused);

#endif
