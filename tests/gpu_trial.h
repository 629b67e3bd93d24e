/* For the tests of the GPU's own kernels: one operation computed by the CPU's reference kernel and by the
 * GPU's, as it is queued and as it is recorded and replayed. One test program includes it once. */
#ifndef TRAINER_TESTS_GPU_TRIAL_H
#define TRAINER_TESTS_GPU_TRIAL_H

#include <math.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/cpu/bf16.h"
#include "../src/cpu/reference.h"
#include "../src/graph/rules.h"
#include "check.h"
#include "gpu_control.h"

extern const struct backend gpu_backend;
static const struct device gpu = {.backend = &gpu_backend, .name = "gpu:0", .threads = 1};
static const struct device cpu = {.name = "cpu:0", .threads = 1, .reference_only = true};

#define reference_source reference_copy /* rows of sources: never run */
static const struct kernel *const reference_kernels[OPS] = {
#define OP(name, inputs, shape, gradient, reference, ...) [OP_##name] = &reference_##reference,
#include "../src/graph/ops.def"
};
#undef reference_source

/* What an operand holds. */
enum fill {
    FILL_WHOLE,    /* -4 to 4: sums and products are exact, and many are equal */
    FILL_BETWEEN,  /* -2 to 2 */
    FILL_POSITIVE, /* 0.5 to 3 */
    FILL_SPECIAL,  /* with infinities, not a number and both zeros among small whole numbers */
    FILL_HOLES,    /* after the first, half of it is not a number; then whole numbers */
    FILL_LABELS,   /* int, 0 to the classes of operand 0 - 1 */
    FILL_FAR       /* 1000 to 1001 */
};

enum { TRIAL_OPERANDS = 5, TRIAL_GUARD = 256 };

struct trial {
    enum op op;
    int inputs;
    struct shape shape[TRIAL_OPERANDS];
    enum type
        type[TRIAL_OPERANDS]; /* bf16: after the shape rule, which knows of none, has taken it for float */
    enum fill fill[TRIAL_OPERANDS];
    struct attributes attributes;
    enum type to;     /* cast */
    bool narrow;      /* the result is bf16 */
    double tolerance; /* as a share of the largest result; 0: the same bits but for zeros' signs */
    bool widens;      /* in bf16 the CPU's own kernel is coarser than the GPU's */
    bool onto_first;  /* the result lies over operand 0 */
};

static int trials[OPS], declined[OPS];

static void fill_operand(const struct trial *t, int i, void *out) {
    static const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 1.0f, 2.0f, -1.0f};
    const size_t count = shape_count(&t->shape[i]);
    struct rng rng;
    rng_start(&rng, 11 + (uint64_t)i, (uint64_t)t->fill[i]);
    for (size_t k = 0; k < count; k++) {
        const uint32_t word = rng_next(&rng);
        const float value = t->fill[i] == FILL_WHOLE      ? (float)((int)(word % 9) - 4)
                            : t->fill[i] == FILL_BETWEEN  ? 4.0f * rng_unit(word) - 2.0f
                            : t->fill[i] == FILL_POSITIVE ? 0.5f + 2.5f * rng_unit(word)
                            : t->fill[i] == FILL_FAR      ? 1000.0f + rng_unit(word)
                            : t->fill[i] == FILL_HOLES ? (k > 0 && k < count / 2 ? NAN : (float)(word % 999))
                                                       : special[word % 8];
        if (t->fill[i] == FILL_LABELS)
            ((int *)out)[k] = (int)(word % (uint32_t)t->shape[0].dims[1]);
        else if (t->type[i] == TYPE_INT)
            ((int *)out)[k] = word % 11 == 0 ? INT32_MAX - (int)(word % 7) : (int)(word % 9) - 4;
        else if (t->type[i] == TYPE_BOOL)
            ((uint8_t *)out)[k] = (uint8_t)(word % 2);
        else
            store(out, t->type[i], k, value);
    }
}

/* The problem of a trial, with attributes and the result's shape and type as the graph has them; false after
 * a CHECK. */
static bool task_of(struct trial *t, struct problem *problem) {
    struct graph g;
    struct node_info info = {.op = t->op, .inputs = t->inputs, .attributes = t->attributes};
    graph_open(&g, true, 1);
    for (int i = 0; i < t->inputs; i++) {
        const enum type type = t->type[i] == TYPE_BF16 ? TYPE_FLOAT : t->type[i];
        char name[32];
        snprintf(name, sizeof name, "operand%d", i);
        info.input[i] = t->op == OP_assign || t->op == OP_assign_add
                            ? graph_variable(&g, name, t->shape[i], (struct initial){0})
                            : graph_placeholder(&g, name, type, t->shape[i]);
    }
    if (t->op == OP_cast) info.type = t->to;
    const node n = graph_make(&g, &info);
    CHECK(n != NONE, "%s: %s", op_name(t->op), g.error.words);
    *problem = (struct problem){.op = t->op, .attributes = &t->attributes, .inputs = t->inputs};
    if (n != NONE) {
        for (int i = 0; i < t->inputs; i++) {
            problem->input[i].shape = t->shape[i];
            problem->input[i].type = t->type[i];
        }
        t->attributes = g.nodes[n].attributes;
        problem->output.shape = g.nodes[n].shape;
        problem->output.type = t->narrow ? TYPE_BF16 : g.nodes[n].type;
    }
    graph_close(&g);
    return n != NONE;
}

