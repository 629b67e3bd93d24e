/* The little programs of the slides (SEEDS.md section 5): a graph is put together, and a session runs only
 * what the fetches need. */
#include "../reference_device.h"

/* x=2, y=3: add 5, mul 6, pow(add, mul) = 15625; the node that nobody asked for does not run. */
static void test_pow_of_add_and_mul(void) {
    struct graph g;
    graph_open(&g, false, 1);
    const node x = graph_scalar(&g, 2), y = graph_scalar(&g, 3);
    const node add = graph_add(&g, x, y), mul = graph_mul(&g, x, y);
    const node useless = graph_mul(&g, x, add), power = graph_pow(&g, add, mul);
    struct session s;
    session_open(&s, &g, (node[]){add, mul, power}, 3);
    session_run(&s);
    CHECK(session_float(&s, add, 0) == 5.0f, "%g", (double)session_float(&s, add, 0));
    CHECK(session_float(&s, mul, 0) == 6.0f, "%g", (double)session_float(&s, mul, 0));
    CHECK(session_float(&s, power, 0) == 15625.0f, "%g", (double)session_float(&s, power, 0));
    CHECK(!program_runs(s.program, useless), "the useless node was kept");
    CHECK(program_instructions(s.program) == 3, "%d instructions", program_instructions(s.program));
    session_close(&s);
    graph_close(&g);
}

static void test_placeholders(void) {
    struct graph g;
    graph_open(&g, false, 1);
    const node a = graph_placeholder(&g, "a", TYPE_FLOAT, SCALAR),
               b = graph_placeholder(&g, "b", TYPE_FLOAT, SCALAR);
    const node p = graph_placeholder(&g, "p", TYPE_FLOAT, SHAPE(2)),
               q = graph_placeholder(&g, "q", TYPE_FLOAT, SHAPE(2));
    const node scalar = graph_add(&g, a, b), vector = graph_add(&g, p, q);
    struct session s;
    session_open(&s, &g, (node[]){scalar, vector}, 2);
    session_feed(&s, a, &(float){3});
    session_feed(&s, b, &(float){4.5f});
    session_feed(&s, p, (float[]){1, 3});
    session_feed(&s, q, (float[]){2, 4});
    session_run(&s);
    CHECK(session_float(&s, scalar, 0) == 7.5f, "%g", (double)session_float(&s, scalar, 0));
    CHECK(session_float(&s, vector, 0) == 3.0f && session_float(&s, vector, 1) == 7.0f, "%g %g",
          (double)session_float(&s, vector, 0), (double)session_float(&s, vector, 1));
    session_feed(&s, b, &(float){-3}); /* fed again: a keeps its value */
    session_run(&s);
    CHECK(session_float(&s, scalar, 0) == 0.0f, "%g", (double)session_float(&s, scalar, 0));
    session_close(&s);
    graph_close(&g);
}

/* A counter: each run adds to it, and it keeps its state between runs. */
static void test_variable(void) {
    struct graph g;
    graph_open(&g, false, 1);
    const node counter = graph_variable(&g, "counter", SCALAR, (struct initial){INITIAL_CONSTANT, 10, NULL});
    const node before = graph_mul(&g, counter, graph_scalar(&g, 1));
    const node more = graph_assign_add(&g, counter, graph_scalar(&g, 2.5f));
    const node after = graph_mul(&g, more, graph_scalar(&g, 1));
    struct session s;
    session_open(&s, &g, (node[]){before, more, after}, 3);
    for (int run = 0; run < 3; run++) {
        session_run(&s);
        CHECK(session_float(&s, before, 0) == 10.0f + 2.5f * (float)run, "%g",
              (double)session_float(&s, before, 0));
        CHECK(session_float(&s, after, 0) == 12.5f + 2.5f * (float)run, "%g",
              (double)session_float(&s, after, 0));
        CHECK(session_float(&s, counter, 0) == session_float(&s, after, 0), "run %d", run);
    }
    session_close(&s);
    session_open(&s, &g, &counter, 1); /* not fetched: the counter stays */
    CHECK(program_instructions(s.program) == 0 && !program_runs(s.program, more), "the assign was kept");
    session_run(&s);
    CHECK(session_float(&s, counter, 0) == 10.0f, "%g", (double)session_float(&s, counter, 0));
    session_close(&s);
    graph_close(&g);
}

static void test_assign(void) {
    struct graph g;
    graph_open(&g, false, 1);
    const node v = graph_variable(&g, "v", SHAPE(3), (struct initial){INITIAL_CONSTANT, 2, NULL});
    const node squared = graph_assign(&g, v, graph_mul(&g, v, v));
    struct session s;
    session_open(&s, &g, &squared, 1);
    session_run(&s);
    session_run(&s);
    for (size_t i = 0; i < 3; i++)
        CHECK(session_float(&s, v, i) == 16.0f, "%g", (double)session_float(&s, v, i));
    for (size_t i = 3; i < g.layout.floats; i++)
        CHECK(s.weights[i] == 0.0f, "padding %zu is %g", i, (double)s.weights[i]);
    session_close(&s);
    graph_close(&g);
}

