/* For bench/gpu_operations.c: lines of JSON, the time that work takes on a GPU by replays of a recording, and
 * a kernel's call on memory of its own. One program includes it once. */
#ifndef TRAINER_BENCH_GPU_TIMING_H
#define TRAINER_BENCH_GPU_TIMING_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/cpu/bf16.h"
#include "../src/device/device.h"

enum { CLASSES = 10, REPLAYS = 5, SEEN = 256 };

/* Private, and of the one thread: gpu_measure is not told who asks. */
static struct bench {
    const char *model, *precision;
    int runs;
    struct world *world;
    struct device *device;
    void *mark;       /* timed */
    char *seen[SEEN]; /* problems whose algorithms were timed: a program asks more than once */
    int seen_count;
    int failed; /* lines with a status other than ok */
} bench;

/* --- lines of JSON --- */

static void field_text(const char *name, const char *text) {
    printf(", \"%s\": \"", name);
    for (; *text; text++)
        putchar(*text == '"' ? '\'' : *text == '\\' ? '/' : (unsigned char)*text < 0x20 ? ' ' : *text);
    putchar('"');
}

static void field_number(const char *name, double value) {
    if (isfinite(value)) printf(", \"%s\": %.6g", name, value);
}

static void begin_line(const char *what) {
    printf("{\"what\": \"%s\"", what);
    field_text("model", bench.model);
    field_text("precision", bench.precision);
}

static void end_line(int code, const struct error *error) {
    field_text("status", code == OK ? "ok" : code == KERNEL_DECLINED ? "declined" : error->words);
    printf("}\n");
    fflush(stdout);
    bench.failed += code != OK && code != KERNEL_DECLINED;
}

/* "conv2d_bias [128, 24, 24, 3] bf16, [5, 5, 3, 64] float32 -> [...] bf16, stride 1 1, padding 0, activation
 * 1" */
static void describe_problem(const struct problem *problem, char *out, size_t bytes) {
    char shape[64];
    size_t used = (size_t)snprintf(out, bytes, "%s", op_name(problem->op));
    for (int i = 0; i <= problem->inputs && used < bytes; i++) {
        const bool result = i == problem->inputs;
        const struct shape *of = result ? &problem->output.shape : &problem->input[i].shape;
        used += (size_t)snprintf(out + used, bytes - used, "%s%s %s",
                                 result  ? " -> "
                                 : i > 0 ? ", "
                                         : " ",
                                 shape_text(of, shape, sizeof shape),
                                 type_name(result ? problem->output.type : problem->input[i].type));
    }
    const struct attributes *a = problem->attributes;
    if (used < bytes && a->stride[0] > 0)
        used += (size_t)snprintf(out + used, bytes - used, ", stride %d %d, padding %s", a->stride[0],
                                 a->stride[1], a->padding == PADDING_SAME ? "same" : "valid");
    if (used < bytes && (a->transpose_a || a->transpose_b))
        used += (size_t)snprintf(out + used, bytes - used, ", transposed%s%s", a->transpose_a ? " a" : "",
                                 a->transpose_b ? " b" : "");
    if (used < bytes && a->activation != ACTIVATION_NONE)
        snprintf(out + used, bytes - used, ", %s",
                 a->activation == ACTIVATION_RELU      ? "relu"
                 : a->activation == ACTIVATION_SIGMOID ? "sigmoid"
                                                       : "tanh");
}

static double bytes_of(const struct problem *problem) {
    double bytes = (double)(shape_count(&problem->output.shape) * type_bytes(problem->output.type));
    for (int i = 0; i < problem->inputs; i++)
        bytes += (double)(shape_count(&problem->input[i].shape) * type_bytes(problem->input[i].type));
    return bytes;
}

static double multiply_adds_of(const struct problem *problem) {
    const struct shape *operand[MAX_INPUTS];
    for (int i = 0; i < problem->inputs; i++) operand[i] = &problem->input[i].shape;
    return op_multiply_adds(problem->op, problem->attributes, operand, &problem->output.shape);
}

/* --- time --- */

typedef int work(void *argument, struct error *error); /* queues something */

static int run_often(work *run, void *argument, int runs, struct error *error) {
    for (int i = 0; i < runs; i++) RETURN_IF(run(argument, error));
    return OK;
}