/* Blocks of a run: operands, and the result between guards. */
struct blocks {
    void *operand[TRIAL_OPERANDS];
    char *output;
};

static int call_kernel(const struct kernel *kernel, struct problem *problem, const void *plan,
                       void *const *operand, void *output, void *instance, struct error *error) {
    struct call call = {.problem = problem, .plan = plan, .instance = instance, .output = output};
    for (int i = 0; i < problem->inputs; i++) call.input[i] = operand[i];
    return kernel->run(&call, error);
}

static bool same(const struct problem *problem, const void *found, const void *expected, double tolerance,
                 size_t *first) {
    const size_t count = shape_count(&problem->output.shape), size = type_bytes(problem->output.type);
    double largest = 1e-30;
    if (problem->output.type == TYPE_INT || problem->output.type == TYPE_BOOL) {
        for (*first = 0; *first < count; ++*first)
            if (memcmp((const char *)found + *first * size, (const char *)expected + *first * size, size) !=
                0)
                return false;
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        const double value = fabs((double)load(expected, problem->output.type, i));
        if (isfinite(value)) largest = fmax(largest, value);
    }
    for (*first = 0; *first < count; ++*first) {
        const double a = load(found, problem->output.type, *first),
                     b = load(expected, problem->output.type, *first);
        const bool equal = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * largest;
        if (!equal) return false;
    }
    return true;
}

/* On the GPU, three times: queued; recorded and replayed onto a spoilt result; and queued with everything an
 * element further, where no 16 bytes can be read at once. Each time the numbers are the same. */
static void check_on_gpu(const struct trial *t, struct problem *problem, const struct kernel *kernel,
                         const void *plan, void *const *host, const void *expected) {
    const struct backend *backend = gpu.backend;
    const size_t bytes = shape_count(&problem->output.shape) * type_bytes(problem->output.type),
                 all = TRIAL_GUARD + sizeof(float) + bytes + TRIAL_GUARD;
    struct blocks on = {0};
    struct error error = {0};
    void *instance = NULL, *recording = NULL;
    char *back = NULL, *queued = NULL, text[80];
    size_t first = 0;
    int code = kernel->bind ? kernel->bind(problem, plan, &instance, &error) : OK;
    if (code == OK) code = memory_zeroed((void **)&back, all, 1, "result", &error);
    if (code == OK) code = memory_zeroed((void **)&queued, bytes, 1, "result", &error);
    if (code == OK) code = backend->allocate(&gpu, (void **)&on.output, all, "result", &error);
    for (int i = 0; i < t->inputs && code == OK; i++)
        code = backend->allocate(&gpu, &on.operand[i],
                                 (shape_count(&t->shape[i]) + 1) * type_bytes(t->type[i]), "operand", &error);
    for (int run = 0; run < 3 && code == OK; run++) {
        const size_t begin = TRIAL_GUARD + (run == 2 ? type_bytes(problem->output.type) : 0);
        char *output = on.output + begin;
        void *operand[TRIAL_OPERANDS];
        memset(back, 0xA5, all);
        code = backend->copy(&gpu, on.output, back, all, &error);
        for (int i = 0; i < t->inputs && code == OK; i++) {
            operand[i] = i == 0 && t->onto_first
                             ? output
                             : (char *)on.operand[i] + (run == 2 ? type_bytes(t->type[i]) : 0);
            code = backend->copy(&gpu, operand[i], host[i],
                                 shape_count(&t->shape[i]) * type_bytes(t->type[i]), &error);
        }
        if (code == OK && run == 1) code = backend->record(&gpu, &error);
        if (code == OK) code = call_kernel(kernel, problem, plan, operand, output, instance, &error);
        if (run == 1 && code == OK) code = backend->recorded(&gpu, &recording, &error);
        if (run == 1 && code == OK) {
            CHECK(recording != NULL, "%s cannot be recorded", kernel->name);
            if (recording) code = backend->replay(&gpu, recording, &error);
        }
        if (code == OK) code = backend->copy(&gpu, back, on.output, all, &error);
        if (code != OK) break;
        if (run == 0) memcpy(queued, back + begin, bytes);
        CHECK(same(problem, back + begin, queued, 0.0, &first), "%s of %s, run %d: other bits", kernel->name,
              shape_text(&t->shape[0], text, sizeof text), run);
        CHECK(same(problem, back + begin, expected, t->tolerance, &first),
              "%s of %s, run %d, narrow %d: element %zu is %g, expected %g", kernel->name,
              shape_text(&t->shape[0], text, sizeof text), run, t->narrow, first,
              (double)load(back + begin, problem->output.type, first),
              (double)load(expected, problem->output.type, first));
        for (size_t k = 0; k < all; k++)
            if ((k < begin || k >= begin + bytes) && (unsigned char)back[k] != 0xA5) {
                CHECK(false, "%s of %s wrote outside", kernel->name,
                      shape_text(&t->shape[0], text, sizeof text));
                break;
            }
    }
    CHECK(code == OK, "%s: %s", kernel->name, error.words);
    if (recording) backend->forget(&gpu, recording);
    for (int i = 0; i < t->inputs; i++) backend->release(&gpu, on.operand[i]);
    backend->release(&gpu, on.output);
    memory_free(queued);
    memory_free(back);
    if (kernel->unbind) kernel->unbind(instance);
}

