/* The GPU's convolutions and their gradients, against the CPU's reference kernels: exactly on whole numbers,
 * to 1e-5 on others; padding that is one more behind; in every mix of types and in every precision; each
 * matrix product that a convolution may be; the same bits in every run, recorded or not; and with each call
 * failing in turn. */
#include "../gpu_problem.h"

#include "../../cuda/convolution.h"
#include "../../src/graph/window.h"

/* x [batch, rows, columns, channels], kernel [rows, columns], channels out, groups (0: one), strides,
 * padding: odd ones, ones, those of the small networks, and two of 1024 positions and more, whose sums are
 * made of parts; in half of them TensorFlow pads one more behind. */
static const struct image_case {
    int in[4], kernel[4], stride[2];
    enum padding padding;
} cases[] = {
    {{1, 1, 1, 1}, {1, 1, 1}, {1, 1}, PADDING_VALID},     {{1, 1, 1, 1}, {5, 5, 1}, {1, 1}, PADDING_SAME},
    {{1, 3, 4, 2}, {5, 5, 3}, {1, 1}, PADDING_SAME},      {{2, 7, 5, 3}, {3, 3, 5}, {1, 1}, PADDING_SAME},
    {{2, 7, 6, 3}, {3, 2, 17}, {2, 2}, PADDING_SAME},     {{2, 8, 6, 3}, {3, 3, 17}, {2, 2}, PADDING_VALID},
    {{1, 6, 6, 2}, {3, 3, 5}, {2, 2}, PADDING_SAME},      {{3, 4, 5, 1}, {2, 4, 3}, {1, 2}, PADDING_SAME},
    {{1, 9, 3, 2}, {2, 2, 1}, {3, 3}, PADDING_VALID},     {{1, 6, 6, 16}, {1, 1, 32}, {3, 3}, PADDING_SAME},
    {{1, 5, 4, 3}, {1, 1, 17}, {3, 2}, PADDING_SAME},     {{2, 10, 9, 1}, {3, 3, 32}, {1, 1}, PADDING_VALID},
    {{1, 12, 12, 3}, {5, 5, 64}, {1, 1}, PADDING_SAME},   {{1, 6, 6, 64}, {5, 5, 64}, {1, 1}, PADDING_SAME},
    {{2, 8, 8, 32}, {3, 3, 6}, {2, 2}, PADDING_SAME},     {{1, 7, 7, 13}, {2, 2, 13}, {1, 1}, PADDING_SAME},
    {{2, 7, 6, 5}, {3, 3, 5, 5}, {1, 1}, PADDING_SAME},   {{1, 8, 6, 3}, {3, 2, 6, 3}, {2, 2}, PADDING_SAME},
    {{1, 5, 5, 8}, {3, 3, 12, 4}, {1, 1}, PADDING_VALID}, {{1, 6, 6, 16}, {1, 1, 32}, {1, 1}, PADDING_SAME},
    {{2, 32, 16, 3}, {3, 5, 7}, {1, 1}, PADDING_SAME},    {{5, 32, 32, 8}, {3, 3, 8}, {2, 2}, PADDING_SAME},
};
enum {
    CASES = sizeof cases / sizeof *cases,
    FEW = 3,
    SMALL = 6,
    MANY_CHANNELS = 14,
    GROUPED = 16,
    PARTS = 20
};

static const enum op operations[] = {OP_conv2d, OP_conv2d_bias, OP_conv2d_grad_x, OP_conv2d_grad_kernel};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static int taken[PRECISION_TF32 + 1][OPS];

