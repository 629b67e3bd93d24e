/* Reference kernels, all but those of arrays, reductions and images: every operation against a formula said
 * naively, one element at a time, over odd shapes; those of the elementwise rows against the formulas of
 * formulas.h, and these against the C library in double. The last check is that no operation was forgotten.
 * Whole numbers make sums and products exact, so most comparisons are for equality. */
#include "../elementwise.h"
#include "../naive.h"
#include "../pairs.h"

/* --- the elementwise rows --- */

static node operand_of(struct graph *g, struct shape shape, uint64_t seed, bool ints, bool few) {
    return ints ? whole_int(g, shape, seed) : few ? whole(g, shape, seed) : between(g, shape, seed, -5, 5);
}

/* `few`: whole numbers, many of which are equal. */
static void check_row(const struct elementwise *row, struct shape shape_a, struct shape shape_b, bool ints,
                      bool few) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node a = operand_of(&g, shape_a, 1, ints, few), b = operand_of(&g, shape_b, 2, ints, few);
    const node y = graph_make(&g, &(struct node_info){.op = row->op, .inputs = row->inputs, .input = {a, b}});
    evaluate(&s, &g, y);
    const struct shape out = g.nodes[y].shape;
    for (size_t i = 0; i < shape_count(&out) && s.error.code == OK; i++) {
        const size_t at_a = broadcast_position(&out, &shape_a, i),
                     at_b = broadcast_position(&out, &shape_b, i);
        const float left = constant(&g, a)[at_a], right = constant(&g, b)[at_b];
        const int *int_a = g.nodes[a].constant, *int_b = g.nodes[b].constant;
        const double want =
            row->unary   ? (double)row->unary(left)
            : row->truth ? (double)(ints ? row->truth_int(int_a[at_a], int_b[at_b]) : row->truth(left, right))
            : ints       ? (double)row->binary_int(int_a[at_a], int_b[at_b])
                         : (double)row->binary(left, right);
        const double found = row->truth ? (double)((const uint8_t *)session_value(&s, y))[i]
                             : ints     ? (double)session_int(&s, y, i)
                                        : (double)session_float(&s, y, i);
        CHECK(found == want || (isnan(found) && isnan(want)), "%s, element %zu: %g, expected %g",
              op_name(row->op), i, found, want);
    }
    finish(&s, &g);
}

static void test_rows(void) {
    const struct shape shapes[] = {SCALAR, SHAPE(1), SHAPE(3), SHAPE(17), SHAPE(100), SHAPE(7, 3)};
    for (const struct elementwise *row = elementwise_rows; row < elementwise_rows + ROWS; row++)
        for (int few = 0; few < 2; few++) {
            const bool broadcasts = row->inputs == 2 && !row->slope;
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
                check_row(row, shapes[i], shapes[i], false, few == 1);
            for (size_t p = 0; p < sizeof pairs / sizeof *pairs && broadcasts; p++) {
                check_row(row, pairs[p].a, pairs[p].b, false, few == 1);
                if (takes_ints(row)) check_row(row, pairs[p].a, pairs[p].b, true, few == 1);
            }
        }
}

/* --- the formulas --- */

static double naive_relu(double x) {
    return x > 0 ? x : 0;
}
static double naive_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double naive_relu_grad(double y, double dy) {
    return y > 0 ? dy : 0;
}
static double naive_sigmoid_grad(double y, double dy) {
    return dy * y * (1 - y);
}
static double naive_tanh_grad(double y, double dy) {
    return dy * (1 - y * y);
}

static void check_unary(float (*formula)(float), float least, float most, double (*expected)(double)) {
    for (int i = 0; i <= 1000; i++) {
        const float x = least + (most - least) * (float)i / 1000;
        const double want = expected(x), found = formula(x);
        CHECK(fabs(found - want) <= 3e-7 * fmax(1, fabs(want)), "of %g: %g, expected %g", (double)x, found,
              want);
    }
}

