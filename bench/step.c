/* Times one training step of a model on one core: each kernel within its compiled program (the fastest of
 * many runs), the gathering of a batch, and the step as a whole (the fastest of many), beside what a loop of
 * nothing but fused multiply-adds reaches.
 *
 *   bench/step [MODEL [INPUT [BATCH [fp32|bf16]]]]      mlp 784 100 fp32 unless given; as in: alexnet 24x24x3
 * 128
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
#include "../src/graph/model.h"
#include "../src/program/program.h"
#include "../src/engine/network.h"

enum { CLASSES = 10, EXAMPLES = 60000, RUNS = 4 };

struct bench {
    struct world *world;
    struct device device;
    struct choice model;
    struct shape input; /* of one example */
    int batch;
    double peak_gflops;
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

#if defined __AVX512BF16__
/* The same of pairs of bf16 that are added to fp32. */
static int run_bf16_peak(void *argument, struct error *error) {
    (void)error;
    struct chains *chains = argument, own = *chains;
    const __m512bh a = _mm512_cvtne2ps_pbh(ALL_LANES(0.999f), ALL_LANES(0.001f)), b = a;
    for (int round = 0; round < ROUNDS; round++)
        for (int c = 0; c < CHAINS; c++) own.chain[c] = _mm512_dpbf16_ps(own.chain[c], a, b);
    *chains = own;
    return OK;
}
#endif

static void measure_peak(struct bench *bench) {
    void *chains = NULL;
    timed *run = run_peak;
    double flops = 2.0 * (sizeof(lanes) / sizeof(float)) * CHAINS * ROUNDS;
    const char *what = "fused multiply-adds alone";
#if defined __AVX512BF16__
    if (bench->device.precision == PRECISION_BF16) {
        run = run_bf16_peak;
        flops *= 2.0;
        what = "fused multiply-adds alone, of pairs of bf16";
    }
#endif
    if (memory_zeroed(&chains, 1, sizeof(struct chains), "chains of multiply-adds", &bench->error) != OK)
        return;
    const double us = best_us(bench, run, chains);
    bench->peak_gflops = flops / us / 1e3;
    printf("%s: %.1f GFLOP/s\n", what, bench->peak_gflops);
    memory_free(chains);
}

/* --- gathering a batch, out of more examples than the caches hold --- */
struct gathering {
    const struct device *device;
    struct examples examples;
    int *index; /* [batch] */
    int batch;
    uint64_t draws;
    float *out; /* [batch][features] */
};

static int run_gather(void *argument, struct error *error) {
    struct gathering *gathering = argument;
    (void)error;
    for (int i = 0; i < gathering->batch; i++)
        gathering->index[i] = (int)(rng_unit(rng_philox(2, 0, gathering->draws++).word[0]) * EXAMPLES);
    const struct indices indices = {.count = gathering->batch, .index = gathering->index};
    gathering->device->backend->gather(gathering->device, &gathering->examples, &indices, gathering->out,
                                       NULL);
    return OK;
}