static struct problem convolution(const struct device *device, struct attributes *attributes, enum op op,
                                  const struct image_case *c) {
    attributes->stride[0] = c->stride[0];
    attributes->stride[1] = c->stride[1];
    attributes->padding = c->padding;
    int out[2];
    for (int axis = 0; axis < 2; axis++)
        out[axis] = window_along(c->in[axis + 1], c->kernel[axis], c->stride[axis], c->padding).out;
    const struct shape x = SHAPE(c->in[0], c->in[1], c->in[2], c->in[3]);
    const struct shape kernel =
        SHAPE(c->kernel[0], c->kernel[1], c->in[3] / (c->kernel[3] > 0 ? c->kernel[3] : 1), c->kernel[2]);
    const struct shape y = SHAPE(c->in[0], out[0], out[1], c->kernel[2]);
    struct problem problem = {.op = op, .attributes = attributes, .inputs = 2, .device = device};
    switch (op) {
    case OP_conv2d_grad_x:
        problem.input[0].shape = kernel;
        problem.input[1].shape = y;
        problem.output.shape = x;
        break;
    case OP_conv2d_grad_kernel:
        problem.input[0].shape = x;
        problem.input[1].shape = y;
        problem.output.shape = kernel;
        break;
    default:
        problem.inputs = op == OP_conv2d_bias ? 3 : 2;
        problem.input[0].shape = x;
        problem.input[1].shape = kernel;
        problem.input[2].shape = SHAPE(c->kernel[2]);
        problem.output.shape = y;
    }
    return problem;
}

/* Every mix of types of the first cases, of the others every third, from another one on in each; of large
 * kernels, and of most cases on a GPU, where plans take long, two. MIXES=all: every mix of those with small
 * kernels. */
static int step_of_mixes(const struct problem *problem, int number) {
    const bool large = shape_count(&problem->input[1].shape) > 1000;
    if (large || (!STANDIN && number > FEW)) return 5;
    return number <= FEW || getenv("MIXES") ? 1 : 3;
}

/* Of most cases every third on a GPU, which makes some plans for each. */
static int step_of_cases(int number) {
    return STANDIN || number < FEW ? 1 : 3;
}

/* In bf16 each result is rounded to it once, also a float32 one, and a bias that cuDNN adds: by 1/256 of
 * itself, or twice that. */
static void check_types(struct problem *problem, int number) {
    const double tolerance[] = {[PRECISION_FP32] = gpu_tolerance(1e-5, 1e-4),
                                [PRECISION_BF16] = 1e-2,
                                [PRECISION_TF32] = gpu_tolerance(2e-3, 4e-3)};
    const enum precision precision = problem->device->precision;
    const enum activation activation = problem->attributes->activation;
    const bool exact = activation == ACTIVATION_NONE || activation == ACTIVATION_RELU;
    const int mixes = precision == PRECISION_BF16 ? 8 : 1, step = step_of_mixes(problem, number);
    /* A GPU's algorithm need not multiply the numbers themselves: Winograd's and Fourier's do not. */
    const double whole = precision == PRECISION_BF16 ? 1e-2 : gpu_tolerance(0.0, tolerance[precision]);
    for (int mix = mixes > 1 && step == 3 ? number % 3 : 0; mix < mixes; mix += step) {
        for (int i = 0; i < 2; i++) problem->input[i].type = mix >> i & 1 ? TYPE_BF16 : TYPE_FLOAT;
        problem->output.type = mix >> 2 & 1 ? TYPE_BF16 : TYPE_FLOAT;
        if (exact && (STANDIN || activation == ACTIVATION_NONE))
            taken[precision][problem->op] += check_gpu_task(problem, true, whole);
        taken[precision][problem->op] += check_gpu_task(problem, false, tolerance[precision]);
    }
}

static void check_case(const struct device *device, const struct image_case *c) {
    const int most = STANDIN || c - cases <= FEW ? ACTIVATION_TANH : ACTIVATION_RELU;
    for (int o = 0; o < OPERATIONS; o++) {
        const int last = operations[o] == OP_conv2d_bias ? most : ACTIVATION_NONE;
        for (int a = ACTIVATION_NONE; a <= last; a++) {
            struct attributes attributes = {.activation = (enum activation)a};
            struct problem problem = convolution(device, &attributes, operations[o], c);
            const int *const count = &taken[device->precision][operations[o]], before = *count;
            check_types(&problem, (int)(c - cases));
            if (STANDIN) CHECK(*count > before, "%s, case %td: declined", op_name(operations[o]), c - cases);
        }
    }
}

