/* Graphs: inferred shapes, the words of mistakes, and what the builder decides by itself. */
#include <string.h>
#include "../../src/graph/graph.h"
#include "../check.h"

static const struct initial zero = {INITIAL_ZERO, 0, NULL};

static void check_node(const struct graph *g, node n, enum type type, struct shape shape, const char *what) {
    CHECK(n != NONE, "%s: %s", what, g->error.words);
    if (n == NONE) return;
    char found[96];
    CHECK(g->nodes[n].type == type && shape_equal(&g->nodes[n].shape, &shape), "%s is %s %s", what,
          type_name(g->nodes[n].type), shape_text(&g->nodes[n].shape, found, sizeof found));
}

static void test_shapes(void) {
    struct graph g;
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(5, 7)),
               row = graph_constant(&g, SHAPE(7), (float[7]){0});
    const node labels = graph_placeholder(&g, "labels", TYPE_INT, SHAPE(5));
    const node cube = graph_placeholder(&g, "cube", TYPE_FLOAT, SHAPE(2, 3, 4)),
               w = graph_variable(&g, "w", SHAPE(7, 3), zero);
    check_node(&g, graph_add(&g, x, row), TYPE_FLOAT, SHAPE(5, 7), "row broadcast");
    check_node(&g, graph_mul(&g, graph_reshape(&g, row, SHAPE(7, 1)), row), TYPE_FLOAT, SHAPE(7, 7),
               "outer product");
    check_node(&g, graph_greater(&g, x, graph_scalar(&g, 1)), TYPE_BOOL, SHAPE(5, 7), "greater");
    check_node(&g, graph_cast(&g, x, TYPE_INT), TYPE_INT, SHAPE(5, 7), "cast");
    check_node(&g, graph_matmul(&g, x, w, false, false), TYPE_FLOAT, SHAPE(5, 3), "matmul");
    check_node(&g, graph_matmul(&g, w, x, true, true), TYPE_FLOAT, SHAPE(3, 5), "matmul transposed");
    check_node(&g, graph_dense(&g, x, 10, zero, zero), TYPE_FLOAT, SHAPE(5, 10), "dense");
    check_node(&g, graph_reshape(&g, cube, SHAPE(-1, 6)), TYPE_FLOAT, SHAPE(4, 6), "reshape");
    check_node(&g, graph_image(&g, cube), TYPE_FLOAT, SHAPE(2, 3, 4, 1), "image of one channel");
    check_node(&g, graph_transpose(&g, cube, (int[]){2, 0, 1}), TYPE_FLOAT, SHAPE(4, 2, 3), "transpose");
    check_node(&g, graph_concat(&g, (node[]){cube, cube}, 2, -2), TYPE_FLOAT, SHAPE(2, 6, 4), "concat");
    check_node(&g, graph_slice(&g, cube, (int[]){0, 1, 2}, SHAPE(1, 2, -1)), TYPE_FLOAT, SHAPE(1, 2, 2),
               "slice");
    check_node(&g, graph_shape(&g, cube), TYPE_INT, SHAPE(3), "shape");
    check_node(&g, graph_rank(&g, cube), TYPE_INT, SCALAR, "rank");
    check_node(&g, graph_broadcast(&g, row, SHAPE(2, 2, 7)), TYPE_FLOAT, SHAPE(2, 2, 7), "broadcast");
    check_node(&g, graph_reduce_sum(&g, cube, -1, false), TYPE_FLOAT, SHAPE(2, 3), "sum");
    check_node(&g, graph_reduce_mean(&g, cube, 1, true), TYPE_FLOAT, SHAPE(2, 1, 4), "mean");
    check_node(&g, graph_reduce_max(&g, cube, ALL_AXES, true), TYPE_FLOAT, SHAPE(1, 1, 1), "max");
    check_node(&g, graph_reduce_max(&g, labels, ALL_AXES, false), TYPE_INT, SCALAR, "max of ints");
    check_node(&g, graph_argmax(&g, cube, 1), TYPE_INT, SHAPE(2, 4), "argmax");
    check_node(&g, graph_softmax(&g, cube), TYPE_FLOAT, SHAPE(2, 3, 4), "softmax");
    check_node(&g, graph_softmax_cross_entropy(&g, x, labels), TYPE_FLOAT, SHAPE(5), "cross entropy");
    check_node(&g, graph_assign_add(&g, w, w), TYPE_FLOAT, SHAPE(7, 3), "assign_add");
    node parts[7];
    graph_split(&g, x, 7, 1, parts);
    for (int i = 0; i < 7; i++) {
        check_node(&g, parts[i], TYPE_FLOAT, SHAPE(5, 1), "split");
        CHECK(parts[i] == NONE || g.nodes[parts[i]].attributes.begin[1] == i, "part %d", i);
    }
    graph_close(&g);
}

