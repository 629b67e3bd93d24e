/* Sessions on several devices, from outside: wherever nodes lie, values are those of one device, bit for bit;
 * what lies where is told, what cannot be split is refused, and a device that fails or hangs is named in
 * time.
 */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../library_check.h"

static const struct trainer_initial glorot = {TRAINER_GLOROT_UNIFORM, 0, NULL};

static struct trainer_session *open_session(const struct trainer_graph *g, const char *devices) {
    struct trainer_session *s = NULL;
    GOOD(trainer_session_open(&s, g, devices, &error));
    return s;
}

static bool has_gpus(void) {
    struct trainer_graph *g = NULL;
    struct trainer_session *s = NULL;
    GOOD(trainer_graph_open(&g, true, 1, &error));
    const bool there = trainer_session_open(&s, g, "gpu:0,gpu:1", NULL) == TRAINER_OK;
    trainer_session_close(s);
    trainer_graph_close(g);
    return there;
}

/* --- a network that learns --- */

enum { BATCH = 6, FEATURES = 9, CLASSES = 4, VARIABLES = 8, STEPS = 4, FETCHES = 2 + 2 * VARIABLES };

/* What a network has after some steps. */
struct learnt {
    float loss[STEPS], logits[STEPS][BATCH * CLASSES];
    float gradients[VARIABLES][200], variables[VARIABLES][200];
};

struct net {
    struct trainer_graph *graph;
    trainer_node x, labels, step, logits, loss;
    trainer_node variables[VARIABLES], gradients[VARIABLES], updates[VARIABLES];
};

static void open_net(struct net *net) {
    static const char *const names[VARIABLES] = {"dense1/kernel", "dense1/bias",   "norm1/scale",
                                                 "norm1/shift",   "dense2/kernel", "dense2/bias",
                                                 "dense3/kernel", "dense3/bias"};
    GOOD(trainer_graph_open(&net->graph, true, 5, &error));
    struct trainer_graph *g = net->graph;
    net->x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(BATCH, FEATURES));
    net->labels = trainer_placeholder(g, "labels", TRAINER_INT, TRAINER_SHAPE(BATCH));
    net->step = trainer_placeholder(g, "step", TRAINER_INT, TRAINER_SCALAR);
    trainer_node h = trainer_tanh(g, trainer_dense(g, NULL, net->x, 12, glorot));
    h = trainer_batch_norm(g, NULL, h, 0.9f, 1e-3f);
    h = trainer_dropout(g, trainer_relu(g, trainer_dense(g, NULL, h, 7, glorot)), 0.3f);
    net->logits = trainer_dense(g, NULL, h, CLASSES, glorot);
    net->loss = trainer_reduce_mean(g, trainer_softmax_cross_entropy(g, net->logits, net->labels),
                                    TRAINER_ALL_AXES, false);
    for (int i = 0; i < VARIABLES; i++) net->variables[i] = trainer_graph_find(g, names[i]);
    trainer_gradients(g, net->loss, net->variables, VARIABLES, net->gradients);
    const trainer_node rate = trainer_scalar(g, 0.3f);
    for (int i = 0; i < VARIABLES; i++)
        net->updates[i] = trainer_assign(
            g, net->variables[i], trainer_sub(g, net->variables[i], trainer_mul(g, rate, net->gradients[i])));
    GOOD(trainer_graph_check(g, &error));
}

static size_t floats_of(const struct net *net, trainer_node n) {
    const struct trainer_shape shape = trainer_node_shape(net->graph, n);
    size_t floats = 1;
    for (int axis = 0; axis < shape.rank; axis++) floats *= (size_t)shape.dims[axis];
    return floats;
}

static void learn(const struct net *net, struct trainer_session *s, struct learnt *learnt) {
    float x[BATCH * FEATURES];
    int labels[BATCH];
    memset(learnt, 0, sizeof *learnt);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH * FEATURES; i++) x[i] = sinf((float)(i * (step + 1)));
        for (int i = 0; i < BATCH; i++) labels[i] = (i + step) % CLASSES;
        const struct trainer_feed feeds[] = {
            {net->x, x, sizeof x}, {net->labels, labels, sizeof labels}, {net->step, &step, sizeof step}};
        struct trainer_fetch fetches[FETCHES] = {
            {net->loss, &learnt->loss[step], sizeof learnt->loss[step]},
            {net->logits, learnt->logits[step], sizeof learnt->logits[step]}};
        for (int i = 0; i < VARIABLES; i++) {
            fetches[2 + 2 * i] = (struct trainer_fetch){net->gradients[i], learnt->gradients[i],
                                                        4 * floats_of(net, net->gradients[i])};
            fetches[3 + 2 * i] = (struct trainer_fetch){net->updates[i], NULL, 0};
        }
        GOOD(trainer_session_run(s, feeds, 3, fetches, FETCHES, &error));
    }
    for (int i = 0; i < VARIABLES; i++)
        GOOD(trainer_session_get(s, net->variables[i], learnt->variables[i],
                                 floats_of(net, net->variables[i]), &error));
}

