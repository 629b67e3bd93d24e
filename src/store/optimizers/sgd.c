/* Plain stochastic gradient descent. */
#include "../../device/update.h"

enum { sgd_moments = 0 };

/* w -= rate g */
UPDATE_INLINE float sgd_weight(const struct update *u, float w, float g, float *moment) {
    (void)moment;
    return w - u->rate * g;
}

#ifndef __cplusplus
#    include "../optimizer.h"

static const struct option rows[] = {
    OPTIMIZER_COMMON_ROWS("0.01"),
    {0},
};

static void sgd_step(const struct update *update, size_t floats, float *weights, float *const *moments,
                     const float *gradient) {
    optimizer_loop(sgd_weight, sgd_moments, update, floats, weights, moments, gradient);
}

const struct optimizer optimizer_sgd = {
    .plugin = {.name = "sgd",
               .help = "plain stochastic gradient descent",
               .options = rows,
               .settings_bytes = sizeof(struct optimizer_common)},
    .moments = sgd_moments,
    .step = sgd_step,
};
#endif
