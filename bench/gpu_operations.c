/* Times what a step of a model does on a GPU, by replays of recorded work, on random data: each algorithm
 * that cuBLASLt and cuDNN offer for each of its products and convolutions, with its status and how far its
 * result is from the first one's; each operation; the step as a whole; and the update of the weights by each
 * optimizer. Or, with `all`, every operation that takes one or two arrays of one shape, on 1 Mi floats.
 *
 *   bench/gpu_operations MODEL INPUT BATCH fp32|tf32|bf16 [RUNS]      as in: alexnet 24x24x3 128 bf16
 *   bench/gpu_operations all [RUNS]
 *
 * Prints a line of JSON for each, as soon as it is known. A recording has RUNS (20) of the work in a row and
 * is replayed five times; the time is the device's, of the fastest replay, for one of its runs. What cannot
 * be recorded is queued as often instead, and said to be so. To stderr goes what is tried next, so that the
 * log of one that hangs says what hung. The contests are those of cuda/measure.h: the linker puts
 * __wrap_gpu_measure where the backend calls gpu_measure. Exit code 4 where there is no GPU, 1 when something
 * failed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cuda/measure.h"
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/cpu/bf16.h"
#include "../src/engine/network.h"
#include "../src/graph/model.h"
#include "../src/graph/rules.h"
#include "../src/program/passes.h"
#include "../src/store/optimizer.h"

enum { CLASSES = 10, REPLAYS = 5, SEEN = 256 };

int __real_gpu_measure(const struct problem *problem, void *plan, const struct contest *contest,
                       struct error *error);
int __wrap_gpu_measure(const struct problem *problem, void *plan, const struct contest *contest,
                       struct error *error);

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

/* Microseconds on the device, of one run of the work in what `begin` queues. */
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

/* --- algorithms --- */

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

/* --- a model's step --- */

struct step {
    struct network network;
    struct program *program;
    struct arena *arena;
    float *weights, *gradients; /* on the device */
    int batch;
};

static int compile_step(struct step *step, struct error *error) {
    const struct network *network = &step->network;
    node *fetches = NULL;
    RETURN_IF(memory_array(&fetches, (size_t)network->gradient_count + 1, "fetches", error));
    fetches[0] = network->decayed_loss;
    memcpy(fetches + 1, network->gradients, (size_t)network->gradient_count * sizeof(node));
    const int code = program_compile(&step->program, &network->graph, fetches, network->gradient_count + 1,
                                     bench.device, error);
    memory_free(fetches);
    return code;
}

static int fill_step(struct step *step, struct error *error) {
    const struct layout *layout = &step->network.graph.layout;
    const node x = step->network.x, labels = step->network.labels;
    float *host = NULL;
    RETURN_IF(memory_array(&host, layout->floats, "weights", error));
    layout_initialize(layout, 1, host);
    const int code =
        bench.device->backend->copy(bench.device, step->weights, host, layout->floats * sizeof(float), error);
    memory_free(host);
    RETURN_IF(code);
    RETURN_IF(fill_array(arena_address(step->arena, x), &step->network.graph.nodes[x].shape, TYPE_FLOAT, 50,
                         error));
    return fill_array(arena_address(step->arena, labels), &step->network.graph.nodes[labels].shape,
                      step->network.graph.nodes[labels].type, 51, error);
}

static int open_step(struct step *step, const struct choice *model, struct shape input, int batch,
                     struct error *error) {
    const struct network_settings settings = {.model = model,
                                              .shape = input,
                                              .classes = CLASSES,
                                              .batch = batch,
                                              .training = true,
                                              .seed = 1,
                                              .shards = 1};
    step->batch = batch;
    RETURN_IF(network_open(&step->network, &settings, error));
    RETURN_IF(compile_step(step, error));
    RETURN_IF(arena_open(&step->arena, step->program, error));
    const size_t floats = step->network.graph.layout.floats;
    RETURN_IF(device_array(bench.device, &step->weights, floats, "weights", error));
    RETURN_IF(device_array(bench.device, &step->gradients, floats, "gradients", error));
    return fill_step(step, error);
}

