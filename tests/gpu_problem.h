/* For the tests of the GPU's kernels: a problem computed by the GPU's kernel and by the CPU's reference
 * kernel, on the same operands. One test program includes it once. */
#ifndef TRAINER_TESTS_GPU_TASK_H
#define TRAINER_TESTS_GPU_TASK_H

#include <math.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/cpu/bf16.h"
#include "../src/device/device.h"
#include "check.h"
#include "gpu_control.h"

enum { TASK_OPERANDS = 3, GUARD_BYTES = 128 };

static inline struct device gpu_of(enum precision precision) {
    return (struct device){
        .backend = gpu_backend_of_build(), .name = "gpu:0", .threads = 1, .precision = precision};
}

/* The same, opened; close it with its backend. */
static inline struct device open_gpu(enum precision precision) {
    struct error error = {0};
    const struct device device = gpu_of(precision);
    CHECK(device.backend->open(&device, &error) == OK, "%s", error.words);
    return device;
}

/* A problem's operands as the host has them, in float32 and as the problem's types say. */
struct host_operands {
    size_t count[TASK_OPERANDS], outputs;
    float *wide[TASK_OPERANDS]; /* rounded as the operand's type, or what is computed in, has it */
    void *typed[TASK_OPERANDS];
};

/* Whole numbers -3..3, or numbers in [-1/4, 1/4), so that activations are not saturated. `narrow`: all of
 * them but biases are rounded to bf16, in which they are multiplied. */
static inline void make_operands(struct host_operands *h, const struct problem *problem, bool whole,
                                 bool narrow) {
    struct error error = {0};
    *h = (struct host_operands){.outputs = shape_count(&problem->output.shape)};
    for (int i = 0; i < problem->inputs; i++) {
        const size_t count = h->count[i] = shape_count(&problem->input[i].shape);
        const enum type type = problem->input[i].type;
        CHECK(memory_zeroed((void **)&h->wide[i], count, sizeof(float), "operand", &error) == OK &&
                  memory_zeroed(&h->typed[i], count, type_bytes(type), "operand", &error) == OK,
              "%s", error.words);
        for (size_t k = 0; k < count; k++) {
            const uint32_t word = rng_philox(5, (uint64_t)i, k).word[0];
            float value = whole ? (float)((int)(word % 7) - 3) : 0.5f * rng_unit(word) - 0.25f;
            if (narrow && i < 2) value = bf16_float(bf16_nearest(value));
            h->wide[i][k] = value;
            store(h->typed[i], type, k, value);
        }
    }
}

static inline void free_operands(struct host_operands *h) {
    for (int i = 0; i < TASK_OPERANDS; i++) {
        memory_free(h->wide[i]);
        memory_free(h->typed[i]);
    }
}

/* The CPU's reference kernel, which stands last: in float32. */
static inline void run_reference(const struct problem *problem, const struct host_operands *h, float *out) {
    const struct device cpu = {.backend = backends[0], .name = "cpu:0", .threads = 1};
    struct error error = {0};
    struct problem wide = *problem;
    wide.device = &cpu;
    for (int i = 0; i < problem->inputs; i++) wide.input[i].type = TYPE_FLOAT;
    wide.output.type = TYPE_FLOAT;
    const struct kernel *const *list = cpu.backend->kernels(&cpu, problem->op);
    while (list[1]) list++;
    struct call call = {.problem = &wide, .output = out};
    for (int i = 0; i < problem->inputs; i++) call.input[i] = h->wide[i];
    CHECK(list[0]->run(&call, &error) == OK, "%s: %s", list[0]->name, error.words);
}

/* A kernel's plan and instance, and its operands on the GPU, the result between guards. */
struct gpu_run {
    const struct kernel *kernel;
    struct problem problem;
    void *plan, *instance;
    void *input[TASK_OPERANDS];
    char *output; /* the block: guard, result, guard; NULL: there is none yet */
    size_t output_bytes;
};

static inline struct call gpu_call(const struct gpu_run *run) {
    struct call call = {.problem = &run->problem,
                        .plan = run->plan,
                        .instance = run->instance,
                        .output = run->output ? run->output + GUARD_BYTES : NULL};
    for (int i = 0; i < run->problem.inputs; i++) call.input[i] = run->input[i];
    return call;
}

