/* Programs: pruning and fusion; two arenas of one program; kernels that decline or fail; clean-up when
 * memory runs out.
 *
 * The rule behind most checks: whatever the compiler does, the values are those of the same graph with every
 * node fetched, where nothing is pruned, fused or contributed over anything else. */
#include <stdlib.h>
#include "../reference_device.h"

static const struct initial random_values = {INITIAL_NORMAL, 0.5f, NULL};

/* A network of two layers on x [5, 7] with loss and gradients. */
struct net {
    struct graph g;
    node x, labels, product, sum, hidden, logits, p, best, loss;
    node gradients[4];
};

static void net_open(struct net *net) {
    struct graph *g = &net->g;
    graph_open(g, true, 1);
    net->x = graph_placeholder(g, "x", TYPE_FLOAT, SHAPE(5, 7));
    net->labels = graph_placeholder(g, "labels", TYPE_INT, SHAPE(5));
    net->sum = graph_dense(g, net->x, 17, random_values, random_values);
    net->product = g->nodes[net->sum].input[0];
    net->hidden = graph_sigmoid(g, net->sum);
    net->logits = graph_dense(g, net->hidden, 3, random_values, random_values);
    net->p = graph_softmax(g, net->logits);
    net->best = graph_argmax(g, net->p, 1);
    net->loss = graph_reduce_mean(g, graph_cross_entropy(g, net->p, net->labels), ALL_AXES, false);
    node targets[4];
    int count = 0;
    for (int n = 0; n < g->count && count < 4; n++)
        if (g->nodes[n].op == OP_variable) targets[count++] = n;
    graph_gradients(g, net->loss, targets, count, net->gradients);
    CHECK(g->error.code == OK && count == 4, "%s", g->error.words);
}

static void net_feed(const struct net *net, struct session *s, uint64_t seed) {
    float x[35];
    fill_between(x, 35, seed, -1, 1);
    session_feed(s, net->x, x);
    if (arena_address(s->arena, net->labels)) session_feed(s, net->labels, (int[]){0, 2, 1, 1, 2});
}

static void test_pruning(void) {
    struct net net;
    struct session s;
    net_open(&net);
    session_open(&s, &net.g, &net.best, 1);
    net_feed(&net, &s, 1);
    session_run(&s);
    CHECK(program_runs(s.program, net.best) && program_runs(s.program, net.p), "what is needed");
    CHECK(!program_runs(s.program, net.loss) && !program_runs(s.program, net.labels), "what is not");
    CHECK(arena_address(s.arena, net.labels) == NULL, "labels have an address");
    CHECK(arena_address(s.arena, net.p) == NULL, "what is not fetched has an address");
    for (int i = 0; i < 4; i++) CHECK(!program_runs(s.program, net.gradients[i]), "gradient %d", i);
    CHECK(program_instructions(s.program) == 4, "%d instructions, expected dense, dense, softmax, argmax",
          program_instructions(s.program));
    CHECK(program_run(s.program, s.arena, s.weights, NULL, &s.error) == OK, "no gradients needed: %s",
          s.error.words);
    session_close(&s);
    session_open(&s, &net.g, (node[]){net.loss, net.gradients[3]}, 2);
    CHECK(program_runs(s.program, net.gradients[3]) && !program_runs(s.program, net.gradients[0]),
          "one gradient");
    CHECK(!program_runs(s.program, net.p), "the softmax is not needed: the loss is built from the logits");
    CHECK(program_run(s.program, s.arena, s.weights, NULL, &s.error) == ERROR_DEVICE,
          "ran without gradients");
    struct error other = {0};
    CHECK(program_run(s.program, s.arena, NULL, s.gradients, &other) == ERROR_DEVICE &&
              strstr(other.words, "without weights"),
          "%s", other.words);
    session_close(&s);
    graph_close(&net.g);
}

static void test_fetches(void) {
    struct net net;
    struct program *program = NULL;
    struct error error = {0};
    net_open(&net);
    const int code = program_compile(&program, &net.g, (node[]){net.p, NONE}, 2, &reference_device, &error);
    CHECK(code == ERROR_USAGE && !program && strstr(error.words, "fetch 2"), "%s", error.words);
    error = (struct error){0};
    graph_add(&net.g, net.x, net.labels);
    CHECK(program_compile(&program, &net.g, &net.p, 1, &reference_device, &error) == ERROR_USAGE,
          "a graph with a mistake");
    CHECK(strstr(error.words, "add: float32 and int32"), "%s", error.words);
    program_close(NULL);
    arena_close(NULL);
    graph_close(&net.g);
}

