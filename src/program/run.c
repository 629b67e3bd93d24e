/* Arenas, and running a program in one.
 *
 * An arena holds the calls of all instructions, with every address that does not change; a run only sets
 * the addresses of weights and gradients, then makes the calls. */
#include <assert.h>
#include <stdio.h>

#include "../base/memory.h"
#include "../device/copy.h"
#include "../device/record.h"
#include "passes.h"

/* An address that depends on the slabs of a run. Exactly one of input and output is set. */
struct patch {
    const void **input; /* in a call of the arena */
    void **output;
    struct place place;
};

/* The addresses that a run depends on. */
enum { FED = 4 };
struct addresses {
    const float *weights, *gradients;
    node fed[FED]; /* placeholders that are read elsewhere than in the arena, in the order of their setting */
    const void *at[FED];
    int fed_count;        /* above FED: more than are looked at */
    void *told;           /* where an output goes to, or NULL */
    node output;          /* which one ... */
    size_t told_bytes;    /* ... and how much of it */
    arena_before *before; /* what a run begins with, or NULL */
    void *argument;
};

/* Of the vectors, in floats: what an instruction and those before it read, and what it and those after it
 * write. */
struct reach {
    size_t until, from;
};

/* What the device replays for these addresses. */
struct recording {
    struct addresses addresses;
    void *kept; /* NULL: it was run once, and is to be recorded next time */
};
enum { RECORDINGS = 32 }; /* at most: slots times buffers of a worker, mostly */

struct arena {
    const struct program *program; /* borrowed */
    char *memory;                  /* [arena_bytes] on the device */
    struct call *calls;            /* [instruction_count] */
    struct patch *patches;         /* [patch_count] */
    int patch_count;
    char *constants;              /* copies on a device that has memory of its own; else NULL */
    struct addresses addresses;   /* of this run */
    struct call *told;            /* which writes the output to its place; NULL: it is copied there */
    struct recording *recordings; /* [RECORDINGS], of which recording_count are there, in a ring */
    int recording_count, recording_next;
    arena_step *step; /* is called before each instruction, or NULL, with: */
    void *step_argument;
    struct reach *reaches; /* [instruction_count] once anybody wants to know */
    int recorded_nodes;    /* of the first recording; 0: */
    char unrecorded[200];  /* why there is none; both written before: */
    _Atomic bool is_recording_known;
};

static const struct place *place_of(const struct program *program, node n) {
    return &program->values[program->values[n].root].place;
}

static bool is_fixed(const struct place *place) {
    return place->base == BASE_ARENA || place->base == BASE_CONSTANT;
}

