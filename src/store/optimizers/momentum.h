/* What momentum and nesterov share: the vector v = momentum v + g, its name, and the settings. */
#ifndef TRAINER_STORE_OPTIMIZERS_MOMENTUM_H
#define TRAINER_STORE_OPTIMIZERS_MOMENTUM_H

#include "../../device/update.h"

enum { MOMENTUM /* of the constants */ };

UPDATE_INLINE float momentum_of(const struct update *u, float v, float g) {
    return u->constant[MOMENTUM] * v + g;
}

#ifndef __cplusplus
#    include "../optimizer.h"

struct momentum_settings {
    struct optimizer_common common;
    double momentum;
};

static const struct option momentum_rows[] = {
    OPTIMIZER_COMMON_ROWS("0.01"),
    OPTION_ROW(REAL, "momentum", struct momentum_settings, momentum, .fallback = "0.9", .least = 0, .most = 1,
               .help = "share of the previous step that is kept"),
    {0},
};

static void momentum_constants(const void *settings, struct update *update, long number) {
    (void)number;
    update->constant[MOMENTUM] = (float)((const struct momentum_settings *)settings)->momentum;
}
#endif

#endif
