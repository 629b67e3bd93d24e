/* Every kernel that is tried before the reference kernel, against the reference kernel: exactly on operands
 * whose products and sums are whole numbers, to 1e-5 on others; and the same bits at every address and from
 * every thread. */
#include "../../src/device/device.h"

#include <math.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/base/rng.h"
#if TRAINER_ONEDNN
#    include "../../src/cpu/onednn.h"
#endif
#include "../../src/graph/window.h"
#include "../check.h"

enum { GUARD = 32, THREADS = 2, RUNS = 20 };

/* Block of operands that a call works on: where the operands and the result begin, with guards around the
 * result. */
struct operands {
    void *block;
    float *input[3], *output;
    size_t floats[3], output_floats;
};

static void close_operands(struct operands *o) {
    memory_free(o->block);
    *o = (struct operands){0};
}

/* Each operand begins `shift` floats after a cache line. */
static bool open_operands(struct operands *o, const struct problem *problem, size_t shift) {
    struct error error = {0};
    size_t all = 0, begin[4];
    for (int i = 0; i <= problem->inputs; i++) {
        const struct shape *shape = i < problem->inputs ? &problem->input[i].shape : &problem->output.shape;
        const size_t floats = shape_count(shape);
        begin[i] = all + GUARD + shift;
        all += (floats + 2 * GUARD + shift + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
        *(i < problem->inputs ? &o->floats[i] : &o->output_floats) = floats;
    }
    const int code = memory_zeroed(&o->block, all, sizeof(float), "operands", &error);
    CHECK(code == OK, "%s", error.words);
    if (code) return false;
    for (int i = 0; i <= problem->inputs; i++)
        *(i < problem->inputs ? &o->input[i] : &o->output) = (float *)o->block + begin[i];
    return true;
}

/* Marks the result as not yet computed, and the guards around it. */
static void clear(const struct operands *o) {
    for (size_t k = 0; k < o->output_floats + 2 * GUARD; k++) o->output[(ptrdiff_t)k - GUARD] = -77.0f;
}

/* Whole numbers -3..3, or numbers in [-1/4, 1/4), so that activations are not saturated; the same at every
 * address. */
static void fill(const struct operands *o, int inputs, bool whole) {
    for (int i = 0; i < inputs; i++) {
        for (size_t k = 0; k < o->floats[i]; k++) {
            const struct rng_block block = rng_philox(5, (uint64_t)i, k);
            o->input[i][k] =
                whole ? (float)((int)(block.word[0] % 7) - 3) : 0.5f * rng_unit(block.word[0]) - 0.25f;
        }
    }
    clear(o);
}

static bool guards_whole(const struct operands *o) {
    for (ptrdiff_t k = 1; k <= GUARD; k++)
        if (o->output[-k] != -77.0f || o->output[(ptrdiff_t)o->output_floats - 1 + k] != -77.0f) return false;
    return true;
}

/* A kernel that has taken a problem, and how to run it. */
struct taken {
    const struct kernel *kernel;
    const struct problem *problem;
    void *plan;
};

static int run_bound(const struct taken *taken, void *instance, const struct operands *o,
                     struct error *error) {
    struct call call = {
        .problem = taken->problem, .plan = taken->plan, .instance = instance, .output = o->output};
    for (int i = 0; i < taken->problem->inputs; i++) call.input[i] = o->input[i];
    return taken->kernel->run(&call, error);
}

static void run_once(const struct taken *taken, const struct operands *o) {
    struct error error = {0};
    void *instance = NULL;
    int code = taken->kernel->bind ? taken->kernel->bind(taken->problem, taken->plan, &instance, &error) : OK;
    if (code == OK) code = run_bound(taken, instance, o, &error);
    CHECK(code == OK, "%s: %s", taken->kernel->name, error.words);
    if (taken->kernel->unbind) taken->kernel->unbind(instance);
}

static const char *task_text(const struct problem *problem, char *out, size_t bytes) {
    char a[60], b[60];
    snprintf(out, bytes, "%s %s%s x %s%s, activation %d, %d threads", op_name(problem->op),
             shape_text(&problem->input[0].shape, a, sizeof a), problem->attributes->transpose_a ? "^T" : "",
             shape_text(&problem->input[1].shape, b, sizeof b), problem->attributes->transpose_b ? "^T" : "",
             (int)problem->attributes->activation, problem->device->threads);
    return out;
}

/* The largest difference as a share of the largest result. */
static double difference(const float *a, const float *b, size_t floats) {
    double largest = 1e-30, apart = 0.0;
    for (size_t i = 0; i < floats; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i])) return INFINITY;
        largest = fmax(largest, fabs((double)b[i]));
        apart = fmax(apart, fabs((double)a[i] - (double)b[i]));
    }
    return apart / largest;
}

