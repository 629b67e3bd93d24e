/* Adagrad: each weight has its own rate, which falls with the squares of its gradients. */
#include "../optimizer.h"

struct adagrad_settings {
    struct optimizer_common common;
    double epsilon;
};

static const struct option rows[] = {
    OPTIMIZER_COMMON_ROWS("0.05"),
    {.name = "epsilon",
     .type = OPTION_REAL,
     .offset = offsetof(struct adagrad_settings, epsilon),
     .fallback = "1e-10",
     .least = 0,
     .most = 1,
     .help = "keeps the divisor above zero"},
    {0},
};

static void adagrad_step(const void *settings, const struct step *step) {
    const struct adagrad_settings *own = settings;
    const float rate = step->rate, decay = step->decay, epsilon = (float)own->epsilon;
    float *restrict w = step->weights, *restrict a = step->moments[0];
    const float *restrict g = step->gradient;
    for (size_t i = 0; i < step->floats; i++)
        w[i] = update_adagrad(w[i], &a[i], update_decayed(g[i], w[i], decay), rate, epsilon);
}

static void adagrad_formula(const void *settings, struct update *update, long number) {
    const struct adagrad_settings *own = settings;
    (void)number;
    update->rule = UPDATE_ADAGRAD;
    update->a = (float)own->epsilon;
}

const struct optimizer optimizer_adagrad = {
    .plugin = {.name = "adagrad",
               .help = "rates that fall with the squares seen so far",
               .options = rows,
               .settings_bytes = sizeof(struct adagrad_settings)},
    .moments = 1,
    .moment_names = {"squares"},
    .step = adagrad_step,
    .formula = adagrad_formula,
};
