/* Programs: compiling, pass by pass.
 *
 * Instructions run in the order in which their nodes were made. So nodes built after an assign that is
 * fetched see its value, and nodes built before it see the old one. Where a program assigns, nothing is
 * fused and no variable is viewed in place, so that this holds without exception. */
#include "program.h"

#include "../base/memory.h"
#include "passes.h"

int program_check_fetches(const struct graph *graph, const node *fetches, int count, struct error *error) {
    RETURN_IF(graph_check(graph, error));
    for (int i = 0; i < count; i++)
        if (fetches[i] < 0 || fetches[i] >= graph->count)
            return error_set(error, ERROR_USAGE, "fetch %d is not a node of the graph", i + 1);
    return OK;
}

static int compile(struct program *program, const node *fetches, int count, struct error *error) {
    program_prune(program, fetches, count);
    program_fuse(program);
    RETURN_IF(program_place(program, error));
    RETURN_IF(program_lower(program, error));
    RETURN_IF(program_choose(program, error));
    RETURN_IF(program_plan(program, error));
    return program_bring(program, error);
}

int program_open(struct program **out, const struct graph *graph, const struct device *device,
                 struct error *error) {
    *out = NULL;
    struct program *program = NULL;
    RETURN_IF(memory_array(&program, 1, "program", error));
    program->graph = graph;
    program->device = device;
    program->soft = !device->hard;
    program->count = graph->count;
    const int code = memory_array(&program->values, graph->count, "values of a program", error);
    if (code != OK) {
        program_close(program);
        return code;
    }
    for (node n = 0; n < program->count; n++)
        program->values[n] = (struct value){.info = graph->nodes[n], .root = n, .last = -1};
    *out = program;
    return OK;
}

int program_compile(struct program **out, const struct graph *graph, const node *fetches, int count,
                    const struct device *device, struct error *error) {
    *out = NULL;
    RETURN_IF(program_check_fetches(graph, fetches, count, error));
    struct program *program = NULL;
    RETURN_IF(program_open(&program, graph, device, error));
    const int code = compile(program, fetches, count, error);
    if (code != OK) {
        program_close(program);
        return code;
    }
    *out = program;
    return OK;
}

void program_close(struct program *program) {
    if (!program) return;
    for (int i = program->instruction_count - 1; i >= 0; i--) program_release(&program->instructions[i]);
    memory_free(program->instructions);
    memory_free(program->formed);
    memory_free(program->values);
    memory_free(program);
}

size_t program_arena_bytes(const struct program *program) {
    return program->arena_bytes;
}

bool program_runs(const struct program *program, node n) {
    return n >= 0 && n < program->count && program->values[n].kept;
}

int program_instructions(const struct program *program) {
    return program->instruction_count;
}

node program_instruction(const struct program *program, int instruction) {
    return program->instructions[instruction].n;
}
