/* Times one training step of the MLP 784-100-10 on one core: each kernel of its compiled program alone, the
 * gathering of a batch, and the step as a whole. Microseconds (the fastest of many runs), GFLOP/s, and their
 * share of what a loop of nothing but fused multiply-adds reaches.
 *
 *   bench_step [BATCH [ACTIVATION]]      100 and 1 (relu), 2 (sigmoid), 3 (tanh) unless given: 100 2
 *
 * A kernel alone finds its operands in the nearest caches; within the step they were pushed out in between.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__
#    include <immintrin.h>
#endif
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/graph/graph.h"
#include "../src/program/parts.h"

enum { FEATURES = 784, HIDDEN = 100, CLASSES = 10, EXAMPLES = 60000, PARAMETERS = 4, RUNS = 4 };

struct bench {
    struct world *world;
    struct device device;
    int batch;
    enum activation activation;
    double peak_gflops;
    double sum_us; /* of the kernels so far */
    struct error error;
};

typedef int timed(void *argument, struct error *error);

/* Microseconds of the fastest of many runs within a third of a second. */
static double best_us(struct bench *bench, timed *run, void *argument) {
    double best = INFINITY;
    const double end = world_now(bench->world) + 0.33;
    for (double now = 0.0; now < end && bench->error.code == OK;) {
        const double begin = world_now(bench->world);
        for (int i = 0; i < RUNS; i++) run(argument, &bench->error);
        now = world_now(bench->world);
        best = fmin(best, 1e6 * (now - begin) / RUNS);
    }
    return best;
}

static void print_row(const struct bench *bench, const char *what, const char *shape, double us,
                      double flops) {
    printf("%-38s %-12s %8.2f", what, shape, us);
    if (flops > 0.0) printf(" %8.1f %7.1f %%", flops / us / 1e3, flops / us / 10.0 / bench->peak_gflops);
    printf("\n");
}

/* --- what the core can do --- */
/* The compiler does not keep chains of fmaf in vector registers, so they are written as the processor has
 * them. */
#if defined __AVX512F__
typedef __m512 lanes;
#    define MULTIPLY_ADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#    define ALL_LANES(x) _mm512_set1_ps(x)
#elif defined __FMA__
typedef __m256 lanes;
#    define MULTIPLY_ADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#    define ALL_LANES(x) _mm256_set1_ps(x)
#else
typedef float lanes;
#    define MULTIPLY_ADD(a, b, c) fmaf(a, b, c)
#    define ALL_LANES(x) (x)
#endif
enum { CHAINS = 12, ROUNDS = 4096 };
struct chains {
    lanes chain[CHAINS];
};

/* Enough independent chains that none waits for itself. */
static int run_peak(void *argument, struct error *error) {
    (void)error;
    struct chains *chains = argument, own = *chains;
    const lanes factor = ALL_LANES(0.999f), term = ALL_LANES(0.001f);
    for (int round = 0; round < ROUNDS; round++)
        for (int c = 0; c < CHAINS; c++) own.chain[c] = MULTIPLY_ADD(own.chain[c], factor, term);
    *chains = own;
    return OK;
}

static void measure_peak(struct bench *bench) {
    void *chains = NULL;
    if (memory_zeroed(&chains, 1, sizeof(struct chains), "chains of multiply-adds", &bench->error) != OK)
        return;
    const double flops = 2.0 * (sizeof(lanes) / sizeof(float)) * CHAINS * ROUNDS;
    const double us = best_us(bench, run_peak, chains);
    bench->peak_gflops = flops / us / 1e3;
    print_row(bench, "fused multiply-adds alone", "", us, flops);
    memory_free(chains);
}

/* --- one kernel alone --- */
struct lone_call {
    const struct kernel *kernel;
    struct call call;
    void *blocks[MAX_INPUTS + 1]; /* operands and the result */
};

static int run_call(void *argument, struct error *error) {
    struct lone_call *lone = argument;
    return lone->kernel->run(&lone->call, error);
}

