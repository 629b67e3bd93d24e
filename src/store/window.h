/* One step on a window of a span: the optimizer's for trainable ranges, w -= g for statistics, nothing for
 * frozen ones. */
#ifndef TRAINER_STORE_WINDOW_H
#define TRAINER_STORE_WINDOW_H

#include "store.h"

/* step->weights, moments and gradient are set; rate and decay are filled in from the span. */
static inline void window_step(const struct store *store, const struct span *span, struct step *step,
                               float rate) {
    const struct choice *choice = store->settings.optimizer;
    const struct optimizer *optimizer = (const struct optimizer *)(const void *)choice->plugin;
    if (span->kind == RANGE_TRAINABLE) {
        step->rate = rate * span->rate_multiplier;
        step->decay = span->decay;
        optimizer->step(choice->settings, step);
    } else if (span->kind == RANGE_STATISTIC) {
        for (size_t i = 0; i < step->floats; i++) step->weights[i] -= step->gradient[i];
    }
}

#endif
