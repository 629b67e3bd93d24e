/* The GPU's matrix products, against the CPU's reference kernels: exactly on whole numbers, to 1e-5 on
 * others; in every mix of types and in every precision; the same bits in every run, recorded or not, and from
 * every thread; and with each call failing in turn. */
#include "../gpu_problem.h"

/* Rows, inner length, columns: odd ones, ones, those of the small networks. */
static const int sizes[][3] = {{1, 1, 1},    {1, 7, 3},      {3, 1, 5},    {2, 5, 1},      {17, 33, 9},
                               {1, 784, 10}, {32, 64, 10},   {16, 16, 16}, {100, 10, 100}, {100, 784, 100},
                               {64, 65, 3},  {130, 257, 65}, {5, 3, 64}};
enum { SIZES = sizeof sizes / sizeof *sizes, THREADS = 2, RUNS = 20 };

static int taken[PRECISION_TF32 + 1][OPS];

static struct problem product(const struct device *device, const struct attributes *attributes, enum op op,
                              const int *size) {
    const bool ta = attributes->transpose_a, tb = attributes->transpose_b;
    return (struct problem){.op = op,
                            .attributes = attributes,
                            .inputs = op == OP_dense ? 3 : 2,
                            .input = {{.shape = ta ? SHAPE(size[1], size[0]) : SHAPE(size[0], size[1])},
                                      {.shape = tb ? SHAPE(size[2], size[1]) : SHAPE(size[1], size[2])},
                                      {.shape = SHAPE(size[2])}},
                            .output = {.shape = SHAPE(size[0], size[2])},
                            .device = device};
}

static bool is_exact(const struct problem *problem) {
    return problem->attributes->activation == ACTIVATION_NONE ||
           problem->attributes->activation == ACTIVATION_RELU;
}

/* Whole numbers of this size stay exact in bf16 as they do in float32; results are rounded once. A bias that
 * cuBLASLt adds to a bf16 result is rounded to bf16 itself. */
static void check_types(struct problem *problem) {
    const enum precision precision = problem->device->precision;
    const int mixes = precision == PRECISION_BF16 ? 8 : 1;
    const bool large = shape_count(&problem->input[0].shape) > 5000; /* two mixes will do */
    /* A GPU may cut off what tf32 leaves out. */
    const double tolerance[] = {
        [PRECISION_FP32] = 1e-5, [PRECISION_BF16] = 1e-3, [PRECISION_TF32] = gpu_tolerance(1e-3, 4e-3)};
    for (int mix = 0; mix < mixes; mix += large ? 5 : 1) {
        for (int i = 0; i < 2; i++) problem->input[i].type = mix >> i & 1 ? TYPE_BF16 : TYPE_FLOAT;
        problem->output.type = mix >> 2 & 1 ? TYPE_BF16 : TYPE_FLOAT;
        /* A GPU may add partial sums that are rounded to bf16 already. */
        const bool narrow = problem->output.type == TYPE_BF16;
        if (is_exact(problem))
            taken[precision][problem->op] +=
                check_gpu_task(problem, true, narrow ? gpu_tolerance(0.0, 1e-2) : 0.0);
        /* What is bf16 all through but for the bias differs by its rounding at most. */
        taken[precision][problem->op] += check_gpu_task(problem, false, narrow ? 1e-2 : tolerance[precision]);
    }
}

static void check_products(const struct device *device, const int *size) {
    for (int transposed = 0; transposed < 4; transposed++) {
        const struct attributes attributes = {.transpose_a = transposed & 1, .transpose_b = transposed & 2};
        struct problem problem = product(device, &attributes, OP_matmul, size);
        check_types(&problem);
    }
    for (int a = ACTIVATION_NONE; a <= ACTIVATION_TANH; a++) {
        const struct attributes attributes = {.activation = (enum activation)a};
        struct problem problem = product(device, &attributes, OP_dense, size);
        check_types(&problem);
    }
}

/* fp32 rounds nothing that it multiplies; tf32 does, and says so. */
static void check_rounding(void) {
    static float out[2][100 * 100], expected[100 * 100];
    static const int size[] = {100, 784, 100};
    const struct attributes attributes = {0};
    const enum precision precisions[] = {PRECISION_FP32, PRECISION_TF32};
    const char *const words[] = {"cublaslt:fp32", "cublaslt:tf32"};
    double apart[2];
    for (int p = 0; p < 2; p++) {
        const struct device device = open_gpu(precisions[p]);
        const struct problem problem = product(&device, &attributes, OP_matmul, size);
        struct host_operands h;
        struct gpu_run run;
        struct error error = {0};
        bool whole;
        char said[200] = "";
        make_operands(&h, &problem, false, false);
        run_reference(&problem, &h, expected);
        int code = open_gpu_run(&run, &problem, &h, &error);
        const struct call call = gpu_call(&run);
        if (code == OK) code = run.kernel->run(&call, &error);
        if (code == OK) code = read_gpu(&run, out[p], &whole, &error);
        CHECK(code == OK, "%s", error.words);
        apart[p] = gpu_difference(out[p], expected, h.outputs);
        if (code == OK) run.kernel->describe(run.plan, said, sizeof said);
        CHECK(strncmp(said, words[p], strlen(words[p])) == 0, "'%s'", said);
        close_gpu_run(&run);
        free_operands(&h);
        device.backend->close(&device);
    }
    CHECK(apart[0] < gpu_tolerance(1e-6, 1e-5), "fp32 is %g apart", apart[0]);
    CHECK(apart[1] < gpu_tolerance(1e-3, 4e-3), "tf32 is %g apart", apart[1]);
    if (STANDIN) CHECK(apart[1] > 1e-5, "tf32 is %g apart: as good as fp32", apart[1]);
}

