/* bf16: rounding; every kernel that reads or writes it against the same kernel's float32, exactly, on whole
 * numbers; what a lowered program keeps in it; and how far alexnet's first gradient is from float32's. */
#include "../../src/cpu/bf16.h"
#include "../../src/graph/model.h"
#include "../../src/graph/window.h"
#include "../../src/program/passes.h"
#include "../naive.h"

static struct device wide = {.name = "cpu:0", .threads = 1},
                     narrow = {.name = "cpu:0", .threads = 1, .precision = PRECISION_BF16};

static void test_rounding(void) {
    const struct {
        float value, rounded;
    } known[] = {{1.0f, 1.0f},
                 {-3.140625f, -3.140625f},
                 {1.00390625f, 1.0f},      /* half way: to the even one below */
                 {1.01171875f, 1.015625f}, /* half way: to the even one above */
                 {1.004f, 1.0078125f},
                 {-1.004f, -1.0078125f},
                 {3.4e38f, INFINITY},
                 {INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        CHECK(bf16_float(bf16_nearest(known[i].value)) == known[i].rounded, "%.9g is rounded to %.9g",
              (double)known[i].value, (double)bf16_float(bf16_nearest(known[i].value)));
    CHECK(isnan(bf16_float(bf16_nearest(NAN))), "not a number is lost");
    uint32_t bits = 0x7F800001u; /* whose upper half alone would be infinity */
    float quiet;
    memcpy(&quiet, &bits, sizeof quiet);
    CHECK(isnan(bf16_float(bf16_nearest(quiet))), "not a number of small bits is lost");
}

/* --- kernel by kernel --- */

enum { OPERANDS = 5, FLOATS = 40000 };
static float values[OPERANDS][FLOATS], results[2][FLOATS];
static bf16 halves[OPERANDS][FLOATS], half_result[FLOATS];

/* The first of the kernels that takes the problem; NULL: of the device's. */
static int run_kernel(struct problem *problem, const struct device *device,
                      const struct kernel *const *kernels, void *const *operands, void *result) {
    struct error error = {0};
    int code = KERNEL_DECLINED;
    problem->device = device;
    for (const struct kernel *const *kernel = kernels ? kernels
                                                      : device->backend->kernels(device, problem->op);
         *kernel; kernel++) {
        void *plan = NULL, *instance = NULL;
        code = (*kernel)->prepare ? (*kernel)->prepare(problem, &plan, &error) : OK;
        if (code == KERNEL_DECLINED) continue;
        if (code == OK && (*kernel)->bind) code = (*kernel)->bind(problem, plan, &instance, &error);
        struct call call = {.problem = problem, .plan = plan, .instance = instance, .output = result};
        for (int i = 0; i < problem->inputs; i++) call.input[i] = operands[i];
        if (code == OK) code = (*kernel)->run(&call, &error);
        if ((*kernel)->unbind) (*kernel)->unbind(instance);
        if ((*kernel)->release) (*kernel)->release(plan);
        break;
    }
    CHECK(code == OK || code == KERNEL_DECLINED, "%s: %s", op_name(problem->op), error.words);
    return code;
}

static int run_problem(struct problem *problem, const struct device *device, void *const *operands,
                       void *result) {
    return run_kernel(problem, device, NULL, operands, result);
}

static int taken[OPS];

/* What float32 gives, rounded once. Of the coarse roots of a normalisation there may be more to round. */
static bool is_right(enum op op, float found, float want, bool half) {
    if (half && (op == OP_lrn || op == OP_lrn_grad)) {
        int exponent;
        frexpf(want, &exponent);
        return fabsf(found - want) <= ldexpf(1.0f, exponent - 9) + 4e-5f;
    }
    return found == (half ? bf16_float(bf16_nearest(want)) : want);
}

/* The problem, whose operands are in `values` and `halves`, by these kernels, with each operand and the
 * result either way; results[0] is what is expected. Returns how many of these they took. */
static int check_types(struct problem problem, const struct kernel *const *kernels) {
    void *operands[OPERANDS];
    const size_t floats = shape_count(&problem.output.shape);
    int took = 0;
    for (int types = 1; types < 1 << (problem.inputs + 1); types++) {
        for (int i = 0; i < problem.inputs; i++) {
            const bool half = types >> i & 1;
            problem.input[i].type = half ? TYPE_BF16 : TYPE_FLOAT;
            operands[i] = half ? (void *)halves[i] : (void *)values[i];
        }
        const bool half = types >> problem.inputs;
        problem.output.type = half ? TYPE_BF16 : TYPE_FLOAT;
        if (run_kernel(&problem, &narrow, kernels, operands,
                       half ? (void *)half_result : (void *)results[1]) != OK)
            continue;
        took++;
        size_t wrong = 0, first = 0;
        for (size_t k = 0; k < floats; k++) {
            const float found = half ? bf16_float(half_result[k]) : results[1][k];
            if (!is_right(problem.op, found, results[0][k], half) && wrong++ == 0) first = k;
        }
        CHECK(wrong == 0, "%s, types %d: %zu of %zu are wrong; element %zu: %g, expected %g",
              op_name(problem.op), types, wrong, floats, first,
              (double)(half ? bf16_float(half_result[first]) : results[1][first]), (double)results[0][first]);
    }
    return took;
}

/* What is only for some processors is tried on all; how many types of gradients of kernels it took. */
static int unfolded_taken;
static void check_unfolded(const struct problem *problem) {
    (void)problem;
#if TRAINER_ONEDNN
    extern const struct kernel onednn_unfolded, onednn_conv2d_grad_kernel;
    static const struct kernel *const unfolded[] = {&onednn_unfolded, NULL}, *const folded[] = {
                                                                                 &onednn_conv2d_grad_kernel,
                                                                                 NULL};
    unfolded_taken += check_types(*problem, unfolded);
    CHECK(check_types(*problem, folded) > 0, "oneDNN's gradient of a kernel takes no images of bf16");
#endif
}

/* The problem in float32, and in bf16 by the device's kernels. `whole`: small whole numbers. */
static void check_problem(struct problem problem, bool whole) {
    void *operands[OPERANDS];
    for (int i = 0; i < problem.inputs; i++) {
        problem.input[i].type = TYPE_FLOAT;
        operands[i] = values[i];
        for (size_t k = 0; k < shape_count(&problem.input[i].shape); k++) {
            const uint32_t word = rng_philox(7, (uint64_t)i, k).word[0];
            halves[i][k] = bf16_nearest(whole ? (float)((int)(word % 5) - 2) : 2.0f * rng_unit(word) - 1.0f);
            values[i][k] = bf16_float(halves[i][k]);
        }
    }
    problem.output.type = TYPE_FLOAT;
    if (run_problem(&problem, &wide, operands, results[0]) != OK) return;
    taken[problem.op] += check_types(problem, NULL);
    if (problem.op == OP_conv2d_grad_kernel) check_unfolded(&problem);
}

static void check_convolutions(int batch, int side, int in, int window, int out, int stride,
                               enum padding padding) {
    struct attributes attributes = {.stride = {stride, stride},
                                    .padding = padding,
                                    .activation = ACTIVATION_RELU,
                                    .pool = {.window = {3, 3}, .stride = {2, 2}, .padding = PADDING_SAME}};
    const int to = window_along(side, window, stride, padding).out;
    const int pooled = window_along(to, 3, 2, PADDING_SAME).out;
    const struct shape x = SHAPE(batch, side, side, in), kernel = SHAPE(window, window, in, out),
                       y = SHAPE(batch, to, to, out);
    check_problem((struct problem){.op = OP_conv2d_bias,
                                   .attributes = &attributes,
                                   .inputs = 3,
                                   .input = {{.shape = x}, {.shape = kernel}, {.shape = SHAPE(out)}},
                                   .output = {.shape = y}},
                  true);
    check_problem(
        (struct problem){.op = OP_conv2d_pool_grad_kernel,
                         .attributes = &attributes,
                         .inputs = 3,
                         .input = {{.shape = x}, {.shape = y}, {.shape = SHAPE(batch, pooled, pooled, out)}},
                         .output = {.shape = kernel}},
        true);
    attributes.activation = ACTIVATION_NONE;
    check_problem((struct problem){.op = OP_conv2d,
                                   .attributes = &attributes,
                                   .inputs = 2,
                                   .input = {{.shape = x}, {.shape = kernel}},
                                   .output = {.shape = y}},
                  true);
    check_problem((struct problem){.op = OP_conv2d_grad_x,
                                   .attributes = &attributes,
                                   .inputs = 2,
                                   .input = {{.shape = kernel}, {.shape = y}},
                                   .output = {.shape = x}},
                  true);
    check_problem((struct problem){.op = OP_conv2d_grad_kernel,
                                   .attributes = &attributes,
                                   .inputs = 2,
                                   .input = {{.shape = x}, {.shape = y}},
                                   .output = {.shape = kernel}},
                  true);
}

static void check_matrices(int m, int inner, int n) {
    for (int transposed = 0; transposed < 4; transposed++) {
        const struct attributes attributes = {.transpose_a = transposed & 1, .transpose_b = transposed & 2};
        check_problem(
            (struct problem){.op = OP_matmul,
                             .attributes = &attributes,
                             .inputs = 2,
                             .input = {{.shape = transposed & 1 ? SHAPE(inner, m) : SHAPE(m, inner)},
                                       {.shape = transposed & 2 ? SHAPE(n, inner) : SHAPE(inner, n)}},
                             .output = {.shape = SHAPE(m, n)}},
            true);
    }
    const struct attributes attributes = {.activation = ACTIVATION_RELU};
    check_problem(
        (struct problem){
            .op = OP_dense,
            .attributes = &attributes,
            .inputs = 3,
            .input = {{.shape = SHAPE(m, inner)}, {.shape = SHAPE(inner, n)}, {.shape = SHAPE(n)}},
            .output = {.shape = SHAPE(m, n)}},
        true);
}

static void check_rest(int batch, int side, int channels) {
    const struct attributes attributes = {.window = {3, 3},
                                          .stride = {2, 2},
                                          .padding = PADDING_SAME,
                                          .axis = 0,
                                          .lrn = {4, 1.0f, 0.1f, 0.75f}};
    const int to = window_along(side, 3, 2, PADDING_SAME).out;
    const struct shape x = SHAPE(batch, side, side, channels), y = SHAPE(batch, to, to, channels);
    const struct shape rows = SHAPE(batch * side * side, channels);
    struct problem problem = {.op = OP_maxpool,
                              .attributes = &attributes,
                              .inputs = 1,
                              .input = {{.shape = x}},
                              .output = {.shape = y}};
    check_problem(problem, false);
    problem.op = OP_lrn;
    problem.output.shape = x;
    check_problem(problem, false);
    problem.inputs = 2;
    problem.input[1].shape = x;
    problem.op = OP_lrn_grad;
    check_problem(problem, false);
    problem.op = OP_relu_grad;
    check_problem(problem, false);
    problem.op = OP_maxpool_grad;
    problem.input[1].shape = y;
    check_problem(problem, true);
    problem.op = OP_reduce_sum;
    problem.inputs = 1;
    problem.input[0].shape = rows;
    problem.output.shape = SHAPE(channels);
    if (batch * side > 0) check_problem(problem, true);
}

/* An example that overflows spoils no other one. */
static void check_overflow(void) {
    enum { ROWS = 3 };
    const struct attributes attributes = {.lrn = {4, 1.0f, 0.3f, 0.75f}};
    const struct shape rows = SHAPE(ROWS, 1);
    struct problem problem = {.op = OP_lrn_grad, .attributes = &attributes, .inputs = 2};
    void *operands[] = {halves[0], halves[1]};
    problem.input[0].shape = problem.input[1].shape = problem.output.shape = rows;
    problem.input[0].type = problem.input[1].type = problem.output.type = TYPE_BF16;
    for (int i = 0; i < ROWS; i++) {
        halves[0][i] = bf16_nearest(i == 1 ? INFINITY : 1.0f);
        halves[1][i] = bf16_nearest(1.0f);
    }
    CHECK(run_problem(&problem, &narrow, operands, half_result) == OK, "no gradient of a normalisation");
    CHECK(isfinite(bf16_float(half_result[0])) && bf16_float(half_result[0]) > 0.0f &&
              half_result[0] == half_result[2],
          "beside an infinite example: %g and %g", (double)bf16_float(half_result[0]),
          (double)bf16_float(half_result[2]));
}

static void check_norms(int batch, int side, int channels) {
    const struct attributes attributes = {.epsilon = 2.0f}; /* the made-up variance is down to -1 */
    const struct shape x = SHAPE(batch, side, side, channels), pair = SHAPE(2, channels),
                       row = SHAPE(channels);
    check_problem((struct problem){.op = OP_moments,
                                   .attributes = &attributes,
                                   .inputs = 1,
                                   .input = {{.shape = x}},
                                   .output = {.shape = pair}},
                  false);
    check_problem((struct problem){.op = OP_batch_norm,
                                   .attributes = &attributes,
                                   .inputs = 4,
                                   .input = {{.shape = x}, {.shape = pair}, {.shape = row}, {.shape = row}},
                                   .output = {.shape = x}},
                  false);
    check_problem((struct problem){.op = OP_batch_norm_sums,
                                   .attributes = &attributes,
                                   .inputs = 3,
                                   .input = {{.shape = x}, {.shape = pair}, {.shape = x}},
                                   .output = {.shape = pair}},
                  false);
    check_problem(
        (struct problem){
            .op = OP_batch_norm_grad,
            .attributes = &attributes,
            .inputs = 5,
            .input = {{.shape = x}, {.shape = pair}, {.shape = row}, {.shape = pair}, {.shape = x}},
            .output = {.shape = x}},
        false);
}

/* GELU by polynomials, of all types, against the plain kernel in float32: as near as they promise over the
 * whole range, and what is not a number stays so. */
static void check_gelu(void) {
    enum { STEPS = 5000 };
    const struct attributes none = {0};
    const float ends[] = {-INFINITY, INFINITY, NAN, -3e38f, 3e38f, 0.0f};
    for (int gradient = 0; gradient < 2; gradient++) {
        struct problem problem = {.op = gradient ? OP_gelu_grad : OP_gelu,
                                  .attributes = &none,
                                  .inputs = 1 + gradient,
                                  .input = {{.shape = SHAPE(STEPS)}, {.shape = SHAPE(STEPS)}},
                                  .output = {.shape = SHAPE(STEPS)}};
        for (int types = 0; types < 1 << (problem.inputs + 1); types++) {
            void *operands[2] = {values[0], values[1]};
            for (int i = 0; i < STEPS; i++) {
                halves[0][i] = bf16_nearest(-12.0f + 24.0f * (float)i / STEPS);
                halves[1][i] = bf16_nearest(1.0f + (float)(i % 7));
                for (int k = 0; k < 2; k++) values[k][i] = bf16_float(halves[k][i]);
            }
            for (int k = 0; k < problem.inputs; k++) problem.input[k].type = TYPE_FLOAT;
            problem.output.type = TYPE_FLOAT;
            CHECK(run_problem(&problem, &wide, operands, results[0]) == OK, "no float32");
            for (int k = 0; k < problem.inputs; k++)
                if (types >> k & 1) {
                    problem.input[k].type = TYPE_BF16;
                    operands[k] = halves[k];
                }
            const bool half = types >> problem.inputs;
            problem.output.type = half ? TYPE_BF16 : TYPE_FLOAT;
            CHECK(run_problem(&problem, &narrow, operands, half ? (void *)half_result : (void *)results[1]) ==
                      OK,
                  "types %d are declined", types);
            taken[problem.op]++;
            for (int i = 0; i < STEPS; i++) {
                const double want = (double)results[0][i],
                             found = half ? (double)bf16_float(half_result[i]) : (double)results[1][i];
                CHECK(fabs(found - want) <= (gradient ? 1.1e-4 * 7 : 6e-5) + (half ? fabs(want) / 256 : 0),
                      "%s of %g, types %d: %.9g, expected %.9g", op_name(problem.op), (double)values[0][i],
                      types, found, want);
            }
        }
    }
    struct problem problem = {.op = OP_gelu,
                              .attributes = &none,
                              .inputs = 1,
                              .input = {{.shape = SHAPE(6)}},
                              .output = {.shape = SHAPE(6)}};
    memcpy(values[0], ends, sizeof ends);
    run_problem(&problem, &narrow, (void *[]){values[0]}, results[1]);
    CHECK(isnan(results[1][2]) && isinf(results[1][1]) && results[1][4] > 2e38f && results[1][5] == 0.0f,
          "gelu at the ends: %g %g %g %g", (double)results[1][1], (double)results[1][2],
          (double)results[1][4], (double)results[1][5]);
}

/* --- a program --- */

enum { BATCH = 128, CLASSES = 10, MOST_FETCHES = 16 };

struct trained {
    struct graph g;
    struct session s;
    node x, labels, loss, fetches[MOST_FETCHES];
    int count;
};

static void open_trained(struct trained *t, const char *model, struct shape input,
                         const struct device *device) {
    node variables[MOST_FETCHES];
    static struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &model_kind, model, &error) == OK, "%s", error.words);
    graph_open(&t->g, true, 1);
    t->x = graph_placeholder(&t->g, "x", TYPE_FLOAT, input);
    t->labels = graph_placeholder(&t->g, "labels", TYPE_INT, SHAPE(BATCH));
    const node logits =
        ((const struct model *)choice.plugin)->build(&t->g, t->x, CLASSES, choice_settings(&choice));
    t->loss =
        graph_reduce_mean(&t->g, graph_softmax_cross_entropy(&t->g, logits, t->labels), ALL_AXES, false);
    int ranges = 0;
    for (node n = 0; n < t->g.count; n++)
        if (t->g.nodes[n].op == OP_variable && ranges < MOST_FETCHES - 1) variables[ranges++] = n;
    t->fetches[0] = t->loss;
    graph_gradients(&t->g, t->loss, variables, ranges, t->fetches + 1);
    t->count = ranges + 1;
    session_open_on(&t->s, &t->g, t->fetches, t->count, device);
}

