/* Fuzzing of networks as text: clang -fsanitize=fuzzer,address over this file and the library. Starts from
 * lists of every row of layers.def with its attributes, some at their ends, with names and branches. What is
 * accepted is written, and read as the same; then it is built, on images or on rows of numbers as the first
 * byte says, with its gradients. */
#include <string.h>
#include "../src/base/memory.h"
#include "../src/graph/layers_text.h"
#include "fuzz.h"

enum { LISTS, NETWORKS, GRADIENTS };
static const char *const names[] = {"lists", "networks", "networks with gradients", NULL};
enum { TEXT_BYTES = 2000, CLASSES = 4, SIDE = 8, TARGETS = 64 };

static void check_words(const struct error *error, int code) {
    fuzz_require(error->code == code && *error->words && !strpbrk(error->words, "\n\r\033"));
}

static char *write_list(const struct layer_list *list, const char *separator) {
    struct error error = {0};
    struct text text = text_growing(&error);
    layers_write(list, separator, &text);
    fuzz_require(text_end(&text) == OK);
    return text.bytes;
}

static void check_written(const struct layer_list *list) {
    struct layer_list again;
    struct error error = {0};
    char *first = write_list(list, "; ");
    fuzz_require(layers_parse(&again, "again", first, strlen(first), ERROR_INTERNAL, &error) == OK);
    char *second = write_list(&again, "; ");
    fuzz_require(again.count == list->count && strcmp(first, second) == 0);
    memory_free(second);
    memory_free(first);
    layers_close(&again);
}

/* Only the graph: no memory is taken for weights or values. */
static void build(const struct layer_list *list, bool is_image) {
    struct graph g;
    node targets[TARGETS], gradients[TARGETS];
    int count = 0;
    graph_open(&g, true, 1);
    const struct shape shape = is_image ? SHAPE(2, SIDE, SIDE, 3) : SHAPE(2, SIDE * SIDE);
    const node y = layers_build(&g, list, graph_placeholder(&g, "x", TYPE_FLOAT, shape), CLASSES);
    fuzz_require((y != NONE) == (g.error.code == OK));
    if (y == NONE) {
        check_words(&g.error, ERROR_USAGE);
        graph_close(&g);
        return;
    }
    fuzz.accepted[NETWORKS]++;
    fuzz_require(shape_equal(&g.nodes[y].shape, &SHAPE(2, CLASSES)));
    for (node n = 0; n < g.count && count < TARGETS; n++)
        if (g.nodes[n].op == OP_variable &&
            g.layout.ranges[g.nodes[n].attributes.variable].kind == RANGE_TRAINABLE)
            targets[count++] = n;
    const node labels = graph_placeholder(&g, "labels", TYPE_INT, SHAPE(2));
    const node loss = graph_reduce_mean(&g, graph_softmax_cross_entropy(&g, y, labels), ALL_AXES, false);
    graph_gradients(&g, loss, targets, count, gradients);
    fuzz.accepted[GRADIENTS] += g.error.code == OK;
    fuzz_require(g.error.code == OK);
    graph_close(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct layer_list list;
    struct error error = {0};
    fuzz_count(names);
    if (bytes < 1) return 0;
    if (layers_parse(&list, "f", (const char *)data + 1, bytes - 1, ERROR_FILE, &error) != OK) {
        check_words(&error, ERROR_FILE);
        fuzz_require(list.layers == NULL);
        return 0;
    }
    fuzz.accepted[LISTS]++;
    fuzz_require(layers_check(&list, "f", ERROR_INTERNAL, &error) == OK);
    check_written(&list);
    build(&list, data[0] % 2 == 0);
    layers_close(&list);
    return 0;
}

/* --- samples --- */

static unsigned draw(unsigned *state, unsigned most) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % most;
}

/* An attribute at one of its ends, or somewhere between; small ones more often, or nothing would fit. */
static void add_attribute(struct text *text, const struct option *row, unsigned *state) {
    const double number = draw(state, 4) > 0   ? 1 + draw(state, 3)
                          : draw(state, 2) > 0 ? row->most
                                               : row->least;
    if (row->type == OPTION_FLAG)
        text_add(text, " %s", row->name);
    else if (row->type == OPTION_CHOICE)
        text_add(text, " %.*s", (int)strcspn(row->choices, "|"), row->choices);
    else if (row->flags & ATTRIBUTE_PLACED)
        text_add(text, " %.9g%s", number, row->sizes > 1 && draw(state, 3) == 0 ? "x2" : "");
    else
        text_add(text, " %s=%.9g", row->name, number);
}

static size_t make_sample(uint8_t *data, size_t most, unsigned seed) {
    char bytes[TEXT_BYTES];
    struct text text = text_into(bytes, sizeof bytes);
    unsigned state = seed;
    const int layers = 1 + (int)draw(&state, 8);
    if (draw(&state, 4) == 0) text_add(&text, "input 8x8x3; ");
    for (int i = 0; i < layers; i++) {
        const struct layer_row *row = &layer_rows[draw(&state, LAYER_KINDS)];
        if (i == 0 || draw(&state, 3) == 0) text_add(&text, "n%d = ", i);
        text_add(&text, "%s", row->name);
        for (const struct option *a = row->attributes; a->name; a++)
            if (a->flags & ATTRIBUTE_NEEDED || draw(&state, 4) == 0) add_attribute(&text, a, &state);
        if (row->joins) text_add(&text, " %s", i > 0 && draw(&state, 2) ? "n0" : LAYER_WORD_INPUT);
        if (draw(&state, 3) == 0) text_add(&text, " gelu");
        text_add(&text, "%s", draw(&state, 2) ? "; " : " # and\n");
    }
    text_add(&text, "flatten; dense");
    if (text.cut || text.used + 1 > most) return 0;
    data[0] = (uint8_t)seed;
    memcpy(data + 1, bytes, text.used);
    return text.used + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 8 == 0) {
        const size_t made = make_sample(data, most, seed / 8);
        if (made > 0) bytes = made;
        if (seed / 8 % 2 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
