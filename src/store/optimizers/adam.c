/* Adam: moving averages of the gradient and of its square, unbiased by the number of updates of the shard. */
#include "../../device/update.h"

enum { adam_moments = 2 };
enum { ADAM_BETA1, ADAM_BETA2, ADAM_EPSILON, ADAM_UNBIAS1, ADAM_UNBIAS2 /* of the constants */ };

/* Source: Kingma and Ba 2015, algorithm 1. unbias1 = 1/(1-beta1^t), unbias2 = 1/(1-beta2^t). */
UPDATE_INLINE float adam_weight(const struct update *u, float w, float g, float *moment) {
    const float beta1 = u->constant[ADAM_BETA1], beta2 = u->constant[ADAM_BETA2];
    const float m = beta1 * moment[0] + (1.0f - beta1) * g;
    const float v = beta2 * moment[1] + (1.0f - beta2) * (g * g);
    moment[0] = m;
    moment[1] = v;
    return w - u->rate * (m * u->constant[ADAM_UNBIAS1]) /
                   (sqrtf(v * u->constant[ADAM_UNBIAS2]) + u->constant[ADAM_EPSILON]);
}

#ifndef __cplusplus
#    include "../optimizer.h"

struct adam_settings {
    struct optimizer_common common;
    double beta1, beta2, epsilon;
    bool hat;
};

static const struct option rows[] = {
    OPTIMIZER_COMMON_ROWS("0.001"),
    OPTION_ROW(REAL, "beta1", struct adam_settings, beta1, .fallback = "0.9", .least = 0, .most = 0.999999,
               .help = "decay of the average of the gradients"),
    OPTION_ROW(REAL, "beta2", struct adam_settings, beta2, .fallback = "0.999", .least = 0,
               .most = 0.99999999, .help = "decay of the average of their squares"),
    OPTION_ROW(REAL, "epsilon", struct adam_settings, epsilon, .fallback = "1e-8", .least = 0, .most = 1,
               .help = "small number that keeps the divisor above zero"),
    OPTION_ROW(FLAG, "hat", struct adam_settings, hat, .fallback = "0",
               .help = "epsilon is added before the bias is taken out, as in Keras and TensorFlow"),
    {0},
};

/* hat: sqrt(v) + epsilon instead of sqrt(v unbias2) + epsilon, both with the rate's share of unbias2 taken
 * out: the "epsilon hat" of Kingma and Ba, section 2. */
static void adam_constants(const void *settings, struct update *update, long number) {
    const struct adam_settings *own = settings;
    update->constant[ADAM_BETA1] = (float)own->beta1;
    update->constant[ADAM_BETA2] = (float)own->beta2;
    const double unbias2 = 1.0 / (1.0 - pow(own->beta2, (double)number));
    update->constant[ADAM_EPSILON] = (float)(own->hat ? own->epsilon * sqrt(unbias2) : own->epsilon);
    update->constant[ADAM_UNBIAS1] = (float)(1.0 / (1.0 - pow(own->beta1, (double)number)));
    update->constant[ADAM_UNBIAS2] = (float)unbias2;
}

static void adam_step(const struct update *update, size_t floats, float *weights, float *const *moments,
                      const float *gradient) {
    optimizer_loop(adam_weight, adam_moments, update, floats, weights, moments, gradient);
}

const struct optimizer optimizer_adam = {
    .plugin = {.name = "adam",
               .help = "each weight's step by moving averages of its gradient and of its square",
               .options = rows,
               .settings_bytes = sizeof(struct adam_settings)},
    .moments = adam_moments,
    .moment_names = {"mean", "square"},
    .constants = adam_constants,
    .step = adam_step,
};
#endif