/* Fused, half fused and not fused at all: the same bits. */
static void test_fusion(void) {
    struct net net;
    struct session fused, half, whole;
    net_open(&net);
    node all[] = {net.loss,         net.hidden,       net.logits, net.gradients[0], net.gradients[1],
                  net.gradients[2], net.gradients[3], net.sum,    net.product};
    session_open(&fused, &net.g, all, 7);
    session_open(&half, &net.g, all, 8);
    session_open(&whole, &net.g, all, 9);
    CHECK(!program_runs(fused.program, net.sum) && !program_runs(fused.program, net.product),
          "dense with its activation");
    CHECK(program_runs(half.program, net.sum) && !program_runs(half.program, net.product),
          "dense without its activation");
    CHECK(program_runs(whole.program, net.sum) && program_runs(whole.program, net.product),
          "matmul, add, activation");
    CHECK(program_instructions(half.program) == program_instructions(fused.program) + 1, "%d instructions",
          program_instructions(half.program));
    CHECK(program_instructions(whole.program) == program_instructions(fused.program) + 2, "%d instructions",
          program_instructions(whole.program));
    struct session *const sessions[] = {&fused, &half, &whole};
    for (int i = 0; i < 3; i++) {
        net_feed(&net, sessions[i], 1);
        session_run(sessions[i]);
    }
    for (int i = 0; i < 7; i++) {
        check_same(&fused, &half, all[i], "half fused");
        check_same(&fused, &whole, all[i], "not fused");
    }
    char text[4000] = "";
    FILE *file = fmemopen(text, sizeof text, "w");
    program_print(fused.program, file);
    fclose(file);
    CHECK(strstr(text, "reference:dense") && strstr(text, "[5, 7]") && strstr(text, "gradients+0"), "%s",
          text);
    for (int i = 0; i < 3; i++) session_close(sessions[i]);
    graph_close(&net.g);
}

/* Not fused: a transposed product, a bias that is a column, a sum that someone else reads. */
static void test_not_fused(void) {
    struct graph g;
    struct session s;
    graph_open(&g, true, 1);
    const node w = graph_variable(&g, "w", SHAPE(5, 5), random_values),
               b = graph_variable(&g, "b", SHAPE(5), random_values);
    const node turned = graph_matmul(&g, w, w, true, false), column = graph_matmul(&g, w, w, false, false);
    const node read = graph_add(&g, b, graph_matmul(&g, w, w, false, false));
    const node y[] = {graph_relu(&g, graph_add(&g, turned, b)),
                      graph_add(&g, column, graph_reshape(&g, b, SHAPE(5, 1))),
                      graph_mul(&g, graph_tanh(&g, read), read)};
    session_open(&s, &g, y, 3);
    CHECK(program_runs(s.program, turned) && program_runs(s.program, column), "fused what it cannot");
    CHECK(program_runs(s.program, read) && !program_runs(s.program, g.nodes[read].input[1]),
          "the bias may stand first");
    session_close(&s);
    graph_close(&g);
}

/* One program, two arenas, two pairs of slabs, run in turns. */
static void test_two_arenas(void) {
    struct net net;
    struct session first, second, alone;
    net_open(&net);
    node fetches[] = {net.p,           net.loss, net.gradients[0], net.gradients[1], net.gradients[2],
                      net.gradients[3]};
    session_open(&first, &net.g, fetches, 6);
    session_open(&second, &net.g, fetches, 6);
    session_open(&alone, &net.g, fetches, 6);
    arena_close(second.arena);
    CHECK(arena_open(&second.arena, first.program, &second.error) == OK, "%s", second.error.words);
    struct program *const own = second.program;
    second.program = first.program;
    for (size_t i = 0; i < net.g.layout.floats; i++) second.weights[i] *= 0.5f;
    net_feed(&net, &first, 1);
    net_feed(&net, &second, 2);
    session_run(&first);
    session_run(&second);
    for (int i = 0; i < 6; i++) { /* the second's run left the first's results alone */
        net_feed(&net, &alone, 1);
        session_run(&alone);
        check_same(&first, &alone, fetches[i], "first of two arenas");
    }
    session_run(&first);
    net_feed(&net, &alone, 2);
    for (size_t i = 0; i < net.g.layout.floats; i++) alone.weights[i] *= 0.5f;
    session_run(&alone);
    for (int i = 0; i < 6; i++) check_same(&second, &alone, fetches[i], "second of two arenas");
    second.program = own;
    session_close(&second);
    session_close(&first);
    session_close(&alone);
    graph_close(&net.g);
}

