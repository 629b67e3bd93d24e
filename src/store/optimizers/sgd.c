/* Plain stochastic gradient descent. */
#include "../optimizer.h"

static const struct option rows[] = {
    OPTIMIZER_COMMON_ROWS("0.01"),
    {0},
};

static void sgd_step(const void *settings, const struct step *step) {
    const float rate = step->rate, decay = step->decay;
    float *restrict w = step->weights;
    const float *restrict g = step->gradient;
    (void)settings;
    for (size_t i = 0; i < step->floats; i++)
        w[i] = update_sgd(w[i], update_decayed(g[i], w[i], decay), rate);
}

static void sgd_formula(const void *settings, struct update *update, long number) {
    (void)settings, (void)number;
    update->rule = UPDATE_SGD;
}

const struct optimizer optimizer_sgd = {
    .plugin = {.name = "sgd",
               .help = "plain stochastic gradient descent",
               .options = rows,
               .settings_bytes = sizeof(struct optimizer_common)},
    .moments = 0,
    .step = sgd_step,
    .formula = sgd_formula,
};