/* Memory for an operand, filled with small floats, or with labels. */
static int make_operand(void **out, const struct shape *shape, enum type type, struct error *error) {
    const size_t count = shape_count(shape);
    RETURN_IF(memory_zeroed(out, count, sizeof(float), "an operand", error));
    for (size_t i = 0; i < count; i++) {
        const float unit = rng_unit(rng_philox(1, 0, i).word[0]);
        if (type == TYPE_FLOAT) ((float *)*out)[i] = 0.5f * unit;
        if (type == TYPE_INT) ((int *)*out)[i] = (int)(unit * CLASSES);
    }
    return OK;
}

static int open_call(struct lone_call *lone, const struct step *step, struct error *error) {
    const struct task *task = &step->task;
    *lone = (struct lone_call){.kernel = step->kernel, .call = {.task = task, .plan = step->plan}};
    for (int i = 0; i < task->inputs; i++) {
        RETURN_IF(make_operand(&lone->blocks[i], &task->input[i].shape, task->input[i].type, error));
        lone->call.input[i] = lone->blocks[i];
    }
    RETURN_IF(make_operand(&lone->blocks[MAX_INPUTS], &task->output.shape, task->output.type, error));
    lone->call.output = lone->blocks[MAX_INPUTS];
    return step->kernel->bind ? step->kernel->bind(task, step->plan, &lone->call.instance, error) : OK;
}

static void close_call(struct lone_call *lone) {
    if (lone->call.instance && lone->kernel->unbind) lone->kernel->unbind(lone->call.instance);
    for (int i = 0; i <= MAX_INPUTS; i++) memory_free(lone->blocks[i]);
}

static double flops_of(const struct task *task) {
    if (task->op != OP_matmul && task->op != OP_dense) return 0.0;
    const int inner = task->input[0].shape.dims[task->attributes->transpose_a ? 0 : 1];
    return 2.0 * (double)shape_count(&task->output.shape) * inner;
}

static void measure_step(struct bench *bench, const struct step *step) {
    struct lone_call lone;
    char shape[96];
    if (open_call(&lone, step, &bench->error) == OK) {
        const double us = best_us(bench, run_call, &lone);
        bench->sum_us += us;
        print_row(bench, step->kernel->name, shape_text(&step->task.output.shape, shape, sizeof shape), us,
                  flops_of(&step->task));
    }
    close_call(&lone);
}

/* --- gathering a batch, out of more examples than the caches hold --- */
struct gathering {
    const struct device *device;
    struct examples examples;
    int *index; /* [batch] */
    int batch;
    uint64_t draws;
    float *out; /* [batch][FEATURES] */
};

static int run_gather(void *argument, struct error *error) {
    struct gathering *gathering = argument;
    (void)error;
    for (int i = 0; i < gathering->batch; i++)
        gathering->index[i] = (int)(rng_unit(rng_philox(2, 0, gathering->draws++).word[0]) * EXAMPLES);
    const struct picks picks = {.count = gathering->batch, .index = gathering->index};
    gathering->device->backend->gather(gathering->device, &gathering->examples, &picks, gathering->out);
    return OK;
}

static void measure_gather(struct bench *bench, float *x) {
    void *bytes = NULL, *index = NULL;
    if (memory_zeroed(&bytes, EXAMPLES, FEATURES, "examples", &bench->error) == OK &&
        memory_zeroed(&index, (size_t)bench->batch, sizeof(int), "a batch's numbers", &bench->error) == OK) {
        struct gathering gathering = {
            .device = &bench->device,
            .examples = {.count = EXAMPLES, .features = FEATURES, .bytes = bytes, .scale = 1.0f / 255.0f},
            .index = index,
            .batch = bench->batch,
            .out = x,
        };
        const double us = best_us(bench, run_gather, &gathering);
        bench->sum_us += us;
        print_row(bench, "gather, bytes, anywhere of 47 MB", "", us, 0.0);
    }
    memory_free(index);
    memory_free(bytes);
}

/* --- the step as a whole --- */
struct whole {
    struct program *program;
    struct arena *arena;
    float *weights, *gradients;
};

static int run_whole(void *argument, struct error *error) {
    struct whole *whole = argument;
    return program_run(whole->program, whole->arena, whole->weights, whole->gradients, error);
}