/* --- mistakes: each builder makes one, on x [32, 784], w [100, 10] and int labels [32] --- */

struct mistake {
    const char *words; /* that must be among those reported */
    node (*make)(struct graph *g, node x, node w, node labels);
};

static node wrong_matmul(struct graph *g, node x, node w, node labels) {
    (void)labels;
    return graph_matmul(g, x, w, false, false);
}
static node wrong_transposed(struct graph *g, node x, node w, node labels) {
    (void)labels;
    return graph_matmul(g, x, w, true, false);
}
static node wrong_add(struct graph *g, node x, node w, node labels) {
    (void)labels;
    return graph_add(g, x, w);
}
static node wrong_types(struct graph *g, node x, node w, node labels) {
    (void)w;
    return graph_mul(g, x, labels);
}
static node wrong_int_div(struct graph *g, node x, node w, node labels) {
    (void)x, (void)w;
    return graph_div(g, labels, labels);
}
static node wrong_relu(struct graph *g, node x, node w, node labels) {
    (void)x, (void)w;
    return graph_relu(g, labels);
}
static node wrong_reshape(struct graph *g, node x, node w, node labels) {
    (void)x, (void)labels;
    return graph_reshape(g, w, SHAPE(-1, 7));
}
static node wrong_two_open(struct graph *g, node x, node w, node labels) {
    (void)x, (void)labels;
    return graph_reshape(g, w, SHAPE(-1, -1));
}
static node wrong_order(struct graph *g, node x, node w, node labels) {
    (void)x, (void)labels;
    return graph_transpose(g, w, (int[]){1, 1});
}
static node wrong_concat(struct graph *g, node x, node w, node labels) {
    (void)labels;
    return graph_concat(g, (node[]){x, w}, 2, 0);
}
static node wrong_slice(struct graph *g, node x, node w, node labels) {
    (void)x, (void)labels;
    return graph_slice(g, w, (int[]){98, 0}, SHAPE(3, 10));
}
static node wrong_split(struct graph *g, node x, node w, node labels) {
    (void)x, (void)labels;
    node parts[3];
    graph_split(g, w, 3, 1, parts);
    return parts[0];
}
static node wrong_axis(struct graph *g, node x, node w, node labels) {
    (void)x, (void)labels;
    return graph_reduce_sum(g, w, 2, false);
}
static node wrong_labels(struct graph *g, node x, node w, node labels) {
    (void)x;
    return graph_softmax_cross_entropy(g, w, labels);
}
static node wrong_name(struct graph *g, node x, node w, node labels) {
    (void)x, (void)w, (void)labels;
    return graph_placeholder(g, "x", TYPE_FLOAT, SHAPE(1));
}
static node wrong_dimension(struct graph *g, node x, node w, node labels) {
    (void)x, (void)w, (void)labels;
    return graph_placeholder(g, "empty", TYPE_FLOAT, SHAPE(3, 0));
}
static node wrong_rank(struct graph *g, node x, node w, node labels) {
    (void)x, (void)w, (void)labels;
    return graph_placeholder(g, "deep", TYPE_FLOAT, (struct shape){.rank = MAX_RANK + 1});
}
static node wrong_node(struct graph *g, node x, node w, node labels) {
    (void)w, (void)labels;
    return graph_add(g, x, NONE);
}
static node wrong_assign(struct graph *g, node x, node w, node labels) {
    (void)w, (void)labels;
    return graph_assign(g, x, x);
}
static node wrong_rate(struct graph *g, node x, node w, node labels) {
    (void)w, (void)labels;
    return graph_dropout(g, x, 1.0f);
}
static node wrong_broadcast(struct graph *g, node x, node w, node labels) {
    (void)x, (void)labels;
    return graph_broadcast(g, w, SHAPE(10));
}
static node wrong_loss(struct graph *g, node x, node w, node labels) {
    (void)labels;
    node gradient;
    graph_gradients(g, x, &w, 1, &gradient);
    return gradient;
}
static node wrong_second_order(struct graph *g, node x, node w, node labels) {
    (void)x, (void)labels;
    node first, second;
    graph_gradients(g, graph_reduce_sum(g, graph_sigmoid(g, w), ALL_AXES, false), &w, 1, &first);
    graph_gradients(g, graph_reduce_sum(g, first, ALL_AXES, false), &w, 1, &second);
    return second;
}