/* One candidate against the reference, in whole numbers, whose sums are exact: the result of each run. */
static void check_product(struct gpu_run *run, const struct host_operands *h, const float *theirs,
                          int number) {
    static float ours[1 << 17];
    struct convolution_plan *plan = run->plan;
    struct error error = {0};
    bool whole = false;
    char text[300];
    gpu_task_text(&run->problem, text, sizeof text);
    plan->taken = number;
    run->kernel->unbind(run->instance);
    run->instance = NULL;
    int code = run->kernel->bind(&run->problem, plan, &run->instance, &error);
    const struct call call = gpu_call(run);
    if (code == OK) code = spoil_gpu(run, &error);
    if (code == OK) code = run->kernel->run(&call, &error);
    if (STANDIN && code != OK && strstr(error.words, "what was possible")) return; /* one of four is not */
    if (code == OK) code = read_gpu(run, ours, &whole, &error);
    CHECK(code == OK, "%s, product %d: %s", text, number, error.words);
    const double apart = code == OK ? gpu_difference(ours, theirs, h->outputs) : 0.0;
    CHECK(code != OK || (whole && apart == 0.0), "%s, product %d: %g apart", text, number, apart);
}

/* All products that the problem may be. */
static int check_products_of(const struct problem *problem) {
    static float theirs[1 << 17];
    struct host_operands h;
    struct gpu_run run;
    struct error error = {0};
    int products = 0;
    make_operands(&h, problem, true, true);
    run_reference(problem, &h, theirs);
    for (size_t i = 0; i < h.outputs && problem->output.type == TYPE_BF16; i++)
        theirs[i] = bf16_float(bf16_nearest(theirs[i]));
    const int code = open_gpu_run(&run, problem, &h, &error);
    CHECK(code == OK, "%s: %s", op_name(problem->op), error.words);
    const struct convolution_plan *plan = run.plan;
    for (int n = 0, number; code == OK && n < convolution_candidates(plan); n++)
        if (convolution_is_unfolded(plan, n, &number)) {
            check_product(&run, &h, theirs, n);
            products++;
        }
    close_gpu_run(&run);
    free_operands(&h);
    return products;
}

/* Every case but those with groups has some, forward and of the kernel's gradient; a gradient of many
 * positions has twice as many. */
static void check_products(const struct device *device) {
    const enum op ops[] = {OP_conv2d_bias, OP_conv2d_grad_kernel};
    const bool narrow = device->precision == PRECISION_BF16;
    for (int c = 0; c < CASES; c += step_of_cases(c))
        for (int o = 0; o < 2; o++) {
            struct attributes attributes = {.activation = o == 0 ? ACTIVATION_RELU : ACTIVATION_NONE};
            struct problem problem = convolution(device, &attributes, ops[o], &cases[c]);
            const bool grouped = cases[c].kernel[3] > 0;
            if (narrow && c % 2 > 0) problem.input[0].type = TYPE_BF16;
            if (narrow && c % 4 > 1) problem.input[1].type = TYPE_BF16;
            if (narrow && o == 0 && c % 3 > 0) problem.output.type = TYPE_BF16;
            const int products = check_products_of(&problem), least = o == 1 && c >= PARTS ? 6 : 3;
            if (STANDIN)
                CHECK(products == (grouped ? 0 : least), "%s, case %d: %d products", op_name(ops[o]), c,
                      products);
        }
}

