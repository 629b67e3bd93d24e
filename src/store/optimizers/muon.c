/* Muon: the steps of whole matrices are momentum made orthogonal; all else has Nesterov's momentum.
 *
 * Source: K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024. A matrix is an
 * array of at least two dimensions, seen as [all but the last, the last]; its step is long as
 * sqrt(max(1, columns / rows)). The last one, from which the classes are read, is left to the rest. Weight
 * decay is for the matrices, whose steps have one length whatever the gradient's: it bounds how long they
 * grow. The rest has none, as its rate would multiply it. */
#include "../../device/update.h"

enum { muon_moments = 1 };
enum { MUON_MOMENTUM, MUON_REST_MOMENTUM /* of the constants */ };

/* v = momentum v + g. Of a matrix, g + momentum v is what becomes orthogonal, and a step w -= rate g; of the
 * rest w -= rate (g + momentum v). */
UPDATE_INLINE float muon_weight(const struct update *u, float w, float g, float *v) {
    const float rest = u->constant[MUON_REST_MOMENTUM], matrix = u->constant[MUON_MOMENTUM];
    const float momentum = u->phase == UPDATE_ALONE ? rest : matrix; /* no index: a GPU would need memory */
    if (u->phase == UPDATE_STEPS) return w - u->rate * g;
    *v = momentum * *v + g;
    const float ahead = g + momentum * *v;
    return u->phase == UPDATE_LOOKS ? ahead : w - u->rate * ahead;
}

#ifndef __cplusplus
#    include "../optimizer.h"

struct muon_settings {
    struct optimizer_common common;
    double momentum, rest_rate, rest_momentum;
    int steps;
    bool head;
};

static const struct option rows[] = {
    OPTIMIZER_COMMON_ROWS("0.02"),
    OPTION_ROW(REAL, "momentum", struct muon_settings, momentum, .fallback = "0.9", .least = 0, .most = 1,
               .help = "share of the previous step that is kept, of matrices"),
    OPTION_ROW(INT, "steps", struct muon_settings, steps, .fallback = "3", .least = 1, .most = 20,
               .help = "rounds of the iteration that makes a step orthogonal"),
    OPTION_ROW(FLAG, "head", struct muon_settings, head, .fallback = "0",
               .help = "the last matrix is stepped as a matrix, too"),
    OPTION_ROW(REAL, "rest-rate", struct muon_settings, rest_rate, .fallback = "0.05", .least = 0,
               .most = 1e6, .help = "learning rate of all that is in no matrix"),
    OPTION_ROW(REAL, "rest-momentum", struct muon_settings, rest_momentum, .fallback = "0.85", .least = 0,
               .most = 1, .help = "share of the previous step that is kept there"),
    {0},
};

static void muon_constants(const void *settings, struct update *update, long number) {
    const struct muon_settings *own = settings;
    (void)number;
    update->constant[MUON_MOMENTUM] = (float)own->momentum;
    update->constant[MUON_REST_MOMENTUM] = (float)own->rest_momentum;
}

/* A rate of 0 stops the rest, too: the store multiplies one rate by what the schedule says. */
static struct matrix_rule muon_matrix(const void *settings) {
    const struct muon_settings *own = settings;
    const double rate = own->common.rate;
    return (struct matrix_rule){
        .steps = own->steps, .head = own->head, .rest = rate > 0.0 ? own->rest_rate / rate : 0.0};
}

static void muon_step(const struct update *update, size_t floats, float *weights, float *const *moments,
                      const float *gradient) {
    optimizer_loop(muon_weight, muon_moments, update, floats, weights, moments, gradient);
}

const struct optimizer optimizer_muon = {
    .plugin = {.name = "muon",
               .help = "steps of whole matrices, made orthogonal; Nesterov's momentum for the rest",
               .options = rows,
               .settings_bytes = sizeof(struct muon_settings)},
    .moments = muon_moments,
    .moment_names = {"momentum"},
    .constants = muon_constants,
    .matrix = muon_matrix,
    .step = muon_step,
};
#endif
