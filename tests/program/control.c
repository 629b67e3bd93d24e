/* Loops, conditions, queues and operations of a program's own: what they compute, what they refuse, and that
 * each is refused by name where a device has memory of its own. Their gradients: tests/graph/gradients.c. */
#include <stdlib.h>

#include "../../src/graph/control.h"
#include "../../src/graph/custom.h"
#include "../../src/program/queue.h"
#include "../reference_device.h"

/* --- loops --- */

static void below(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)count;
    out[0] = graph_less(g, in[0], graph_scalar(g, *(const float *)argument));
}

/* x = 2 x + y; y stays. */
static void twice(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument;
    out[0] = graph_add(g, graph_mul(g, in[0], graph_scalar(g, 2)), in[1]);
    for (int i = 1; i < count; i++) out[i] = in[i];
}

static void test_rounds(void) {
    struct graph g;
    struct session s;
    float end = 100;
    const struct loop loop = {below, twice, &end, 7};
    graph_open(&g, false, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SCALAR);
    node results[2];
    graph_while(&g, &loop, (node[]){x, graph_scalar(&g, 1)}, 2, results);
    session_open(&s, &g, results, 2);
    const float starts[] = {1, 99, 100, 0}, ends[] = {127, 199, 100, 127};
    for (int i = 0; i < 4; i++) {
        session_feed(&s, x, &starts[i]);
        session_run(&s);
        CHECK(session_float(&s, results[0], 0) == ends[i] && session_float(&s, results[1], 0) == 1,
              "from %g to %g", (double)starts[i], (double)session_float(&s, results[0], 0));
    }
    session_feed(&s, x, &(float){-0.5f}); /* needs one more */
    CHECK(program_run(s.program, s.arena, s.weights, s.gradients, &s.error) == ERROR_USAGE &&
              strstr(s.error.words, "after 7 rounds"),
          "%s", s.error.words);
    session_close(&s);
    graph_close(&g);
}

/* --- mistakes: said once, and no node is left --- */

static void no_bool(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)g, (void)count;
    out[0] = in[0];
}
static void nothing(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)g, (void)in, (void)count, (void)out;
}
static void variable(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument;
    graph_variable(g, "v", SCALAR, (struct initial){0});
    for (int i = 0; i < count; i++) out[i] = in[i];
}
static void placeholder(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument;
    graph_placeholder(g, "p", TYPE_FLOAT, SCALAR);
    for (int i = 0; i < count; i++) out[i] = in[i];
}
static void longer(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument;
    for (int i = 0; i < count; i++) out[i] = graph_concat(g, (node[]){in[i], in[i]}, 2, 0);
}

static void always(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)in, (void)count;
    out[0] = graph_less(g, graph_scalar(g, 0), graph_scalar(g, 1));
}

static void check_refused(graph_build *condition, graph_build *body, const char *words) {
    struct graph g;
    float end = 1;
    const struct loop loop = {condition, body, &end, 3};
    const struct alternatives both = {no_bool, body, NULL};
    for (int kind = 0; kind < 2; kind++) {
        graph_open(&g, false, 1);
        const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(2));
        const node one = graph_scalar(&g, 1), yes = graph_less(&g, one, one);
        node result = x;
        if (kind == 0) graph_while(&g, &loop, &x, 1, &result);
        if (kind == 1 && condition == always) graph_cond(&g, yes, &both, &x, 1, &result, 1);
        if (kind == 0 || condition == always)
            CHECK(result == NONE && strstr(g.error.words, words), "\"%s\" without \"%s\"", g.error.words,
                  words);
        graph_close(&g);
    }
}