static void close_step(struct step *step) {
    if (step->weights) bench.device->backend->release(bench.device, step->weights);
    if (step->gradients) bench.device->backend->release(bench.device, step->gradients);
    arena_close(step->arena);
    program_close(step->program);
    network_close(&step->network);
}

struct one {
    const struct kernel *kernel;
    struct call *call;
};

static int run_one(void *argument, struct error *error) {
    const struct one *one = argument;
    return one->kernel->run(one->call, error);
}

/* Each instruction by itself. program_time, run once, has given all of them their addresses. */
static int time_instructions(struct step *step, struct error *error) {
    const struct program *program = step->program;
    double *seconds = NULL;
    RETURN_IF(memory_array(&seconds, (size_t)program->instruction_count, "times", error));
    const int code =
        program_time(program, step->arena, step->weights, step->gradients, bench.world, seconds, error);
    memory_free(seconds);
    RETURN_IF(code);
    for (int s = 0; s < program->instruction_count; s++) {
        const struct instruction *instruction = &program->instructions[s];
        struct one one = {instruction->kernel, arena_call(step->arena, instruction->n)};
        struct timing timing;
        struct error failure = {0};
        char text[400], name[200];
        describe_problem(&instruction->problem, text, sizeof text);
        snprintf(name, sizeof name, "%s", instruction->kernel->name);
        if (instruction->kernel->describe)
            instruction->kernel->describe(instruction->plan, name, sizeof name);
        fprintf(stderr, "%s %s: operation %d: %s\n", bench.model, bench.precision, s, text);
        const int failed = time_work(run_one, &one, &timing, &failure);
        begin_line("operation");
        field_text("problem", text);
        field_text("name", name);
        if (failed == OK) say_timing(&timing);
        field_number("bytes", bytes_of(&instruction->problem));
        field_number("multiply_adds", multiply_adds_of(&instruction->problem));
        end_line(failed, &failure);
    }
    return OK;
}

static int run_instructions(void *argument, struct error *error) {
    const struct step *step = argument;
    for (int s = 0; s < step->program->instruction_count; s++) {
        const struct instruction *instruction = &step->program->instructions[s];
        RETURN_IF(instruction->kernel->run(arena_call(step->arena, instruction->n), error));
    }
    return OK;
}

/* The program as a worker runs it: replayed, when it can be recorded. */
static int time_runs(const struct step *step, bool wait_each, double *us, struct error *error) {
    const int runs = 10 * bench.runs;
    const double began = world_now(bench.world);
    for (int i = 0; i < runs; i++) {
        RETURN_IF(program_run(step->program, step->arena, step->weights, step->gradients, error));
        if (wait_each || i == runs - 1) RETURN_IF(bench.device->backend->finish(bench.device, error));
    }
    *us = 1e6 * (world_now(bench.world) - began) / runs;
    return OK;
}

static int time_step(struct step *step, struct error *error) {
    struct timing timing;
    double queued = NAN, waited = NAN;
    fprintf(stderr, "%s %s: the step\n", bench.model, bench.precision);
    int code = time_work(run_instructions, step, &timing, error);
    for (int i = 0; i < 3 && code == OK; i++) /* run, recorded, replayed */
        code = program_run(step->program, step->arena, step->weights, step->gradients, error);
    if (code == OK) code = time_runs(step, false, &queued, error);
    if (code == OK) code = time_runs(step, true, &waited, error);
    begin_line("step");
    field_number("batch", step->batch);
    field_number("instructions", step->program->instruction_count);
    if (code == OK) {
        say_timing(&timing);
        field_number("queued_us", queued);
        field_number("waited_us", waited);
    }
    end_line(code, error);
    return code;
}

/* --- the update of the weights --- */

struct updating {
    struct update update;
    struct update_slice slice;
    const float *gradient;
    struct state state;
};