/* A placeholder read where the caller has it: the same bits, whichever address it is given, through a reshape
 * too; one arena's address is not another's; the arena's own memory comes back. */
static void test_set_input(void) {
    static _Alignas(CACHE_LINE) float buffers[3][35];
    static _Alignas(CACHE_LINE) int labels[5];
    struct net net;
    struct session fed, copied;
    net_open(&net);
    const node y = graph_reduce_sum(&net.g, graph_reshape(&net.g, net.x, SHAPE(35)), ALL_AXES, false);
    node fetches[] = {net.loss, y, net.gradients[0], net.gradients[1]};
    session_open(&fed, &net.g, fetches, 4);
    session_open(&copied, &net.g, fetches, 4);
    float *const own = arena_address(fed.arena, net.x);
    for (int run = 0; run < 8; run++) {
        float *const x = run % 4 < 3 ? buffers[run % 4] : own;
        net_feed(&net, &fed, 100); /* into the arena: must not be read but in runs 3 and 7 */
        fill_between(x, 35, (uint64_t)run, -1, 1);
        memcpy(labels, (int[]){0, 2, 1, run % 3, 2}, sizeof labels);
        arena_set_input(fed.arena, net.x, x);
        arena_set_input(fed.arena, net.labels, labels);
        session_feed(&copied, net.x, x);
        session_feed(&copied, net.labels, labels);
        session_run(&fed);
        session_run(&copied);
        for (int i = 0; i < 4; i++) check_same(&fed, &copied, fetches[i], "set input");
        CHECK(arena_address(fed.arena, net.x) == own, "the arena's own memory moved");
    }
    arena_set_input(fed.arena, net.best, buffers[0]); /* not needed: nothing happens */
    session_close(&fed);
    session_close(&copied);
    graph_close(&net.g);
}

/* --- kernels --- */

/* What happened to the kernels below; passed through the device's label. */
static struct { int prepared, released, bound, unbound, runs; } counts;

static int prepare_small(const struct problem *problem, void **plan, struct error *error) {
    if (problem->output.shape.rank != 2) return KERNEL_DECLINED;
    counts.prepared++;
    return memory_zeroed(plan, 1, 1, "plan", error);
}
static void release_small(void *plan) {
    counts.released++;
    memory_free(plan);
}
static int bind_small(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    (void)problem, (void)plan;
    counts.bound++;
    return memory_zeroed(instance, 1, 1, "instance", error);
}
static void unbind_small(void *instance) {
    counts.unbound++;
    memory_free(instance);
}
static int run_small(const struct call *call, struct error *error) {
    counts.runs++;
    CHECK(call->plan && call->instance, "a kernel without its plan or instance");
    return reference_tanh.run(call, error);
}
static int run_failing(const struct call *call, struct error *error) {
    return error_set(error, ERROR_DEVICE, "%s fails", op_name(call->problem->op));
}
static int prepare_never(const struct problem *problem, void **plan, struct error *error) {
    (void)problem, (void)plan, (void)error;
    return KERNEL_DECLINED;
}

static const struct kernel small_tanh = {.name = "test:small",
                                         .prepare = prepare_small,
                                         .release = release_small,
                                         .bind = bind_small,
                                         .unbind = unbind_small,
                                         .run = run_small};
static const struct kernel failing = {.name = "test:failing", .run = run_failing};
static const struct kernel never = {.name = "test:never", .prepare = prepare_never, .run = run_failing};

static const struct kernel *const *picky_kernels(const struct device *device, enum op op) {
    static const struct kernel *const for_tanh[] = {&never, &small_tanh, &reference_tanh, NULL};
    static const struct kernel *const for_exp[] = {&failing, NULL}, *const for_log[] = {&never, NULL};
    return op == OP_tanh  ? for_tanh
           : op == OP_exp ? for_exp
           : op == OP_log ? for_log
                          : kernels_of(device, op);
}
static const struct backend picky_backend = {
    .name = "picky", .kernels = picky_kernels, .allocate = allocate_rubbish, .release = release_memory};
