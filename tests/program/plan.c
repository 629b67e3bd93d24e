/* Where a program's values live: the plan of the arena, views, and what is computed straight into the slabs.
 *
 * The rule behind most checks: wherever values lie, they are those of the same graph with every node fetched,
 * where nothing is contributed over anything else. */
#include "../reference_device.h"

static const struct initial random_values = {INITIAL_NORMAL, 0.5f, NULL};

static node random_node(struct graph *g, struct rng *rng) {
    for (;;) {
        const node n = (node)rng_below(rng, (uint32_t)g->count);
        if (g->nodes[n].type == TYPE_FLOAT && g->nodes[n].shape.rank == 2) return n;
    }
}

/* A random graph on matrices whose sides are multiples of each other, so that most operations fit. */
static void grow(struct graph *g, struct rng *rng, int nodes) {
    graph_placeholder(g, "x", TYPE_FLOAT, SHAPE(6, 12));
    graph_variable(g, "w", SHAPE(12, 12), random_values);
    graph_variable(g, "b", SHAPE(12), random_values);
    graph_constant(g, SHAPE(6, 12), (float[72]){1, -1, 2});
    while (g->count < nodes && g->error.code == OK) {
        const node a = random_node(g, rng), b = random_node(g, rng);
        const struct shape shape = g->nodes[a].shape, other = g->nodes[b].shape;
        const bool same = shape_equal(&shape, &other);
        switch (rng_below(rng, 14)) {
        case 0:
            graph_tanh(g, a);
            break;
        case 1:
            graph_sigmoid(g, a);
            break;
        case 2:
            graph_relu(g, a);
            break;
        case 3:
            graph_softmax(g, a);
            break;
        case 4:
            graph_transpose(g, a, (int[]){1, 0});
            break;
        case 5:
            graph_reshape(g, a, SHAPE(-1, shape.dims[0]));
            break;
        case 6:
            if (shape_count(&shape) % 6 == 0) graph_reshape(g, a, SHAPE(6, -1));
            break;
        case 7:
        case 8:
            if (same) graph_add(g, a, b);
            break;
        case 9:
            if (same) graph_mul(g, a, b);
            break;
        case 10:
        case 11:
            if (shape.dims[1] == other.dims[0] && shape.dims[0] * other.dims[1] <= 600) {
                const node product = graph_matmul(g, a, b, false, false);
                if (other.dims[1] == 12) graph_tanh(g, graph_add(g, product, 2));
            }
            break;
        case 12:
            graph_mul(g, a, graph_reduce_max(g, a, 1, true));
            break;
        case 13:
            if (shape.dims[1] <= 12 && same)
                graph_slice(g, graph_concat(g, (node[]){a, b}, 2, 0), (int[]){1, 0}, shape);
            break;
        }
    }
    CHECK(g->error.code == OK, "%s", g->error.words);
}

static void check_planned(uint64_t seed, size_t *planned_bytes, size_t *whole_bytes) {
    struct graph g;
    struct rng rng;
    struct session planned, whole;
    graph_open(&g, true, 1);
    rng_start(&rng, seed, 0);
    grow(&g, &rng, 60);
    node all[200], few[4];
    int count = 0;
    for (node n = 0; n < g.count && count < 200; n++) all[count++] = n;
    for (int i = 0; i < 4; i++) few[i] = i == 0 ? g.count - 1 : random_node(&g, &rng);
    session_open(&planned, &g, few, 4);
    session_open(&whole, &g, all, count);
    for (int run = 0; run < 2; run++) {
        float x[72];
        fill_between(x, 72, seed + (uint64_t)run, -1, 1);
        if (program_runs(planned.program, 0)) session_feed(&planned, 0, x);
        session_feed(&whole, 0, x);
        session_run(&planned);
        session_run(&whole);
        for (int i = 0; i < 4; i++) {
            if (g.nodes[few[i]].op == OP_constant) continue;
            check_same(&planned, &whole, few[i], "planned");
        }
    }
    *planned_bytes += program_arena_bytes(planned.program);
    *whole_bytes += program_arena_bytes(whole.program);
    session_close(&planned);
    session_close(&whole);
    graph_close(&g);
}

static void test_random_graphs(void) {
    size_t planned = 0, whole = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) check_planned(seed, &planned, &whole);
    CHECK(planned * 3 < whole, "%zu bytes planned, %zu with a place for each", planned, whole);
}

