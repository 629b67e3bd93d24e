/* Programs on a GPU, run again and again: the first run as it is, the others from a recording; on another
 * thread than before, whose libraries are opened while it records, which cannot be recorded; and with each
 * call of the run that records failing in turn. Every run gives the values of the first. */
#include <stdlib.h>
#include "../../src/device/copy.h"
#include "../../src/program/program.h"
#include "../gpu_problem.h"

static const struct initial random_values = {INITIAL_NORMAL, 0.5f, NULL};

/* A convolution and a layer behind it, on a GPU. */
struct net {
    struct graph g;
    struct device device;
    struct program *program;
    struct arena *arena;
    node x, y;
    node columns, mean, twice; /* means of y, of each column and of all; the latter, doubled */
    void *weights;             /* on the device */
    struct error error;
};

enum { BATCH = 2, PIXELS = 6 * 6 * 3, CLASSES = 5, RESULTS = BATCH * CLASSES };

static int fill_net(struct net *net) {
    struct error *error = &net->error;
    const size_t bytes = net->g.layout.floats * sizeof(float);
    float x[BATCH * PIXELS];
    void *host = NULL;
    for (int i = 0; i < BATCH * PIXELS; i++) x[i] = (float)(i % 7) - 3.0f;
    RETURN_IF(memory_zeroed(&host, net->g.layout.floats, sizeof(float), "weights", error));
    layout_initialize(&net->g.layout, 3, host);
    int code = net->device.backend->allocate(&net->device, &net->weights, bytes, "weights", error);
    if (code == OK) code = device_copy(&net->device, net->weights, NULL, host, bytes, error);
    if (code == OK) code = arena_write(net->arena, net->x, x, sizeof x, error);
    memory_free(host);
    return code;
}

static void open_net(struct net *net) {
    struct graph *g = &net->g;
    *net = (struct net){.device = open_gpu(PRECISION_FP32)};
    net->device.deterministic = true;
    graph_open(g, false, 1);
    net->x = graph_placeholder(g, "x", TYPE_FLOAT, SHAPE(BATCH, 6, 6, 3));
    const node image =
        graph_relu(g, graph_conv(g, net->x, 4, 3, 1, PADDING_SAME, random_values, random_values));
    net->y = graph_dense(g, graph_reshape(g, image, SHAPE(BATCH, 6 * 6 * 4)), CLASSES, random_values,
                         random_values);
    net->columns = graph_reduce_mean(g, net->y, 0, false);
    net->mean = graph_reduce_mean(g, net->y, ALL_AXES, false);
    net->twice = graph_add(g, net->mean, net->mean);
    const node fetches[] = {net->y, net->columns, net->mean, net->twice};
    CHECK(graph_check(g, &net->error) == OK &&
              program_compile(&net->program, g, fetches, 4, &net->device, &net->error) == OK &&
              arena_open(&net->arena, net->program, &net->error) == OK && fill_net(net) == OK,
          "%s", net->error.words);
}

static void close_net(struct net *net) {
    arena_close(net->arena);
    program_close(net->program);
    if (net->weights) net->device.backend->release(&net->device, net->weights);
    graph_close(&net->g);
    net->device.backend->close(&net->device);
    CHECK(standin_open(NULL) == 0, "%d things are open", standin_open(NULL));
}

/* What the run before has left of y is gone. */
static int run_net(struct net *net, float *y) {
    for (int i = 0; i < RESULTS; i++) y[i] = NAN;
    RETURN_IF(arena_write(net->arena, net->y, y, RESULTS * sizeof *y, &net->error));
    RETURN_IF(program_run(net->program, net->arena, net->weights, NULL, &net->error));
    return arena_read(net->arena, net->y, y, RESULTS * sizeof *y, &net->error);
}

static void expect_run(struct net *net, const float *expected, int graphs, const char *when) {
    float y[RESULTS] = {0};
    CHECK(run_net(net, y) == OK, "%s: %s", when, net->error.words);
    CHECK(memcmp(y, expected, sizeof y) == 0, "%s: other values", when);
    if (STANDIN)
        CHECK(standin_open("executable graph") == graphs, "%s: %d graphs, expected %d", when,
              standin_open("executable graph"), graphs);
}

static void test_runs(float *expected) {
    struct net net;
    open_net(&net);
    CHECK(run_net(&net, expected) == OK, "%s", net.error.words);
    bool any = false;
    for (int i = 0; i < RESULTS; i++) any = any || expected[i] != 0.0f;
    CHECK(any && (!STANDIN || standin_open("executable graph") == 0), "the first run");
    for (int i = 0; i < 3; i++) expect_run(&net, expected, 1, "from a recording");
    close_net(&net);
}

/* --- another thread --- */

struct visit {
    struct net *net;
    const float *expected;
};