static void check_slope(float (*formula)(float, float), double (*expected)(double, double)) {
    for (int i = -10; i <= 10; i++)
        for (int k = -10; k <= 10; k++) {
            const float y = (float)i / 10, dy = (float)k / 5;
            CHECK(fabs(formula(y, dy) - expected(y, dy)) <= 1e-6, "of %g and %g", (double)y, (double)dy);
        }
}

static void test_formulas(void) {
    check_unary(formula_exp, -5, 5, exp);
    check_unary(formula_log, 0.01f, 50, log);
    check_unary(formula_relu, -1, 1, naive_relu);
    check_unary(formula_sigmoid, -20, 20, naive_sigmoid);
    check_unary(formula_tanh, -4, 4, tanh);
    check_slope(formula_relu_grad, naive_relu_grad);
    check_slope(formula_sigmoid_grad, naive_sigmoid_grad);
    check_slope(formula_tanh_grad, naive_tanh_grad);
    for (int a = -4; a <= 4; a++)
        for (int b = -4; b <= 4; b++) {
            const float x = (float)a, y = (float)b;
            CHECK(formula_add(x, y) == x + y && formula_sub(x, y) == x - y && formula_mul(x, y) == x * y &&
                      formula_greater(x, y) == (a > b) && formula_less(x, y) == (a < b) &&
                      formula_equal(x, y) == (a == b) && (b == 0 || formula_div(x, y) == x / y) &&
                      (a < 1 || formula_pow(x, y) == (float)pow(a, b)),
                  "of %d and %d", a, b);
            CHECK(formula_add_int(a, b) == a + b && formula_sub_int(a, b) == a - b &&
                      formula_mul_int(a, b) == a * b && formula_greater_int(a, b) == (a > b) &&
                      formula_less_int(a, b) == (a < b) && formula_equal_int(a, b) == (a == b),
                  "of ints %d and %d", a, b);
        }
}

/* --- elementwise operations with kernels of their own --- */

static void test_copy_and_relu_grad(void) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node y = whole(&g, SHAPE(101), 4), dy = between(&g, SHAPE(101), 5, -2, 2);
    const node copy = graph_unary(&g, OP_copy, y), dx = graph_binary(&g, OP_relu_grad, y, dy);
    session_open(&s, &g, (node[]){copy, dx}, 2);
    session_run(&s);
    covered[OP_copy] = covered[OP_relu_grad] = true;
    for (size_t i = 0; i < 101; i++) {
        const float at = constant(&g, y)[i];
        CHECK(session_float(&s, copy, i) == at, "copy, element %zu", i);
        CHECK(session_float(&s, dx, i) == (at > 0 ? constant(&g, dy)[i] : 0), "relu_grad, element %zu", i);
    }
    finish(&s, &g);
}

static void test_special_values(void) {
    CHECK(isnan(formula_relu(NAN)), "relu hides what is not a number");
    CHECK(formula_sigmoid(200.0f) == 1.0f && formula_sigmoid(-200.0f) == 0.0f, "sigmoid far out");
    CHECK(formula_int(3.9f) == 3 && formula_int(-3.9f) == -3 && formula_int(NAN) == 0, "float to int");
    CHECK(formula_int(1e20f) == INT32_MAX && formula_int(-INFINITY) == INT32_MIN, "float to int, far out");
    CHECK(formula_add_int(INT32_MAX, 1) == INT32_MIN, "int wraps");
}

static void check_cast(enum type from, enum type to, node (*make)(struct graph *g)) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = graph_cast(&g, make(&g), from), y = graph_cast(&g, x, to),
               back = graph_cast(&g, y, TYPE_FLOAT);
    session_open(&s, &g, (node[]){x, y, back}, 3);
    session_run(&s);
    covered[OP_cast] = true;
    for (size_t i = 0; i < 3; i++) {
        const float value[] = {-1.0f, 0.0f, 3.0f};
        float want = value[i];
        if (from == TYPE_BOOL || to == TYPE_BOOL) want = value[i] != 0.0f;
        CHECK(session_float(&s, back, i) == want, "%s to %s: %g", type_name(from), type_name(to),
              (double)session_float(&s, back, i));
    }
    finish(&s, &g);
}

