/* A program in words, one line per instruction: what runs, by which kernel, on which shapes, and where the
 * result goes. */
#include "passes.h"

static void print_place(const struct program *program, node n, FILE *file) {
    const struct place *place = &program->values[program->values[n].root].place;
    switch (place->base) {
    case BASE_ARENA:
        fprintf(file, "arena+%zu", place->offset);
        return;
    case BASE_WEIGHTS:
        fprintf(file, "weights+%zu", place->offset);
        return;
    case BASE_GRADIENTS:
        fprintf(file, "gradients+%zu", place->offset);
        return;
    case BASE_CONSTANT:
        fprintf(file, "constant");
        return;
    }
}

static void print_instruction(const struct program *program, const struct instruction *instruction,
                              int number, FILE *file) {
    const struct node_info *info = &program->values[instruction->n].info;
    char shape[96];
    fprintf(file, "%3d  node %-4d %-26s  %-36s ", number, instruction->n, op_name(info->op),
            instruction->kernel->name);
    for (int i = 0; i < info->inputs; i++) {
        fprintf(file, "%s%s ", i > 0 ? ", " : "",
                shape_text(&instruction->problem.input[i].shape, shape, sizeof shape));
        print_place(program, info->input[i], file);
    }
    fprintf(file, " -> %s ", shape_text(&info->shape, shape, sizeof shape));
    print_place(program, instruction->n, file);
    fputc('\n', file);
}

void program_print(const struct program *program, FILE *file) {
    for (int s = 0; s < program->instruction_count; s++)
        print_instruction(program, &program->instructions[s], s + 1, file);
    fprintf(file, "%d instructions, arena of %zu bytes\n", program->instruction_count, program->arena_bytes);
}
