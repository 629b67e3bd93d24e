/* Layers, and networks as lists of them.
 *
 * layers.def has one row per layer. A *list* is a network: layers in an order in which each comes after its
 * inputs, with their attributes and, where somebody refers to them, names. It knows neither text nor graph.
 * Text becomes a list and back (layers_text.h); layers_build makes the list a graph. */
#ifndef TRAINER_GRAPH_LAYERS_H
#define TRAINER_GRAPH_LAYERS_H

#include "../base/option.h"
#include "../base/text.h"
#include "graph.h"

enum layer_kind {
#define LAYER(name, ...) LAYER_##name,
#include "layers.def"
    LAYER_KINDS,
    LAYER_NONE = -1
};

/* What a layer's row takes; see layers.def. */
enum layer_takes { LAYER_TAKES_ANY, LAYER_TAKES_IMAGE, LAYER_TAKES_ROW, LAYER_IS_ACTIVATION };

/* Flags of an attribute, beside those of option.h. */
enum { ATTRIBUTE_PLACED = 1 << 16, ATTRIBUTE_NEEDED = 1 << 17 };

/* The first values of a kernel. */
enum layer_init { INIT_GLOROT, INIT_HE, INIT_NORMAL, INIT_TRUNCATED, INIT_ZERO };

/* The attributes of all layers; a row says which of them are its own. */
struct layer_values {
    int units;      /* dense; conv: channels */
    int multiplier; /* depthwise */
    int vocabulary; /* embedding */
    struct option_sizes window,
        stride;       /* conv, depthwise, pooling: rows and columns, or one number for both */
    int padding;      /* enum padding */
    int init;         /* enum layer_init */
    double deviation; /* of init normal and truncated */
    double bias;      /* dense and conv: first value of the bias; lrn: in the formula */
    bool no_bias;
    double decay; /* L2 of the kernel; 0: as --decay says */
    double momentum, epsilon, alpha, beta, rate;
    int radius, axis;
    bool approximate;           /* gelu */
    struct option_sizes shape;  /* reshape: of one example */
    struct option_sizes around; /* pad */
};

enum {
    LAYER_NAME_BYTES = 41,
    LAYERS_MOST = 1000,
    LAYER_INPUT = -1 /* as an input: what the network is given */
};

/* In a text: what the network is given, and the layer before. */
#define LAYER_WORD_INPUT "input"
#define LAYER_WORD_PREVIOUS "previous"

struct layer {
    enum layer_kind kind;
    char name[LAYER_NAME_BYTES]; /* its weights are called after it; empty: conv1, dense1, ... */
    int inputs;
    int input[MAX_INPUTS];      /* [inputs] layers before this one, or LAYER_INPUT */
    enum layer_kind activation; /* of its result; LAYER_NONE: none */
    struct layer_values values;
};

struct layer_list {
    struct layer *layers; /* [count] in room for `room` */
    int count, room;
    struct option_sizes input; /* the shape of an example, where the network says it; count 0: it does not */
};

struct layer_row {
    const char *name, *keras, *onnx, *help;
    enum layer_takes takes;
    bool joins;                      /* it has several inputs */
    const struct option *attributes; /* of struct layer_values, ended by {0} */
};
extern const struct layer_row layer_rows[LAYER_KINDS];

/* How a layer is written, "conv FILTERS WINDOW stride=NxN valid/same ...": its words in their order, [UNITS]
 * if there is a default, then what can be set, with its default, the first of several words; then the names
 * of inputs, if it has several. */
void layer_synopsis(enum layer_kind kind, struct text *text);

/* The layer of that name, or LAYER_NONE. */
enum layer_kind layer_named(const char *name);

/* Whether a layer may be called so: letters, digits and _ . - /, a letter first, and no word that means
 * something in a network's text. */
bool layer_name_fits(const char *name);

/* Appends a layer with its default attributes that takes the one before it, or the network's input; NULL:
 * too many, or no memory. It lives until the next one is added. `code` is that of too many. */
struct layer *layers_add(struct layer_list *list, enum layer_kind kind, int code, struct error *error);
void layers_close(struct layer_list *list); /* safe on a zeroed one */

/* Whether the list can be built and written: each layer after its inputs, as many as its row wants, and
 * taken by a later one, but for the last; names that fit, none twice, and what is needed there. `what` is for
 * the words. Errors: `code`. */
int layers_check(const struct layer_list *list, const char *what, int code, struct error *error);

/* Builds the network on x [batch, features...]; returns the logits [batch, classes]. A softmax at the end is
 * left out, as the loss has one. Mistakes are remembered in the graph, with the layer's number and name. */
node layers_build(struct graph *g, const struct layer_list *list, node x, int classes);

#endif