static void compare(const struct learnt *one, const struct learnt *several, bool exact, const char *name) {
    const float *a = (const float *)one, *b = (const float *)several;
    float most = 0.0f;
    for (size_t i = 0; i < sizeof *one / sizeof *a; i++) most = fmaxf(most, fabsf(a[i] - b[i]));
    CHECK(exact ? memcmp(one, several, sizeof *one) == 0 : most < 1e-4f, "%s: differs by %g", name,
          (double)most);
    CHECK(one->loss[0] > 0.5f && one->loss[0] != one->loss[STEPS - 1], "nothing was learnt");
}

static void check_places(const struct net *net, const char *one, const char *several, const char *layers) {
    struct learnt alone, placed;
    struct trainer_session *s = open_session(net->graph, one);
    learn(net, s, &alone);
    trainer_session_close(s);
    s = open_session(net->graph, several);
    GOOD(trainer_session_place(s, layers, &error));
    learn(net, s, &placed);
    char name[200];
    snprintf(name, sizeof name, "%s, %s", several, layers ? layers : "no places");
    compare(&alone, &placed, !strstr(several, "gpu") || !strstr(several, "cpu"), name);
    trainer_session_close(s);
}

/* Every node anywhere, by chance, but for assignments. */
static void check_chance(const struct net *net, const char *one, const char *several, int devices) {
    const char kind = one[0];
    struct learnt alone, placed;
    struct trainer_session *s = open_session(net->graph, one);
    learn(net, s, &alone);
    trainer_session_close(s);
    uint64_t random = 1;
    s = open_session(net->graph, several);
    for (int trial = 0; trial < 8; trial++) {
        if (trial == 4) {
            trainer_session_close(s);
            s = open_session(net->graph, several);
        } else if (trial % 4 != 0) { /* the same variables as before, on other devices */
            struct trainer_session *fresh = open_session(net->graph, one);
            char path[] = "/tmp/place-XXXXXX";
            close(mkstemp(path));
            GOOD(trainer_session_save(fresh, path, &error));
            GOOD(trainer_session_load(s, path, &error));
            remove(path);
            trainer_session_close(fresh);
        }
        int crossings = 0;
        struct trainer_crossing crossing;
        for (trainer_node n = 0; n < trainer_graph_nodes(net->graph); n++) {
            char device[16];
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            snprintf(device, sizeof device, "%cpu:%d", kind, (int)((random >> 33) % (uint64_t)devices));
            if (strncmp(trainer_node_operation(net->graph, n), "assign", 6) == 0) continue;
            GOOD(trainer_session_pin(s, n, device, &error));
        }
        learn(net, s, &placed);
        compare(&alone, &placed, true, several);
        while (trainer_session_crossing(s, crossings, &crossing)) crossings++;
        CHECK(crossings > 20, "%d values cross", crossings);
    }
    trainer_session_close(s);
}

static void test_values(bool gpus) {
    struct net net;
    open_net(&net);
    check_places(&net, "cpu:0", "cpu:0,cpu:1", NULL);
    check_places(&net, "cpu:0", "cpu:0,cpu:1", "dense2=cpu:1");
    check_places(&net, "cpu:0", "cpu:0,cpu:1,cpu:2", "*=cpu:2,norm1=cpu:1,dense3=cpu:0");
    check_chance(&net, "cpu:0", "cpu:0,cpu:1,cpu:2", 3);
    if (gpus) {
        check_places(&net, "gpu:0", "gpu:0,gpu:1", "dense2=gpu:1");
        check_places(&net, "gpu:0", "gpu:1,gpu:0", "dense1=gpu:0,dense[23]=gpu:1");
        check_places(&net, "cpu:0", "cpu:0,gpu:1", "dense2=gpu:1");
        check_places(&net, "cpu:0", "gpu:0,cpu:0", "dense3=cpu:0");
        check_chance(&net, "gpu:0", "gpu:0,gpu:1", 2);
    }
    trainer_graph_close(net.graph);
}

