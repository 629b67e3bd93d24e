/* Nesterov's momentum: the step is taken where the momentum will have led. */
#include "momentum.h"

enum { nesterov_moments = 1 };

/* v = momentum v + g; w -= rate (g + momentum v) */
UPDATE_INLINE float nesterov_weight(const struct update *u, float w, float g, float *v) {
    *v = momentum_of(u, *v, g);
    return w - u->rate * (g + u->constant[MOMENTUM] * *v);
}

#ifndef __cplusplus
static void nesterov_step(const struct update *update, size_t floats, float *weights, float *const *moments,
                          const float *gradient) {
    optimizer_loop(nesterov_weight, nesterov_moments, update, floats, weights, moments, gradient);
}

const struct optimizer optimizer_nesterov = {
    .plugin = {.name = "nesterov",
               .help = "gradient descent with Nesterov's momentum, which looks ahead",
               .options = momentum_rows,
               .settings_bytes = sizeof(struct momentum_settings)},
    .moments = nesterov_moments,
    .moment_names = {"momentum"},
    .constants = momentum_constants,
    .step = nesterov_step,
};
#endif