/* Lowers *us to the device's microseconds for one run of the work, of its recording or queued. */
static int time_once(work *run, void *argument, void *recording, double *us, struct error *error) {
    const struct backend *backend = bench.device->backend;
    double seconds = 0.0;
    RETURN_IF(backend->marks->set(bench.device, bench.mark, error));
    if (recording)
        RETURN_IF(backend->replay(bench.device, recording, error));
    else
        RETURN_IF(run_often(run, argument, bench.runs, error));
    RETURN_IF(backend->finish(bench.device, error));
    RETURN_IF(backend->marks->since(bench.device, bench.mark, &seconds, error));
    *us = fmin(*us, 1e6 * seconds / bench.runs);
    return OK;
}

struct timing {
    double us;
    bool recorded;
};

/* Runs it once before, as a first run may load code, which no recording takes. A recording that fails is
 * forgotten, and the work is queued instead. */
static int time_work(work *run, void *argument, struct timing *timing, struct error *error) {
    const struct backend *backend = bench.device->backend;
    void *recording = NULL;
    struct error refused = {0};
    *timing = (struct timing){.us = INFINITY};
    RETURN_IF(run(argument, error));
    RETURN_IF(backend->finish(bench.device, error));
    RETURN_IF(backend->record(bench.device, error));
    const int queued = run_often(run, argument, bench.runs, &refused);
    const int code = backend->recorded(bench.device, &recording, error);
    if (queued != OK && recording) {
        backend->forget(bench.device, recording);
        recording = NULL;
    }
    RETURN_IF(code);
    timing->recorded = recording != NULL;
    int ended = recording ? backend->replay(bench.device, recording, error) : OK;
    for (int i = 0; i < REPLAYS && ended == OK; i++)
        ended = time_once(run, argument, recording, &timing->us, error);
    if (recording) backend->forget(bench.device, recording);
    return ended;
}

static void say_timing(const struct timing *timing) {
    field_number("us", timing->us);
    field_text("how", timing->recorded ? "replayed" : "queued");
}

/* --- a kernel's call, on memory of its own --- */

struct stage {
    struct call call;
    int (*run)(const struct call *call, struct error *error);
    void *input[MAX_INPUTS], *output;
    size_t output_bytes;
};

static int run_stage(void *argument, struct error *error) {
    const struct stage *stage = argument;
    return stage->run(&stage->call, error);
}

/* -1 to 1; whole numbers where the type has no others, all of them classes. */
static int fill_array(void *out, const struct shape *shape, enum type type, int which, struct error *error) {
    const size_t count = shape_count(shape);
    char *host = NULL;
    RETURN_IF(memory_array(&host, count * type_bytes(type) + 1, "random numbers", error));
    for (size_t i = 0; i < count; i++) {
        const uint32_t word = rng_philox(7, (uint64_t)which, i).word[0];
        if (type == TYPE_INT)
            ((int *)(void *)host)[i] = (int)(word % CLASSES);
        else if (type == TYPE_BOOL)
            host[i] = (char)(word % 2);
        else
            store(host, type, i, 2.0f * rng_unit(word) - 1.0f);
    }
    const int code = bench.device->backend->copy(bench.device, out, host, count * type_bytes(type), error);
    memory_free(host);
    return code;
}

static int open_stage(struct stage *stage, const struct problem *problem, struct error *error) {
    const struct backend *backend = bench.device->backend;
    stage->call.problem = problem;
    for (int i = 0; i < problem->inputs; i++) {
        const size_t bytes = shape_count(&problem->input[i].shape) * type_bytes(problem->input[i].type);
        RETURN_IF(backend->allocate(bench.device, &stage->input[i], bytes + 1, "an operand", error));
        RETURN_IF(fill_array(stage->input[i], &problem->input[i].shape, problem->input[i].type, i, error));
        stage->call.input[i] = stage->input[i];
    }
    stage->output_bytes = shape_count(&problem->output.shape) * type_bytes(problem->output.type);
    RETURN_IF(backend->allocate(bench.device, &stage->output, stage->output_bytes + 1, "a result", error));
    stage->call.output = stage->output;
    return OK;
}

static void close_stage(struct stage *stage) {
    for (int i = 0; i < MAX_INPUTS; i++)
        if (stage->input[i]) bench.device->backend->release(bench.device, stage->input[i]);
    if (stage->output) bench.device->backend->release(bench.device, stage->output);
}

#endif
