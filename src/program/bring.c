/* Weights in other forms. A kernel that multiplies in bf16, or wants a matrix turned, would bring its weights
 * into that form in each run, and that of the gradient the same weights again. On a device that launches what
 * it computes, one launch at the beginning of a run makes all of these forms, each once. What has changed the
 * weights since the run before does not matter. */
#include "../base/memory.h"
#include "passes.h"

static bool same_form(const struct form *a, const struct form *b) {
    return a->type == b->type && a->turned == b->turned && a->rows == b->rows && a->columns == b->columns &&
           a->padded == b->padded;
}

/* Zeros are those of the arena, whose memory begins so. */
static size_t form_bytes(const struct form *form) {
    const int rows = form->padded > form->rows ? form->padded : form->rows;
    return (size_t)rows * (size_t)form->columns * type_bytes(form->type);
}

static const struct value *operand_root(const struct program *program, const struct instruction *instruction,
                                        int i) {
    const node operand = program->values[instruction->n].info.input[i];
    return &program->values[program->values[operand].root];
}

/* Which of the program's forms this one is; a new one where there is none yet. */
static int find_form(struct program *program, node root, const struct form *form) {
    int f = 0;
    while (f < program->formed_count &&
           !(program->formed[f].root == root && same_form(&program->formed[f].form, form)))
        f++;
    if (f < program->formed_count) return f;
    const size_t bytes = form_bytes(form);
    program->formed[f] = (struct formed){root, *form, program->arena_bytes};
    program->arena_bytes += (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    program->formed_count++;
    return f;
}

static void bring_operands(struct program *program, struct instruction *instruction) {
    const struct kernel *kernel = instruction->kernel;
    for (int i = 0; kernel->wants && i < instruction->problem.inputs; i++) {
        const struct value *root = operand_root(program, instruction, i);
        struct form form;
        if (root->place.base != BASE_WEIGHTS ||
            !kernel->wants(&instruction->problem, instruction->plan, i, &form))
            continue;
        instruction->formed[i] = find_form(program, root->root, &form);
        instruction->problem.ready |= 1u << i;
    }
}

/* Not where weights change in the middle of a run. */
int program_bring(struct program *program, struct error *error) {
    const size_t most = (size_t)program->instruction_count * MAX_INPUTS;
    if (!program->device->backend->reform || program->assigns || most == 0) return OK;
    RETURN_IF(memory_array(&program->formed, most, "weights in other forms", error));
    for (int s = 0; s < program->instruction_count; s++) bring_operands(program, &program->instructions[s]);
    return OK;
}

int program_make_forms(const struct program *program, const float *weights, char *memory,
                       struct error *error) {
    const struct device *device = program->device;
    struct reforming list[REFORMINGS];
    for (int first = 0, count; first < program->formed_count; first += count) {
        count = program->formed_count - first < REFORMINGS ? program->formed_count - first : REFORMINGS;
        for (int f = 0; f < count; f++) {
            const struct formed *formed = &program->formed[first + f];
            const size_t offset = program->values[formed->root].place.offset;
            list[f] =
                (struct reforming){weights + offset / sizeof *weights, memory + formed->offset, formed->form};
        }
        RETURN_IF(device->backend->reform(device, list, count, error));
    }
    return OK;
}