static node three_floats(struct graph *g) {
    return graph_constant(g, SHAPE(3), (float[]){-1, 0, 3});
}

static void test_cast(void) {
    for (int from = TYPE_FLOAT; from <= TYPE_BOOL; from++)
        for (int to = TYPE_FLOAT; to <= TYPE_BOOL; to++)
            check_cast((enum type)from, (enum type)to, three_floats);
}

/* Kept elements are x / (1 - rate), about the right share of them, the same for the same step and others for
 * another. */
static void test_dropout(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const node x = graph_constant(&g, SHAPE(1001), (float[1001]){[0] = 3, [1000] = 3});
    const node ones = graph_add(&g, x, graph_scalar(&g, 1)), y = graph_dropout(&g, ones, 0.25f);
    const node step = g.nodes[y].input[1];
    session_open(&s, &g, (node[]){ones, y}, 2);
    covered[OP_dropout] = true;
    float masks[3][1001];
    for (int run = 0; run < 3; run++) {
        session_feed(&s, step, (int[]){run == 1 ? 8 : 7});
        session_run(&s);
        memcpy(masks[run], session_value(&s, y), sizeof masks[run]);
    }
    int kept = 0;
    for (size_t i = 0; i < 1001; i++) {
        const float value = session_float(&s, y, i);
        CHECK(value == 0.0f || value == session_float(&s, ones, i) / 0.75f, "element %zu is %g", i,
              (double)value);
        kept += value != 0.0f;
    }
    CHECK(kept > 700 && kept < 800, "%d of 1001 kept", kept);
    CHECK(memcmp(masks[0], masks[2], sizeof masks[0]) == 0, "the same step, another mask");
    CHECK(memcmp(masks[0], masks[1], sizeof masks[0]) != 0, "another step, the same mask");
    finish(&s, &g);
}

/* --- matrix --- */

static double product(const float *a, const float *b, int m, int inner, int n, bool ta, bool tb, int i,
                      int j) {
    double sum = 0;
    for (int k = 0; k < inner; k++)
        sum += (double)a[ta ? k * m + i : i * inner + k] * (double)b[tb ? j * inner + k : k * n + j];
    return sum;
}

static void check_matmul(int m, int inner, int n, bool ta, bool tb) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node a = whole(&g, ta ? SHAPE(inner, m) : SHAPE(m, inner), 6),
               b = whole(&g, tb ? SHAPE(n, inner) : SHAPE(inner, n), 7);
    const node y = graph_matmul(&g, a, b, ta, tb);
    evaluate(&s, &g, y);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            const double want = product(constant(&g, a), constant(&g, b), m, inner, n, ta, tb, i, j);
            CHECK(session_float(&s, y, (size_t)(i * n + j)) == want, "%dx%dx%d %d%d at %d,%d", m, inner, n,
                  ta, tb, i, j);
        }
    finish(&s, &g);
}

static void check_dense(int m, int inner, int n, enum activation activation) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = whole(&g, SHAPE(m, inner), 6), w = whole(&g, SHAPE(inner, n), 7),
               b = whole(&g, SHAPE(n), 8);
    struct node_info info = {
        .op = OP_dense, .inputs = 3, .input = {x, w, b}, .attributes.activation = activation};
    const node y = graph_make(&g, &info);
    evaluate(&s, &g, y);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double want = product(constant(&g, x), constant(&g, w), m, inner, n, false, false, i, j) +
                          constant(&g, b)[j];
            if (activation == ACTIVATION_RELU) want = naive_relu(want);
            if (activation == ACTIVATION_SIGMOID) want = naive_sigmoid(want);
            if (activation == ACTIVATION_TANH) want = tanh(want);
            CHECK(fabs(session_float(&s, y, (size_t)(i * n + j)) - want) < 1e-6, "dense %d at %d,%d",
                  activation, i, j);
        }
    finish(&s, &g);
}