static int run_update(void *argument, struct error *error) {
    const struct updating *u = argument;
    return bench.device->backend->vectors->update(bench.device, &u->update, &u->slice, error);
}

static int open_updating(struct updating *u, const struct choice *optimizer, const struct step *step,
                         struct error *error) {
    const size_t floats = step->network.graph.layout.floats;
    u->update = optimizer_update(optimizer, 1);
    u->update.rate = 1e-6f;
    u->gradient = step->gradients;
    u->state.count = 1 + u->update.moments;
    u->state.vector[0].name = "";
    u->state.vector[0].at = step->weights;
    for (int m = 0; m < u->update.moments; m++) {
        u->state.vector[1 + m].name = "moment";
        RETURN_IF(device_array(bench.device, &u->state.vector[1 + m].at, floats, "moments", error));
    }
    u->slice =
        (struct update_slice){.end = floats, .state = &u->state, .count = 1, .gradients = &u->gradient};
    return OK;
}

static void time_update(const struct step *step, const char *name) {
    struct choice optimizer = {0};
    struct updating u = {0};
    struct timing timing = {.us = NAN};
    struct error error = {0};
    fprintf(stderr, "%s %s: update by %s\n", bench.model, bench.precision, name);
    int code = plugin_choose(&optimizer, &optimizer_kind, name, &error);
    if (code == OK) code = open_updating(&u, &optimizer, step, &error);
    if (code == OK) code = time_work(run_update, &u, &timing, &error);
    begin_line("update");
    field_text("name", name);
    field_number("floats", (double)step->network.graph.layout.floats);
    if (code == OK) say_timing(&timing);
    end_line(code, &error);
    for (int m = 1; m < u.state.count; m++)
        if (u.state.vector[m].at) bench.device->backend->release(bench.device, u.state.vector[m].at);
}

static int measure_model(const struct choice *model, struct shape input, int batch, struct error *error) {
    struct step step = {0};
    int code = open_step(&step, model, input, batch, error);
    if (code == OK) code = time_instructions(&step, error);
    if (code == OK) code = time_step(&step, error);
    for (int i = 0; code == OK && optimizer_kind.plugins[i]; i++)
        time_update(&step, optimizer_kind.plugins[i]->name);
    close_step(&step);
    return code;
}

/* --- every operation --- */

/* The operation's problem on arrays of that shape; false: it takes no such arrays. */
static bool make_problem(struct graph *g, enum op op, int inputs, struct shape shape,
                         struct problem *problem) {
    struct node_info info = {.op = op, .inputs = inputs};
    for (int i = 0; i < inputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "operand%d", i);
        info.input[i] = graph_placeholder(g, name, TYPE_FLOAT, shape);
    }
    const node n = graph_make(g, &info);
    if (n == NONE || g->error.code) return false;
    *problem = (struct problem){
        .op = op, .attributes = &g->nodes[n].attributes, .inputs = inputs, .device = bench.device};
    for (int i = 0; i < inputs; i++) {
        problem->input[i].shape = shape;
        problem->input[i].type = TYPE_FLOAT;
    }
    problem->output.shape = g->nodes[n].shape;
    problem->output.type = g->nodes[n].type;
    return true;
}

static int time_problem(const struct problem *problem, const struct kernel *kernel, struct timing *timing,
                        struct error *error) {
    struct stage stage = {.run = kernel->run};
    void *plan = NULL;
    RETURN_IF(kernel->prepare ? kernel->prepare(problem, &plan, error) : OK);
    stage.call.plan = plan;
    int code = open_stage(&stage, problem, error);
    if (code == OK && kernel->bind) code = kernel->bind(problem, plan, &stage.call.instance, error);
    if (code == OK) code = time_work(run_stage, &stage, timing, error);
    if (stage.call.instance && kernel->unbind) kernel->unbind(stage.call.instance);
    close_stage(&stage);
    if (kernel->release) kernel->release(plan);
    return code;
}