static void close_trained(struct trained *t) {
    session_close(&t->s);
    graph_close(&t->g);
}

/* How many values of an operation are kept in bf16, and how many not. */
static void count_types(const struct trained *t, enum op op, int *half, int *whole_type) {
    *half = *whole_type = 0;
    for (int s = 0; s < t->s.program->instruction_count; s++) {
        const struct instruction *instruction = &t->s.program->instructions[s];
        if (instruction->problem.op != op) continue;
        *(instruction->problem.output.type == TYPE_BF16 ? half : whole_type) += 1;
    }
}

/* Weights, sums, losses and gradients of ranges are float32; what goes from layer to layer is not. */
static void check_lowered(const struct trained *t) {
    const struct program *program = t->s.program;
    int half = 0, whole_type = 0;
    for (int s = 0; s < program->instruction_count; s++) {
        const struct instruction *instruction = &program->instructions[s];
        const struct value *value = &program->values[instruction->n];
        if (value->fetched || value->info.gradient_of >= 0 || instruction->problem.output.shape.rank < 2)
            CHECK(instruction->problem.output.type != TYPE_BF16, "node %d (%s) is bf16", instruction->n,
                  op_name(instruction->problem.op));
    }
    const struct {
        enum op op;
        int half, whole;
    } known[] = {{OP_conv2d_bias, 2, 0},   {OP_maxpool, 2, 0},
                 {OP_lrn, 2, 0},           {OP_dense, 2, 1},
                 {OP_lrn_grad, 2, 0},      {OP_maxpool_grad, 1, 0},
                 {OP_conv2d_grad_x, 1, 0}, {OP_conv2d_grad_kernel, 0, 1},
                 {OP_matmul, 3, 3}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        count_types(t, known[i].op, &half, &whole_type);
        CHECK(half == known[i].half && whole_type == known[i].whole,
              "%s: %d in bf16, %d not; expected %d and %d", op_name(known[i].op), half, whole_type,
              known[i].half, known[i].whole);
    }
}

