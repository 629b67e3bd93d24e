/* mlp: dense layers with an activation between them. mlp:hidden=100,activation=sigmoid,init=normal is the
 * network of the distributed TensorFlow example (784-100-10, weights normal with deviation 1, biases 0). */
#include "../src/graph/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mlp_settings {
    char hidden[256];
    int activation; /* position in choices */
    int init;       /* enum mlp_init */
};
enum mlp_init { MLP_GLOROT, MLP_NORMAL };

static const struct option rows[] = {
    OPTION_ROW(TEXT, "hidden", struct mlp_settings, hidden, .flags = OPTION_LIST, .fallback = "100",
               .value = "WIDTHS", .help = "widths of the hidden layers, as in 100 or 10-10"),
    OPTION_ROW(CHOICE, "activation", struct mlp_settings, activation, .fallback = "sigmoid",
               .choices = "sigmoid|relu|tanh", .help = "activation after each hidden layer"),
    OPTION_ROW(CHOICE, "init", struct mlp_settings, init, .fallback = "glorot", .choices = "glorot|normal",
               .help = "first weights: Glorot uniform, or normal with standard deviation 1"),
    {0},
};

/* Commas are how others write it. */
static node refuse(struct graph *g, const char *hidden) {
    char meant[256];
    snprintf(meant, sizeof meant, "%s", hidden);
    for (char *comma; (comma = strchr(meant, ',')) != NULL;) *comma = '-';
    const bool commas = strcmp(meant, hidden) != 0 && meant[strspn(meant, "0123456789-")] == '\0';
    error_set(&g->error, ERROR_USAGE,
              "mlp: hidden=%s: expected widths of 1 to 1000000 joined by '-', as in 10-10%s%s%s", hidden,
              commas ? "; did you mean hidden=" : "", commas ? meant : "", commas ? "?" : "");
    return NONE;
}

static node build(struct graph *g, node x, int classes, const void *settings) {
    const struct mlp_settings *mlp = settings;
    static const enum activation activations[] = {ACTIVATION_SIGMOID, ACTIVATION_RELU, ACTIVATION_TANH};
    const struct initial kernel = mlp->init == MLP_GLOROT
                                      ? (struct initial){.kind = INITIAL_GLOROT_UNIFORM}
                                      : (struct initial){.kind = INITIAL_NORMAL, .value = 1.0f};
    const struct initial bias = {.kind = INITIAL_ZERO};
    const char *text = mlp->hidden;
    x = graph_flatten(g, x);
    while (*text) {
        char *end = NULL;
        const long width = strtol(text, &end, 10);
        if (end == text || width < 1 || width > 1000000 ||
            (*end != '\0' && (*end != '-' || end[1] == '\0'))) {
            return refuse(g, mlp->hidden);
        }
        x = graph_activate(g, graph_dense(g, x, (int)width, kernel, bias), activations[mlp->activation]);
        text = *end == '-' ? end + 1 : end;
    }
    return graph_dense(g, x, classes, kernel, bias);
}

static const struct recipe recipe[] = {
    {"optimizer", "momentum:rate=0.1"}, {"schedule", "constant"}, {"batch", "32"}, {"epochs", "60"}, {0}};

const struct model model_mlp = {
    .plugin = {.name = "mlp",
               .help = "dense layers with activations in between",
               .options = rows,
               .settings_bytes = sizeof(struct mlp_settings)},
    .build = build,
    .recipe = recipe,
    .values_optimizer = "momentum:rate=0.03",
};