static const struct device picky = {.backend = &picky_backend, .name = "picky:0", .hard = true};

static void test_kernels(void) {
    struct graph g;
    struct program *program = NULL;
    struct arena *arenas[2] = {NULL, NULL};
    struct error error = {0};
    graph_open(&g, true, 1);
    const node x = graph_constant(&g, SHAPE(3, 1), (float[]){1, 2, 3}), y = graph_tanh(&g, x),
               z = graph_tanh(&g, graph_reshape(&g, y, SHAPE(3)));
    const node fails = graph_exp(&g, x), nobody = graph_log(&g, x);
    CHECK(program_compile(&program, &g, (node[]){y, z}, 2, &picky, &error) == OK, "%s", error.words);
    for (int i = 0; i < 2; i++) CHECK(arena_open(&arenas[i], program, &error) == OK, "%s", error.words);
    for (int i = 0; i < 2; i++)
        CHECK(program_run(program, arenas[i], NULL, NULL, &error) == OK, "%s", error.words);
    const float *result = arena_address(arenas[1], z);
    CHECK(result && fabsf(result[2] - tanhf(tanhf(3))) < 1e-6f, "the second tanh is the reference's");
    for (int i = 0; i < 2; i++) arena_close(arenas[i]);
    program_close(program);
    CHECK(counts.prepared == 1 && counts.released == 1, "%d prepared, %d released", counts.prepared,
          counts.released);
    CHECK(counts.bound == 2 && counts.unbound == 2 && counts.runs == 2, "%d bound, %d unbound", counts.bound,
          counts.unbound);
    CHECK(program_compile(&program, &g, &nobody, 1, &picky, &error) == ERROR_DEVICE && !program, "compiled");
    CHECK(strcmp(error.words, "picky:0 has no kernel for log with result [3, 1]") == 0, "%s", error.words);
    error = (struct error){0};
    CHECK(program_compile(&program, &g, &fails, 1, &picky, &error) == OK &&
              arena_open(&arenas[0], program, &error) == OK,
          "%s", error.words);
    CHECK(program_run(program, arenas[0], NULL, NULL, &error) == ERROR_DEVICE &&
              strcmp(error.words, "exp fails") == 0,
          "%s", error.words);
    arena_close(arenas[0]);
    program_close(program);
    graph_close(&g);
}

/* Builds, compiles and opens everything; true when all of it worked. */
static bool build_all(void) {
    struct graph g;
    struct program *program = NULL;
    struct arena *arena = NULL;
    struct error error = {0};
    graph_open(&g, true, 1);
    const node x = graph_constant(&g, SHAPE(3, 2), (float[6]){1});
    const node y = graph_tanh(&g, graph_dense(&g, x, 2, random_values, random_values));
    const node loss = graph_reduce_sum(&g, y, ALL_AXES, false),
               w = g.error.code == OK ? g.nodes[g.nodes[g.nodes[y].input[0]].input[0]].input[1] : NONE;
    node gradient;
    graph_gradients(&g, loss, &w, 1, &gradient);
    const bool built = program_compile(&program, &g, (node[]){loss, gradient}, 2, &picky, &error) == OK &&
                       arena_open(&arena, program, &error) == OK;
    CHECK(built || error.code == ERROR_DEVICE, "code %d: %s", error.code, error.words);
    arena_close(arena);
    program_close(program);
    graph_close(&g);
    return built;
}

/* The n-th request for memory fails, for every n: an error with words, nothing lost (the address sanitizer
 * looks), no crash. */
static void test_memory_failures(void) {
    long requests = 0;
    bool built = false;
    int failures = 0;
    for (int nth = 1; nth < 200 && !built; nth++) {
        char text[32];
        requests +=
            nth; /* the count goes on over the attempts, each of which ends with the request that failed */
        snprintf(text, sizeof text, "%ld", requests);
        setenv("TRAINER_FAIL_ALLOCATION", text, 1);
        built = build_all();
        failures += !built;
    }
    unsetenv("TRAINER_FAIL_ALLOCATION");
    CHECK(built && failures > 10, "%d failures", failures);
}

int main(void) {
    test_pruning();
    test_fetches();
    test_fusion();
    test_not_fused();
    test_two_arenas();
    test_set_input();
    test_kernels();
    test_memory_failures();
    return check_end();
}