static void measure_gather(struct bench *bench, float *x) {
    void *bytes = NULL, *index = NULL;
    const size_t features = shape_count(&bench->input);
    if (memory_zeroed(&bytes, EXAMPLES, features, "examples", &bench->error) == OK &&
        memory_zeroed(&index, (size_t)bench->batch, sizeof(int), "a batch's numbers", &bench->error) == OK) {
        struct gathering gathering = {
            .device = &bench->device,
            .examples = {.count = EXAMPLES,
                         .features = (int)features,
                         .bytes = bytes,
                         .scale = 1.0f / 255.0f},
            .index = index,
            .batch = bench->batch,
            .out = x,
        };
        printf("gathering a batch of bytes out of %d examples: %.2f us\n", EXAMPLES,
               best_us(bench, run_gather, &gathering));
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

static int open_network(struct bench *bench, struct network *network) {
    const struct network_settings settings = {.model = &bench->model,
                                              .shape = bench->input,
                                              .classes = CLASSES,
                                              .batch = bench->batch,
                                              .training = true,
                                              .seed = 1,
                                              .shards = 1};
    return network_open(network, &settings, &bench->error);
}

/* As a worker runs it: the loss, and the gradients of all parameters. */
static int open_whole(struct whole *whole, const struct network *network, struct bench *bench) {
    struct error *error = &bench->error;
    const struct layout *layout = &network->graph.layout;
    void *fetches = NULL;
    RETURN_IF(memory_zeroed(&fetches, (size_t)network->gradient_count + 1, sizeof(node), "fetches", error));
    ((node *)fetches)[0] = network->decayed_loss;
    memcpy((node *)fetches + 1, network->gradients, (size_t)network->gradient_count * sizeof(node));
    const int code = program_compile(&whole->program, &network->graph, fetches, network->gradient_count + 1,
                                     &bench->device, error);
    memory_free(fetches);
    RETURN_IF(code);
    RETURN_IF(arena_open(&whole->arena, whole->program, error));
    RETURN_IF(memory_zeroed((void **)&whole->weights, layout->floats, sizeof(float), "weights", error));
    RETURN_IF(memory_zeroed((void **)&whole->gradients, layout->floats, sizeof(float), "gradients", error));
    layout_initialize(layout, 1, whole->weights);
    return OK;
}

/* What each step takes within the program: the least of as many runs as go into a second. */
static int explain(struct bench *bench, const struct whole *whole) {
    const int steps = program_instructions(whole->program);
    void *seconds = NULL;
    RETURN_IF(memory_zeroed(&seconds, (size_t)steps, sizeof(double), "times", &bench->error));
    const double end = world_now(bench->world) + 1.0;
    for (int runs = 0; bench->error.code == OK && (runs < RUNS || world_now(bench->world) < end); runs++)
        program_time(whole->program, whole->arena, whole->weights, whole->gradients, bench->world, seconds,
                     &bench->error);
    if (bench->error.code == OK) program_explain(whole->program, seconds, stdout);
    memory_free(seconds);
    return bench->error.code;
}

static int measure_program(struct bench *bench, const struct network *network, struct whole *whole) {
    float *images = arena_address(whole->arena, network->x);
    const size_t floats = (size_t)bench->batch * shape_count(&bench->input);
    measure_gather(bench, images);
    for (size_t i = 0; i < floats; i++) images[i] = rng_unit(rng_philox(3, 0, i).word[0]);
    const double us = best_us(bench, run_whole, whole);
    RETURN_IF(explain(bench, whole));
    double multiply_adds = 0.0;
    for (node n = 0; n < network->graph.count; n++) multiply_adds += graph_multiply_adds(&network->graph, n);
    const double gflops = 2e-3 * multiply_adds / us;
    printf("the program, without gather: %.2f us, %.1f GFLOP/s, %.1f %% of the multiply-adds alone, %.0f "
           "examples/s\n",
           us, gflops, 100.0 * gflops / bench->peak_gflops, bench->batch / us * 1e6);
    return OK;
}

static void measure(struct bench *bench) {
    struct network network;
    struct whole whole = {0};
    if (open_network(bench, &network) == OK && open_whole(&whole, &network, bench) == OK)
        measure_program(bench, &network, &whole);
    memory_free(whole.gradients);
    memory_free(whole.weights);
    arena_close(whole.arena);
    program_close(whole.program);
    network_close(&network);
}

/* On a core of its own. */
static void run_bench(void *argument) {
    struct bench *bench = argument;
    bench->device.backend->enter(&bench->device);
    measure_peak(bench);
    measure(bench);
}

/* "24x24x3" */
static bool parse_shape(const char *text, struct shape *shape) {
    *shape = (struct shape){0};
    while (shape->rank < MAX_RANK - 1) {
        char *end = NULL;
        const long dim = strtol(text, &end, 10);
        if (end == text || dim < 1 || dim > 100000) return false;
        shape->dims[shape->rank++] = (int)dim;
        if (*end == '\0') return true;
        if (*end != 'x') return false;
        text = end + 1;
    }
    return false;
}

int main(int count, char **arguments) {
    struct bench bench = {.batch = 100, .input = SHAPE(784)};
    if (count > 3) bench.batch = (int)strtol(arguments[3], NULL, 10);
    if (bench.batch < 1 || count > 5 || (count > 2 && !parse_shape(arguments[2], &bench.input))) {
        fprintf(
            stderr,
            "usage: bench/step [MODEL [INPUT [BATCH [fp32|bf16]]]], as in: bench/step alexnet 24x24x3 128\n");
        return ERROR_USAGE;
    }
    const bool narrow = count > 4 && strcmp(arguments[4], "bf16") == 0;
    const struct device_settings settings = {.threads = 1,
                                             .precision = narrow ? PRECISION_BF16 : PRECISION_FP32};
    struct device *devices = NULL;
    struct world_thread *thread = NULL;
    int found = 0;
    bool shared = false;
    if (plugin_choose(&bench.model, &model_kind, count > 1 ? arguments[1] : "mlp", &bench.error) == OK &&
        world_open_threads(&bench.world, &bench.error) == OK &&
        devices_open("cpu:0", &settings, &devices, &found, &shared, &bench.error) == OK) {
        bench.device = devices[0];
        if (world_spawn(bench.world, "bench", &bench.device.cores, run_bench, &bench, &thread,
                        &bench.error) == OK)
            world_join(thread);
    }
    devices_close(devices, found);
    world_close(bench.world);
    if (bench.error.code) fprintf(stderr, "bench/step: %s\n", bench.error.words);
    return bench.error.code;
}