/* The first gradient with bf16 is near that with float32, and not the same; and the same again. On noise as
 * images examples cancel each other, so small networks, whose gradient is not mostly that of the last layer,
 * differ more. */
static void check_gradient(const char *model, struct shape input, double most) {
    struct trained plain, lowered, again;
    static float x[BATCH * 24 * 24 * 3];
    int labels[BATCH];
    input.dims[0] = BATCH;
    fill_between(x, shape_count(&input), 3, -1.7f, 1.7f);
    for (int i = 0; i < BATCH; i++) labels[i] = (i * i + 3) % CLASSES;
    struct trained *all[] = {&plain, &lowered, &again};
    for (int i = 0; i < 3; i++) {
        open_trained(all[i], model, input, i == 0 ? &wide : &narrow);
        session_feed(&all[i]->s, all[i]->x, x);
        session_feed(&all[i]->s, all[i]->labels, labels);
        session_run(&all[i]->s);
    }
    if (strcmp(model, "alexnet") == 0 && lowered.s.error.code == OK) check_lowered(&lowered);
    const struct layout *layout = &plain.g.layout;
    double squares = 0, apart = 0;
    for (int r = 0; r < layout->count; r++)
        for (size_t i = layout->ranges[r].begin; i < layout->ranges[r].begin + layout->ranges[r].floats;
             i++) {
            const double a = plain.s.gradients[i], b = lowered.s.gradients[i];
            squares += a * a;
            apart += (a - b) * (a - b);
        }
    const double share = sqrt(apart / squares);
    CHECK(share > 1e-6 && share < most, "%s: the first gradients are %g apart, expected less than %g, not 0",
          model, share, most);
    CHECK(memcmp(lowered.s.gradients, again.s.gradients, layout->floats * sizeof(float)) == 0,
          "%s: other bits the second time", model);
    for (int i = 2; i >= 0; i--) close_trained(all[i]);
}

