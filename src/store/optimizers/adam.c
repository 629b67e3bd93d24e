/* Adam: moving averages of the gradient and of its square, unbiased by the number of updates of the shard. */
#include <math.h>

#include "../../device/update.h"
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

static void adam_step(const void *settings, const struct step *step) {
    const struct adam_settings *own = settings;
    const float rate = step->rate, decay = step->decay, epsilon = (float)own->epsilon;
    const float beta1 = (float)own->beta1, beta2 = (float)own->beta2;
    const float unbias1 = (float)(1.0 / (1.0 - pow(own->beta1, (double)step->update)));
    const float unbias2 = (float)(1.0 / (1.0 - pow(own->beta2, (double)step->update)));
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
};