/* Large products, which a CPU computes by other kernels, and with more threads when it is alone. */
static void test_large(void) {
    enum { SIDE = 301 };
    struct trainer_graph *g = NULL;
    static float in[SIDE * SIDE], out[2][SIDE * SIDE];
    GOOD(trainer_graph_open(&g, true, 1, &error));
    const trainer_node x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(SIDE, SIDE));
    const trainer_node one = trainer_matmul(g, x, x, false, true),
                       other = trainer_matmul(g, x, x, true, false);
    const trainer_node all = trainer_matmul(g, trainer_relu(g, one), trainer_softmax(g, other), false, false);
    for (int i = 0; i < SIDE * SIDE; i++) in[i] = sinf((float)i);
    for (int k = 0; k < 2; k++) {
        struct trainer_session *s = open_session(g, k == 0 ? "cpu:0" : "cpu:0,cpu:1");
        if (k == 1) GOOD(trainer_session_pin(s, other, "cpu:1", &error));
        const struct trainer_feed feed = {x, in, sizeof in};
        const struct trainer_fetch fetch = {all, out[k], sizeof out[k]};
        GOOD(trainer_session_run(s, &feed, 1, &fetch, 1, &error));
        trainer_session_close(s);
    }
    CHECK(memcmp(out[0], out[1], sizeof out[0]) == 0, "the products differ");
    trainer_graph_close(g);
}

/* --- what is told, and variables --- */

static bool is_on(const struct trainer_session *s, trainer_node n, const char *device) {
    const char *found = trainer_session_device(s, n);
    return found ? device && strcmp(found, device) == 0 : !device;
}

static void test_told(void) {
    struct trainer_graph *g = NULL;
    GOOD(trainer_graph_open(&g, true, 1, &error));
    const trainer_node x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(3));
    const trainer_node two = trainer_scalar(g, 2), a = trainer_exp(g, x), b = trainer_mul(g, a, two);
    const trainer_node v = trainer_variable(g, "v", TRAINER_SHAPE(3), glorot);
    const trainer_node sum = trainer_add(g, b, v), useless = trainer_log(g, x);
    struct trainer_session *s = open_session(g, "cpu:0,cpu:1");
    const float in[3] = {1, 2, 3};
    float out[3], again[3];
    struct trainer_crossing crossing;
    const struct trainer_feed feed = {x, in, sizeof in};
    const struct trainer_fetch fetches[] = {{sum, out, sizeof out}, {two, &again[0], 4}};
    CHECK(is_on(s, a, NULL) && !trainer_session_crossing(s, 0, &crossing), "before a run");
    GOOD(trainer_session_pin(s, b, "cpu:1", &error));
    GOOD(trainer_session_run(s, &feed, 1, fetches, 2, &error));
    CHECK(is_on(s, x, "cpu:0") && is_on(s, a, "cpu:0") && is_on(s, b, "cpu:1"), "the first nodes");
    CHECK(is_on(s, v, "cpu:1") && is_on(s, sum, "cpu:1"), "who follows b");
    CHECK(is_on(s, two, NULL) && is_on(s, useless, NULL) && again[0] == 2.0f, "a constant");
    CHECK(trainer_session_crossing(s, 0, &crossing) && crossing.node == a && crossing.bytes == 12 &&
              strcmp(crossing.from, "cpu:0") == 0 && strcmp(crossing.to, "cpu:1") == 0,
          "what crosses");
    CHECK(!trainer_session_crossing(s, 1, &crossing) && !trainer_session_moved(s, 0), "what else crosses");
    GOOD(trainer_session_pin(s, sum, "cpu:0", &error));
    CHECK(is_on(s, a, NULL), "before a run with other pins");
    GOOD(trainer_session_run(s, &feed, 1, fetches, 1, &error));
    CHECK(is_on(s, v, "cpu:0") && is_on(s, sum, "cpu:0") && is_on(s, b, "cpu:1"), "the second pin");
    GOOD(trainer_session_run(s, NULL, 0, NULL, 0, &error)); /* nothing to do */
    const struct trainer_fetch sources[] = {{x, again, 12}, {two, &again[0], 4}, {v, out, 12}};
    GOOD(trainer_session_run(s, &feed, 1, sources, 3, &error)); /* nothing to compute */
    CHECK(again[0] == 2 && again[2] == 3 && out[0] != 0, "%g, %g", (double)again[0], (double)again[2]);
    GOOD(trainer_session_run(s, &feed, 1, fetches, 1, &error));
    GOOD(trainer_session_pin(s, b, NULL, &error));
    const trainer_node later = trainer_mul(g, sum, x);
    GOOD(trainer_session_pin(s, later, "cpu:1", &error));
    const struct trainer_fetch fetch = {later, again, sizeof again};
    GOOD(trainer_session_run(s, &feed, 1, &fetch, 1, &error));
    CHECK(again[2] == out[2] * 3 && is_on(s, b, "cpu:0") && is_on(s, later, "cpu:1"), "%g", (double)again[2]);
    for (int i = 0; i < 40; i++) trainer_mul(g, sum, x); /* the graph moves in memory */
    GOOD(trainer_session_run(s, &feed, 1, &fetch, 1, &error));
    trainer_session_close(s);
    s = open_session(g, "cpu:0");
    GOOD(trainer_session_pin(s, sum, "cpu:0", &error));
    GOOD(trainer_session_run(s, &feed, 1, fetches, 2, &error));
    CHECK(is_on(s, sum, "cpu:0") && is_on(s, two, NULL) && !trainer_session_crossing(s, 0, &crossing),
          "one device");
    trainer_session_close(s);
    trainer_graph_close(g);
}

