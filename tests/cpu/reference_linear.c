/* The reference kernels of inverse, determinant and shuffle: against Cholesky of positive definite matrices,
 * against known results, and against what they promise. */
#include "../naive.h"

enum { MOST_ORDER = 33 };

/* a [n, n] = M' M + n, of random M: symmetric and positive definite. */
static void positive_definite(double *a, float *out, int n, uint64_t seed) {
    float m[MOST_ORDER * MOST_ORDER];
    fill_between(m, (size_t)(n * n), seed, -1, 1);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = i == j ? n : 0;
            for (int k = 0; k < n; k++) sum += (double)m[k * n + i] * (double)m[k * n + j];
            out[i * n + j] = (float)sum;
            a[i * n + j] = (double)out[i * n + j];
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) a[i * n + j] = a[j * n + i];
}

/* Its determinant by a = L L', and a column of its inverse by two triangular systems. */
static double cholesky(const double *a, int n, int column, double *x) {
    double l[MOST_ORDER][MOST_ORDER] = {{0}}, determinant = 1;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
    for (int i = 0; i < n; i++) determinant *= l[i][i] * l[i][i];
    for (int i = 0; i < n; i++) {
        x[i] = i == column;
        for (int k = 0; k < i; k++) x[i] -= l[i][k] * x[k];
        x[i] /= l[i][i];
    }
    for (int i = n; i-- > 0;) {
        for (int k = i + 1; k < n; k++) x[i] -= l[k][i] * x[k];
        x[i] /= l[i][i];
    }
    return determinant;
}

static void test_against_cholesky(void) {
    static const int orders[] = {1, 2, 3, 7, 16, MOST_ORDER};
    for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
        const int n = orders[o];
        double a[MOST_ORDER * MOST_ORDER], x[MOST_ORDER];
        float values[MOST_ORDER * MOST_ORDER];
        struct graph g;
        struct session s;
        positive_definite(a, values, n, (uint64_t)n);
        graph_open(&g, false, 1);
        const node matrix = graph_constant(&g, SHAPE(n, n), values);
        const node inverse = graph_inverse(&g, matrix), determinant = graph_determinant(&g, matrix);
        session_open(&s, &g, (node[]){inverse, determinant}, 2);
        session_run(&s);
        covered[OP_inverse] = covered[OP_determinant] = true;
        for (int column = 0; column < n; column++) {
            const double want = cholesky(a, n, column, x), found = (double)session_float(&s, determinant, 0);
            CHECK(fabs(found - want) <= 1e-6 * want || isinf(found), "order %d: determinant %g, expected %g",
                  n, found, want);
            for (int row = 0; row < n; row++)
                CHECK(fabs((double)session_float(&s, inverse, (size_t)(row * n + column)) - x[row]) < 1e-7,
                      "order %d, element %d, %d", n, row, column);
        }
        finish(&s, &g);
    }
}

/* Where the first pivot is 0, and the sign of the determinant counts the rows that were swapped. */
static void test_pivots(void) {
    const float values[] = {0, 2, 0, 1, 0, 0, 0, 0, -4}, want[] = {0, 1, 0, 0.5f, 0, 0, 0, 0, -0.25f};
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node matrix = graph_constant(&g, SHAPE(3, 3), values);
    const node inverse = graph_inverse(&g, matrix), determinant = graph_determinant(&g, matrix);
    const node twin = graph_constant(&g, SHAPE(3, 3), (float[]){1, 2, 3, 1, 2, 3, 4, 5, 6});
    const node none = graph_determinant(&g, twin), broken = graph_inverse(&g, twin);
    session_open(&s, &g, (node[]){inverse, determinant, none}, 3);
    session_run(&s);
    for (size_t i = 0; i < 9; i++) CHECK(session_float(&s, inverse, i) == want[i], "element %zu", i);
    CHECK(session_float(&s, determinant, 0) == 8 && session_float(&s, none, 0) == 0, "%g, %g",
          (double)session_float(&s, determinant, 0), (double)session_float(&s, none, 0));
    session_close(&s);
    session_open(&s, &g, &broken, 1);
    CHECK(program_run(s.program, s.arena, s.weights, s.gradients, &s.error) == ERROR_USAGE &&
              strstr(s.error.words, "singular"),
          "%s", s.error.words);
    finish(&s, &g);
}

/* Every row once, in an order that depends on seed, node and step alone; unshuffle undoes it. */
static void test_shuffle(void) {
    enum { ROWS = 23, FLOATS = 3, STEPS = 4 };
    float values[ROWS * FLOATS], seen[STEPS][ROWS * FLOATS];
    struct graph g;
    struct session s;
    for (int i = 0; i < ROWS * FLOATS; i++) values[i] = (float)i;
    graph_open(&g, false, 1);
    const node x = graph_constant(&g, SHAPE(ROWS, FLOATS), values);
    const node y = graph_shuffle(&g, x), step = graph_find(&g, "step");
    struct node_info info = {
        .op = OP_unshuffle, .inputs = 2, .input = {y, step}, .attributes = g.nodes[y].attributes};
    const node back = graph_make(&g, &info);
    session_open(&s, &g, (node[]){y, back}, 2);
    covered[OP_shuffle] = covered[OP_unshuffle] = true;
    for (int t = 0; t < STEPS; t++) {
        bool found[ROWS] = {false};
        session_feed(&s, step, (int[]){t < STEPS - 1 ? t : 0});
        session_run(&s);
        memcpy(seen[t], session_value(&s, y), sizeof seen[t]);
        CHECK(memcmp(session_value(&s, back), values, sizeof values) == 0, "step %d is not undone", t);
        for (int row = 0; row < ROWS; row++) {
            const int from = (int)seen[t][row * FLOATS] / FLOATS;
            CHECK(!found[from] && memcmp(&seen[t][row * FLOATS], &values[from * FLOATS], FLOATS * 4) == 0,
                  "step %d, row %d", t, row);
            found[from] = true;
        }
    }
    CHECK(memcmp(seen[0], seen[STEPS - 1], sizeof seen[0]) == 0, "step 0 again is another order");
    CHECK(memcmp(seen[0], seen[1], sizeof seen[0]) != 0 && memcmp(seen[1], seen[2], sizeof seen[0]) != 0,
          "two steps have one order");
    finish(&s, &g);
}

int main(void) {
    test_against_cholesky();
    test_pivots();
    test_shuffle();
    for (int op = 0; op < OPS; op++)
        CHECK(covered[op] || !is_of_library(op), "the operation %s has no test here", op_name((enum op)op));
    return check_end();
}
