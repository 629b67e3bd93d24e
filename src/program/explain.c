/* Explains a program: what was fused, which kernel runs each instruction, how many bytes it moves, how
 * long it took. */
#include <string.h>
#include "../base/page.h"
#include "passes.h"

static double multiply_adds_of(const struct instruction *instruction) {
    const struct shape *operand[MAX_INPUTS];
    for (int i = 0; i < instruction->problem.inputs; i++) operand[i] = &instruction->problem.input[i].shape;
    return op_multiply_adds(instruction->problem.op, instruction->problem.attributes, operand,
                            &instruction->problem.output.shape);
}

/* Of one run. */
static double all_multiply_adds(const struct program *program) {
    double sum = 0.0;
    for (int s = 0; s < program->instruction_count; s++) sum += multiply_adds_of(&program->instructions[s]);
    return sum;
}

static double bytes_moved(const struct problem *problem) {
    double bytes = (double)(shape_count(&problem->output.shape) * type_bytes(problem->output.type));
    for (int i = 0; i < problem->inputs; i++)
        bytes += (double)(shape_count(&problem->input[i].shape) * type_bytes(problem->input[i].type));
    return bytes;
}

static const char *activation_name(enum activation activation) {
    switch (activation) {
    case ACTIVATION_NONE:
        return "";
    case ACTIVATION_RELU:
        return " + relu";
    case ACTIVATION_SIGMOID:
        return " + sigmoid";
    case ACTIVATION_TANH:
        return " + tanh";
    }
    return "";
}

/* "conv2d + bias + relu"; the name of the layer whose weights it reads or whose gradient it gives. */
static void name_instruction(const struct program *program, const struct instruction *instruction, char *out,
                             size_t bytes) {
    const struct node_info *info = &program->values[instruction->n].info;
    const struct attributes *attributes = instruction->problem.attributes;
    const char *of = "", *name = op_name(info->op), *bias = "";
    if (info->op == OP_dense || info->op == OP_conv2d_bias) {
        name = op_name(info->op == OP_dense ? OP_matmul : OP_conv2d);
        bias = " + bias";
    }
    for (int i = info->inputs - 1; i >= 0; i--) {
        const struct value *root = &program->values[program->values[info->input[i]].root];
        if (root->info.op == OP_variable) of = root->info.name;
    }
    if (info->gradient_of >= 0) of = program->graph->layout.ranges[info->gradient_of].name;
    const char *activation = activation_name(attributes->activation);
    snprintf(out, bytes, "%s%s%s%s%s%s", name, bias, activation,
             info->op == OP_lrn_grad && activation[0] ? "_grad" : "", of[0] ? " " : "", of);
}

/* What a row says in words. */
struct words {
    char name[100], shape[64], implementation[100];
};

static void describe_instruction(const struct program *program, const struct instruction *instruction,
                                 struct words *words) {
    name_instruction(program, instruction, words->name, sizeof words->name);
    shape_text(&instruction->problem.output.shape, words->shape, sizeof words->shape);
    if (instruction->kernel->describe)
        instruction->kernel->describe(instruction->plan, words->implementation, sizeof words->implementation);
    else
        snprintf(words->implementation, sizeof words->implementation, "%s", instruction->kernel->name);
}

/* Of the columns of words; what kernels are called is up to a device's libraries. folded: too wide for the
 * terminal, so all but the name stands on a line of its own. */
struct widths {
    int name, shape, implementation;
    bool folded;
};
enum { FOLD_INDENT = 4, NUMBERS_WIDTH = 10 + 10 + 9 + 9, TYPE_WIDTH = 7 };

static int wider(int width, const char *text) {
    const int length = (int)strlen(text);
    return length > width ? length : width;
}

static void explain_instruction(const struct program *program, const struct instruction *instruction,
                                const struct widths *widths, double seconds, double all, FILE *file) {
    struct words words;
    describe_instruction(program, instruction, &words);
    const char *type = type_name(instruction->problem.output.type);
    fprintf(file, "%-*s", widths->name, words.name);
    if (!widths->folded)
        fprintf(file, "  %-*s  %-*s  %-7s", widths->shape, words.shape, widths->implementation,
                words.implementation, type);
    fprintf(file, " %9.3f", bytes_moved(&instruction->problem) / 1e6);
    const double multiply_adds = multiply_adds_of(instruction);
    if (all > 0.0) fprintf(file, " %9.3f %6.1f %%", 1e3 * seconds, 100.0 * seconds / all);
    if (all > 0.0 && multiply_adds > 0.0) fprintf(file, " %8.1f", 2e-9 * multiply_adds / seconds);
    fputc('\n', file);
    if (!widths->folded) return;
    char words_of_all[sizeof words + 40];
    snprintf(words_of_all, sizeof words_of_all, "%s %s, %s", type, words.shape, words.implementation);
    fprintf(file, "%*s", FOLD_INDENT, "");
    const struct page page = page_of_rows(file);
    page_words(&page, FOLD_INDENT, FOLD_INDENT, words_of_all);
}

void program_explain(const struct program *program, const double *seconds, FILE *file) {
    static const char *const titles[] = {"operation", "result", "implementation"};
    struct widths widths = {
        .name = wider(0, titles[0]), .shape = wider(0, titles[1]), .implementation = wider(0, titles[2])};
    double all = 0.0;
    for (int s = 0; s < program->instruction_count; s++) {
        struct words words;
        describe_instruction(program, &program->instructions[s], &words);
        widths.name = wider(widths.name, words.name);
        widths.shape = wider(widths.shape, words.shape);
        widths.implementation = wider(widths.implementation, words.implementation);
        if (seconds) all += seconds[s];
    }
    const int columns = page_of_rows(file).columns;
    widths.folded =
        widths.name + widths.shape + widths.implementation + TYPE_WIDTH + 6 + NUMBERS_WIDTH > columns;
    fprintf(file, "%-*s", widths.name, titles[0]);
    if (!widths.folded)
        fprintf(file, "  %-*s  %-*s  %-*s", widths.shape, titles[1], widths.implementation, titles[2],
                TYPE_WIDTH, "type");
    fprintf(file, " %9s", "MB");
    if (all > 0.0) fprintf(file, " %9s %8s %8s", "ms", "share", "GFLOP/s");
    fputc('\n', file);
    for (int s = 0; s < program->instruction_count; s++)
        explain_instruction(program, &program->instructions[s], &widths, seconds ? seconds[s] : 0.0, all,
                            file);
    fprintf(file, "%d instructions, %.0f multiply-adds, arena of %.1f MB", program->instruction_count,
            all_multiply_adds(program), (double)program->arena_bytes / 1e6);
    if (all > 0.0)
        fprintf(file, ", %.3f ms, %.1f GFLOP/s", 1e3 * all, 2e-9 * all_multiply_adds(program) / all);
    fputc('\n', file);
}