static void check_values(const struct taken *taken, const struct kernel *reference, bool whole) {
    char text[200];
    struct operands ours = {0}, theirs = {0};
    const enum activation activation = taken->problem->attributes->activation;
    const bool exact = whole && (activation == ACTIVATION_NONE || activation == ACTIVATION_RELU);
    if (open_operands(&ours, taken->problem, 0) && open_operands(&theirs, taken->problem, 0)) {
        fill(&ours, taken->problem->inputs, whole);
        fill(&theirs, taken->problem->inputs, whole);
        run_once(taken, &ours);
        run_once(&(struct taken){.kernel = reference, .problem = taken->problem}, &theirs);
        const double apart = difference(ours.output, theirs.output, ours.output_floats);
        CHECK(apart <= (exact ? 0.0 : 1e-5), "%s: %s: %g apart, whole numbers %d", taken->kernel->name,
              task_text(taken->problem, text, sizeof text), apart, whole);
        CHECK(guards_whole(&ours), "%s: %s: wrote outside", taken->kernel->name,
              task_text(taken->problem, text, sizeof text));
    }
    close_operands(&ours);
    close_operands(&theirs);
}

/* One thread that runs the shared plan again and again, at addresses of its own. */
struct runner {
    const struct taken *taken;
    const float *expected;
    struct operands operands;
    int wrong;
    struct error error;
};

static void run_often(void *argument) {
    struct runner *runner = argument;
    const struct taken *taken = runner->taken;
    taken->problem->device->backend->enter(taken->problem->device);
    const struct operands *o = &runner->operands;
    void *instance = NULL;
    if (taken->kernel->bind) taken->kernel->bind(taken->problem, taken->plan, &instance, &runner->error);
    fill(o, taken->problem->inputs, false);
    for (int run = 0; run < RUNS && runner->error.code == OK; run++) {
        clear(o);
        run_bound(taken, instance, o, &runner->error);
        runner->wrong += memcmp(o->output, runner->expected, o->output_floats * sizeof(float)) != 0;
        runner->wrong += !guards_whole(o);
    }
    if (taken->kernel->unbind) taken->kernel->unbind(instance);
}

/* The shared plan in several threads at once. */
static void check_threads(const struct taken *taken, const float *expected) {
    char text[200];
    struct error error = {0};
    struct world *world = NULL;
    struct world_thread *threads[THREADS] = {0};
    struct runner runners[THREADS] = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    for (int t = 0; world && t < THREADS; t++) {
        runners[t] = (struct runner){.taken = taken, .expected = expected};
        if (!open_operands(&runners[t].operands, taken->problem, (size_t)t * 5)) break;
        const int code = world_spawn(world, "runner", NULL, run_often, &runners[t], &threads[t], &error);
        CHECK(code == OK, "%s", error.words);
    }
    for (int t = 0; t < THREADS; t++) world_join(threads[t]);
    for (int t = 0; t < THREADS; t++) {
        CHECK(runners[t].wrong == 0 && runners[t].error.code == OK, "%s: %s: thread %d: %d wrong %s",
              taken->kernel->name, task_text(taken->problem, text, sizeof text), t, runners[t].wrong,
              runners[t].error.words);
        close_operands(&runners[t].operands);
    }
    world_close(world);
}

/* The bits of a result depend on nothing but the operands: not on addresses, not on who else computes. */
static void check_bits(const struct taken *taken) {
    static const size_t shifts[] = {0, 1, 3, 4, 8, 15, 16, 29};
    char text[200];
    struct operands first = {0};
    if (!open_operands(&first, taken->problem, 0)) return;
    fill(&first, taken->problem->inputs, false);
    run_once(taken, &first);
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        struct operands moved = {0};
        if (open_operands(&moved, taken->problem, shifts[i])) {
            fill(&moved, taken->problem->inputs, false);
            run_once(taken, &moved);
            CHECK(memcmp(moved.output, first.output, first.output_floats * sizeof(float)) == 0,
                  "%s: %s: other bits %zu floats after a line", taken->kernel->name,
                  task_text(taken->problem, text, sizeof text), shifts[i]);
        }
        close_operands(&moved);
    }
    check_threads(taken, first.output);
    close_operands(&first);
}