static void visit(void *argument) {
    const struct visit *visit = argument;
    visit->net->device.backend->enter(&visit->net->device);
    for (int i = 0; i < 2; i++) expect_run(visit->net, visit->expected, 0, "on another thread");
}

static void test_another_thread(const float *expected) {
    struct net net;
    struct world *world = NULL;
    struct world_thread *thread = NULL;
    float y[RESULTS];
    open_net(&net);
    struct visit argument = {&net, expected};
    CHECK(run_net(&net, y) == OK, "%s", net.error.words);
    CHECK(world_open_threads(&world, &net.error) == OK &&
              world_spawn(world, "visitor", NULL, visit, &argument, &thread, &net.error) == OK,
          "%s", net.error.words);
    world_join(thread);
    expect_run(&net, expected, 0, "afterwards");
    world_close(world);
    close_net(&net);
}

/* --- failures --- */

/* What fails while it is recorded, and not for that, ends the run, and half a recording is never replayed. */
static void test_each_call_failing(const float *expected) {
    long failed = 0;
    bool through = false;
    for (long n = 1; STANDIN && !through && n < 100; n++) {
        struct net net;
        float y[RESULTS];
        open_net(&net);
        CHECK(run_net(&net, y) == OK, "%s", net.error.words);
        const long called = standin_calls();
        standin_fail(n);
        const int code = run_net(&net, y);
        through = standin_calls() - called < n;
        standin_fail(0);
        failed += code != OK;
        CHECK(code == OK || (code == ERROR_DEVICE && strncmp(net.error.words, "gpu:0: ", 7) == 0),
              "call %ld: %d %s", n, code, net.error.words);
        net.error = (struct error){0};
        expect_run(&net, expected, 1, "after a failure");
        close_net(&net);
    }
    CHECK(!STANDIN || (through && failed > 5), "%ld failures", failed);
}

/* --- the result --- */

/* A result that nothing else reads is written where it is told, each time anew; else, or a part of it, it is
 * copied there. Without a place it is where it was. */
static void test_output(const struct net *net, node n, int floats, const char *which, struct error *error) {
    const struct device *gpu = &net->device;
    float expected[CLASSES] = {0}, *out = NULL;
    void *block = NULL;
    int code = gpu->backend->allocate_host(gpu, &block, 2 * sizeof expected, "results", error);
    if (code == OK) code = program_run(net->program, net->arena, net->weights, NULL, error);
    if (code == OK) code = arena_read(net->arena, n, expected, (size_t)floats * sizeof *out, error);
    out = block;
    for (int i = 0; i < 6 && code == OK; i++) {
        float *const to = out + i % 2 * CLASSES;
        const int told = i < 4 ? floats : 1;
        for (int k = 0; k < 2 * CLASSES; k++) out[k] = -7.0f;
        arena_set_output(net->arena, n, to, (size_t)told * sizeof *to);
        code = program_run(net->program, net->arena, net->weights, NULL, error);
        if (code == OK) code = gpu->backend->finish(gpu, error);
        CHECK(memcmp(to, expected, (size_t)told * sizeof *to) == 0, "%s, run %d: another result", which, i);
        CHECK(out[(i + 1) % 2 * CLASSES] == -7.0f && (told == CLASSES || to[told] == -7.0f),
              "%s, run %d: more than was asked for", which, i);
    }
    float again[CLASSES] = {0};
    arena_set_output(net->arena, n, NULL, 0);
    if (code == OK) code = arena_write(net->arena, n, again, (size_t)floats * sizeof *again, error);
    if (code == OK) code = program_run(net->program, net->arena, net->weights, NULL, error);
    if (code == OK) code = arena_read(net->arena, n, again, (size_t)floats * sizeof *again, error);
    CHECK(code == OK && memcmp(again, expected, sizeof again) == 0, "%s, told nowhere: %s", which,
          error->words);
    if (block) gpu->backend->release_host(gpu, block);
}

static void test_outputs(void) {
    struct net net;
    float read = 0.0f, twice = 0.0f;
    open_net(&net);
    struct error *error = &net.error;
    test_output(&net, net.columns, CLASSES, "columns", error);
    test_output(&net, net.mean, 1, "a mean that is read", error);
    arena_set_output(net.arena, net.mean, NULL, 0);
    CHECK(arena_read(net.arena, net.mean, &read, sizeof read, error) == OK &&
              arena_read(net.arena, net.twice, &twice, sizeof twice, error) == OK && twice == read + read,
          "twice %g is %g; %s", (double)read, (double)twice, error->words);
    close_net(&net);
}

int main(void) {
    float expected[RESULTS] = {0};
    gpu_or_skip();
    test_runs(expected);
    test_another_thread(expected);
    test_each_call_failing(expected);
    test_outputs();
    return check_end();
}