/* None where its memory would be too much. */
static void check_budget(void) {
    const struct device device = open_gpu(PRECISION_FP32);
    struct attributes attributes = {0};
    struct error error = {0};
    const struct problem problem = convolution(&device, &attributes, OP_conv2d, &cases[SMALL]);
    const size_t rows = 3 * 3 * 20 * sizeof(float), needed = rows + PRODUCT_WORKSPACE;
    for (int short_of = 0; short_of < 2; short_of++) {
        struct unfolding *unfolding = NULL;
        const int code = unfold_open(&problem, needed - (size_t)short_of, &unfolding, &error);
        CHECK(code == OK && (unfolding == NULL) == (short_of == 1), "%zu bytes: %s", needed, error.words);
        unfold_close(unfolding);
    }
    device.backend->close(&device);
}

/* Which engine is taken where the first that can be run is, in words: none that is not deterministic, is too
 * coarse, or wants more workspace than there is. What `expected` says is the stand-in's; of a GPU's only the
 * library is known. */
static void check_choice(enum precision precision, enum op op, enum activation activation, int number,
                         const char *expected) {
    struct device device = open_gpu(precision);
    device.deterministic = true;
    struct attributes attributes = {.activation = activation};
    const struct problem problem = convolution(&device, &attributes, op, &cases[number]);
    const struct kernel *kernel = device.backend->kernels(&device, op)[0];
    struct error error = {0};
    void *plan = NULL;
    char said[200] = "";
    CHECK(kernel->prepare(&problem, &plan, &error) == OK, "%s: %s", op_name(op), error.words);
    if (plan) kernel->describe(plan, said, sizeof said);
    if (plan) kernel->release(plan);
    CHECK(strncmp(said, expected, STANDIN ? strlen(expected) : strcspn(expected, ":") + 1) == 0,
          "%s: '%s', expected '%s'", op_name(op), said, expected);
    device.backend->close(&device);
}

/* Of few channels a product; of others an engine that runs; of grouped ones what runs anything. */
static void check_choices(void) {
    const enum activation none = ACTIVATION_NONE;
    check_choice(PRECISION_FP32, OP_conv2d, none, MANY_CHANNELS, "cudnn:engine 15, fp32, way 2 of 4, 0.0 MB");
    check_choice(PRECISION_BF16, OP_conv2d, none, MANY_CHANNELS,
                 "cudnn:engine 14, bf16 tensor cores, way 2 of 4, 0.0 MB, 1 impossible");
    check_choice(PRECISION_FP32, OP_conv2d_grad_x, none, SMALL, "cudnn:engine 25, fp32, way 2 of 2");
    check_choice(PRECISION_FP32, OP_conv2d_grad_kernel, none, MANY_CHANNELS,
                 "cudnn:engine 35, fp32, way 1 of 1,");
    check_choice(PRECISION_TF32, OP_conv2d_grad_x, none, SMALL,
                 "cudnn:engine 24, tf32 tensor cores, way 2 of 3");
    check_choice(PRECISION_BF16, OP_conv2d_grad_kernel, none, MANY_CHANNELS,
                 "cudnn:engine 34, bf16 tensor cores, way 1 of 2");
    check_choice(PRECISION_FP32, OP_conv2d_bias, ACTIVATION_RELU, MANY_CHANNELS,
                 "cudnn:engine 43, fp32, bias fused, way 2 of 6");
    check_choice(PRECISION_BF16, OP_conv2d_bias, none, MANY_CHANNELS,
                 "cudnn:engine 42, bf16 tensor cores, bias fused, way 2 of 7");
    check_choice(PRECISION_FP32, OP_conv2d_bias, ACTIVATION_TANH, MANY_CHANNELS,
                 "cudnn:engine 15, fp32, way 2 of 4");
    check_choice(PRECISION_FP32, OP_conv2d, none, GROUPED, "cudnn:engine 0, fp32, way 1 of 1");
    check_choice(PRECISION_BF16, OP_conv2d_bias, ACTIVATION_RELU, SMALL,
                 "unfold + cublaslt:bf16, bias and relu fused, algorithm 1 of 3, workspace 0.0 MB");
    check_choice(PRECISION_TF32, OP_conv2d_grad_kernel, none, SMALL,
                 "unfold + cublaslt:tf32, algorithm 1 of 3, workspace 0.0 MB");
}