/* --- what cannot be split --- */

static void more(void *argument, struct trainer_graph *g, const trainer_node *in, int count,
                 trainer_node *out) {
    (void)argument, (void)count;
    out[0] = trainer_less(g, in[0], trainer_scalar(g, 100));
}
static void twice(void *argument, struct trainer_graph *g, const trainer_node *in, int count,
                  trainer_node *out) {
    (void)argument, (void)count;
    out[0] = trainer_mul(g, in[0], trainer_scalar(g, 2));
}

static void test_control(bool gpus) {
    struct trainer_graph *g = NULL;
    GOOD(trainer_graph_open(&g, true, 1, &error));
    const trainer_node x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SCALAR);
    trainer_node start = trainer_add(g, x, x), end, slope, chosen;
    trainer_while(g, more, twice, NULL, 99, &start, 1, &end);
    trainer_cond(g, trainer_less(g, x, end), twice, more, NULL, &end, 1, &chosen, 1);
    CHECK(chosen == TRAINER_NONE, "branches of two types");
    trainer_graph_close(g);
    GOOD(trainer_graph_open(&g, true, 1, &error));
    const trainer_node y = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SCALAR);
    start = trainer_add(g, y, y);
    trainer_while(g, more, twice, NULL, 99, &start, 1, &end);
    trainer_cond(g, trainer_less(g, y, end), twice, twice, NULL, &end, 1, &chosen, 1);
    trainer_gradients(g, chosen, &y, 1, &slope);
    const float three = 3;
    float values[2];
    const struct trainer_feed feed = {y, &three, sizeof three};
    const struct trainer_fetch fetches[] = {{chosen, &values[0], 4}, {slope, &values[1], 4}};
    struct trainer_session *s = open_session(g, "cpu:0,cpu:1");
    for (int pinned = 0; pinned < 2; pinned++) {
        GOOD(trainer_session_run(s, &feed, 1, fetches, 2, &error));
        CHECK(values[0] == 384 && values[1] == 128, "%g, %g", (double)values[0], (double)values[1]);
        CHECK(is_on(s, end, pinned ? "cpu:1" : "cpu:0"), "the loop is on %s", trainer_session_device(s, end));
        for (trainer_node n = 0; n < trainer_graph_nodes(g); n++)
            if (strcmp(trainer_node_operation(g, n), "while") == 0)
                GOOD(trainer_session_pin(s, n, "cpu:1", &error));
    }
    trainer_session_close(s);
    if (gpus) {
        s = open_session(g, "gpu:0,gpu:1");
        REFUSED(trainer_session_run(s, &feed, 1, fetches, 2, &error), TRAINER_DEVICE,
                "gpu:0 has no kernel for while");
        trainer_session_close(s);
        s = open_session(g, "gpu:0,cpu:0");
        GOOD(trainer_session_run(s, &feed, 1, fetches, 2, &error));
        CHECK(values[0] == 384 && values[1] == 128, "%g, %g", (double)values[0], (double)values[1]);
        CHECK(trainer_session_moved(s, 0) &&
                  strcmp(trainer_session_moved(s, 0), "while: gpu:0 has no kernel "
                                                      "for it, it runs on cpu:0") == 0,
              "said %s", trainer_session_moved(s, 0));
        trainer_session_close(s);
    }
    trainer_graph_close(g);
}