static size_t constant_bytes(const struct program *program, node n) {
    const struct value *value = &program->values[n];
    if (!value->kept || value->root != n || value->place.base != BASE_CONSTANT) return 0;
    const size_t bytes = shape_count(&value->info.shape) * type_bytes(value->info.type);
    return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

/* Where the constant of root n begins among the copies. */
static size_t constant_offset(const struct program *program, node n) {
    size_t offset = 0;
    for (node before = 0; before < n; before++) offset += constant_bytes(program, before);
    return offset;
}

static int copy_constants(struct arena *arena, struct error *error) {
    const struct program *program = arena->program;
    const struct device *device = program->device;
    const size_t all = constant_offset(program, program->count);
    if (!device_apart(device) || all == 0) return OK;
    RETURN_IF(device_array(device, &arena->constants, all, "constants", error));
    for (node n = 0; n < program->count; n++) {
        const struct value *value = &program->values[n];
        if (constant_bytes(program, n) == 0) continue;
        RETURN_IF(device_copy(device, arena->constants + constant_offset(program, n), NULL,
                              value->place.constant,
                              shape_count(&value->info.shape) * type_bytes(value->info.type), error));
    }
    return OK;
}

static void set_call(struct arena *arena, int s) {
    const struct program *program = arena->program;
    const struct instruction *instruction = &program->instructions[s];
    struct call *call = &arena->calls[s];
    call->problem = &instruction->problem;
    call->plan = instruction->plan;
    for (int i = 0; i < instruction->problem.inputs; i++) {
        const node operand = program->values[instruction->n].info.input[i];
        const struct place *place = place_of(program, operand);
        if (instruction->problem.ready >> i & 1)
            call->input[i] = arena->memory + program->formed[instruction->formed[i]].offset;
        else if (place->base == BASE_CONSTANT && arena->constants)
            call->input[i] = arena->constants + constant_offset(program, program->values[operand].root);
        else if (place->base == BASE_CONSTANT)
            call->input[i] = place->constant;
        else if (place->base == BASE_ARENA)
            call->input[i] = arena->memory + place->offset;
        else
            arena->patches[arena->patch_count++] = (struct patch){.input = &call->input[i], .place = *place};
    }
    const struct place *place = place_of(program, instruction->n);
    if (is_fixed(place))
        call->output = arena->memory + place->offset;
    else
        arena->patches[arena->patch_count++] = (struct patch){.output = &call->output, .place = *place};
}

static int fill(struct arena *arena, struct error *error) {
    const struct program *program = arena->program;
    const size_t instructions = (size_t)program->instruction_count;
    RETURN_IF(device_array(program->device, &arena->memory,
                           program->arena_bytes > 0 ? program->arena_bytes : CACHE_LINE, "arena", error));
    RETURN_IF(memory_array(&arena->calls, instructions, "calls of an arena", error));
    RETURN_IF(memory_array(&arena->patches, instructions * (MAX_INPUTS + 1), "addresses of an arena", error));
    if (program->device->backend->record)
        RETURN_IF(memory_array(&arena->recordings, RECORDINGS, "recordings of an arena", error));
    RETURN_IF(copy_constants(arena, error));
    for (int s = 0; s < program->instruction_count; s++) {
        const struct instruction *instruction = &program->instructions[s];
        set_call(arena, s);
        if (instruction->kernel->bind)
            RETURN_IF(instruction->kernel->bind(&instruction->problem, instruction->plan,
                                                &arena->calls[s].instance, error));
    }
    return OK;
}

int arena_open(struct arena **out, const struct program *program, struct error *error) {
    *out = NULL;
    struct arena *arena = NULL;
    RETURN_IF(memory_array(&arena, 1, "arena", error));
    arena->program = program;
    const int code = fill(arena, error);
    if (code != OK) {
        arena_close(arena);
        return code;
    }
    *out = arena;
    return OK;
}

static void forget_all(struct arena *arena) {
    const struct device *device = arena->program->device;
    for (int r = 0; r < arena->recording_count; r++)
        if (arena->recordings[r].kept) device->backend->forget(device, arena->recordings[r].kept);
    memory_free(arena->recordings);
    arena->recordings = NULL;
    arena->recording_count = 0;
}

void arena_close(struct arena *arena) {
    if (!arena) return;
    const struct program *program = arena->program;
    for (int s = program->instruction_count - 1; s >= 0 && arena->calls; s--)
        if (arena->calls[s].instance && program->instructions[s].kernel->unbind)
            program->instructions[s].kernel->unbind(arena->calls[s].instance);
    const struct device *device = program->device;
    forget_all(arena);
    if (arena->constants) device->backend->release(device, arena->constants);
    memory_free(arena->reaches);
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

int arena_read(const struct arena *arena, node n, void *host, size_t bytes, struct error *error) {
    return device_copy(NULL, host, arena->program->device, arena_address(arena, n), bytes, error);
}

int arena_write(const struct arena *arena, node n, const void *host, size_t bytes, struct error *error) {
    return device_copy(arena->program->device, arena_address(arena, n), NULL, host, bytes, error);
}

static void note_input(struct addresses *addresses, node n, const void *address) {
    int i = 0;
    while (i < addresses->fed_count && i < FED && addresses->fed[i] != n) i++;
    if (i < FED) {
        addresses->fed[i] = n;
        addresses->at[i] = address;
    }
    if (i >= addresses->fed_count) addresses->fed_count = i + 1;
}

void arena_set_input(struct arena *arena, node n, const void *address) {
    const struct program *program = arena->program;
    if (!program_runs(program, n)) return;
    assert(is_fed(program->values[n].info.op) && !program->values[n].fetched);
    for (int s = 0; s < program->instruction_count; s++)
        for (int i = 0; i < program->instructions[s].problem.inputs; i++)
            if (program->values[program->values[program->instructions[s].n].info.input[i]].root == n)
                arena->calls[s].input[i] = address;
    note_input(&arena->addresses, n, address);
}

void arena_set_before(struct arena *arena, arena_before *before, void *argument) {
    arena->addresses.before = before;
    arena->addresses.argument = before ? argument : NULL;
}

/* The call that leaves the value of node n, which nothing else reads, wherever it is told; NULL: there is
 * none. */
static struct call *last_call(const struct arena *arena, node n) {
    const struct program *program = arena->program;
    struct call *call = NULL;
    for (int s = 0; s < program->instruction_count; s++) {
        const struct instruction *instruction = &program->instructions[s];
        for (int i = 0; i < instruction->problem.inputs; i++)
            if (program->values[program->values[instruction->n].info.input[i]].root == n) return NULL;
        if (instruction->n == n && instruction->kernel->writes_host) call = &arena->calls[s];
    }
    return call;
}

void arena_set_output(struct arena *arena, node n, void *host, size_t bytes) {
    struct addresses *addresses = &arena->addresses;
    const struct value *value = &arena->program->values[n];
    const size_t all = shape_count(&value->info.shape) * type_bytes(value->info.type);
    if (addresses->told == host && addresses->output == n && addresses->told_bytes == bytes) return;
    if (arena->told) arena->told->output = arena_address(arena, addresses->output);
    arena->told = host && bytes == all ? last_call(arena, n) : NULL;
    if (arena->told) arena->told->output = host;
    addresses->told = host;
    addresses->output = n;
    addresses->told_bytes = bytes;
}

/* Where a value that lies in one of the vectors ends in it, in floats; else 0. */
static size_t end_in(const struct program *program, node n, enum base base) {
    const struct value *root = &program->values[program->values[n].root];
    if (root->place.base != base) return 0;
    const size_t bytes = shape_count(&root->info.shape) * type_bytes(root->info.type);
    return (root->place.offset + bytes) / sizeof(float);
}

static int find_reaches(struct arena *arena, struct error *error) {
    const struct program *program = arena->program;
    const int count = program->instruction_count;
    size_t until = 0, from = 0;
    RETURN_IF(memory_array(&arena->reaches, count, "what instructions reach", error));
    for (int s = 0; s < count; s++) {
        const struct instruction *instruction = &program->instructions[s];
        for (int i = 0; i < instruction->problem.inputs; i++) {
            const node operand = program->values[instruction->n].info.input[i];
            const size_t end = end_in(program, operand, BASE_WEIGHTS);
            if (end > until) until = end;
        }
        arena->reaches[s].until = until;
    }
    for (int s = count - 1; s >= 0; s--) {
        const size_t end = end_in(program, program->instructions[s].n, BASE_GRADIENTS);
        if (end > from) from = end;
        arena->reaches[s].from = from;
    }
    return OK;
}

int arena_set_step(struct arena *arena, arena_step *step, void *argument, struct error *error) {
    assert(!device_apart(arena->program->device) && !arena->program->assigns &&
           arena->program->formed_count == 0);
    arena->step = step;
    arena->step_argument = argument;
    return step && !arena->reaches ? find_reaches(arena, error) : OK;
}

struct call *arena_call(const struct arena *arena, node n) {
    int s = 0;
    while (s < arena->program->instruction_count && arena->program->instructions[s].n != n) s++;
    assert(s < arena->program->instruction_count);
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

static int run_steps(const struct program *program, struct arena *arena, struct error *error) {
    if (arena->addresses.before) RETURN_IF(arena->addresses.before(arena->addresses.argument, error));
    RETURN_IF(program_make_forms(program, arena->addresses.weights, arena->memory, error));
    for (int s = 0; s < program->instruction_count; s++) {
        if (arena->step)
            RETURN_IF(
                arena->step(arena->step_argument, arena->reaches[s].until, arena->reaches[s].from, error));
        RETURN_IF(program->instructions[s].kernel->run(&arena->calls[s], error));
    }
    const struct addresses *addresses = &arena->addresses;
    if (!addresses->told || arena->told) return OK;
    const struct device *device = program->device;
    return device->backend->queue_copy(device, addresses->told, arena_address(arena, addresses->output),
                                       addresses->told_bytes, error);
}

int program_run_nodes(const struct program *program, struct arena *arena, node begin, node end,
                      float *weights, float *gradients, _Atomic int *at, struct error *error) {
    RETURN_IF(set_slabs(program, arena, weights, gradients, error));
    RETURN_IF(program_make_forms(program, weights, arena->memory, error));
    for (int s = 0; s < program->instruction_count; s++) {
        const node n = program->instructions[s].n;
        if (n < begin || n >= end) continue;
        atomic_store_explicit(at, n, memory_order_relaxed);
        RETURN_IF(program->instructions[s].kernel->run(&arena->calls[s], error));
    }
    return OK;
}

/* --- recordings --- */

/* Whether all that a run does is queued on the device. */
static bool is_queued(const struct program *program) {
    for (int s = 0; s < program->instruction_count; s++)
        if (program->instructions[s].kernel == &program_soft_kernel) return false;
    return true;
}

static bool is_same(const struct addresses *a, const struct addresses *b) {
    bool same = a->weights == b->weights && a->gradients == b->gradients && a->fed_count == b->fed_count &&
                a->told == b->told && a->output == b->output && a->told_bytes == b->told_bytes &&
                a->before == b->before && a->argument == b->argument;
    for (int i = 0; same && i < a->fed_count; i++) same = a->fed[i] == b->fed[i] && a->at[i] == b->at[i];
    return same;
}

/* The recording for the addresses of this run, if there is one; else room for one, the oldest one's, in which
 * these addresses are noted, and NULL. */
static struct recording *find_recording(struct arena *arena) {
    for (int r = 0; r < arena->recording_count; r++)
        if (is_same(&arena->recordings[r].addresses, &arena->addresses)) return &arena->recordings[r];
    const struct device *device = arena->program->device;
    struct recording *room = &arena->recordings[arena->recording_next];
    if (room->kept) device->backend->forget(device, room->kept);
    *room = (struct recording){.addresses = arena->addresses};
    arena->recording_next = (arena->recording_next + 1) % RECORDINGS;
    if (arena->recording_count < RECORDINGS) arena->recording_count++;
    return NULL;
}

static void note_recording(struct arena *arena, int nodes, const char *why) {
    if (atomic_load_explicit(&arena->is_recording_known, memory_order_relaxed)) return;
    arena->recorded_nodes = nodes;
    snprintf(arena->unrecorded, sizeof arena->unrecorded, "%.*s", (int)sizeof arena->unrecorded - 1, why);
    atomic_store_explicit(&arena->is_recording_known, true, memory_order_release);
}

bool arena_recording(const struct arena *arena, struct recording_facts *facts) {
    if (!atomic_load_explicit(&arena->is_recording_known, memory_order_acquire)) return false;
    *facts = (struct recording_facts){arena->recorded_nodes, arena->unrecorded};
    return true;
}

struct steps {
    const struct program *program;
    struct arena *arena;
};

static int queue_steps(void *argument, struct error *error) {
    const struct steps *steps = argument;
    return run_steps(steps->program, steps->arena, error);
}

/* What a device cannot keep is not tried again. */
static int record(const struct program *program, struct arena *arena, struct recording *recording,
                  struct error *error) {
    struct steps steps = {program, arena};
    struct device_recorded facts;
    RETURN_IF(device_record(program->device, queue_steps, &steps, &recording->kept, &facts, error));
    note_recording(arena, facts.nodes, facts.why);
    if (!recording->kept) forget_all(arena);
    return OK;
}

/* The first run for these addresses is not recorded, the second is. */
static int run_recorded(const struct program *program, struct arena *arena, struct error *error) {
    struct recording *recording = find_recording(arena);
    if (!recording) return run_steps(program, arena, error);
    if (!recording->kept) RETURN_IF(record(program, arena, recording, error));
    if (!arena->recordings) return run_steps(program, arena, error);
    return program->device->backend->replay(program->device, recording->kept, error);
}

int program_run(const struct program *program, struct arena *arena, float *weights, float *gradients,
                struct error *error) {
    RETURN_IF(set_slabs(program, arena, weights, gradients, error));
    arena->addresses.weights = weights;
    arena->addresses.gradients = gradients;
    if (arena->recordings && arena->addresses.fed_count <= FED && is_queued(program))
        return run_recorded(program, arena, error);
    if (arena->recordings)
        note_recording(arena, 0,
                       is_queued(program) ? "too many of its inputs change their place"
                                          : "the CPU computes a part of it");
    return run_steps(program, arena, error);
}

int program_time(const struct program *program, struct arena *arena, float *weights, float *gradients,
                 const struct world *world, double *seconds, struct error *error) {
    RETURN_IF(set_slabs(program, arena, weights, gradients, error));
    RETURN_IF(program_make_forms(program, weights, arena->memory, error));
    double began = world_now(world);
    for (int s = 0; s < program->instruction_count; s++) {
        RETURN_IF(program->instructions[s].kernel->run(&arena->calls[s], error));
        RETURN_IF(program->device->backend->finish(program->device, error));
        const double now = world_now(world);
        if (seconds[s] <= 0.0 || now - began < seconds[s]) seconds[s] = now - began;
        began = now;
    }
    return OK;
}