static int checked[OPS]; /* problems that a kernel beside the reference took */

static void check_problem(const struct problem *problem, bool bits) {
    char text[200];
    const struct kernel *const *list = problem->device->backend->kernels(problem->device, problem->op);
    const struct kernel *reference = list[0];
    problem->device->backend->enter(problem->device);
    for (int i = 0; list[i]; i++) reference = list[i];
    for (; list[0] != reference; list++) {
        struct error error = {0};
        struct taken taken = {.kernel = list[0], .problem = problem};
        const int code = list[0]->prepare ? list[0]->prepare(problem, &taken.plan, &error) : OK;
        CHECK(code == OK, "%s: %s: %d %s", list[0]->name, task_text(problem, text, sizeof text), code,
              error.words);
        if (code) continue;
        checked[problem->op]++;
        check_values(&taken, reference, true);
        check_values(&taken, reference, false);
        if (bits) check_bits(&taken);
        if (list[0]->release) list[0]->release(taken.plan);
    }
}

static const struct device devices[] = {{.name = "cpu:0", .threads = 1}, {.name = "cpu:1", .threads = 2}};

/* Rows, inner length, columns: odd ones, ones, those of the small networks, more than a block each way. */
static const int sizes[][3] = {{1, 1, 1},      {1, 7, 3},      {3, 1, 5},       {2, 5, 1},
                               {17, 33, 9},    {1, 784, 10},   {32, 64, 10},    {16, 16, 16},
                               {100, 100, 10}, {100, 10, 100}, {100, 784, 100}, {130, 257, 65}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void check_matmul(const int *size, int transposed, int threads) {
    if (size[0] == 1 && size[2] == 1) return; /* see check_declines */
    struct device device = devices[threads - 1];
    device.backend = backends[0];
    const bool ta = transposed & 1, tb = transposed & 2;
    const struct attributes attributes = {.transpose_a = ta, .transpose_b = tb};
    const struct problem problem = {
        .op = OP_matmul,
        .attributes = &attributes,
        .inputs = 2,
        .input = {{.shape = ta ? SHAPE(size[1], size[0]) : SHAPE(size[0], size[1])},
                  {.shape = tb ? SHAPE(size[2], size[1]) : SHAPE(size[1], size[2])}},
        .output = {.shape = SHAPE(size[0], size[2])},
        .device = &device,
    };
    check_problem(&problem, true);
}

static void check_dense(const int *size, enum activation activation, int threads) {
    struct device device = devices[threads - 1];
    device.backend = backends[0];
    const struct attributes attributes = {.activation = activation};
    const struct problem problem = {
        .op = OP_dense,
        .attributes = &attributes,
        .inputs = 3,
        .input = {{.shape = SHAPE(size[0], size[1])},
                  {.shape = SHAPE(size[1], size[2])},
                  {.shape = SHAPE(size[2])}},
        .output = {.shape = SHAPE(size[0], size[2])},
        .device = &device,
    };
    check_problem(&problem, activation == ACTIVATION_SIGMOID);
}

/* x [batch, rows, columns, channels], kernel [rows, columns], channels out, groups (0: one), stride, padding:
 * odd ones, ones, those of the small networks and of AlexNet with few examples; some kernels are in oneDNN's
 * form already. */
static const struct {
    int in[4], kernel[4], stride;
    enum padding padding;
} convolutions[] = {
    {{1, 1, 1, 1}, {1, 1, 1}, 1, PADDING_VALID},      {{1, 3, 4, 2}, {5, 5, 3}, 1, PADDING_SAME},
    {{2, 7, 5, 3}, {3, 3, 5}, 1, PADDING_SAME},       {{2, 7, 6, 3}, {3, 2, 17}, 2, PADDING_SAME},
    {{2, 8, 6, 3}, {3, 3, 17}, 2, PADDING_VALID},     {{1, 6, 6, 16}, {1, 1, 32}, 3, PADDING_SAME},
    {{2, 28, 28, 1}, {3, 3, 32}, 1, PADDING_VALID},   {{4, 24, 24, 3}, {5, 5, 64}, 1, PADDING_SAME},
    {{4, 12, 12, 64}, {5, 5, 64}, 1, PADDING_SAME},   {{2, 8, 8, 32}, {3, 3, 96}, 2, PADDING_SAME},
    {{2, 8, 8, 32}, {3, 3, 32, 32}, 1, PADDING_SAME}, {{2, 9, 7, 64}, {3, 3, 64, 64}, 2, PADDING_SAME},
    {{2, 8, 8, 32}, {3, 3, 64, 2}, 1, PADDING_SAME},
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

static void check_convolution(int number, int threads) {
    struct device device = devices[threads - 1];
    device.backend = backends[0];
    const int *in = convolutions[number].in, *window = convolutions[number].kernel;
    struct attributes attributes = {.stride = {convolutions[number].stride, convolutions[number].stride},
                                    .padding = convolutions[number].padding};
    int out[2];
    for (int axis = 0; axis < 2; axis++)
        out[axis] = window_along(in[axis + 1], window[axis], attributes.stride[axis], attributes.padding).out;
    const struct shape x = SHAPE(in[0], in[1], in[2], in[3]);
    const struct shape kernel =
        SHAPE(window[0], window[1], in[3] / (window[3] > 0 ? window[3] : 1), window[2]);
    const struct shape y = SHAPE(in[0], out[0], out[1], window[2]);
    struct problem problem = {.op = OP_conv2d,
                              .attributes = &attributes,
                              .inputs = 2,
                              .input = {{.shape = x}, {.shape = kernel}},
                              .output = {.shape = y},
                              .device = &device};
    check_problem(&problem, true);
    problem.op = OP_conv2d_grad_x;
    problem.input[0].shape = kernel;
    problem.input[1].shape = y;
    problem.output.shape = x;
    check_problem(&problem, true);
    problem.op = OP_conv2d_grad_kernel;
    problem.input[0].shape = x;
    problem.output.shape = kernel;
    check_problem(&problem, true);
    problem.op = OP_conv2d_bias;
    problem.inputs = 3;
    problem.input[1].shape = kernel;
    problem.input[2].shape = SHAPE(window[2]);
    problem.output.shape = y;
    for (int a = ACTIVATION_NONE; a <= ACTIVATION_TANH; a++) {
        attributes.activation = (enum activation)a;
        check_problem(&problem, a == ACTIVATION_RELU);
    }
}

/* What a kernel cannot do, it declines without words. */
static void check_declined(const struct problem *problem, const char *why) {
    for (const struct kernel *const *list = backends[0]->kernels(problem->device, problem->op); list[1];
         list++) {
        struct error error = {0};
        void *plan = NULL;
        const int code = list[0]->prepare ? list[0]->prepare(problem, &plan, &error) : OK;
        CHECK(code == KERNEL_DECLINED && !plan && error.code == OK, "%s: %s: %d %s", list[0]->name, why, code,
              error.words);
        if (code == OK && list[0]->release) list[0]->release(plan);
    }
}

static void check_declines(void) {
    const struct device device = {.backend = backends[0], .name = "cpu:0", .threads = 1};
    struct attributes attributes = {.stride = {1, 1}};
    struct problem problem = {
        .op = OP_matmul,
        .attributes = &attributes,
        .inputs = 2,
        .input = {{.shape = SHAPE(4, 3), .type = TYPE_INT}, {.shape = SHAPE(3, 2), .type = TYPE_INT}},
        .output = {.shape = SHAPE(4, 2), .type = TYPE_INT},
        .device = &device,
    };
    check_declined(&problem, "int32");
    for (int i = 0; i < 2; i++) problem.input[i].type = TYPE_FLOAT;
    problem.output.type = TYPE_FLOAT;
    problem.input[0].shape.dims[0] = problem.output.shape.dims[0] = 0;
    check_declined(&problem, "no rows");
    problem.input[0].shape = SHAPE(4, 0);
    problem.input[1].shape = SHAPE(0, 2);
    problem.output.shape = SHAPE(4, 2);
    check_declined(&problem, "no columns to sum over");
    problem.input[0].shape = SHAPE(1, 5);
    problem.input[1].shape = SHAPE(5, 1);
    problem.output.shape = SHAPE(1, 1);
    check_declined(&problem, "a single dot product");
    problem.op = OP_conv2d;
    problem.input[0].shape = SHAPE(1, 4, 4, 2);
    problem.input[1].shape = SHAPE(3, 3, 2, 5);
    problem.output.shape = SHAPE(1, 2, 2, 5);
    problem.input[1].type = TYPE_INT;
    check_declined(&problem, "an int32 kernel");
}

#if TRAINER_ONEDNN
/* Which forms are the same memory as a product's 5x5 operands, one of them transposed: a wrong yes gives the
 * kernel numbers of other places, a wrong no costs a copy. */
static void check_places(void) {
    const struct onednn_form rows = {.rank = 2, .dims = {5, 5}, .strides = {5, 1}, .type = dnnl_f32};
    const struct onednn_form columns = {.rank = 2, .dims = {5, 5}, .strides = {1, 5}, .type = dnnl_f32};
    const struct onednn_form larger = {.rank = 2, .dims = {5, 6}, .strides = {6, 1}, .type = dnnl_f32};
    const struct onednn_form shorter = {.rank = 2, .dims = {5, 5}, .strides = {5, 1}, .type = dnnl_bf16};
    const struct onednn_operation product = {.kind = ONEDNN_MATMUL, .x = rows, .kernel = columns, .y = rows};
    dnnl_engine_t engine = NULL;
    dnnl_primitive_desc_t description = NULL;
    dnnl_status_t status = dnnl_engine_create(&engine, dnnl_cpu, 0);
    if (status == dnnl_success) status = onednn_describe_operation(&description, engine, &product);
    CHECK(status == dnnl_success, "status %d", (int)status);
    if (status == dnnl_success) {
        CHECK(onednn_same_places(description, DNNL_ARG_SRC, &rows), "x is not x");
        CHECK(onednn_same_places(description, DNNL_ARG_WEIGHTS, &columns), "a transposed kernel is not one");
        CHECK(!onednn_same_places(description, DNNL_ARG_SRC, &columns), "x taken for its transpose");
        CHECK(!onednn_same_places(description, DNNL_ARG_WEIGHTS, &rows),
              "the kernel taken for its transpose");
        CHECK(!onednn_same_places(description, DNNL_ARG_DST, &larger), "5x6 taken for 5x5");
        CHECK(!onednn_same_places(description, DNNL_ARG_DST, &shorter), "bf16 taken for float32");
        CHECK(onednn_argument_bytes(description, DNNL_ARG_DST) == 25 * sizeof(float), "y has %zu bytes",
              onednn_argument_bytes(description, DNNL_ARG_DST));
    }
    if (description) dnnl_primitive_desc_destroy(description);
    if (engine) dnnl_engine_destroy(engine);
}
#endif

int main(void) {
    for (int threads = 1; threads <= 2; threads++)
        for (int s = 0; s < SIZES; s++) {
            for (int transposed = 0; transposed < 4; transposed++)
                check_matmul(sizes[s], transposed, threads);
            for (int a = ACTIVATION_NONE; a <= ACTIVATION_TANH; a++)
                check_dense(sizes[s], (enum activation)a, threads);
        }
    for (int threads = 1; threads <= 2; threads++)
        for (int c = 0; c < CONVOLUTIONS; c++) check_convolution(c, threads);
    check_declines();
#if TRAINER_ONEDNN
    check_places();
#endif
    const struct device device = {.backend = backends[0], .threads = 1};
#if TRAINER_ONEDNN
    const enum op ours[] = {OP_matmul,      OP_dense,         OP_conv2d,
                            OP_conv2d_bias, OP_conv2d_grad_x, OP_conv2d_grad_kernel};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        CHECK(checked[ours[i]] > 0, "%s: oneDNN does not compute it", op_name(ours[i]));
#endif
    for (int op = 0; op < OPS; op++) {
        const struct kernel *const *list = backends[0]->kernels(&device, (enum op)op);
        CHECK(!list[0] || !list[1] || checked[op] > 0, "%s: no kernel was compared", op_name((enum op)op));
    }
    return check_end();
}