static void test_mistakes(void) {
    check_refused(below, no_bool, "expected a bool scalar"); /* of a vector */
    check_refused(nothing, no_bool, "expected a bool scalar");
    check_refused(always, nothing, "no node of this graph");
    check_refused(always, variable, "variable \"v\"");
    check_refused(always, placeholder, "makes placeholders");
    check_refused(always, longer, "result 1 is [4], expected [2]");
    struct graph g;
    graph_open(&g, false, 1);
    node results[2];
    const node label = graph_constant_int(&g, SHAPE(1), (int[]){1});
    graph_while(&g, &(struct loop){always, no_bool, NULL, 3}, &label, 1, results);
    CHECK(strstr(g.error.words, "value 1 is int32"), "%s", g.error.words);
    graph_close(&g);
    graph_open(&g, false, 1);
    const node x = graph_scalar(&g, 1);
    graph_cond(&g, x, &(struct alternatives){no_bool, no_bool, NULL}, &x, 1, results, 1);
    CHECK(strstr(g.error.words, "operand 1 is float32, expected bool"), "%s", g.error.words);
    graph_close(&g);
}

/* --- conditions: only one is run --- */

static int first_runs, second_runs;

static const char *count_runs(const void *self, const float *const *operands, const struct shape *shapes,
                              int count, float *result, const struct shape *result_shape) {
    (void)shapes, (void)count;
    ++*(int *)(void *)(size_t)self;
    memcpy(result, operands[0], shape_count(result_shape) * sizeof *result);
    return NULL;
}
static const struct custom first_custom = {.name = "first", .self = &first_runs, .compute = count_runs};
static const struct custom second_custom = {.name = "second", .self = &second_runs, .compute = count_runs};

static void first(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)count;
    out[0] = graph_custom(g, &first_custom, in, 1);
}
static void second(void *argument, struct graph *g, const node *in, int count, node *out) {
    (void)argument, (void)count;
    out[0] = graph_custom(g, &second_custom, &in[1], 1);
}

static void test_one_of_two(void) {
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node a = graph_placeholder(&g, "a", TYPE_FLOAT, SCALAR), b = graph_scalar(&g, 7);
    node result;
    graph_cond(&g, graph_less(&g, a, b), &(struct alternatives){first, second, NULL}, (node[]){a, b}, 2,
               &result, 1);
    session_open(&s, &g, &result, 1);
    const float values[] = {3, 9, 8};
    for (int i = 0; i < 3; i++) {
        session_feed(&s, a, &values[i]);
        session_run(&s);
        CHECK(session_float(&s, result, 0) == fminf(values[i], 7), "%g",
              (double)session_float(&s, result, 0));
    }
    CHECK(first_runs == 1 && second_runs == 2, "%d and %d", first_runs, second_runs);
    node slope; /* neither of them can be differentiated */
    graph_gradients(&g, result, &a, 1, &slope);
    CHECK(slope == NONE && strstr(g.error.words, "has no gradient"), "%s", g.error.words);
    session_close(&s);
    graph_close(&g);
}

/* --- queues --- */

struct party {
    struct queue *queue;
    int count, torn;
    double sum;
    struct error error;
    struct world_thread *thread;
};

static void put_all(void *argument) {
    struct party *party = argument;
    for (int i = 1; i <= party->count && party->error.code == OK; i++) {
        const float value[] = {(float)i, (float)-i};
        queue_put(party->queue, value, &party->error);
    }
}

static void take_all(void *argument) {
    struct party *party = argument;
    float value[2];
    while (queue_take(party->queue, value, &party->error) == OK) {
        party->torn += value[0] != -value[1];
        party->sum += (double)value[0];
        party->count++;
    }
}

/* Each value once, whoever puts it in and takes it out. */
static void check_parties(struct world *world) {
    enum { PRODUCERS = 2, CONSUMERS = 3, EACH = 50 };
    struct queue queue;
    struct error error = {0};
    struct party parties[PRODUCERS + CONSUMERS];
    CHECK(queue_open(&queue, world, SHAPE(2), 3, 20, &error) == OK, "%s", error.words);
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
        parties[i] = (struct party){.queue = &queue, .count = i < PRODUCERS ? EACH : 0};
        CHECK(world_spawn(world, "party", NULL, i < PRODUCERS ? put_all : take_all, &parties[i],
                          &parties[i].thread, &error) == OK,
              "%s", error.words);
    }
    for (int i = 0; i < PRODUCERS; i++) world_join(parties[i].thread);
    queue_end(&queue);
    int count = 0;
    double sum = 0;
    for (int i = PRODUCERS; i < PRODUCERS + CONSUMERS; i++) {
        world_join(parties[i].thread);
        count += parties[i].count;
        sum += parties[i].sum;
        CHECK(parties[i].torn == 0, "%d torn values", parties[i].torn);
        CHECK(parties[i].error.code == ERROR_INTERRUPTED, "%s", parties[i].error.words);
    }
    CHECK(count == PRODUCERS * EACH && sum == PRODUCERS * EACH * (EACH + 1) / 2.0, "%d values, %g", count,
          sum);
    CHECK(queue_length(&queue) == 0, "%ld left", queue_length(&queue));
    CHECK(queue_put(&queue, (float[]){1, 1}, &error) == ERROR_INTERRUPTED, "put into one that was ended");
    queue_free(&queue);
}