static void test_queue(void) {
    struct trainer_queue *queue = NULL, *second = NULL;
    struct trainer_graph *g = NULL;
    GOOD(trainer_graph_open(&g, true, 1, &error));
    GOOD(trainer_queue_open(&queue, TRAINER_SCALAR, 2, 1, &error));
    GOOD(trainer_queue_open(&second, TRAINER_SCALAR, 2, 0.1, &error));
    const trainer_node put = trainer_enqueue(g, queue, trainer_scalar(g, 4));
    const trainer_node taken = trainer_dequeue(g, queue), never = trainer_dequeue(g, second);
    struct trainer_session *s = open_session(g, "cpu:0,cpu:1");
    float value = 0;
    const struct trainer_fetch fetches[] = {{taken, &value, 4}, {put, NULL, 0}};
    GOOD(trainer_session_run(s, NULL, 0, fetches, 2, &error));
    CHECK(value == 4, "%g", (double)value);
    GOOD(trainer_session_pin(s, taken, "cpu:1", &error));
    REFUSED(trainer_session_run(s, NULL, 0, fetches, 2, &error), TRAINER_USAGE,
            "node 1 (enqueue) is on cpu:0 and node 2 (dequeue) on cpu:1, expected all operations of a queue");
    GOOD(trainer_session_pin(s, never, "cpu:1", &error));
    REFUSED(trainer_session_run(s, NULL, 0, &(struct trainer_fetch){never, NULL, 0}, 1, &error), TRAINER_PEER,
            "cpu:1: node 3 (dequeue): queue: no value came within 0.1 s");
    trainer_session_close(s);
    trainer_graph_close(g);
    trainer_queue_close(queue);
    trainer_queue_close(second);
}

static void test_refused(void) {
    struct net net;
    open_net(&net);
    struct trainer_session *s = open_session(net.graph, "cpu:0,cpu:1");
    REFUSED(trainer_session_pin(s, 9999, "cpu:1", &error), TRAINER_USAGE, "found no node");
    REFUSED(trainer_session_pin(s, net.x, "cpu:7", &error), TRAINER_USAGE,
            "found \"cpu:7\", expected a device of the session");
    REFUSED(trainer_session_place(s, "dense1", &error), TRAINER_USAGE,
            "found 'dense1', expected LAYER=DEVICE");
    REFUSED(trainer_session_place(s, "dense1=cpu:0,a=gpu:0", &error), TRAINER_USAGE, "found 'a=gpu:0'");
    REFUSED(trainer_session_timeout(s, 0, &error), TRAINER_USAGE, "more than 0");
    REFUSED(trainer_session_timeout(s, (double)NAN, &error), TRAINER_USAGE, "more than 0");
    const struct trainer_fetch update = {net.updates[0], NULL, 0};
    REFUSED(trainer_session_run(s, NULL, 0, &update, 1, &error), TRAINER_USAGE, "is needed and was not fed");
    GOOD(trainer_session_place(s, "dense9=cpu:1", &error));
    REFUSED(trainer_session_run(s, NULL, 0, &update, 1, &error), TRAINER_USAGE, "no variables in a layer");
    GOOD(trainer_session_place(s, NULL, &error));
    GOOD(trainer_session_pin(s, net.updates[0], "cpu:1", &error));
    GOOD(trainer_session_pin(s, net.variables[0], "cpu:0", &error));
    REFUSED(trainer_session_run(s, NULL, 0, &update, 1, &error), TRAINER_USAGE,
            "assign of dense1/kernel is pinned to cpu:1, its variable is on cpu:0");
    trainer_session_close(s);
    trainer_node again;
    trainer_gradients(net.graph, net.loss, net.variables, 1, &again);
    s = open_session(net.graph, "cpu:0,cpu:1");
    GOOD(trainer_session_pin(s, net.gradients[0], "cpu:0", &error));
    GOOD(trainer_session_pin(s, again, "cpu:1", &error));
    const struct trainer_fetch both[] = {{net.gradients[0], NULL, 0}, {again, NULL, 0}};
    REFUSED(trainer_session_run(s, NULL, 0, both, 2, &error), TRAINER_USAGE,
            "two fetches are gradients of dense1/kernel");
    trainer_session_close(s);
    REFUSED(trainer_session_open(&s, net.graph, "cpu:0,abacus:0", &error), TRAINER_USAGE, "abacus");
    trainer_graph_close(net.graph);
}

