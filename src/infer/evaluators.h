/* One evaluation by several devices at once: each takes the next batch, and what the batches came to is added
 * in the order of the examples, so that the figures do not depend on which device was faster. */
#ifndef TRAINER_INFER_EVALUATORS_H
#define TRAINER_INFER_EVALUATORS_H

#include "../world/world.h"
#include "evaluate.h"

struct evaluators {
    struct world *world;
    struct evaluator *each; /* [count] */
    int count;
};

/* An evaluator on each of the devices [count], which are copied, compiled; settings and units as
 * evaluator_open has them. Errors: those of evaluator_open and evaluator_compile. */
int evaluators_open(struct evaluators *all, struct world *world, const struct network_settings *settings,
                    const struct units *units, const struct device *devices, int count, struct error *error);
void evaluators_close(struct evaluators *all); /* safe on a zeroed or half-open one */

/* As evaluator_run. Errors: those of the first device that failed; ERROR_DEVICE, too, where one is not done
 * with a batch within EVALUATORS_WAIT_S. */
enum { EVALUATORS_WAIT_S = 600 };
int evaluators_run(struct evaluators *all, const struct examples *examples, float *weights,
                   struct evaluation *result, struct error *error);

#endif
