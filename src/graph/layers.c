/* The table of layers, and lists of them. See layers.h and layers.def. */
#include "layers.h"

#include <ctype.h>

#include "../base/memory.h"

/* --- the table --- */

#define PLACED ATTRIBUTE_PLACED
#define NEEDED ATTRIBUTE_NEEDED
#define OF(kind, field, typed, flag, usual, ...)                                                             \
    {.type = OPTION_##kind,                                                                                  \
     .name = (typed),                                                                                        \
     .offset = offsetof(struct layer_values, field),                                                         \
     .flags = (flag),                                                                                        \
     .fallback = (usual),                                                                                    \
     __VA_ARGS__},
#define INT(field, typed, flags, usual, low, high, words)                                                    \
    OF(INT, field, typed, flags, usual, .least = (low), .most = (high), .help = (words))
#define REAL(field, typed, flags, usual, low, high, words)                                                   \
    OF(REAL, field, typed, flags, usual, .least = (low), .most = (high), .help = (words))
#define SIZES(field, typed, flags, count, low, high, words)                                                  \
    OF(SIZES, field, typed, flags, NULL, .sizes = (count), .least = (low), .most = (high), .help = (words))
#define FLAG(field, typed, words) OF(FLAG, field, typed, 0, NULL, .help = (words))
#define CHOICE(field, typed, all, usual, words)                                                              \
    OF(CHOICE, field, typed, 0, usual, .choices = (all), .help = (words))

#define PADDING                                                                                              \
    CHOICE(padding, "padding", "valid|same", "valid",                                                        \
           "same: zeros around, so that stride 1 keeps rows and columns")
#define POOLING                                                                                              \
    SIZES(window, "window", PLACED | NEEDED, 2, 1, 1000, "rows and columns of a window")                     \
    SIZES(stride, "stride", 0, 2, 1, 1000, "from window to window (default: the window)")                    \
    PADDING
#define FIRST_WEIGHTS                                                                                        \
    CHOICE(init, "init", "glorot|he|normal|truncated|zero", "glorot",                                        \
           "first weights: Glorot uniform; He normal; normal, whole or cut at two deviations")               \
    REAL(deviation, "deviation", 0, "0.05", 0, 1e6, "of normal and truncated first weights")
#define DECAY REAL(decay, "decay", 0, "0", 0, 1e3, "L2 of its weights (0: as --decay says)")
#define KERNEL                                                                                               \
    FIRST_WEIGHTS                                                                                            \
    REAL(bias, "bias", 0, "0", -1e6, 1e6, "first value of the biases")                                       \
    FLAG(no_bias, "no_bias", "without biases")                                                               \
    DECAY

#define LAYER(name, inputs, takes, keras, onnx, help, ...)                                                   \
    static const struct option attributes_##name[] = {__VA_ARGS__{0}};
#include "layers.def"

