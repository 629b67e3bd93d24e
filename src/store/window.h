/* One step on a window of a span: the optimizer's for trainable ranges, w -= g for statistics, nothing for
 * frozen ones; and the moving average of the weights, which follows all of them. */
#ifndef TRAINER_STORE_WINDOW_H
#define TRAINER_STORE_WINDOW_H

#include "../device/update.h"
#include "store.h"

static inline void window_step_weights(const struct store *store, const struct span *span,
                                       const struct step *step) {
    const struct choice *choice = store->settings.optimizer;
    const struct optimizer *optimizer = (const struct optimizer *)(const void *)choice->plugin;
    if (span->kind == RANGE_TRAINABLE)
        optimizer->step(choice->settings, step);
    else if (span->kind == RANGE_STATISTIC)
        for (size_t i = 0; i < step->floats; i++) step->weights[i] -= step->gradient[i];
}

/* step->weights, moments and gradient are set; rate and decay are filled in from the span. average[floats] of
 * these weights, or NULL: it is moved block by block, while the weights just stepped are in the first cache.
 */
static inline void window_step(const struct store *store, const struct span *span, struct step *step,
                               float rate, float *restrict average) {
    enum { BLOCK_FLOATS = 2048 };
    step->rate = rate * span->rate_multiplier;
    step->decay = span->decay;
    if (!average) {
        window_step_weights(store, span, step);
        return;
    }
    const float towards = update_average_rate(store->settings.average, step->update);
    struct step block = *step;
    for (size_t at = 0; at < step->floats; at += block.floats) {
        block.floats = step->floats - at < BLOCK_FLOATS ? step->floats - at : BLOCK_FLOATS;
        block.weights = step->weights + at;
        block.gradient = step->gradient + at;
        for (int m = 0; m < 2; m++)
            if (step->moments[m]) block.moments[m] = step->moments[m] + at;
        window_step_weights(store, span, &block);
        for (size_t i = 0; i < block.floats; i++)
            average[at + i] = update_average(average[at + i], block.weights[i], towards);
    }
}

#endif
