/* The library from outside: what trainer.h promises of graphs and sessions, and how it refuses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../library_check.h"

static const struct trainer_initial zero = {TRAINER_ZERO, 0, NULL},
                                    glorot = {TRAINER_GLOROT_UNIFORM, 0, NULL};

static struct trainer_graph *open_graph(void) {
    struct trainer_graph *g = NULL;
    GOOD(trainer_graph_open(&g, true, 1, &error));
    return g;
}

static struct trainer_session *open_session(const struct trainer_graph *g) {
    struct trainer_session *s = NULL;
    GOOD(trainer_session_open(&s, g, NULL, &error));
    return s;
}

static float fetch(struct trainer_session *s, trainer_node n) {
    float value = NAN;
    const struct trainer_fetch one = {n, &value, sizeof value};
    GOOD(trainer_session_run(s, NULL, 0, &one, 1, &error));
    return value;
}

/* What is not needed is not run, also where many lists of fetches take turns. */
static void test_only_what_is_needed(void) {
    enum { NODES = 40 };
    struct trainer_graph *g = open_graph();
    trainer_node nodes[NODES] = {trainer_scalar(g, 1)};
    for (int i = 1; i < NODES; i++) nodes[i] = trainer_add(g, nodes[i - 1], nodes[0]);
    struct trainer_session *s = open_session(g);
    CHECK(!trainer_session_ran(s, nodes[0]), "before a run");
    for (int turn = 0; turn < 2; turn++)
        for (int i = 1; i < NODES; i++) {
            CHECK(fetch(s, nodes[i]) == (float)(i + 1), "node %d", i);
            for (int k = 0; k < NODES; k++)
                CHECK(trainer_session_ran(s, nodes[k]) == (k <= i), "node %d of a run for %d", k, i);
        }
    CHECK(!trainer_session_ran(s, TRAINER_NONE) && !trainer_session_ran(s, NODES), "no nodes");
    const trainer_node later = trainer_mul(g, nodes[1], nodes[2]);
    CHECK(fetch(s, later) == 6.0f, "a node that was made after the session was opened");
    trainer_session_close(s);
    trainer_graph_close(g);
}

/* A fetch finds a value wherever the program keeps it. */
static void test_every_kind_of_fetch(void) {
    struct trainer_graph *g = open_graph();
    const float start[] = {1, 2, 3};
    const trainer_node v =
        trainer_variable(g, "v", TRAINER_SHAPE(3), (struct trainer_initial){.values = start});
    const trainer_node x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(3));
    const trainer_node two = trainer_scalar(g, 2), product = trainer_mul(g, v, x);
    const trainer_node loss = trainer_reduce_sum(g, trainer_mul(g, product, two), TRAINER_ALL_AXES, false);
    const trainer_node view = trainer_reshape(g, v, TRAINER_SHAPE(3, 1));
    const trainer_node less = trainer_less(g, x, v), best = trainer_argmax(g, x, 0);
    trainer_node gradients[2];
    trainer_gradients(g, loss, (trainer_node[]){v, x}, 2, gradients);
    struct trainer_session *s = open_session(g);
    const float fed[] = {4, 5, 2};
    float values[7][3] = {{0}};
    bool truth[3];
    int at = -1;
    const struct trainer_feed feed = {x, fed, sizeof fed};
    const struct trainer_fetch fetches[] = {{v, values[0], 12},
                                            {x, values[1], 12},
                                            {two, values[2], 4},
                                            {gradients[0], values[3], 12},
                                            {gradients[1], values[4], 12},
                                            {view, values[5], 12},
                                            {loss, values[6], 4},
                                            {less, truth, 3},
                                            {best, &at, sizeof at},
                                            {loss, NULL, 0}};
    GOOD(trainer_session_run(s, &feed, 1, fetches, 10, &error));
    CHECK(memcmp(values[0], start, 12) == 0 && memcmp(values[5], start, 12) == 0, "variable");
    CHECK(memcmp(values[1], fed, 12) == 0 && values[2][0] == 2.0f, "placeholder, constant");
    for (int i = 0; i < 3; i++)
        CHECK(values[3][i] == 2 * fed[i] && values[4][i] == 2 * start[i], "gradients, element %d", i);
    CHECK(values[6][0] == 40.0f && truth[2] && !truth[0] && at == 1, "%g", (double)values[6][0]);
    trainer_session_close(s);
    trainer_graph_close(g);
}

