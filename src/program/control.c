/* Loops and conditions: their branches (src/graph/control.h) are compiled for the same device as the program
 * around them, and run in arenas of their own, on its thread.
 *
 * The gradient of a loop repeats it, keeps the state before each round, and goes back through the rounds. */
#include <string.h>
#include "../base/memory.h"
#include "../graph/control.h"
#include "passes.h"

/* The branches that an operation runs, compiled. */
enum { FIRST, SECOND, BACK, PROGRAMS };
struct control {
    const struct branch *branch[PROGRAMS]; /* NULL: not this operation's */
    bool differentiates[PROGRAMS];         /* runs the gradient instead of the value */
    struct program *program[PROGRAMS];
};

struct control_instance {
    const struct control *control;
    struct arena *arena[PROGRAMS];
    float *states; /* [limit + 1][n] of while_grad: before each round, and after the last */
};

static void release(void *plan) {
    struct control *control = plan;
    for (int i = 0; i < PROGRAMS; i++) program_close(control->program[i]);
    memory_free(control);
}

static int compile(struct control *control, const struct device *device, struct error *error) {
    for (int i = 0; i < PROGRAMS; i++) {
        const struct branch *branch = control->branch[i];
        if (!branch) continue;
        const node *fetch = control->differentiates[i] ? &branch->gradient : &branch->out;
        RETURN_IF(program_compile(&control->program[i], &branch->graph, fetch, 1, device, error));
    }
    return OK;
}

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    const struct branch *branch = problem->attributes->inner->branch;
    struct control *control = NULL;
    RETURN_IF(program_here(problem, plan, error));
    RETURN_IF(memory_array(&control, 1, "a graph within a graph", error));
    control->branch[FIRST] = &branch[0];
    control->branch[SECOND] = &branch[1];
    if (problem->op == OP_while_grad) control->branch[BACK] = &branch[WHILE_BODY];
    control->differentiates[BACK] = true;
    control->differentiates[FIRST] = control->differentiates[SECOND] = problem->op == OP_cond_grad;
    const int code = compile(control, problem->device, error);
    if (code == OK)
        *plan = control;
    else
        release(control);
    return code;
}

static void unbind(void *instance) {
    struct control_instance *own = instance;
    for (int i = 0; i < PROGRAMS; i++) arena_close(own->arena[i]);
    memory_free(own->states);
    memory_free(own);
}

static int bind_all(struct control_instance *own, const struct problem *problem, struct error *error) {
    for (int i = 0; i < PROGRAMS; i++)
        if (own->control->program[i]) RETURN_IF(arena_open(&own->arena[i], own->control->program[i], error));
    if (problem->op != OP_while_grad) return OK;
    const size_t rounds = (size_t)problem->attributes->limit + 1;
    return memory_array(&own->states, rounds * shape_count(&problem->output.shape), "the states of a loop",
                        error);
}

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    struct control_instance *own = NULL;
    RETURN_IF(memory_array(&own, 1, "a graph within a graph", error));
    own->control = plan;
    const int code = bind_all(own, problem, error);
    if (code == OK)
        *instance = own;
    else
        unbind(own);
    return code;
}

/* Runs program i on in[] and, where it differentiates, dy[]. *out: its value, until it is run again. */
static int run_branch(const struct control_instance *own, int i, const float *in, const float *dy,
                      const void **out, struct error *error) {
    const struct control *control = own->control;
    const struct branch *branch = control->branch[i];
    const struct node_info *nodes = branch->graph.nodes;
    const bool back = control->differentiates[i];
    float *to_in = arena_address(own->arena[i], branch->in); /* NULL: it does not look at it */
    float *to_dy = back ? arena_address(own->arena[i], branch->dy) : NULL;
    if (to_in) memcpy(to_in, in, shape_count(&nodes[branch->in].shape) * sizeof *in);
    if (to_dy && dy) memcpy(to_dy, dy, shape_count(&nodes[branch->dy].shape) * sizeof *dy);
    RETURN_IF(program_run(control->program[i], own->arena[i], NULL, NULL, error));
    *out = arena_address(own->arena[i], back ? branch->gradient : branch->out);
    return OK;
}

/* *on: whether the loop goes on from this state, which has come about in so many rounds. */
static int ask(const struct call *call, const float *state, int rounds, bool *on, struct error *error) {
    const int limit = call->problem->attributes->limit;
    const void *holds = NULL;
    RETURN_IF(run_branch(call->instance, WHILE_CONDITION, state, NULL, &holds, error));
    *on = *(const uint8_t *)holds != 0;
    if (!*on || rounds < limit) return OK;
    return error_set(error, ERROR_USAGE, "while: its condition still holds after %d rounds, its limit",
                     limit);
}

static size_t bytes_of(const struct call *call) {
    return shape_count(&call->problem->output.shape) * sizeof(float);
}

static int run_while(const struct call *call, struct error *error) {
    const void *next = NULL;
    float *state = call->output;
    bool on = false;
    memcpy(state, call->input[0], bytes_of(call));
    for (int round = 0;; round++) {
        RETURN_IF(ask(call, state, round, &on, error));
        if (!on) return OK;
        RETURN_IF(run_branch(call->instance, WHILE_BODY, state, NULL, &next, error));
        memcpy(state, next, bytes_of(call));
    }
}
const struct kernel program_while = {.name = "program:while",
                                     .prepare = prepare,
                                     .release = release,
                                     .bind = bind,
                                     .unbind = unbind,
                                     .run = run_while};

static int run_while_grad(const struct call *call, struct error *error) {
    const struct control_instance *own = call->instance;
    const size_t floats = shape_count(&call->problem->output.shape);
    const void *next = NULL;
    float *dx = call->output;
    int rounds = 0;
    bool on = false;
    memcpy(own->states, call->input[0], bytes_of(call));
    for (;; rounds++) {
        float *state = own->states + (size_t)rounds * floats;
        RETURN_IF(ask(call, state, rounds, &on, error));
        if (!on) break;
        RETURN_IF(run_branch(own, WHILE_BODY, state, NULL, &next, error));
        memcpy(state + floats, next, bytes_of(call));
    }
    memcpy(dx, call->input[1], bytes_of(call));
    while (rounds-- > 0) {
        RETURN_IF(run_branch(own, BACK, own->states + (size_t)rounds * floats, dx, &next, error));
        memcpy(dx, next, bytes_of(call));
    }
    return OK;
}
const struct kernel program_while_grad = {.name = "program:while_grad",
                                          .prepare = prepare,
                                          .release = release,
                                          .bind = bind,
                                          .unbind = unbind,
                                          .run = run_while_grad};

/* Of cond and of its gradient. */
static int run_cond(const struct call *call, struct error *error) {
    const bool holds = *(const uint8_t *)call->input[0] != 0;
    const void *value = NULL;
    RETURN_IF(run_branch(call->instance, holds ? COND_TRUE : COND_FALSE, call->input[1], call->input[2],
                         &value, error));
    memcpy(call->output, value, bytes_of(call));
    return OK;
}
const struct kernel program_cond = {.name = "program:cond",
                                    .prepare = prepare,
                                    .release = release,
                                    .bind = bind,
                                    .unbind = unbind,
                                    .run = run_cond};
const struct kernel program_cond_grad = {.name = "program:cond_grad",
                                         .prepare = prepare,
                                         .release = release,
                                         .bind = bind,
                                         .unbind = unbind,
                                         .run = run_cond};
