/* Optimizers: a plug-in a file in src/store/optimizers/. */
#ifndef TRAINER_STORE_OPTIMIZER_H
#define TRAINER_STORE_OPTIMIZER_H

#include <stddef.h>
#include "../base/option.h"
#include "../device/update.h"

/* One step on a window of the flat vector in which decay and rate multiplier are constant. */
struct step {
    size_t floats;
    float *weights;        /* [floats], read and written */
    const float *gradient; /* [floats]; may not overlap the others */
    float *moments[2];     /* [floats] each, as many as the optimizer has; read and written */
    float rate;            /* learning rate, times the range's multiplier */
    float decay;           /* decay * w is added to the gradient */
    long update;           /* 1 for the first update of this shard */
};

struct optimizer {
    struct plugin plugin;        /* settings begin with a `struct optimizer_common` */
    int moments;                 /* vectors of state: 0 to 2 */
    const char *moment_names[2]; /* for checkpoints: "momentum", "variance" */
    void (*step)(const void *settings, const struct step *step);
    /* Fills in rule and constants of update number `number` (1 for the first), by which update_weight makes
     * the same step bit for bit; rate and decay are the caller's. NULL: it steps in host memory only. */
    void (*formula)(const void *settings, struct update *update, long number);
};

/* First member of every optimizer's settings. */
struct optimizer_common {
    double rate;
};
#define OPTIMIZER_COMMON_ROWS(usual)                                                                         \
    {                                                                                                        \
        .name = "rate", .type = OPTION_REAL, .offset = 0, .fallback = usual, .least = 0, .most = 1e6,        \
        .help = "learning rate"                                                                              \
    }

extern const struct optimizer *const optimizers[]; /* generated, ended by NULL */

#endif