static void test_feeds(void) {
    struct trainer_graph *g = open_graph();
    const trainer_node x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(2));
    const trainer_node y = trainer_placeholder(g, "y", TRAINER_FLOAT, TRAINER_SHAPE(2));
    const trainer_node sum = trainer_add(g, x, x);
    struct trainer_session *s = open_session(g);
    float in[] = {1, 2}, out[2];
    const struct trainer_feed feeds[] = {{x, in, sizeof in}, {y, in, sizeof in}};
    const struct trainer_fetch fetch_sum = {sum, out, sizeof out};
    GOOD(trainer_session_run(s, feeds, 2, &fetch_sum, 1, &error)); /* y is not needed */
    CHECK(out[0] == 2 && out[1] == 4, "%g", (double)out[0]);
    CHECK(trainer_session_ran(s, x) && !trainer_session_ran(s, y), "y ran");
    REFUSED(trainer_session_run(s, &feeds[1], 1, &fetch_sum, 1, &error), TRAINER_USAGE, "\"x\" is needed");
    CHECK(!trainer_session_ran(s, sum), "a run that failed");
    const struct trainer_feed small = {x, in, 4}, none = {sum, in, 8};
    REFUSED(trainer_session_run(s, &small, 1, &fetch_sum, 1, &error), TRAINER_USAGE,
            "found 4 bytes, expected 8");
    REFUSED(trainer_session_run(s, &none, 1, &fetch_sum, 1, &error), TRAINER_USAGE,
            "found add, expected a placeholder");
    const struct trainer_fetch wrong[] = {{99, out, 8}, {sum, out, 4}, {TRAINER_NONE, NULL, 0}};
    REFUSED(trainer_session_run(s, feeds, 1, &wrong[0], 1, &error), TRAINER_USAGE, "not a node");
    REFUSED(trainer_session_run(s, feeds, 1, &wrong[1], 1, &error), TRAINER_USAGE, "found 4 bytes");
    REFUSED(trainer_session_run(s, feeds, 1, &wrong[2], 1, &error), TRAINER_USAGE, "not a node");
    REFUSED(trainer_session_run(s, feeds, -1, NULL, 0, &error), TRAINER_USAGE, "-1 feeds");
    GOOD(trainer_session_run(s, NULL, 0, NULL, 0, NULL)); /* nothing to do */
    trainer_session_close(s);
    trainer_graph_close(g);
}

/* The first mistake stays, and is what every run says. */
static void test_mistakes(void) {
    struct trainer_graph *g = open_graph();
    struct trainer_session *s = open_session(g);
    const trainer_node a = trainer_placeholder(g, "a", TRAINER_FLOAT, TRAINER_SHAPE(2, 3));
    const trainer_node wrong = trainer_matmul(g, a, a, false, false);
    CHECK(wrong == TRAINER_NONE && trainer_relu(g, wrong) == TRAINER_NONE, "a node after a mistake");
    REFUSED(trainer_graph_check(g, &error), TRAINER_USAGE, "inner dimensions 3 and 2 differ");
    REFUSED(trainer_session_run(s, NULL, 0, NULL, 0, &error), TRAINER_USAGE, "inner dimensions");
    trainer_session_close(s);
    REFUSED(trainer_session_open(&s, g, "cpu:0", &error), TRAINER_USAGE, "inner dimensions");
    CHECK(s == NULL, "a session of a graph with a mistake");
    trainer_graph_close(g);
    g = open_graph();
    REFUSED(trainer_session_open(&s, g, "abacus:0", &error), TRAINER_USAGE, "abacus");
    s = open_session(g);
    trainer_variable(g, "late", TRAINER_SHAPE(200), zero);
    REFUSED(trainer_session_run(s, NULL, 0, NULL, 0, &error), TRAINER_USAGE, "variables since");
    REFUSED(trainer_session_save(s, "late", &error), TRAINER_USAGE, "variable \"late\" is newer");
    REFUSED(trainer_session_load(s, "late", &error), TRAINER_USAGE, "variable \"late\" is newer");
    trainer_session_close(s);
    trainer_graph_close(g);
    trainer_session_close(NULL);
    trainer_graph_close(NULL);
}

/* --- what a program may hand over --- */

static trainer_node far_gradient(void *argument, struct trainer_graph *graph, const trainer_node *x,
                                 int count, trainer_node y, trainer_node dy, int i) {
    (void)graph, (void)x, (void)count, (void)y, (void)dy, (void)i;
    return *(trainer_node *)argument;
}

static const char *compute_nothing(void *argument, const float *const *operands,
                                   const struct trainer_shape *shapes, int count, float *result,
                                   const struct trainer_shape *result_shape) {
    (void)argument, (void)operands, (void)shapes, (void)count, (void)result, (void)result_shape;
    return NULL;
}

