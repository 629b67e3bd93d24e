/* Adagrad: each weight has its own rate, which falls with the squares of its gradients. */
#include "../../device/update.h"

enum { adagrad_moments = 1 };
enum { ADAGRAD_EPSILON /* of the constants */ };

/* a += g^2; w -= rate g / (sqrt(a) + epsilon). Source: Duchi, Hazan and Singer 2011. */
UPDATE_INLINE float adagrad_weight(const struct update *u, float w, float g, float *a) {
    *a += g * g;
    return w - u->rate * g / (sqrtf(*a) + u->constant[ADAGRAD_EPSILON]);
}

#ifndef __cplusplus
#    include "../optimizer.h"

struct adagrad_settings {
    struct optimizer_common common;
    double epsilon;
};

static const struct option rows[] = {
    OPTIMIZER_COMMON_ROWS("0.05"),
    OPTION_ROW(REAL, "epsilon", struct adagrad_settings, epsilon, .fallback = "1e-10", .least = 0, .most = 1,
               .help = "small number that keeps the divisor above zero"),
    {0},
};

static void adagrad_constants(const void *settings, struct update *update, long number) {
    (void)number;
    update->constant[ADAGRAD_EPSILON] = (float)((const struct adagrad_settings *)settings)->epsilon;
}

static void adagrad_step(const struct update *update, size_t floats, float *weights, float *const *moments,
                         const float *gradient) {
    optimizer_loop(adagrad_weight, adagrad_moments, update, floats, weights, moments, gradient);
}

const struct optimizer optimizer_adagrad = {
    .plugin = {.name = "adagrad",
               .help = "a rate for each weight, which falls with its squared gradients",
               .options = rows,
               .settings_bytes = sizeof(struct adagrad_settings)},
    .moments = adagrad_moments,
    .moment_names = {"squares"},
    .constants = adagrad_constants,
    .step = adagrad_step,
};
#endif
