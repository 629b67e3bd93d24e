/* Arenas, and running a program in one.
 *
 * An arena holds the calls of all steps with every address that does not change; a run only sets the
 * addresses in the weights and the gradients, then makes the calls. */
#include <assert.h>

#include "../base/memory.h"
#include "parts.h"

/* An address that depends on the slabs of a run. Exactly one of input and output is set. */
struct patch {
    const void **input; /* in a call of the arena */
    void **output;
    struct place place;
};

struct arena {
    const struct program *program; /* borrowed */
    char *memory;                  /* [arena_bytes] on the device */
    struct call *calls;            /* [step_count] */
    struct patch *patches;         /* [patch_count] */
    int patch_count;
};

static const struct place *place_of(const struct program *program, node n) {
    return &program->values[program->values[n].root].place;
}

static bool is_fixed(const struct place *place) {
    return place->base == BASE_ARENA || place->base == BASE_CONSTANT;
}

static void set_call(struct arena *arena, int s) {
    const struct program *program = arena->program;
    const struct step *step = &program->steps[s];
    struct call *call = &arena->calls[s];
    call->task = &step->task;
    call->plan = step->plan;
    for (int i = 0; i < step->task.inputs; i++) {
        const struct place *place = place_of(program, program->values[step->n].info.input[i]);
        if (place->base == BASE_CONSTANT)
            call->input[i] = place->constant;
        else if (place->base == BASE_ARENA)
            call->input[i] = arena->memory + place->offset;
        else
            arena->patches[arena->patch_count++] = (struct patch){.input = &call->input[i], .place = *place};
    }
    const struct place *place = place_of(program, step->n);
    if (is_fixed(place))
        call->output = arena->memory + place->offset;
    else
        arena->patches[arena->patch_count++] = (struct patch){.output = &call->output, .place = *place};
}

static int fill(struct arena *arena, struct error *error) {
    const struct program *program = arena->program;
    const size_t steps = (size_t)program->step_count;
    RETURN_IF(program->device->backend->allocate(program->device, (void **)&arena->memory,
                                                 program->arena_bytes > 0 ? program->arena_bytes : CACHE_LINE,
                                                 "arena", error));
    RETURN_IF(memory_zeroed((void **)&arena->calls, steps, sizeof *arena->calls, "calls of an arena", error));
    RETURN_IF(memory_zeroed((void **)&arena->patches, steps * (MAX_INPUTS + 1), sizeof *arena->patches,
                            "addresses of an arena", error));
    for (int s = 0; s < program->step_count; s++) {
        const struct step *step = &program->steps[s];
        set_call(arena, s);
        if (step->kernel->bind)
            RETURN_IF(step->kernel->bind(&step->task, step->plan, &arena->calls[s].instance, error));
    }
    return OK;
}

int arena_open(struct arena **out, const struct program *program, struct error *error) {
    *out = NULL;
    struct arena *arena = NULL;
    RETURN_IF(memory_zeroed((void **)&arena, 1, sizeof *arena, "arena", error));
    arena->program = program;
    const int code = fill(arena, error);
    if (code != OK) {
        arena_close(arena);
        return code;
    }
    *out = arena;
    return OK;
}

void arena_close(struct arena *arena) {
    if (!arena) return;
    const struct program *program = arena->program;
    for (int s = program->step_count - 1; s >= 0 && arena->calls; s--)
        if (arena->calls[s].instance && program->steps[s].kernel->unbind)
            program->steps[s].kernel->unbind(arena->calls[s].instance);
    memory_free(arena->patches);
    memory_free(arena->calls);
    if (arena->memory) program->device->backend->release(program->device, arena->memory);
    memory_free(arena);
}

void *arena_address(const struct arena *arena, node n) {
    const struct program *program = arena->program;
    if (!program_runs(program, n)) return NULL;
    const struct value *value = &program->values[n];
    const struct place *place = place_of(program, n);
    if (place->base != BASE_ARENA || (!value->fetched && value->info.op != OP_placeholder)) return NULL;
    return arena->memory + place->offset;
}

void arena_set_input(struct arena *arena, node n, const void *address) {
    const struct program *program = arena->program;
    if (!program_runs(program, n)) return;
    assert(program->values[n].info.op == OP_placeholder && !program->values[n].fetched);
    for (int s = 0; s < program->step_count; s++)
        for (int i = 0; i < program->steps[s].task.inputs; i++)
            if (program->values[program->values[program->steps[s].n].info.input[i]].root == n)
                arena->calls[s].input[i] = address;
}

struct call *arena_call(const struct arena *arena, node n) {
    int s = 0;
    while (s < arena->program->step_count && arena->program->steps[s].n != n) s++;
    assert(s < arena->program->step_count);
    return &arena->calls[s];
}

/* Sets the addresses that depend on the slabs of this run. */
static int set_slabs(const struct program *program, struct arena *arena, float *weights, float *gradients,
                     struct error *error) {
    if ((program->needs_weights && !weights) || (program->needs_gradients && !gradients))
        return error_set(error, ERROR_DEVICE, "the program runs without %s, which it uses",
                         program->needs_weights && !weights ? "weights" : "gradients");
    for (int i = 0; i < arena->patch_count; i++) {
        const struct patch *patch = &arena->patches[i];
        char *base = (char *)(patch->place.base == BASE_WEIGHTS ? weights : gradients);
        if (patch->input)
            *patch->input = base + patch->place.offset;
        else
            *patch->output = base + patch->place.offset;
    }
    return OK;
}

int program_run(const struct program *program, struct arena *arena, float *weights, float *gradients,
                struct error *error) {
    RETURN_IF(set_slabs(program, arena, weights, gradients, error));
    for (int s = 0; s < program->step_count; s++)
        RETURN_IF(program->steps[s].kernel->run(&arena->calls[s], error));
    return OK;
}

int program_time(const struct program *program, struct arena *arena, float *weights, float *gradients,
                 const struct world *world, double *seconds, struct error *error) {
    RETURN_IF(set_slabs(program, arena, weights, gradients, error));
    double began = world_now(world);
    for (int s = 0; s < program->step_count; s++) {
        RETURN_IF(program->steps[s].kernel->run(&arena->calls[s], error));
        const double now = world_now(world);
        if (seconds[s] <= 0.0 || now - began < seconds[s]) seconds[s] = now - began;
        began = now;
    }
    return OK;
}