/* concat, slice, split, constant, rank, shape */
static void test_arrays(void) {
    struct graph g;
    graph_open(&g, false, 1);
    const node a = graph_constant(&g, SHAPE(2, 2), (float[]){1, 2, 3, 4});
    const node b = graph_constant_int(&g, SHAPE(2, 1), (int[]){5, 6});
    const node joined = graph_concat(&g, (node[]){a, graph_cast(&g, b, TYPE_FLOAT)}, 2, 1);
    const node corner = graph_slice(&g, joined, (int[]){1, 1}, SHAPE(1, -1));
    node halves[3];
    graph_split(&g, joined, 3, -1, halves);
    const node shape = graph_shape(&g, joined), rank = graph_rank(&g, joined);
    struct session s;
    session_open(&s, &g, (node[]){joined, corner, halves[2], shape, rank}, 5);
    session_run(&s);
    const float want[] = {1, 2, 5, 3, 4, 6};
    for (size_t i = 0; i < 6; i++) CHECK(session_float(&s, joined, i) == want[i], "element %zu", i);
    CHECK(session_float(&s, corner, 0) == 4 && session_float(&s, corner, 1) == 6, "slice");
    CHECK(session_float(&s, halves[2], 0) == 5 && session_float(&s, halves[2], 1) == 6, "split");
    CHECK(session_int(&s, shape, 0) == 2 && session_int(&s, shape, 1) == 3, "shape");
    CHECK(session_int(&s, rank, 0) == 2, "rank");
    CHECK(!program_runs(s.program, halves[0]), "a part that nobody fetched was cut out");
    session_close(&s);
    graph_close(&g);
}

/* greater, less, equal; exp, log; softmax, sigmoid, relu; argmax as a prediction */
static void test_nets(void) {
    struct graph g;
    graph_open(&g, false, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(1, 3));
    const node two = graph_scalar(&g, 2);
    const node greater = graph_greater(&g, x, two), less = graph_less(&g, x, two),
               equal = graph_equal(&g, x, two);
    const node same = graph_log(&g, graph_exp(&g, x)), soft = graph_softmax(&g, x),
               best = graph_argmax(&g, soft, -1);
    const node relu = graph_relu(&g, x), sigmoid = graph_sigmoid(&g, x);
    struct session s;
    session_open(&s, &g, (node[]){greater, less, equal, same, soft, best, relu, sigmoid}, 8);
    session_feed(&s, x, (float[]){-1, 2, 3});
    session_run(&s);
    const unsigned char *bits[] = {session_value(&s, greater), session_value(&s, less),
                                   session_value(&s, equal)};
    CHECK(bits[0] && memcmp(bits[0], (unsigned char[]){0, 0, 1}, 3) == 0, "greater");
    CHECK(bits[1] && memcmp(bits[1], (unsigned char[]){1, 0, 0}, 3) == 0, "less");
    CHECK(bits[2] && memcmp(bits[2], (unsigned char[]){0, 1, 0}, 3) == 0, "equal");
    const float want[] = {0.01321289f, 0.26538793f, 0.72139918f}; /* e^(x-3) / (e^-4 + e^-1 + 1) */
    for (size_t i = 0; i < 3; i++)
        CHECK(fabsf(session_float(&s, soft, i) - want[i]) < 1e-6f, "softmax %zu is %.8f", i,
              (double)session_float(&s, soft, i));
    CHECK(session_int(&s, best, 0) == 2, "argmax");
    CHECK(session_float(&s, relu, 0) == 0 && session_float(&s, relu, 2) == 3, "relu");
    CHECK(fabsf(session_float(&s, sigmoid, 0) - 0.26894142f) < 1e-7f, "sigmoid");
    CHECK(fabsf(session_float(&s, same, 1) - 2.0f) < 1e-6f, "log of exp");
    session_close(&s);
    graph_close(&g);
}

/* Automatic differentiation: y = x^2 + 3x at x = 4: dy/dx = 11. */
static void test_derivative(void) {
    struct graph g;
    graph_open(&g, false, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SCALAR);
    const node y = graph_add(&g, graph_mul(&g, x, x), graph_mul(&g, graph_scalar(&g, 3), x));
    node dx;
    graph_gradients(&g, y, &x, 1, &dx);
    struct session s;
    session_open(&s, &g, (node[]){y, dx}, 2);
    session_feed(&s, x, &(float){4});
    session_run(&s);
    CHECK(session_float(&s, y, 0) == 28.0f && session_float(&s, dx, 0) == 11.0f, "%g %g",
          (double)session_float(&s, y, 0), (double)session_float(&s, dx, 0));
    session_close(&s);
    graph_close(&g);
}

int main(void) {
    test_pow_of_add_and_mul();
    test_placeholders();
    test_variable();
    test_assign();
    test_arrays();
    test_nets();
    test_derivative();
    return check_end();
}