static void custom_of(struct trainer_graph *g, trainer_node x, struct trainer_operation operation) {
    static struct trainer_operation kept;
    kept = operation;
    const trainer_node y = trainer_custom(g, &kept, &x, 1);
    trainer_node dx = 0;
    trainer_gradients(g, trainer_reduce_sum(g, y, TRAINER_ALL_AXES, false), &x, 1, &dx);
}

static void dense_of(struct trainer_graph *g, trainer_node x, struct trainer_initial initial, int letters) {
    char name[300];
    memset(name, 'q', sizeof name);
    name[letters] = '\0';
    trainer_dense(g, name, x, 2, initial);
}

static void test_what_is_handed_over(void) {
    trainer_node nodes[] = {-2, 500};
    const struct trainer_initial other = {(enum trainer_initial_kind)9, 0, NULL},
                                 nan = {TRAINER_NORMAL, NAN, NULL};
    const struct trainer_windows windows = {{2, 2}, {1, 1}, (enum trainer_padding)5};
    const char *const words[] = {"placeholder: the type: found 7, expected 0 to 2",
                                 "cast: the type: found -1, expected 0 to 2",
                                 "the first weights: found 9, expected 0 to 4",
                                 "the first weights: found the number nan",
                                 "the padding: found 5, expected 0 to 1",
                                 "found no name",
                                 "found no compute",
                                 "the gradient of operand 1 is node -2, expected one of the graph",
                                 "the gradient of operand 1 is node 500, expected one of the graph",
                                 "enqueue: found no queue",
                                 "dequeue: found no queue",
                                 "while: found no condition",
                                 "cond: found one branch",
                                 "found a name of 64 characters, \"qqqqqqqq",
                                 "found a name of 257 characters"};
    for (int i = 0; i < (int)(sizeof words / sizeof *words); i++) {
        struct trainer_graph *g = open_graph();
        const trainer_node x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(3, 4)),
                           image = trainer_placeholder(g, "i", TRAINER_FLOAT, TRAINER_SHAPE(1, 4, 4, 1));
        trainer_node result;
        if (i == 0) trainer_placeholder(g, "y", (enum trainer_type)7, TRAINER_SHAPE(3));
        if (i == 1) trainer_cast(g, x, (enum trainer_type) - 1);
        if (i == 2) trainer_variable(g, "v", TRAINER_SHAPE(3), other);
        if (i == 3) dense_of(g, x, nan, 3);
        if (i == 4) trainer_maxpool(g, image, windows);
        if (i == 5) custom_of(g, x, (struct trainer_operation){.compute = compute_nothing});
        if (i == 6) custom_of(g, x, (struct trainer_operation){.name = "own"});
        if (i == 7 || i == 8)
            custom_of(g, x,
                      (struct trainer_operation){.name = "own",
                                                 .compute = compute_nothing,
                                                 .gradient = far_gradient,
                                                 .argument = &nodes[i - 7]});
        if (i == 9) trainer_enqueue(g, NULL, x);
        if (i == 10) trainer_dequeue(g, NULL);
        if (i == 11) trainer_while(g, NULL, NULL, NULL, 1, &x, 1, &result);
        if (i == 12) trainer_cond(g, x, NULL, NULL, NULL, &x, 1, &result, 1);
        if (i == 13) dense_of(g, x, zero, 57);
        if (i == 14) dense_of(g, x, zero, 250);
        REFUSED(trainer_graph_check(g, &error), TRAINER_USAGE, words[i]);
        trainer_graph_close(g);
    }
    struct trainer_graph *g = open_graph(); /* the longest */
    dense_of(g, trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(3, 4)), zero, 56);
    GOOD(trainer_graph_check(g, &error));
    trainer_graph_close(g);
}

