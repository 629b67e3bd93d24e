/* Gradient descent with momentum. */
#include "momentum.h"

enum { momentum_moments = 1 };

/* v = momentum v + g; w -= rate v. Source: Polyak 1964, in the form of Sutskever et al. 2013 with the rate
 * outside. */
UPDATE_INLINE float momentum_weight(const struct update *u, float w, float g, float *v) {
    *v = momentum_of(u, *v, g);
    return w - u->rate * *v;
}

#ifndef __cplusplus
static void momentum_step(const struct update *update, size_t floats, float *weights, float *const *moments,
                          const float *gradient) {
    optimizer_loop(momentum_weight, momentum_moments, update, floats, weights, moments, gradient);
}

const struct optimizer optimizer_momentum = {
    .plugin = {.name = "momentum",
               .help = "gradient descent with momentum",
               .options = momentum_rows,
               .settings_bytes = sizeof(struct momentum_settings)},
    .moments = momentum_moments,
    .moment_names = {"momentum"},
    .constants = momentum_constants,
    .step = momentum_step,
};
#endif