/* How far the kernel's result is from the reference's, and what the kernel says of its plan. */
static double distance(const struct problem *problem, char *said, size_t bytes) {
    static float out[1 << 17], expected[1 << 17];
    struct host_operands h;
    struct gpu_run run;
    struct error error = {0};
    bool whole;
    make_operands(&h, problem, false, problem->device->precision == PRECISION_BF16);
    run_reference(problem, &h, expected);
    int code = open_gpu_run(&run, problem, &h, &error);
    const struct call call = gpu_call(&run);
    if (code == OK) run.kernel->describe(run.plan, said, bytes);
    if (code == OK) code = run.kernel->run(&call, &error);
    if (code == OK) code = read_gpu(&run, out, &whole, &error);
    CHECK(code == OK, "%s: %s", op_name(problem->op), error.words);
    const double apart = gpu_difference(out, expected, h.outputs);
    close_gpu_run(&run);
    free_operands(&h);
    return apart;
}

static const struct image_case large = {{1, 6, 6, 64}, {5, 5, 64}, {1, 1}, PADDING_SAME};

/* fp32 rounds nothing that it multiplies; tf32 does. */
static void check_rounding(void) {
    const enum precision precisions[] = {PRECISION_FP32, PRECISION_TF32};
    for (int p = 0; p < 2; p++) {
        struct device device = open_gpu(precisions[p]);
        device.deterministic = true; /* the first engine, which is not measured */
        for (int o = 0; o < OPERATIONS; o++) {
            struct attributes attributes = {.activation = ACTIVATION_NONE};
            const struct problem problem = convolution(&device, &attributes, operations[o], &large);
            char said[200] = "";
            const double apart = distance(&problem, said, sizeof said);
            CHECK(apart < (p == 0 ? gpu_tolerance(2e-6, 1e-4) : gpu_tolerance(1e-3, 4e-3)),
                  "%s: precision %d: %g apart: %s", op_name(operations[o]), p, apart, said);
            if (STANDIN && p == 1)
                CHECK(apart > 1e-5, "%s: tf32 is as good as fp32: %s", op_name(operations[o]), said);
        }
        device.backend->close(&device);
    }
}

/* Of the engines that are measured, the stand-in's fastest is wrong in bf16 and has no note that says so; and
 * one whose bits differ from run to run takes part. */
static void check_contest(const struct image_case *c) {
    for (int p = PRECISION_FP32; p <= PRECISION_TF32; p++) {
        const struct device device = open_gpu((enum precision)p);
        for (int o = 0; o < OPERATIONS; o++) {
            struct attributes attributes = {.activation = ACTIVATION_RELU};
            const struct problem problem = convolution(&device, &attributes, operations[o], c);
            char said[200] = "";
            const double apart = distance(&problem, said, sizeof said);
            CHECK(apart < (p == PRECISION_BF16 ? 1e-2 : gpu_tolerance(1e-3, 4e-3)),
                  "%s: precision %d: %g apart: %s", op_name(operations[o]), p, apart, said);
            const bool forward = operations[o] == OP_conv2d || operations[o] == OP_conv2d_bias;
            if (STANDIN && forward)
                CHECK((strstr(said, ", 1 wrong") != NULL) == (p == PRECISION_BF16), "%s: precision %d: '%s'",
                      op_name(operations[o]), p, said);
        }
        device.backend->close(&device);
    }
}