static void test_matrix(void) {
    const int sizes[] = {1, 3, 7, 17};
    for (int i = 0; i < 64; i++) {
        const int m = sizes[i % 4], inner = sizes[i / 4 % 4], n = sizes[i / 16];
        for (int t = 0; t < 4; t++) check_matmul(m, inner, n, (t & 1) != 0, (t & 2) != 0);
        check_dense(m, inner, n, (enum activation)(i % 4));
        check_dense(m, inner, n, (enum activation)((i + i / 4) % 4));
    }
    check_matmul(3, 100, 5, false, true);
}

/* --- nets --- */

static void check_nets(int batch, int classes, float spread) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    int numbers[17];
    for (int i = 0; i < batch; i++) numbers[i] = (i * 5 + 2) % classes;
    const node x = between(&g, SHAPE(batch, classes), 14, -spread, spread),
               labels = graph_constant_int(&g, SHAPE(batch), numbers);
    const node dy = between(&g, SHAPE(batch, classes), 15, -1, 1),
               dloss = between(&g, SHAPE(batch), 16, -1, 1);
    const node p = graph_softmax(&g, x);
    const node dp = graph_make(&g, &(struct node_info){.op = OP_softmax_grad, .inputs = 2, .input = {p, dy}});
    const node from_p =
        graph_make(&g, &(struct node_info){.op = OP_cross_entropy, .inputs = 2, .input = {p, labels}});
    const node loss = graph_softmax_cross_entropy(&g, x, labels);
    const node d_p = graph_make(
        &g, &(struct node_info){.op = OP_cross_entropy_grad, .inputs = 3, .input = {p, labels, dloss}});
    const node d_x = graph_make(
        &g,
        &(struct node_info){.op = OP_softmax_cross_entropy_grad, .inputs = 3, .input = {x, labels, dloss}});
    const node all[] = {p, dp, from_p, loss, d_p, d_x};
    session_open(&s, &g, all, 6);
    session_run(&s);
    for (int i = 0; i < 6; i++) covered[g.nodes[all[i]].op] = true;
    for (int row = 0; row < batch; row++) {
        const size_t first = (size_t)(row * classes);
        double sum = 0, inner = 0, soft[17], top = -1e30;
        for (int c = 0; c < classes; c++) top = fmax(top, constant(&g, x)[first + (size_t)c]);
        for (int c = 0; c < classes; c++) sum += exp(constant(&g, x)[first + (size_t)c] - top);
        for (int c = 0; c < classes; c++) {
            soft[c] = exp(constant(&g, x)[first + (size_t)c] - top) / sum;
            inner += soft[c] * constant(&g, dy)[first + (size_t)c];
        }
        const int label = numbers[row];
        const double want = top + log(sum) - constant(&g, x)[first + (size_t)label],
                     weight = constant(&g, dloss)[row];
        CHECK(fabs(session_float(&s, loss, (size_t)row) - want) < 1e-5 * fmax(1, want), "loss of row %d",
              row);
        if (want < 80)
            CHECK(fabs(session_float(&s, from_p, (size_t)row) - want) < 1e-4, "loss of row %d from p", row);
        for (int c = 0; c < classes; c++) {
            const size_t at = first + (size_t)c;
            CHECK(fabs(session_float(&s, p, at) - soft[c]) < 1e-6, "softmax %d,%d", row, c);
            CHECK(fabs(session_float(&s, dp, at) - soft[c] * (constant(&g, dy)[at] - inner)) < 1e-6,
                  "softmax_grad %d,%d", row, c);
            CHECK(fabs(session_float(&s, d_x, at) - weight * (soft[c] - (c == label))) < 1e-6,
                  "gradient %d,%d", row, c);
            const double want_p = c == label ? -weight / session_float(&s, p, at) : 0;
            if (want < 80)
                CHECK(fabs(session_float(&s, d_p, at) - want_p) <= 1e-5 * fabs(want_p), "gradient of p %d,%d",
                      row, c);
        }
    }
    finish(&s, &g);
}