/* --- a device that fails or hangs: an operation that does --- */

static _Atomic bool fails, hangs;

static double now(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static const char *compute(void *argument, const float *const *operands, const struct trainer_shape *shapes,
                           int count, float *result, const struct trainer_shape *result_shape) {
    (void)argument, (void)shapes, (void)count, (void)result_shape;
    while (atomic_load(&hangs)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    result[0] = operands[0][0] + 1;
    return atomic_load(&fails) ? "it broke" : NULL;
}
static const struct trainer_operation operation = {.name = "fragile", .compute = compute};

/* The operation on `device`, what comes before it on the first device, and after it on `behind`. */
static void test_faults(const char *devices, const char *device, const char *behind) {
    struct trainer_graph *g = NULL;
    GOOD(trainer_graph_open(&g, true, 1, &error));
    const trainer_node x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(1));
    const trainer_node a = trainer_exp(g, x), b = trainer_custom(g, &operation, &a, 1),
                       sum = trainer_add(g, b, a), c = trainer_log(g, sum);
    const trainer_node v = trainer_variable(g, "v", TRAINER_SHAPE(1), glorot);
    struct trainer_session *s = open_session(g, devices);
    GOOD(trainer_session_pin(s, b, device, &error));
    GOOD(trainer_session_pin(s, sum, behind, &error));
    const float zero = 0;
    float value = 0;
    const struct trainer_feed feed = {x, &zero, sizeof zero};
    const struct trainer_fetch fetch = {c, &value, sizeof value};
    char failed[100], hung[100];
    snprintf(failed, sizeof failed, "%s: node %d (custom): fragile: it broke", device, b);
    snprintf(hung, sizeof hung, "%s has not ended node %d (custom) after 0.2 s", device, b);
    GOOD(trainer_session_run(s, &feed, 1, &fetch, 1, &error));
    const float right = value;
    CHECK(fabsf(right - logf(3)) < 1e-6f, "%g", (double)right);
    for (int i = 0; i < 2; i++) {
        atomic_store(&fails, true);
        REFUSED(trainer_session_run(s, &feed, 1, &fetch, 1, &error), TRAINER_DEVICE, failed);
        atomic_store(&fails, false);
        value = 0;
        GOOD(trainer_session_run(s, &feed, 1, &fetch, 1, &error)); /* it goes on */
        CHECK(value == right, "%g", (double)value);
    }
    GOOD(trainer_session_timeout(s, 0.2, &error));
    atomic_store(&hangs, true);
    const double began = now();
    REFUSED(trainer_session_run(s, &feed, 1, &fetch, 1, &error), TRAINER_PEER, hung);
    CHECK(now() - began < 10, "it took %g s", now() - began);
    snprintf(hung, sizeof hung, "%s has not ended node %d (custom) yet", device, b);
    REFUSED(trainer_session_run(s, &feed, 1, &fetch, 1, &error), TRAINER_PEER, hung);
    REFUSED(trainer_session_get(s, v, &value, 1, &error), TRAINER_PEER, hung);
    REFUSED(trainer_session_set(s, v, &value, 1, &error), TRAINER_PEER, hung);
    REFUSED(trainer_session_save(s, "/nowhere", &error), TRAINER_PEER, hung);
    REFUSED(trainer_session_load(s, "/nowhere", &error), TRAINER_PEER, hung);
    GOOD(trainer_session_pin(s, c, behind, &error));
    trainer_relu(g, c);
    atomic_store(&hangs, false);
    do error = (struct trainer_error){0};
    while (trainer_session_run(s, &feed, 1, &fetch, 1, &error) == TRAINER_PEER && now() - began < 30);
    CHECK(error.code == TRAINER_OK && value == right, "after it hung: %g, %s", (double)value, error.words);
    trainer_session_close(s);
    trainer_graph_close(g);
}

int main(void) {
    const bool gpus = has_gpus();
    test_values(gpus);
    test_large();
    test_told();
    test_control(gpus);
    test_queue();
    test_refused();
    test_faults("cpu:0,cpu:1", "cpu:1", "cpu:1");
    test_faults("cpu:0,cpu:1", "cpu:0", "cpu:1");
    if (gpus) test_faults("gpu:0,cpu:0", "cpu:0", "gpu:0");
    return check_end();
}
