/* Adam: moving averages of the gradient and of its square, unbiased by the number of updates of the shard. */
#include <math.h>

#include "../optimizer.h"

struct adam_settings {
    struct optimizer_common common;
    double beta1, beta2, epsilon;
};

static const struct option rows[] = {
    OPTIMIZER_COMMON_ROWS("0.001"),
    {.name = "beta1",
     .type = OPTION_REAL,
     .offset = offsetof(struct adam_settings, beta1),
     .fallback = "0.9",
     .least = 0,
     .most = 0.999999,
     .help = "decay of the average of gradients"},
    {.name = "beta2",
     .type = OPTION_REAL,
     .offset = offsetof(struct adam_settings, beta2),
     .fallback = "0.999",
     .least = 0,
     .most = 0.99999999,
     .help = "decay of the average of squares"},
    {.name = "epsilon",
     .type = OPTION_REAL,
     .offset = offsetof(struct adam_settings, epsilon),
     .fallback = "1e-8",
     .least = 0,
     .most = 1,
     .help = "keeps the divisor above zero"},
    {0},
};

static void adam_formula(const void *settings, struct update *update, long number) {
    const struct adam_settings *own = settings;
    update->rule = UPDATE_ADAM;
    update->a = (float)own->beta1;
    update->b = (float)own->beta2;
    update->c = (float)own->epsilon;
    update->unbias1 = (float)(1.0 / (1.0 - pow(own->beta1, (double)number)));
    update->unbias2 = (float)(1.0 / (1.0 - pow(own->beta2, (double)number)));
}

static void adam_step(const void *settings, const struct step *step) {
    struct update update;
    adam_formula(settings, &update, step->update);
    const float rate = step->rate, decay = step->decay, epsilon = update.c;
    const float beta1 = update.a, beta2 = update.b, unbias1 = update.unbias1, unbias2 = update.unbias2;
    float *restrict w = step->weights, *restrict m = step->moments[0], *restrict v = step->moments[1];
    const float *restrict g = step->gradient;
    for (size_t i = 0; i < step->floats; i++)
        w[i] = update_adam(w[i], &m[i], &v[i], update_decayed(g[i], w[i], decay), rate, beta1, beta2, epsilon,
                           unbias1, unbias2);
}

const struct optimizer optimizer_adam = {
    .plugin = {.name = "adam",
               .help = "moving averages of the gradient and of its square",
               .options = rows,
               .settings_bytes = sizeof(struct adam_settings)},
    .moments = 2,
    .moment_names = {"mean", "square"},
    .step = adam_step,
    .formula = adam_formula,
};