/* A label beyond the classes is an error with words, not a read beyond the row. */
static void test_wrong_label(void) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = whole(&g, SHAPE(2, 3), 1), labels = graph_placeholder(&g, "labels", TYPE_INT, SHAPE(2));
    const node loss = graph_softmax_cross_entropy(&g, x, labels);
    session_open(&s, &g, &loss, 1);
    for (int wrong = -1; wrong <= 3; wrong += 4) {
        s.error = (struct error){0};
        session_feed(&s, labels, (int[]){2, wrong});
        const int code = program_run(s.program, s.arena, s.weights, s.gradients, &s.error);
        CHECK(code == ERROR_DEVICE && strstr(s.error.words, "of example 1 in the batch, expected 0 to 2"),
              "%s", s.error.words);
    }
    finish(&s, &g);
}

static void test_nets(void) {
    const int sizes[] = {1, 3, 7, 17};
    for (int i = 0; i < 16; i++) check_nets(sizes[i % 4], sizes[i / 4], 3);
    check_nets(7, 10, 1000);
}

static void test_decayed(void) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node x = graph_constant(&g, SCALAR, (float[]){2.5f});
    const node a = graph_constant(&g, SHAPE(3), (float[]){1, -2, 3}),
               b = graph_constant(&g, SHAPE(2, 1), (float[]){4, -5});
    struct node_info info = {.op = OP_decayed, .inputs = 3, .input = {x, a, b}};
    info.attributes.share = 0.25f;
    const node y = graph_make(&g, &info);
    session_open(&s, &g, &y, 1);
    session_run(&s);
    covered[OP_decayed] = true;
    CHECK(session_float(&s, y, 0) == 2.5f + 0.25f * 55.0f, "decayed: %g", session_float(&s, y, 0));
    finish(&s, &g);
}

/* --- state --- */

static void test_state(void) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node v = graph_variable(&g, "v", SHAPE(7, 3), (struct initial){INITIAL_CONSTANT, 2, NULL});
    const node w = graph_variable(&g, "w", SHAPE(7, 3), (struct initial){INITIAL_CONSTANT, 3, NULL});
    const node x = whole(&g, SHAPE(7, 3), 17), set = graph_assign(&g, v, x),
               more = graph_assign_add(&g, w, x);
    const node itself = graph_assign(&g, v, v);
    session_open(&s, &g, (node[]){set, more, itself}, 3);
    session_run(&s);
    covered[OP_assign] = covered[OP_assign_add] = true;
    for (size_t i = 0; i < 21; i++) {
        CHECK(session_float(&s, v, i) == constant(&g, x)[i], "assign, element %zu", i);
        CHECK(session_float(&s, w, i) == constant(&g, x)[i] + 3.0f, "assign_add, element %zu", i);
    }
    finish(&s, &g);
}

static void test_nothing_forgotten(void) {
#define OP(name, inputs, shape, gradient, reference, ...)                                                    \
    CHECK(covered[OP_##name] || is_of_arrays(OP_##name) || is_of_images(OP_##name) ||                        \
              is_of_library(OP_##name) || strcmp(#reference, "source") == 0,                                 \
          "the operation " #name " has no test here");
#include "../../src/graph/ops.def"
}

int main(void) {
    test_rows();
    test_formulas();
    test_copy_and_relu_grad();
    test_special_values();
    test_cast();
    test_dropout();
    test_matrix();
    test_nets();
    test_wrong_label();
    test_decayed();
    test_state();
    test_nothing_forgotten();
    return check_end();
}
