/* For bench/gpu_operations.c: each algorithm that takes part in a contest of cuda/measure.h, timed and
 * compared with the first one. The linker puts __wrap_gpu_measure where the backend calls gpu_measure. */
#ifndef TRAINER_BENCH_GPU_CONTESTS_H
#define TRAINER_BENCH_GPU_CONTESTS_H

#include "../cuda/measure.h"
#include "gpu_timing.h"

int __real_gpu_measure(const struct problem *problem, void *plan, const struct contest *contest,
                       struct error *error);
int __wrap_gpu_measure(const struct problem *problem, void *plan, const struct contest *contest,
                       struct error *error);

/* The largest difference as a share of the largest number; infinite where either is not finite. */
static double difference(const char *a, const char *b, size_t count, enum type type) {
    double largest = 1e-30, apart = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double x = load(a, type, i), y = load(b, type, i);
        if (!isfinite(x) || !isfinite(y)) return INFINITY;
        largest = fmax(largest, fabs(y));
        apart = fmax(apart, fabs(x - y));
    }
    return apart / largest;
}

/* Results on the host: of the first algorithm that ran, and of this one. */
struct results {
    char *first, *own;
    bool have_first;
};

static int compare(struct results *results, const struct stage *stage, double *apart, struct error *error) {
    const struct problem *problem = stage->call.problem;
    const size_t count = shape_count(&problem->output.shape);
    RETURN_IF(
        bench.device->backend->copy(bench.device, results->own, stage->output, stage->output_bytes, error));
    if (!results->have_first) memcpy(results->first, results->own, stage->output_bytes);
    results->have_first = true;
    *apart = difference(results->own, results->first, count, problem->output.type);
    return OK;
}

static int try_algorithm(struct stage *stage, const struct contest *contest, struct results *results,
                         struct timing *timing, double *apart, struct error *error) {
    const struct problem *problem = stage->call.problem;
    RETURN_IF(contest->bind(problem, stage->call.plan, &stage->call.instance, error));
    stage->run = contest->run;
    int code = time_work(run_stage, stage, timing, error);
    if (code == OK) code = compare(results, stage, apart, error);
    struct error after = {0};
    const int finished = bench.device->backend->finish(bench.device, &after);
    contest->unbind(stage->call.instance);
    stage->call.instance = NULL;
    if (code == OK && finished != OK) *error = after;
    return code == OK ? finished : code;
}

/* What the kernel says of the plan that it has now. */
static void name_plan(const struct problem *problem, const void *plan, char *out, size_t bytes) {
    const struct kernel *kernel = bench.device->backend->kernels(bench.device, problem->op)[0];
    snprintf(out, bytes, "%s", kernel->name);
    if (kernel->describe) kernel->describe(plan, out, bytes);
}

static void say_algorithm(struct stage *stage, void *plan, const struct contest *contest, int number,
                          struct results *results, const char *text) {
    struct timing timing = {.us = NAN};
    struct error error = {0};
    char name[200];
    double apart = NAN;
    int code = contest->take(stage->call.problem, plan, number, &error);
    name_plan(stage->call.problem, plan, name, sizeof name);
    fprintf(stderr, "%s %s: %s: number %d: %s\n", bench.model, bench.precision, text, number, name);
    if (code == OK) code = try_algorithm(stage, contest, results, &timing, &apart, &error);
    begin_line("algorithm");
    field_text("problem", text);
    field_number("number", number);
    field_text("name", name);
    if (code == OK) say_timing(&timing);
    if (code == OK) field_number("apart", isfinite(apart) ? apart : 1e30); /* not finite: no number in JSON */
    end_line(code, &error);
}

static bool is_new(const char *text) {
    for (int i = 0; i < bench.seen_count; i++)
        if (strcmp(bench.seen[i], text) == 0) return false;
    if (bench.seen_count < SEEN && (bench.seen[bench.seen_count] = strdup(text))) bench.seen_count++;
    return true;
}

static int time_algorithms(const struct problem *problem, void *plan, const struct contest *contest,
                           const char *text, struct error *error) {
    struct stage stage = {.call = {.plan = plan}};
    struct results results = {0};
    const size_t bytes = shape_count(&problem->output.shape) * type_bytes(problem->output.type);
    int code = open_stage(&stage, problem, error);
    if (code == OK) code = memory_array(&results.first, bytes + 1, "a result", error);
    if (code == OK) code = memory_array(&results.own, bytes + 1, "a result", error);
    for (int number = 0; number < contest->count && code == OK; number++)
        say_algorithm(&stage, plan, contest, number, &results, text);
    memory_free(results.first);
    memory_free(results.own);
    close_stage(&stage);
    return code;
}

int __wrap_gpu_measure(const struct problem *problem, void *plan, const struct contest *contest,
                       struct error *error) {
    char text[400], name[200];
    describe_problem(problem, text, sizeof text);
    const bool new = is_new(text);
    if (new) RETURN_IF(time_algorithms(problem, plan, contest, text, error));
    const int code = __real_gpu_measure(problem, plan, contest, error);
    if (!new || code != OK) return code;
    name_plan(problem, plan, name, sizeof name);
    begin_line("taken");
    field_text("problem", text);
    field_text("name", name);
    end_line(OK, NULL);
    return OK;
}

#endif
