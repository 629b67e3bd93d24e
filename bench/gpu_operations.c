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
 * log of one that hangs says what hung. Exit code 4 where there is no GPU, 1 when something
 * failed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/engine/network.h"
#include "../src/graph/model.h"
#include "../src/graph/rules.h"
#include "../src/program/passes.h"
#include "../src/store/optimizer.h"
#include "gpu_contests.h"

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