/* Loss and the gradients of all parameters; fetches[0] is the loss, *x the placeholder of the images. */
static void build(const struct bench *bench, struct graph *g, node *fetches, node *x, node *labels) {
    const struct initial kernel = {.kind = INITIAL_GLOROT_UNIFORM}, bias = {.kind = INITIAL_ZERO};
    *x = graph_placeholder(g, "x", TYPE_FLOAT, SHAPE(bench->batch, FEATURES));
    *labels = graph_placeholder(g, "labels", TYPE_INT, SHAPE(bench->batch));
    const node hidden = graph_activate(g, graph_dense(g, *x, HIDDEN, kernel, bias), bench->activation);
    const node logits = graph_dense(g, hidden, CLASSES, kernel, bias);
    fetches[0] = graph_reduce_mean(g, graph_softmax_cross_entropy(g, logits, *labels), ALL_AXES, false);
    node parameters[PARAMETERS];
    int count = 0;
    for (node n = 0; n < g->count; n++)
        if (g->nodes[n].op == OP_variable && count < PARAMETERS) parameters[count++] = n;
    graph_gradients(g, fetches[0], parameters, PARAMETERS, fetches + 1);
}

static int open_whole(struct whole *whole, const struct graph *g, const node *fetches, struct bench *bench) {
    struct error *error = &bench->error;
    RETURN_IF(program_compile(&whole->program, g, fetches, PARAMETERS + 1, &bench->device, error));
    RETURN_IF(arena_open(&whole->arena, whole->program, error));
    RETURN_IF(memory_zeroed((void **)&whole->weights, g->layout.floats, sizeof(float), "weights", error));
    RETURN_IF(memory_zeroed((void **)&whole->gradients, g->layout.floats, sizeof(float), "gradients", error));
    layout_initialize(&g->layout, 1, whole->weights);
    return OK;
}

static void measure(struct bench *bench) {
    struct graph g;
    struct whole whole = {0};
    node fetches[PARAMETERS + 1], x, labels;
    graph_open(&g, true, 1);
    build(bench, &g, fetches, &x, &labels);
    if (open_whole(&whole, &g, fetches, bench) == OK) {
        float *images = arena_address(whole.arena, x);
        const size_t floats = (size_t)bench->batch * FEATURES;
        measure_gather(bench, images);
        for (size_t i = 0; i < floats; i++) images[i] = rng_unit(rng_philox(3, 0, i).word[0]);
        for (int s = 0; s < whole.program->step_count; s++) measure_step(bench, &whole.program->steps[s]);
        print_row(bench, "sum of the above", "", bench->sum_us, 0.0);
        const double us = best_us(bench, run_whole, &whole);
        print_row(bench, "the program, without gather", "", us, 0.0);
        printf("%.0f examples/s\n", bench->batch / us * 1e6);
    }
    memory_free(whole.gradients);
    memory_free(whole.weights);
    arena_close(whole.arena);
    program_close(whole.program);
    graph_close(&g);
}

/* On a core of its own. */
static void run_bench(void *argument) {
    struct bench *bench = argument;
    bench->device.backend->enter(&bench->device);
    printf("%-38s %-12s %8s %8s %9s\n", "batch, kernel by kernel", "result", "us", "GFLOP/s", "of peak");
    measure_peak(bench);
    measure(bench);
}

int main(int count, char **arguments) {
    struct bench bench = {.batch = 100, .activation = ACTIVATION_SIGMOID};
    if (count > 1) bench.batch = (int)strtol(arguments[1], NULL, 10);
    if (count > 2) bench.activation = (enum activation)strtol(arguments[2], NULL, 10);
    if (bench.batch < 1 || count > 3) {
        fprintf(stderr, "usage: bench_step [BATCH [ACTIVATION]]\n");
        return ERROR_USAGE;
    }
    const struct device_settings settings = {.threads = 1};
    struct device *devices = NULL;
    struct world_thread *thread = NULL;
    int found = 0;
    bool shared = false;
    if (world_open_threads(&bench.world, &bench.error) == OK &&
        devices_open("cpu:0", &settings, &devices, &found, &shared, &bench.error) == OK) {
        bench.device = devices[0];
        if (world_spawn(bench.world, "bench", &bench.device.cores, run_bench, &bench, &thread,
                        &bench.error) == OK)
            world_join(thread);
    }
    memory_free(devices);
    world_close(bench.world);
    if (bench.error.code) fprintf(stderr, "bench_step: %s\n", bench.error.words);
    return bench.error.code;
}