#define ONE false
#define SEVERAL true
#define ANY LAYER_TAKES_ANY
#define IMAGE LAYER_TAKES_IMAGE
#define ROW LAYER_TAKES_ROW
#define ACTIVATION LAYER_IS_ACTIVATION
#define LAYER(typed, several, kind_of_input, keras_class, onnx_operators, words, ...)                        \
    {.name = #typed,                                                                                         \
     .keras = (keras_class),                                                                                 \
     .onnx = (onnx_operators),                                                                               \
     .help = (words),                                                                                        \
     .takes = (kind_of_input),                                                                               \
     .joins = (several),                                                                                     \
     .attributes = attributes_##typed},
const struct layer_row layer_rows[LAYER_KINDS] = {
#include "layers.def"
};

enum layer_kind layer_named(const char *name) {
    for (int kind = 0; kind < LAYER_KINDS; kind++)
        if (strcmp(layer_rows[kind].name, name) == 0) return (enum layer_kind)kind;
    return LAYER_NONE;
}

static void add_place(const struct option *row, struct text *text) {
    const bool is_needed = row->flags & ATTRIBUTE_NEEDED;
    text_add(text, is_needed ? " " : " [");
    for (const char *c = row->name; *c; c++) text_add(text, "%c", toupper((unsigned char)*c));
    if (!is_needed) text_add(text, "]");
}

void layer_synopsis(enum layer_kind kind, struct text *text) {
    text_add(text, "%s", layer_rows[kind].name);
    for (const struct option *row = layer_rows[kind].attributes; row->name; row++) {
        if (row->flags & ATTRIBUTE_PLACED)
            add_place(row, text);
        else if (row->type == OPTION_CHOICE)
            for (const char *c = row->choices, *between = " "; c; between = "/") {
                text_add(text, "%s%.*s", between, (int)strcspn(c, "|"), c);
                c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL;
            }
        else if (row->type == OPTION_FLAG)
            text_add(text, " %s", row->name);
        else
            text_add(text, " %s=%s", row->name, row->fallback ? row->fallback : "NxN");
    }
    if (layer_rows[kind].joins) text_add(text, " NAME [NAME...]");
}

/* --- names --- */

static bool is_choice(const struct option *row, const char *word) {
    const size_t length = strlen(word);
    for (const char *choice = row->choices; choice; choice = strchr(choice, '|')) {
        choice += *choice == '|';
        if (strcspn(choice, "|") == length && strncmp(choice, word, length) == 0) return true;
    }
    return false;
}

/* A word of a network's text that is no name. */
static bool means_something(const char *word) {
    if (strcmp(word, LAYER_WORD_INPUT) == 0 || strcmp(word, LAYER_WORD_PREVIOUS) == 0) return true;
    if (layer_named(word) != LAYER_NONE) return true;
    for (int kind = 0; kind < LAYER_KINDS; kind++)
        for (const struct option *row = layer_rows[kind].attributes; row->name; row++)
            if (strcmp(row->name, word) == 0 || is_choice(row, word)) return true;
    return false;
}

bool layer_name_fits(const char *name) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char all[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-/";
    const size_t length = strlen(name);
    return length > 0 && length < LAYER_NAME_BYTES && strchr(letters, name[0]) &&
           strspn(name, all) == length && !means_something(name);
}

/* --- lists --- */

struct layer *layers_add(struct layer_list *list, enum layer_kind kind, int code, struct error *error) {
    enum { FIRST_ROOM = 32 };
    if (list->count == LAYERS_MOST) {
        error_set(error, code, "more than %d layers", LAYERS_MOST);
        return NULL;
    }
    if (list->count == list->room) {
        const int room = list->room > 0 ? 2 * list->room : FIRST_ROOM;
        if (memory_grow(&list->layers, list->room, room, "layers", error) != OK) return NULL;
        list->room = room;
    }
    struct layer *layer = &list->layers[list->count];
    *layer = (struct layer){.kind = kind, .activation = LAYER_NONE};
    option_defaults(layer_rows[kind].attributes, &layer->values);
    layer->inputs = 1;
    layer->input[0] = list->count - 1; /* of the first one: LAYER_INPUT */
    list->count++;
    return layer;
}

void layers_close(struct layer_list *list) {
    memory_free(list->layers);
    *list = (struct layer_list){0};
}

/* The needed attribute that is not there, or NULL. */
static const char *missing_of(const struct layer *layer) {
    for (const struct option *row = layer_rows[layer->kind].attributes; row->name; row++) {
        char text[64];
        option_text(row, &layer->values, text, sizeof text);
        if (row->flags & ATTRIBUTE_NEEDED &&
            (text[0] == '\0' || (row->type == OPTION_INT && strcmp(text, "0") == 0)))
            return row->name;
    }
    return NULL;
}

/* Whether layer i may refer to this one: it is an earlier one that can be named in a text. */
static bool refers_well(const struct layer_list *list, int i, int input) {
    if (input == LAYER_INPUT || input == i - 1) return true;
    return input >= 0 && input < i && list->layers[input].name[0];
}

static const char *wrong_with(const struct layer_list *list, int i) {
    const struct layer *layer = &list->layers[i];
    const struct layer_row *row = &layer_rows[layer->kind];
    if (row->joins && layer->inputs < 2) return "found one input, expected two or more";
    if (!row->joins && layer->inputs != 1) return "found several inputs, expected one";
    for (int k = 0; k < layer->inputs; k++)
        if (!refers_well(list, i, layer->input[k])) return "an input is no earlier layer with a name";
    if (layer->name[0] && !layer_name_fits(layer->name)) return "the name is none that a layer can have";
    for (int k = 0; k < i; k++)
        if (layer->name[0] && strcmp(list->layers[k].name, layer->name) == 0) return "the name is taken";
    return missing_of(layer) ? "an attribute is missing" : NULL;
}

static bool is_taken(const struct layer_list *list, int layer) {
    for (int i = layer + 1; i < list->count; i++)
        for (int k = 0; k < list->layers[i].inputs; k++)
            if (list->layers[i].input[k] == layer) return true;
    return false;
}

int layers_check(const struct layer_list *list, const char *what, int code, struct error *error) {
    if (list->count == 0) return error_set(error, code, "%s: found no layer, expected one or more", what);
    for (int i = 0; i < list->count; i++) {
        const char *wrong = wrong_with(list, i);
        if (!wrong && i < list->count - 1 && !is_taken(list, i)) wrong = "no later layer takes it";
        if (wrong)
            return error_set(error, code, "%s: layer %d (%s%s%s): %s", what, i + 1, list->layers[i].name,
                             list->layers[i].name[0] ? " = " : "", layer_rows[list->layers[i].kind].name,
                             wrong);
    }
    return OK;
}