static void test_queues(void) {
    struct world *world = NULL;
    struct error error = {0};
    for (uint64_t seed = 0; seed < 4; seed++) {
        CHECK((seed > 0 ? world_open_simulated(&world, seed, &error) : world_open_threads(&world, &error)) ==
                  OK,
              "%s", error.words);
        check_parties(world);
        world_close(world);
    }
    struct queue queue;
    CHECK(world_open_simulated(&world, 1, &error) == OK, "%s", error.words);
    CHECK(queue_open(&queue, world, SCALAR, 1, 3, &error) == OK, "%s", error.words);
    float value = 0;
    CHECK(queue_take(&queue, &value, &error) == ERROR_PEER && strstr(error.words, "within 3 s"), "%s",
          error.words);
    error = (struct error){0};
    CHECK(queue_put(&queue, &value, &error) == OK && queue_put(&queue, &value, &error) == ERROR_PEER, "%s",
          error.words);
    struct graph g;
    struct session s;
    graph_open(&g, false, 1);
    const node taken = graph_dequeue(&g, &queue, SCALAR);
    const node put = graph_enqueue(&g, &queue, graph_add(&g, taken, graph_scalar(&g, 4)));
    session_open(&s, &g, &put, 1);
    for (int i = 1; i <= 3; i++) {
        session_run(&s);
        CHECK(session_float(&s, put, 0) == 4.0f * (float)i, "%g", (double)session_float(&s, put, 0));
    }
    session_close(&s);
    graph_close(&g);
    queue_end(&queue); /* with a value in it */
    error = (struct error){0};
    CHECK(queue_take(&queue, &value, &error) == OK && value == 12, "%s, %g", error.words, (double)value);
    CHECK(queue_take(&queue, &value, &error) == ERROR_INTERRUPTED, "%s", error.words);
    queue_free(&queue);
    world_close(world);
}

/* --- devices with memory of their own --- */

static void test_refused_by_name(void) {
    struct backend apart = reference_backend;
    struct device device = reference_device;
    struct queue queue = {.shape = SCALAR, .floats = 1};
    struct graph g;
    apart.own_memory = true;
    device.backend = &apart;
    graph_open(&g, false, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SCALAR), one = graph_scalar(&g, 1);
    node loop, choice, slopes[1];
    graph_while(&g, &(struct loop){below, no_bool, (float[]){1}, 3}, &x, 1, &loop);
    graph_cond(&g, graph_less(&g, x, one), &(struct alternatives){no_bool, no_bool, NULL}, &x, 1, &choice, 1);
    graph_gradients(&g, loop, &x, 1, slopes);
    const node nodes[] = {loop,
                          choice,
                          slopes[0],
                          graph_enqueue(&g, &queue, x),
                          graph_dequeue(&g, &queue, SCALAR),
                          graph_custom(&g, &first_custom, &x, 1)};
    static const char *const names[] = {"while", "cond", "while", "enqueue", "dequeue", "custom"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct program *program = NULL;
        struct error error = {0};
        char words[40];
        snprintf(words, sizeof words, "no kernel for %s", names[i]);
        CHECK(program_compile(&program, &g, &nodes[i], 1, &device, &error) == ERROR_DEVICE, "%s", names[i]);
        CHECK(strstr(error.words, words), "%s", error.words);
        program_close(program);
    }
    graph_close(&g);
}

int main(void) {
    test_rounds();
    test_mistakes();
    test_one_of_two();
    test_queues();
    test_refused_by_name();
    return check_end();
}
