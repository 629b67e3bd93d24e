/* Nesterov's momentum: the step is taken where the momentum will have led. */
#include "../optimizer.h"

struct nesterov_settings {
    struct optimizer_common common;
    double momentum;
};

static const struct option rows[] = {
    OPTIMIZER_COMMON_ROWS("0.01"),
    {.name = "momentum",
     .type = OPTION_REAL,
     .offset = offsetof(struct nesterov_settings, momentum),
     .fallback = "0.9",
     .least = 0,
     .most = 1,
     .help = "share of the last step that is kept"},
    {0},
};

static void nesterov_step(const void *settings, const struct step *step) {
    const struct nesterov_settings *own = settings;
    const float rate = step->rate, decay = step->decay, momentum = (float)own->momentum;
    float *restrict w = step->weights, *restrict v = step->moments[0];
    const float *restrict g = step->gradient;
    for (size_t i = 0; i < step->floats; i++)
        w[i] = update_nesterov(w[i], &v[i], update_decayed(g[i], w[i], decay), rate, momentum);
}

static void nesterov_formula(const void *settings, struct update *update, long number) {
    const struct nesterov_settings *own = settings;
    (void)number;
    update->rule = UPDATE_NESTEROV;
    update->a = (float)own->momentum;
}

const struct optimizer optimizer_nesterov = {
    .plugin = {.name = "nesterov",
               .help = "momentum that looks ahead",
               .options = rows,
               .settings_bytes = sizeof(struct nesterov_settings)},
    .moments = 1,
    .moment_names = {"momentum"},
    .step = nesterov_step,
    .formula = nesterov_formula,
};