/* What the GPU's kernel says to the problem: OK, or KERNEL_DECLINED without a plan or words. */
static int prepare_on_gpu(struct problem *problem, void **plan) {
    const struct kernel *kernel = gpu.backend->kernels(&gpu, problem->op)[0];
    struct error error = {0};
    problem->device = &gpu;
    *plan = NULL;
    CHECK(kernel != NULL, "%s has no kernel on a GPU", op_name(problem->op));
    if (!kernel) return KERNEL_DECLINED;
    const int code = kernel->prepare ? kernel->prepare(problem, plan, &error) : OK;
    CHECK(code == OK || (code == KERNEL_DECLINED && !*plan && error.code == OK), "%s: %d, %s", kernel->name,
          code, error.words);
    return code;
}

/* What the CPU's kernel makes of the operands. With `widens`, in float32 and rounded once. */
static int run_on_cpu(const struct trial *t, const struct problem *problem, void *const *operand, void *out,
                      struct error *error) {
    struct problem wide = *problem;
    float *values[TRIAL_OPERANDS + 1] = {0}; /* the operands, then the result */
    wide.device = &cpu;
    if (!t->widens || problem->output.type != TYPE_BF16)
        return call_kernel(reference_kernels[t->op], &wide, NULL, operand, out, NULL, error);
    const size_t count = shape_count(&problem->output.shape);
    wide.output.type = TYPE_FLOAT;
    int code = memory_array(&values[t->inputs], count + 1, "result", error);
    for (int i = 0; i < t->inputs && code == OK; i++) {
        const size_t numbers = shape_count(&t->shape[i]);
        wide.input[i].type = TYPE_FLOAT;
        code = memory_array(&values[i], numbers + 1, "operand", error);
        for (size_t k = 0; k < numbers && code == OK; k++) values[i][k] = load(operand[i], t->type[i], k);
    }
    if (code == OK)
        code = call_kernel(reference_kernels[t->op], &wide, NULL, (void *const *)values, values[t->inputs],
                           NULL, error);
    for (size_t k = 0; k < count && code == OK; k++) store(out, TYPE_BF16, k, values[t->inputs][k]);
    for (int i = 0; i <= t->inputs; i++) memory_free(values[i]);
    return code;
}

/* Takes the trial by value: its attributes get the normal form. */
static void try_kernel(struct trial trial) {
    struct trial *t = &trial;
    struct problem problem;
    struct error error = {0};
    void *host[TRIAL_OPERANDS] = {0}, *expected = NULL, *plan = NULL;
    if (!task_of(t, &problem)) return;
    const size_t bytes = shape_count(&problem.output.shape) * type_bytes(problem.output.type);
    for (int i = 0; i < t->inputs; i++) {
        CHECK(memory_zeroed(&host[i], shape_count(&t->shape[i]), type_bytes(t->type[i]), "operand", &error) ==
                  OK,
              "%s", error.words);
        if (host[i]) fill_operand(t, i, host[i]);
    }
    CHECK(memory_zeroed(&expected, bytes + 1, 1, "result", &error) == OK, "%s", error.words);
    if (error.code == OK) {
        void *operand[TRIAL_OPERANDS];
        memcpy(operand, host, sizeof operand);
        if (t->onto_first) operand[0] = memcpy(expected, host[0], bytes);
        const int code = run_on_cpu(t, &problem, operand, expected, &error);
        CHECK(code == OK, "%s: %s", op_name(t->op), error.words);
        if (prepare_on_gpu(&problem, &plan) == OK) {
            const struct kernel *kernel = gpu.backend->kernels(&gpu, t->op)[0];
            check_on_gpu(t, &problem, kernel, plan, host, expected);
            if (kernel->release) kernel->release(plan);
            trials[t->op]++;
        } else {
            declined[t->op]++;
        }
    }
    memory_free(expected);
    for (int i = 0; i < t->inputs; i++) memory_free(host[i]);
}

#endif