static void measure_operation(enum op op) {
    const int inputs = operations[op].inputs;
    const struct kernel *const *kernels = bench.device->backend->kernels(bench.device, op);
    struct graph g;
    struct problem problem;
    struct timing timing = {.us = NAN};
    struct error error = {0};
    char text[400];
    graph_open(&g, true, 1);
    if (kernels && kernels[0] && inputs > 0 && inputs <= 2 && !is_assign(op) &&
        make_problem(&g, op, inputs, SHAPE(256, 4096), &problem)) {
        describe_problem(&problem, text, sizeof text);
        fprintf(stderr, "%s\n", text);
        const int code = time_problem(&problem, kernels[0], &timing, &error);
        begin_line("operation");
        field_text("problem", text);
        field_text("name", kernels[0]->name);
        if (code == OK) say_timing(&timing);
        field_number("bytes", bytes_of(&problem));
        end_line(code, &error);
    }
    graph_close(&g);
}

static void measure_all(void) {
    for (int op = 0; op < OPS; op++) measure_operation((enum op)op);
}

/* --- what is asked for --- */

struct wish {
    struct choice model;
    struct shape input;
    int batch;
    enum precision precision;
    bool all;
};

/* "24x24x3" */
static bool parse_shape(const char *text, struct shape *shape) {
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

static bool parse(int count, char **arguments, struct wish *wish, struct error *error) {
    const char *const precisions[] = {
        [PRECISION_FP32] = "fp32", [PRECISION_BF16] = "bf16", [PRECISION_TF32] = "tf32"};
    bench.model = count > 1 ? arguments[1] : "";
    bench.precision = "fp32";
    bench.runs = 20;
    wish->all = count > 1 && count < 4 && strcmp(arguments[1], "all") == 0;
    if (wish->all && count > 2) bench.runs = atoi(arguments[2]);
    if (wish->all) return bench.runs > 0 && bench.runs <= 1000;
    if (count < 5 || count > 6 || !parse_shape(arguments[2], &wish->input)) return false;
    wish->batch = atoi(arguments[3]);
    bench.runs = count > 5 ? atoi(arguments[5]) : 20;
    for (int p = 0; p < 3; p++)
        if (strcmp(arguments[4], precisions[p]) == 0) {
            wish->precision = (enum precision)p;
            bench.precision = precisions[p];
            return wish->batch > 0 && bench.runs > 0 && bench.runs <= 1000 &&
                   plugin_choose(&wish->model, &model_kind, arguments[1], error) == OK;
        }
    return false;
}

static int measure(const struct wish *wish, struct error *error) {
    const struct device_settings settings = {.precision = wish->precision};
    struct device *devices = NULL;
    int found = 0;
    bool shared = false;
    int code = world_open_threads(&bench.world, error);
    if (code == OK) code = devices_open("gpu:0", &settings, &devices, &found, &shared, error);
    if (code == OK) {
        bench.device = devices;
        devices->backend->enter(devices);
        code = devices->backend->marks->open(devices, true, &bench.mark, error);
        if (code == OK && wish->all) measure_all();
        if (code == OK && !wish->all) code = measure_model(&wish->model, wish->input, wish->batch, error);
        if (bench.mark) devices->backend->marks->close(devices, bench.mark);
    }
    devices_close(devices, found);
    world_close(bench.world);
    return code;
}

int main(int count, char **arguments) {
    struct wish wish = {0};
    struct error error = {0};
    if (!parse(count, arguments, &wish, &error)) {
        fprintf(stderr,
                "usage: gpu_operations MODEL INPUT BATCH fp32|tf32|bf16 [RUNS], or gpu_operations all%s%s\n",
                error.code ? ": " : "", error.words);
        return ERROR_USAGE;
    }
    const int code = measure(&wish, &error);
    if (code != OK) fprintf(stderr, "gpu_operations: %s\n", error.words);
    for (int i = 0; i < bench.seen_count; i++) free(bench.seen[i]);
    return code != OK ? code : bench.failed > 0 ? 1 : 0;
}