/* Pooling of the input itself, which is float32, has no kernel that gives bf16; and a fetched value is
 * float32, too: the rest of the program is not. */
static void test_widened(void) {
    struct graph g;
    struct session s;
    const struct initial random = {INITIAL_NORMAL, 0.2f, NULL}, zero = {0};
    static float image[2 * 12 * 12 * 16];
    fill_between(image, sizeof image / sizeof *image, 4, -1, 1);
    graph_open(&g, false, 1);
    const node x = graph_placeholder(&g, "x", TYPE_FLOAT, SHAPE(2, 12, 12, 16));
    const node pooled = graph_maxpool(&g, x, 2, 2, PADDING_SAME);
    const node first = graph_relu(&g, graph_conv(&g, pooled, 32, 3, 1, PADDING_SAME, random, zero));
    const node second = graph_relu(&g, graph_conv(&g, first, 16, 3, 1, PADDING_SAME, random, zero));
    const node third = graph_maxpool(&g, second, 2, 2, PADDING_SAME);
    const node y = graph_dense(&g, graph_flatten(&g, third), 10, random, zero);
    session_open_on(&s, &g, (node[]){first, y}, 2, &narrow);
    session_feed(&s, x, image);
    session_run(&s);
    const enum type types[] = {TYPE_FLOAT, TYPE_FLOAT, TYPE_BF16, TYPE_BF16, TYPE_FLOAT};
    const node nodes[] = {pooled, first, second, third, y};
    for (int i = 0; i < 5 && s.error.code == OK; i++)
        CHECK(s.program->values[nodes[i]].info.type == types[i], "value %d is %s", i,
              type_name(s.program->values[nodes[i]].info.type));
    for (size_t i = 0; i < 2 * 6 * 6 * 32; i++)
        CHECK(session_float(&s, first, i) >= 0.0f && session_float(&s, first, i) < 100.0f, "element %zu: %g",
              i, (double)session_float(&s, first, i));
    session_close(&s);
    graph_close(&g);
}