static inline int bind_gpu(struct gpu_run *run, const struct host_operands *h, struct error *error) {
    const struct device *device = run->problem.device;
    const struct backend *backend = device->backend;
    RETURN_IF(run->kernel->bind(&run->problem, run->plan, &run->instance, error));
    for (int i = 0; i < run->problem.inputs; i++) {
        const size_t bytes = h->count[i] * type_bytes(run->problem.input[i].type);
        RETURN_IF(backend->allocate(device, &run->input[i], bytes, "operand", error));
        RETURN_IF(backend->copy(device, run->input[i], h->typed[i], bytes, error));
    }
    run->output_bytes = h->outputs * type_bytes(run->problem.output.type);
    return backend->allocate(device, (void **)&run->output, run->output_bytes + 2 * GUARD_BYTES, "result",
                             error);
}

/* Prepares and binds. The code is KERNEL_DECLINED when the kernel does not take the problem. */
static inline int open_gpu_run(struct gpu_run *run, const struct problem *problem,
                               const struct host_operands *h, struct error *error) {
    *run = (struct gpu_run){.problem = *problem};
    run->kernel = problem->device->backend->kernels(problem->device, problem->op)[0];
    RETURN_IF(run->kernel->prepare(&run->problem, &run->plan, error));
    return bind_gpu(run, h, error);
}

static inline void close_gpu_run(struct gpu_run *run) {
    const struct device *device = run->problem.device;
    for (int i = 0; i < run->problem.inputs; i++)
        if (run->input[i]) device->backend->release(device, run->input[i]);
    if (run->output) device->backend->release(device, run->output);
    if (run->instance) run->kernel->unbind(run->instance);
    if (run->plan) run->kernel->release(run->plan);
}

/* Fills the result and its guards with what is not a number, either type. */
static inline int spoil_gpu(const struct gpu_run *run, struct error *error) {
    static unsigned char rubbish[1 << 22];
    const size_t bytes = run->output_bytes + 2 * GUARD_BYTES;
    CHECK(bytes <= sizeof rubbish, "%zu bytes", bytes);
    memset(rubbish, 0xFF, bytes);
    return run->problem.device->backend->copy(run->problem.device, run->output, rubbish, bytes, error);
}

/* Reads the result back as float32, and says whether the guards are whole. */
static inline int read_gpu(const struct gpu_run *run, float *out, bool *whole, struct error *error) {
    static unsigned char bytes[1 << 22];
    const struct device *device = run->problem.device;
    const enum type type = run->problem.output.type;
    RETURN_IF(device->backend->copy(device, bytes, run->output, run->output_bytes + 2 * GUARD_BYTES, error));
    *whole = true;
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (bytes[i] != 0xFF || bytes[GUARD_BYTES + run->output_bytes + i] != 0xFF) *whole = false;
    for (size_t i = 0; i < run->output_bytes / type_bytes(type); i++)
        out[i] = load(bytes + GUARD_BYTES, type, i);
    return OK;
}

static inline const char *gpu_task_text(const struct problem *problem, char *out, size_t bytes) {
    char a[60], b[60];
    size_t used = (size_t)snprintf(
        out, bytes, "%s %s%s x %s%s, activation %d, precision %d, types", op_name(problem->op),
        shape_text(&problem->input[0].shape, a, sizeof a), problem->attributes->transpose_a ? "^T" : "",
        shape_text(&problem->input[1].shape, b, sizeof b), problem->attributes->transpose_b ? "^T" : "",
        (int)problem->attributes->activation, (int)problem->device->precision);
    for (int i = 0; i <= problem->inputs && used < bytes; i++)
        used +=
            (size_t)snprintf(out + used, bytes - used, " %s",
                             type_name(i < problem->inputs ? problem->input[i].type : problem->output.type));
    return out;
}

/* The largest difference as a share of the largest result. */
static inline double gpu_difference(const float *a, const float *b, size_t count) {
    double largest = 1e-30, apart = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i])) return INFINITY;
        largest = fmax(largest, fabs((double)b[i]));
        apart = fmax(apart, fabs((double)a[i] - (double)b[i]));
    }
    return apart / largest;
}

/* Runs it: directly, again, and as a recording; the bits are the same each time. */
static inline void run_three_times(const struct gpu_run *run, float *out, const char *text) {
    static float again[2][1 << 20];
    const struct device *device = run->problem.device;
    const struct backend *backend = device->backend;
    const struct call call = gpu_call(run);
    struct error error = {0};
    const size_t bytes = run->output_bytes / type_bytes(run->problem.output.type) * sizeof(float);
    bool whole[3] = {false, false, false};
    void *recording = NULL;
    int code = spoil_gpu(run, &error);
    if (code == OK) code = run->kernel->run(&call, &error);
    if (code == OK) code = read_gpu(run, out, &whole[0], &error);
    if (code == OK) code = spoil_gpu(run, &error);
    if (code == OK) code = run->kernel->run(&call, &error);
    if (code == OK) code = read_gpu(run, again[0], &whole[1], &error);
    if (code == OK) code = spoil_gpu(run, &error);
    if (code == OK) code = backend->record(device, &error);
    if (code == OK) code = run->kernel->run(&call, &error);
    if (code == OK) code = backend->recorded(device, &recording, &error);
    CHECK(code == OK && recording, "%s: cannot be recorded: %s", text, error.words);
    if (recording) {
        code = backend->replay(device, recording, &error);
        if (code == OK) code = read_gpu(run, again[1], &whole[2], &error);
        backend->forget(device, recording);
    }
    CHECK(code == OK, "%s: %s", text, error.words);
    CHECK(whole[0] && whole[1] && whole[2], "%s: wrote outside", text);
    CHECK(memcmp(out, again[0], bytes) == 0, "%s: other bits the second time", text);
    CHECK(memcmp(out, again[1], bytes) == 0, "%s: other bits when replayed", text);
}