/* A chain of any length needs two places besides the placeholder's and the fetch's. */
static void test_chain(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(5, 7));
    node n = x;
    for (int i = 0; i < 10; i++) n = graph_exp(&g, graph_tanh(&g, n));
    session_open(&s, &g, &n, 1);
    CHECK(program_arena_bytes(s.program) == 3 * 192, "%zu bytes, expected 3 places of 192",
          program_arena_bytes(s.program));
    CHECK((uintptr_t)arena_address(s.arena, x) % CACHE_LINE == 0 &&
              (uintptr_t)arena_address(s.arena, n) % CACHE_LINE == 0,
          "alignment");
    session_close(&s);
    graph_close(&g);
}

/* Holes are cut to size and grow together again: two halves in the place of a whole, and a whole in that of
 * two halves. */
static void test_holes(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(16)),
               big = graph_broadcast(&g, x, SHAPE(8, 16));
    const node upper = graph_slice(&g, big, (int[]){0, 0}, SHAPE(4, 16)),
               lower = graph_slice(&g, big, (int[]){4, 0}, SHAPE(4, 16));
    const node halves[] = {graph_tanh(&g, upper), graph_tanh(&g, lower)};
    const node whole = graph_concat(&g, halves, 2, 0);
    session_open(&s, &g, &whole, 1);
    CHECK(program_arena_bytes(s.program) == 17 * CACHE_LINE,
          "%zu lines, expected x, big and the two slices: 17", program_arena_bytes(s.program) / CACHE_LINE);
    session_close(&s);
    graph_close(&g);
}

/* A reshape costs no step; fetched, it is found in the arena all the same, whatever it is a view of. */
static void test_views(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(2, 3)),
               v = graph_variable(&g, "v", SHAPE(6), random_values);
    const node flat = graph_reshape(&g, x, SHAPE(6)), sum = graph_add(&g, flat, v);
    const node wide = graph_reshape(&g, sum, SHAPE(3, 2)), weights = graph_reshape(&g, v, SHAPE(3, 2));
    session_open(&s, &g, (node[]){wide}, 1);
    CHECK(program_instructions(s.program) == 1, "%d instructions, expected the add alone",
          program_instructions(s.program));
    session_close(&s);
    session_open(&s, &g, (node[]){flat, sum, wide, weights}, 4);
    session_feed(&s, x, (float[]){1, 2, 3, 4, 5, 6});
    session_run(&s);
    CHECK(program_instructions(s.program) == 2,
          "%d instructions, expected the add and a copy of the variable", program_instructions(s.program));
    for (size_t i = 0; i < 6; i++) {
        CHECK(session_float(&s, flat, i) == (float)(i + 1), "flat %zu", i);
        CHECK(session_float(&s, wide, i) == (float)(i + 1) + s.weights[i], "wide %zu", i);
        CHECK(session_float(&s, weights, i) == s.weights[i], "weights %zu", i);
    }
    session_close(&s);
    graph_close(&g);
}

/* A value of a variable taken before an assign is the old one, also when it is only a view. */
static void test_assign_order(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const node v = graph_variable(&g, "v", SHAPE(2), (struct initial){INITIAL_CONSTANT, 1, NULL});
    const node view = graph_reshape(&g, v, SHAPE(1, 2)),
               more = graph_assign_add(&g, v, graph_constant(&g, SHAPE(2), (float[]){1, 1}));
    const node before = graph_exp(&g, graph_log(&g, view)), after = graph_add(&g, v, more),
               plain = graph_mul(&g, view, view);
    session_open(&s, &g, (node[]){more, after, plain, before}, 4);
    session_run(&s);
    CHECK(session_float(&s, plain, 0) == 1.0f, "view of the old value: %g",
          (double)session_float(&s, plain, 0));
    CHECK(session_float(&s, after, 1) == 4.0f, "the new value: %g", (double)session_float(&s, after, 1));
    session_close(&s);
    graph_close(&g);
}

/* A gradient that only feeds a fetch is a value like others: it needs no slab. */
static void test_gradient_as_operand(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const node v = graph_variable(&g, "v", SHAPE(3), (struct initial){INITIAL_CONSTANT, 3, NULL});
    node gradient;
    graph_gradients(&g, graph_reduce_sum(&g, graph_mul(&g, v, v), ALL_AXES, false), &v, 1, &gradient);
    const node half = graph_mul(&g, gradient, graph_scalar(&g, 0.5f));
    session_open(&s, &g, &half, 1);
    CHECK(program_run(s.program, s.arena, s.weights, NULL, &s.error) == OK, "%s", s.error.words);
    CHECK(session_float(&s, half, 2) == 3.0f, "%g", (double)session_float(&s, half, 2));
    session_close(&s);
    graph_close(&g);
}

int main(void) {
    test_random_graphs();
    test_chain();
    test_holes();
    test_views();
    test_assign_order();
    test_gradient_as_operand();
    return check_end();
}