int main(void) {
    test_rounding();
    wide.backend = narrow.backend = backends[0];
    struct error error = {0};
    struct device *devices = NULL;
    int count = 0;
    bool shared = false;
    const struct device_settings settings = {.threads = 1, .precision = PRECISION_BF16};
    if (devices_open("cpu:0", &settings, &devices, &count, &shared, &error) != OK) {
        CHECK(error.code == ERROR_DEVICE && strstr(error.words, "cpu:0: no bf16 without "), "%d %s",
              error.code, error.words);
        const int code = check_end();
        printf("no bf16 here\n");
        return code == 0 ? 77 : code; /* skipped */
    }
    devices_close(devices, count);
    narrow.backend->enter(&narrow);
    check_convolutions(1, 5, 1, 3, 2, 1, PADDING_SAME);
    check_convolutions(2, 8, 3, 5, 64, 1, PADDING_SAME);
    check_convolutions(2, 7, 16, 3, 32, 2, PADDING_VALID);
    check_convolutions(2, 6, 17, 3, 19, 1, PADDING_SAME);
    CHECK(unfolded_taken == 0, "unfolded images of few channels");
    check_convolutions(11, 7, 40, 5, 32, 1, PADDING_SAME); /* in parts that begin within an image */
    check_convolutions(2, 13, 32, 3, 35, 2, PADDING_VALID);
    check_convolutions(3, 7, 40, 3, 32, 2, PADDING_SAME);
    check_convolutions(1, 20, 32, 3, 32, 1, PADDING_SAME); /* too wide */
    CHECK(unfolded_taken == 3, "unfolded images were compared %d times, expected 3", unfolded_taken);
    check_matrices(3, 7, 5);
    check_matrices(32, 64, 48);
    check_matrices(17, 100, 33);
    check_rest(1, 1, 1);
    check_rest(2, 5, 17);
    check_rest(2, 6, 64);
    check_rest(1, 2, 1100);
    check_overflow();
    check_norms(1, 1, 1);
    check_norms(3, 6, 24);
    check_norms(2, 2, 600);
    check_gelu();
    const enum op all[] = {OP_conv2d,
                           OP_conv2d_bias,
                           OP_conv2d_grad_x,
                           OP_conv2d_grad_kernel,
                           OP_conv2d_pool_grad_kernel,
                           OP_maxpool,
                           OP_maxpool_grad,
                           OP_lrn,
                           OP_lrn_grad,
                           OP_relu_grad,
                           OP_matmul,
                           OP_dense,
                           OP_reduce_sum,
                           OP_gelu,
                           OP_gelu_grad,
                           OP_moments,
                           OP_batch_norm,
                           OP_batch_norm_sums,
                           OP_batch_norm_grad};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(taken[all[i]] > 0, "%s: nothing in bf16 was compared", op_name(all[i]));
    test_widened();
    check_gradient("alexnet", SHAPE(BATCH, 24, 24, 3), 1e-2);
    check_gradient("cnn", SHAPE(BATCH, 12, 12, 1), 4e-2);
    check_gradient("lenet", SHAPE(BATCH, 16, 16, 1), 8e-2);
    check_gradient("softmax", SHAPE(BATCH, 64), 1e-2);
    return check_end();
}