/* A kernel against the reference: to `tolerance` of the largest result, 0 for exactly; results that are bf16
 * are compared with the reference's rounded to it. False when the kernel declines. */
static inline bool check_gpu_task(const struct problem *problem, bool whole, double tolerance) {
    static float ours[1 << 20], theirs[1 << 20];
    char text[300];
    struct host_operands h;
    struct gpu_run run;
    struct error error = {0};
    gpu_task_text(problem, text, sizeof text);
    make_operands(&h, problem, whole, problem->device->precision == PRECISION_BF16);
    const int code = open_gpu_run(&run, problem, &h, &error);
    CHECK(code == OK || code == KERNEL_DECLINED, "%s: %s", text, error.words);
    if (code == OK) {
        run_three_times(&run, ours, text);
        run_reference(problem, &h, theirs);
        if (problem->output.type == TYPE_BF16)
            for (size_t i = 0; i < h.outputs; i++) theirs[i] = bf16_float(bf16_nearest(theirs[i]));
        const double apart = gpu_difference(ours, theirs, h.outputs);
        CHECK(apart <= tolerance, "%s: %g apart, whole numbers %d", text, apart, whole);
    }
    close_gpu_run(&run);
    free_operands(&h);
    return code == OK;
}

/* The problem with the n-th call that can fail failing, for every n: an error in words or, where another
 * algorithm could take its place, the right result; and nothing is left behind. The device is opened for each
 * of them, and may not be open yet. Only where the stand-in makes calls fail. */
static inline void check_gpu_failures(const struct problem *problem, double tolerance) {
    static float ours[1 << 20], theirs[1 << 20];
    char text[300];
    struct host_operands h;
    if (!STANDIN) return;
    gpu_task_text(problem, text, sizeof text);
    make_operands(&h, problem, false, problem->device->precision == PRECISION_BF16);
    run_reference(problem, &h, theirs);
    const int before = standin_open(NULL);
    int failures = 0;
    bool through = false;
    for (long n = 1; !through && n < 1000; n++) {
        struct gpu_run run;
        struct error error = {0};
        bool whole;
        CHECK(problem->device->backend->open(problem->device, &error) == OK, "%s", error.words);
        standin_fail(n);
        const long called = standin_calls();
        int code = open_gpu_run(&run, problem, &h, &error);
        const struct call call = gpu_call(&run);
        if (code == OK) code = run.kernel->run(&call, &error);
        if (code == OK) code = read_gpu(&run, ours, &whole, &error);
        through = standin_calls() - called < n;
        standin_fail(0);
        if (code == OK)
            CHECK(gpu_difference(ours, theirs, h.outputs) <= tolerance, "%s: call %ld failed: wrong", text,
                  n);
        else
            CHECK(code == KERNEL_DECLINED || (code == error.code && strncmp(error.words, "gpu:0: ", 7) == 0 &&
                                              !strstr(error.words, "status")),
                  "%s: call %ld: %d, '%s'", text, n, code, error.words);
        failures += code != OK;
        close_gpu_run(&run);
        problem->device->backend->close(problem->device);
        CHECK(standin_open(NULL) == before, "%s: call %ld failed: %d things are left", text, n,
              standin_open(NULL) - before);
    }
    CHECK(through && failures > 10, "%s: %d failures", text, failures);
    free_operands(&h);
}

/* What a kernel cannot do, it declines without words. */
static inline void check_gpu_declines(const struct problem *problem, const char *why) {
    struct error error = {0};
    void *plan = NULL;
    const struct kernel *kernel = problem->device->backend->kernels(problem->device, problem->op)[0];
    const int code = kernel->prepare(problem, &plan, &error);
    CHECK(code == KERNEL_DECLINED && !plan && error.code == OK, "%s: %s: %d %s", kernel->name, why, code,
          error.words);
    if (plan) kernel->release(plan);
}

#endif