/* Sessions of one graph have variables of their own; these can be set, read, saved and loaded. */
static void test_variables(void) {
    char path[] = "/tmp/library-XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0, "no file");
    close(file);
    struct trainer_graph *g = open_graph(), *other = open_graph();
    const trainer_node x = trainer_constant(g, TRAINER_SHAPE(1, 3), (float[]){1, 2, 3});
    const trainer_node y = trainer_dense(g, NULL, x, 5, glorot),
                       kernel = trainer_graph_find(g, "dense1/kernel");
    const trainer_node count = trainer_variable(g, "count", TRAINER_SCALAR, zero);
    const trainer_node more = trainer_assign_add(g, count, trainer_scalar(g, 1));
    const struct trainer_shape shape = trainer_node_shape(g, kernel);
    CHECK(shape.rank == 2 && shape.dims[0] == 3 && shape.dims[1] == 5, "the kernel's shape");
    CHECK(strcmp(trainer_node_operation(g, y), "add") == 0 && trainer_node_type(g, y) == TRAINER_FLOAT, "%s",
          trainer_node_operation(g, y));
    struct trainer_session *one = open_session(g), *two = open_session(g);
    float a[15], b[15], values[15], counted = 0;
    GOOD(trainer_session_get(one, kernel, a, 15, &error));
    GOOD(trainer_session_get(two, kernel, b, 15, &error));
    CHECK(memcmp(a, b, sizeof a) == 0 && a[0] != a[1], "the first values depend on the seed alone");
    for (int i = 0; i < 15; i++) values[i] = (float)i;
    GOOD(trainer_session_set(one, kernel, values, 15, &error));
    CHECK(fetch(one, more) == 1 && fetch(one, more) == 2 && fetch(two, more) == 1, "the counters");
    GOOD(trainer_session_save(one, path, &error));
    GOOD(trainer_session_load(two, path, &error));
    GOOD(trainer_session_get(two, kernel, b, 15, &error));
    GOOD(trainer_session_get(two, count, &counted, 1, &error));
    CHECK(memcmp(b, values, sizeof b) == 0 && counted == 2, "what was loaded");
    REFUSED(trainer_session_get(one, kernel, b, 14, &error), TRAINER_USAGE, "found room for 14");
    REFUSED(trainer_session_set(one, y, b, 5, &error), TRAINER_USAGE, "found add, expected a variable");
    trainer_variable(other, "count", TRAINER_SHAPE(2), (struct trainer_initial){TRAINER_FILLED, 7, NULL});
    struct trainer_session *third = open_session(other);
    REFUSED(trainer_session_load(third, path, &error), TRAINER_FILE, "count is [] here, [2] in the model");
    GOOD(trainer_session_get(third, trainer_graph_find(other, "count"), b, 2, &error));
    CHECK(b[0] == 7 && b[1] == 7, "a file that does not fit changed something");
    REFUSED(trainer_session_load(third, "/nowhere/at/all", &error), TRAINER_FILE, "/nowhere/at/all");
    REFUSED(trainer_session_save(third, "/nowhere/at/all", &error), TRAINER_FILE, "/nowhere/at/all");
    remove(path);
    trainer_session_close(one);
    trainer_session_close(two);
    trainer_session_close(third);
    trainer_graph_close(g);
    trainer_graph_close(other);
}

/* Two sessions of one thread, and a queue between them; what cannot be one is refused. */
static void test_queue(void) {
    struct trainer_queue *queue = NULL;
    GOOD(trainer_queue_open(&queue, TRAINER_SHAPE(2), 3, 1, &error));
    struct trainer_graph *in = open_graph(), *out = open_graph();
    const trainer_node x = trainer_placeholder(in, "x", TRAINER_FLOAT, TRAINER_SHAPE(2));
    const trainer_node put = trainer_enqueue(in, queue, x);
    const trainer_node sum = trainer_reduce_sum(out, trainer_dequeue(out, queue), 0, false);
    struct trainer_session *from = open_session(in), *to = open_session(out);
    for (int i = 1; i <= 3; i++) {
        const float values[] = {(float)i, 10};
        const struct trainer_feed feed = {x, values, sizeof values};
        const struct trainer_fetch fetch_put = {put, NULL, 0};
        GOOD(trainer_session_run(from, &feed, 1, &fetch_put, 1, &error));
        CHECK(trainer_queue_length(queue) == i, "%ld", trainer_queue_length(queue));
    }
    trainer_queue_end(queue);
    for (int i = 1; i <= 3; i++) CHECK(fetch(to, sum) == (float)(i + 10), "value %d", i);
    REFUSED(trainer_session_run(to, NULL, 0, &(struct trainer_fetch){sum, NULL, 0}, 1, &error),
            TRAINER_STOPPED, "closed and empty");
    trainer_session_close(from);
    trainer_session_close(to);
    trainer_graph_close(in);
    trainer_graph_close(out);
    trainer_queue_close(queue);
    REFUSED(trainer_queue_open(&queue, TRAINER_SHAPE(2), 0, 1, &error), TRAINER_USAGE, "room for 0 values");
    REFUSED(trainer_queue_open(&queue, TRAINER_SHAPE(1 << 30, 1 << 30, 1 << 30), 9, 1, &error), TRAINER_USAGE,
            "at most 1e12");
    CHECK(queue == NULL, "a queue that was refused");
    trainer_queue_close(NULL);
}

int main(void) {
    CHECK(strcmp(trainer_version(), "") != 0, "no version");
    test_only_what_is_needed();
    test_every_kind_of_fetch();
    test_feeds();
    test_mistakes();
    test_what_is_handed_over();
    test_variables();
    test_queue();
    return check_end();
}