static const struct mistake mistakes[] = {
    {"matmul: [32, 784] times [100, 10]: inner dimensions 784 and 100 differ", wrong_matmul},
    {"matmul: [32, 784] transposed times [100, 10]: inner dimensions 32 and 100 differ", wrong_transposed},
    {"add: [32, 784] and [100, 10] do not broadcast", wrong_add},
    {"mul: float32 and int32, expected operands of one type", wrong_types},
    {"div: operands are int32, expected float32", wrong_int_div},
    {"relu: operand 1 is int32, expected float32", wrong_relu},
    {"reshape: [100, 10] has 1000 elements and does not fit [-1, 7]", wrong_reshape},
    {"at most one -1", wrong_two_open},
    {"transpose: axis 1 of the order is 1, expected each of 0 to 1 once", wrong_order},
    {"concat: [32, 784] and [100, 10] along axis 0", wrong_concat},
    {"slice: 3 elements from 98 along axis 0 of [100, 10]", wrong_slice},
    {"split: [100, 10] into 3 parts along axis 1, expected equal parts", wrong_split},
    {"reduce_sum: axis 2 of [100, 10], expected -2 to 1", wrong_axis},
    {"softmax_cross_entropy: operand 2 is [32], expected [100]", wrong_labels},
    {"the name \"x\" is taken by a placeholder", wrong_name},
    {"placeholder: shape [3, 0], expected dimensions of 1 or more", wrong_dimension},
    {"placeholder: 7 dimensions, expected 0 to 6", wrong_rank},
    {"add: operand 2 is not a node", wrong_node},
    {"assign: expected a variable, found placeholder", wrong_assign},
    {"dropout: rate 1", wrong_rate},
    {"broadcast_to: [100, 10] does not broadcast to [10]", wrong_broadcast},
    {"gradients: the loss is float32 [32, 784], expected a float32 scalar", wrong_loss},
    {"gradients: sigmoid_grad lies between a target and the loss and has no gradient", wrong_second_order},
};

