/* Models: one plug-in per file in models/. A model is one function that builds a graph, and what it is
 * trained with. */
#ifndef TRAINER_GRAPH_MODEL_H
#define TRAINER_GRAPH_MODEL_H

#include <string.h>
#include "../base/option.h"
#include "graph.h"

/* One setting that a model trains well with: an option that is OPTION_RECIPE, and its value as it is typed.
 */
struct recipe {
    const char *option, *value;
};

struct model {
    struct plugin plugin;
    /* Builds the network on x [batch, features...] and returns the logits [batch, classes]. */
    node (*build)(struct graph *g, node x, int classes, const void *settings);
    /* What it trains well with on every data set that fits it; ended by {0}, or NULL. What is typed goes
     * before it; what it does not say has the program's default. */
    const struct recipe *recipe;
    const char
        *values_optimizer; /* in place of the recipe's, where numbers are to be predicted; NULL: that too */
    int side;              /* it takes images, of at least side x side pixels; 0: examples of any shape */
    int (*side_of)(const void *settings); /* the same where the settings say it; NULL: `side` */
    /* What is typed after the colon becomes what it means, wherever it is then sent: text[bytes] holds it,
     * and what is in a file that it names afterwards. NULL: it means what it says. Errors: its own. */
    int (*typed)(char *text, size_t bytes, struct error *error);
};

/* `NAME:...`, as it was typed, in text[bytes]: made what it means (struct model, typed); a file of another
 * program, `keras:file=...`, becomes its layers, and weights[PATH_BYTES] the file if the network starts with
 * its weights, else empty (NULL: nobody asks). Errors: of the reader; of the model. */
int model_resolve(char *text, size_t bytes, char *weights, struct error *error);
/* The same for an option row. */
int model_typed(void *settings, char *text, size_t bytes, struct error *error);

/* A model's text as a line shows it: a long one is cut, and says how many layers it has. Returns out. */
enum { MODEL_SHORT_BYTES = 120 };
const char *model_short(const char *text, char out[MODEL_SHORT_BYTES]);

extern const struct model *const models[];  /* generated, ended by NULL */
extern const struct plugin_kind model_kind; /* generated: the same */

static inline const struct model *model_of(const struct choice *choice) {
    return (const struct model *)(const void *)choice->plugin;
}

/* What the model's recipe says of this option; NULL: nothing. */
static inline const char *model_recipe(const struct model *model, const char *option) {
    for (const struct recipe *row = model->recipe; row && row->option; row++)
        if (strcmp(row->option, option) == 0) return row->value;
    return NULL;
}

#endif