/* One instance runs wherever its operands are: here x is somewhere else the second time. */
static void check_addresses(void) {
    static float out[2][1 << 12];
    const struct device device = open_gpu(PRECISION_FP32);
    struct attributes attributes = {0};
    const struct problem problem = convolution(&device, &attributes, OP_conv2d, &large);
    struct host_operands h;
    struct gpu_run run;
    struct error error = {0};
    bool whole;
    make_operands(&h, &problem, false, false);
    int code = open_gpu_run(&run, &problem, &h, &error);
    for (int i = 0; code == OK && i < 2; i++) {
        const struct call call = gpu_call(&run);
        void *const x = run.input[0];
        const size_t bytes = h.count[0] * sizeof(float);
        code = run.kernel->run(&call, &error);
        if (code == OK) code = read_gpu(&run, out[i], &whole, &error);
        if (code != OK || i == 1) break;
        code = device.backend->allocate(&device, &run.input[0], bytes, "operand", &error);
        if (code == OK) code = device.backend->copy(&device, run.input[0], h.typed[0], bytes, &error);
        device.backend->release(&device, x);
    }
    CHECK(code == OK, "%s", error.words);
    CHECK(memcmp(out[0], out[1], h.outputs * sizeof(float)) == 0, "other bits where x is somewhere else");
    close_gpu_run(&run);
    free_operands(&h);
    device.backend->close(&device);
}

static void check_declines(void) {
    struct attributes attributes = {0};
    const struct device device = open_gpu(PRECISION_FP32);
    struct problem problem = convolution(&device, &attributes, OP_conv2d, &cases[3]);
    problem.input[1].type = TYPE_INT;
    check_gpu_declines(&problem, "an int32 kernel");
    problem = convolution(&device, &attributes, OP_conv2d_grad_kernel, &cases[3]);
    problem.input[0].type = TYPE_BF16;
    check_gpu_declines(&problem, "bf16 in fp32");
    problem = convolution(&device, &attributes, OP_conv2d, &cases[3]);
    problem.input[0].shape.dims[0] = problem.output.shape.dims[0] = 0;
    check_gpu_declines(&problem, "no images");
    problem = convolution(&device, &attributes, OP_conv2d_bias, &cases[3]);
    problem.input[2].type = TYPE_BF16;
    check_gpu_declines(&problem, "a bias in bf16");
    device.backend->close(&device);
}

/* Of cuDNN's in one precision, of products in the other one. */
static void check_failing_calls(void) {
    const enum precision precisions[] = {PRECISION_FP32, PRECISION_BF16};
    const int numbers[] = {MANY_CHANNELS, SMALL};
    for (int p = 0; p < 2; p++)
        for (int o = 0; o < OPERATIONS; o++) {
            struct device device = gpu_of(precisions[p]);
            device.deterministic = true; /* or thousands of calls would be made */
            struct attributes attributes = {.activation = o == 1 ? ACTIVATION_RELU : ACTIVATION_NONE};
            const struct problem problem =
                convolution(&device, &attributes, operations[o], &cases[numbers[p]]);
            check_gpu_failures(&problem, 1e-2);
        }
}

int main(void) {
    gpu_or_skip();
    for (int p = PRECISION_FP32; p <= PRECISION_TF32; p++) {
        struct device device = open_gpu((enum precision)p);
        device.deterministic = true; /* so that the bits are the same in every run */
        for (int c = 0; c < CASES; c += step_of_cases(c)) check_case(&device, &cases[c]);
        check_products(&device);
        device.backend->close(&device);
        for (int o = 0; o < OPERATIONS; o++)
            CHECK(taken[p][operations[o]] >= (step_of_cases(FEW) == 1 ? CASES : FEW), "precision %d: %s: %d",
                  p, op_name(operations[o]), taken[p][operations[o]]);
    }
    check_choices();
    check_budget();
    check_rounding();
    check_contest(&large);
    if (STANDIN) check_contest(&cases[PARTS]); /* a GPU measures hundreds of candidates */
    check_addresses();
    check_declines();
    check_failing_calls();
    return check_end();
}
