/* Optimizers: one plug-in per file in src/store/optimizers/. A new one needs nothing else.
 *
 * The file begins with the formula for one weight, in the common part of C and C++: the GPU's kernels
 * include it for that (cuda/vectors.cu). NAME_moments says how many vectors of state it has; NAME_weight
 * gives the weight after the step: g is the gradient with decay already added, moment[moments] are this
 * weight's and are changed in place. What follows #ifndef __cplusplus is for the CPU only. */
#ifndef TRAINER_STORE_OPTIMIZER_H
#define TRAINER_STORE_OPTIMIZER_H

#include <stddef.h>
#include "../base/option.h"
#include "../device/update.h"

/* How an optimizer steps whole matrices: each weight's formula says where momentum leads (UPDATE_LOOKS), and
 * that is made nearly orthogonal before it is taken for a step (UPDATE_STEPS). */
struct matrix_rule {
    int steps;   /* of the iteration that makes it so, 1 or more */
    bool head;   /* the last matrix, which the classes are read from, is one of them */
    double rest; /* what the rate is multiplied by for all that is in no such matrix */
};

struct optimizer {
    struct plugin plugin;                     /* settings begin with a `struct optimizer_common` */
    int moments;                              /* vectors of state */
    const char *moment_names[UPDATE_MOMENTS]; /* for checkpoints: "momentum", "variance" */
    /* Fills in the constants of update number `number` (1 for the first); NULL: the formula has none. */
    void (*constants)(const void *settings, struct update *update, long number);
    /* Steps whole matrices so; NULL: each weight alone. */
    struct matrix_rule (*matrix)(const void *settings);
    /* The formula in a loop (struct update): optimizer_loop with the file's own formula. */
    void (*step)(const struct update *update, size_t floats, float *weights, float *const *moments,
                 const float *gradient);
};

/* First member of every optimizer's settings. */
struct optimizer_common {
    double rate, weight_decay;
};
#define OPTIMIZER_COMMON_ROWS(usual)                                                                         \
    OPTION_ROW(REAL, "rate", struct optimizer_common, rate, .fallback = usual, .least = 0, .most = 1e6,      \
               .help = "learning rate"),                                                                     \
        OPTION_ROW(REAL, "weight-decay", struct optimizer_common, weight_decay, .fallback = "0", .least = 0, \
                   .most = 1e6,                                                                              \
                   .help = "decoupled decay: rate times this of a weight is taken off it, biases aside")

extern const struct optimizer *const optimizers[]; /* generated, ended by NULL */
extern const struct plugin_kind optimizer_kind;    /* generated: the same */

static inline const struct optimizer *optimizer_of(const struct choice *choice) {
    return (const struct optimizer *)(const void *)choice->plugin;
}

/* The step that a choice of this table makes as update number `number`; rate, decay and what moves the
 * average are the caller's. */
struct update optimizer_update(const struct choice *choice, long number);

/* Inlined into each optimizer with its formula, of which the compiler then makes vector instructions. */
typedef float optimizer_formula(const struct update *update, float w, float g, float *moment);
static inline __attribute__((always_inline)) void
optimizer_loop(optimizer_formula *formula, int moments, const struct update *update, size_t floats,
               float *restrict weights, float *const *moment, const float *restrict gradient) {
    const struct update u = *update;
    float *restrict at[UPDATE_MOMENTS];
    for (int m = 0; m < moments; m++) at[m] = moment[m];
    for (size_t i = 0; i < floats; i++) {
        float now[UPDATE_MOMENTS];
        for (int m = 0; m < moments; m++) now[m] = at[m][i];
        const float w = weights[i];
        weights[i] = update_shrunk(&u, formula(&u, w, update_decayed(gradient[i], w, u.decay), now), w);
        for (int m = 0; m < moments; m++) at[m][i] = now[m];
    }
}

#endif