/* One thread that runs the shared plan again and again, on memory of its own. */
struct runner {
    struct gpu_run run;
    const struct host_operands *operands;
    const float *expected;
    int wrong;
    struct error error;
};

static void run_often(void *argument) {
    struct runner *runner = argument;
    struct gpu_run *run = &runner->run;
    float *out = NULL;
    run->problem.device->backend->enter(run->problem.device);
    bool whole = true;
    if (memory_zeroed((void **)&out, runner->operands->outputs, sizeof *out, "result", &runner->error))
        return;
    if (bind_gpu(run, runner->operands, &runner->error) == OK) {
        const struct call call = gpu_call(run);
        for (int i = 0; i < RUNS && runner->error.code == OK; i++) {
            if (run->kernel->run(&call, &runner->error)) break;
            const struct device *device = run->problem.device;
            const size_t bytes = runner->operands->outputs * sizeof *out;
            if (device->backend->copy(device, out, run->output + GUARD_BYTES, bytes, &runner->error)) break;
            runner->wrong += memcmp(out, runner->expected, bytes) != 0 || !whole;
        }
    }
    memory_free(out);
}

static void check_threads(void) {
    static float expected[100 * 10];
    static const int size[] = {100, 64, 10};
    const struct device device = open_gpu(PRECISION_BF16); /* with operands and a bias to convert */
    const struct attributes attributes = {.activation = ACTIVATION_RELU};
    const struct problem problem = product(&device, &attributes, OP_dense, size);
    struct error error = {0};
    struct host_operands h;
    struct gpu_run first;
    struct runner runners[THREADS] = {0};
    struct world *world = NULL;
    struct world_thread *threads[THREADS] = {0};
    bool whole;
    make_operands(&h, &problem, false, true);
    int code = open_gpu_run(&first, &problem, &h, &error);
    const struct call call = gpu_call(&first);
    if (code == OK) code = first.kernel->run(&call, &error);
    if (code == OK) code = read_gpu(&first, expected, &whole, &error);
    if (code == OK) code = world_open_threads(&world, &error);
    for (int t = 0; code == OK && t < THREADS; t++) {
        runners[t] = (struct runner){.run = {.kernel = first.kernel, .problem = problem, .plan = first.plan},
                                     .operands = &h,
                                     .expected = expected};
        code = world_spawn(world, "runner", NULL, run_often, &runners[t], &threads[t], &error);
    }
    CHECK(code == OK, "%s", error.words);
    for (int t = 0; t < THREADS; t++) world_join(threads[t]);
    for (int t = 0; t < THREADS; t++) {
        CHECK(runners[t].wrong == 0 && runners[t].error.code == OK, "thread %d: %d wrong %s", t,
              runners[t].wrong, runners[t].error.words);
        runners[t].run.plan = NULL; /* the first one's */
        if (runners[t].run.kernel) close_gpu_run(&runners[t].run);
    }
    world_close(world);
    close_gpu_run(&first);
    free_operands(&h);
    device.backend->close(&device);
}

static void check_declines(void) {
    static const int size[] = {4, 3, 2}, none[] = {0, 3, 2}, empty[] = {4, 0, 2};
    const struct attributes attributes = {0};
    const struct device device = open_gpu(PRECISION_FP32);
    struct problem problem = product(&device, &attributes, OP_matmul, size);
    problem.input[0].type = problem.input[1].type = problem.output.type = TYPE_INT;
    check_gpu_declines(&problem, "int32");
    problem = product(&device, &attributes, OP_matmul, size);
    problem.input[0].type = TYPE_BF16;
    check_gpu_declines(&problem, "bf16 in fp32");
    problem = product(&device, &attributes, OP_matmul, none);
    check_gpu_declines(&problem, "no rows");
    problem = product(&device, &attributes, OP_matmul, empty);
    check_gpu_declines(&problem, "nothing to sum over");
    problem = product(&device, &attributes, OP_dense, size);
    problem.input[2].type = TYPE_BF16;
    check_gpu_declines(&problem, "a bias in bf16");
    device.backend->close(&device);
}

static void check_failing_calls(void) {
    static const int size[] = {7, 5, 3};
    const struct attributes attributes = {.activation = ACTIVATION_TANH},
                            relu = {.activation = ACTIVATION_RELU};
    const enum precision precisions[] = {PRECISION_FP32, PRECISION_BF16};
    for (int p = 0; p < 2; p++) {
        const struct device device = gpu_of(precisions[p]);
        const struct problem problem = product(&device, &attributes, OP_dense, size);
        struct problem fused = product(&device, &relu, OP_dense, size);
        if (p) fused.output.type = TYPE_BF16;
        check_gpu_failures(&problem, 1e-2);
        check_gpu_failures(&fused, 1e-2);
    }
}

int main(void) {
    gpu_or_skip();
    for (int p = PRECISION_FP32; p <= PRECISION_TF32; p++) {
        const struct device device = open_gpu((enum precision)p);
        for (int s = 0; s < SIZES; s++) check_products(&device, sizes[s]);
        device.backend->close(&device);
        CHECK(taken[p][OP_matmul] > SIZES && taken[p][OP_dense] > SIZES, "precision %d: %d and %d products",
              p, taken[p][OP_matmul], taken[p][OP_dense]);
    }
    check_rounding();
    check_threads();
    check_declines();
    check_failing_calls();
    return check_end();
}