static void test_mistakes(void) {
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct graph g;
        graph_open(&g, true, 1);
        const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(32, 784)),
                   w = graph_variable(&g, "w", SHAPE(100, 10), zero);
        const node labels = graph_placeholder(&g, "labels", TYPE_INT, SHAPE(32));
        CHECK(mistakes[i].make(&g, x, w, labels) == NONE, "no mistake: %s", mistakes[i].words);
        struct error error = {0};
        CHECK(graph_check(&g, &error) == ERROR_USAGE, "code %d: %s", error.code, mistakes[i].words);
        CHECK(strstr(error.words, mistakes[i].words) != NULL, "found \"%s\", expected \"%s\"", error.words,
              mistakes[i].words);
        /* From then on nothing happens, and the first mistake stays. */
        const int count = g.count;
        node gradient, parts[2];
        CHECK(graph_relu(&g, x) == NONE && graph_dense(&g, NONE, 3, zero, zero) == NONE, "not NONE");
        CHECK(graph_activate(&g, x, ACTIVATION_NONE) == NONE && graph_dropout(&g, x, 0.5f) == NONE,
              "not NONE");
        CHECK(graph_cross_entropy(&g, NONE, NONE) == NONE && graph_concat(&g, &x, 1, 0) == NONE, "not NONE");
        graph_gradients(&g, NONE, &w, 1, &gradient);
        graph_split(&g, NONE, 2, 0, parts);
        graph_freeze(&g, NONE);
        CHECK(gradient == NONE && parts[0] == NONE && parts[1] == NONE && g.count == count, "%d nodes",
              g.count);
        struct error again = {0};
        graph_check(&g, &again);
        CHECK(strcmp(again.words, error.words) == 0, "the words changed to \"%s\"", again.words);
        graph_close(&g);
    }
}

/* The cross entropy of a softmax is built from the logits. */
static void test_fused_loss(void) {
    struct graph g;
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(5, 7)),
               labels = graph_placeholder(&g, "labels", TYPE_INT, SHAPE(5));
    const node fused = graph_cross_entropy(&g, graph_softmax(&g, x), labels),
               plain = graph_cross_entropy(&g, x, labels);
    CHECK(g.nodes[fused].op == OP_softmax_cross_entropy && g.nodes[fused].input[0] == x, "found %s",
          op_name(g.nodes[fused].op));
    CHECK(g.nodes[plain].op == OP_cross_entropy, "found %s", op_name(g.nodes[plain].op));
    graph_close(&g);
}

static void test_dropout(void) {
    for (int training = 0; training < 2; training++) {
        struct graph g;
        graph_open(&g, training == 1, 1);
        const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(5));
        const node a = graph_dropout(&g, x, 0.5f), b = graph_dropout(&g, a, 0.25f);
        CHECK(g.error.code == OK, "%s", g.error.words);
        if (training == 0) {
            CHECK(a == x && b == x, "dropout outside training");
        } else {
            CHECK(g.nodes[a].input[1] == g.nodes[b].input[1], "two steps");
            CHECK(strcmp(g.nodes[g.nodes[a].input[1]].name, "step") == 0, "the step's name");
            CHECK(g.nodes[a].attributes.seed != g.nodes[b].attributes.seed, "two dropouts with one mask");
        }
        graph_close(&g);
    }
}

static void test_attributes_of_ranges(void) {
    struct graph g;
    graph_open(&g, true, 1);
    const node w = graph_variable(&g, "w", SHAPE(3), zero), v = graph_variable(&g, "v", SHAPE(3), zero);
    graph_freeze(&g, w);
    graph_decay(&g, v, 0.5f);
    CHECK(g.layout.ranges[0].kind == RANGE_FROZEN && g.layout.ranges[1].kind == RANGE_TRAINABLE, "freeze");
    CHECK(g.layout.ranges[0].decay == 0.0f && g.layout.ranges[1].decay == 0.5f, "decay");
    graph_close(&g);
    struct graph nothing = {0};
    graph_close(&nothing);
}

static void test_multiply_adds(void) {
    struct graph g;
    graph_open(&g, true, 1);
    const node a = graph_placeholder(&g, "a", TYPE_FLOAT, SHAPE(5, 7)),
               b = graph_placeholder(&g, "b", TYPE_FLOAT, SHAPE(7, 3));
    CHECK(graph_multiply_adds(&g, graph_matmul(&g, a, b, false, false)) == 105, "5x7x3");
    CHECK(graph_multiply_adds(&g, graph_matmul(&g, b, a, true, true)) == 105, "3x7x5");
    CHECK(graph_multiply_adds(&g, a) == 0, "placeholder");
    graph_close(&g);
}

int main(void) {
    test_shapes();
    test_mistakes();
    test_fused_loss();
    test_dropout();
    test_attributes_of_ranges();
    test_multiply_adds();
    return check_end();
}
