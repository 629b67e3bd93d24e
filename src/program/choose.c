/* Chooses a kernel for each instruction: of the operation's kernels on the device, the first one that
 * takes the problem. */
#include "../base/memory.h"
#include "../device/plans.h"
#include "passes.h"

static void describe_problem(struct problem *problem, const struct program *program, node n) {
    const struct node_info *info = &program->values[n].info;
    *problem = (struct problem){
        .op = info->op, .attributes = &info->attributes, .inputs = info->inputs, .device = program->device};
    for (int i = 0; i < info->inputs; i++) {
        const struct node_info *operand = &program->values[info->input[i]].info;
        problem->input[i].shape = operand->shape;
        problem->input[i].type = operand->type;
    }
    problem->output.shape = info->shape;
    problem->output.type = info->type;
}

/* plans: where a plan that the kernel makes is kept; NULL: the instruction has one of its own. */
static int try_kernel(struct instruction *instruction, const struct kernel *kernel, struct plans *plans,
                      struct error *error) {
    const struct problem *problem = &instruction->problem;
    int code = OK;
    instruction->shared = plans && kernel->prepare && kernel->release;
    if (instruction->shared)
        code = plans_prepare(plans, kernel, problem, &instruction->plan, error);
    else if (kernel->prepare)
        code = kernel->prepare(problem, &instruction->plan, error);
    if (code == OK) instruction->kernel = kernel;
    return code;
}

int program_here(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    return device_apart(problem->device) ? KERNEL_DECLINED : OK;
}

const struct kernel *const *program_own_kernels(enum op op) {
    static const struct kernel *const own[OPS][2] = {
        [OP_while] = {&program_while},     [OP_while_grad] = {&program_while_grad},
        [OP_cond] = {&program_cond},       [OP_cond_grad] = {&program_cond_grad},
        [OP_enqueue] = {&program_enqueue}, [OP_dequeue] = {&program_dequeue},
        [OP_custom] = {&program_custom}};
    return is_transfer(op) ? program_transfers(op) : own[op][0] ? own[op] : NULL;
}

/* Sets kernel and plan of an instruction; KERNEL_DECLINED when no kernel of the device takes it. */
static int find_kernel(struct instruction *instruction, bool soft, struct error *error) {
    const struct device *device = instruction->problem.device;
    const struct kernel *const *own = program_own_kernels(instruction->problem.op), *const *kernels = own;
    struct plans *plans = own || !device->backend->plans ? NULL : device->backend->plans(device);
    if (!own) kernels = device->backend->kernels(device, instruction->problem.op);
    for (; *kernels && !device->without[instruction->problem.op]; kernels++) {
        const int code = try_kernel(instruction, *kernels, plans, error);
        if (code != KERNEL_DECLINED) return code;
    }
    return soft && !own ? try_kernel(instruction, &program_soft_kernel, NULL, error) : KERNEL_DECLINED;
}

int program_no_kernel(const struct program *program, node n, struct error *error) {
    const struct node_info *info = &program->values[n].info;
    char shape[96];
    return error_set(error, ERROR_DEVICE, "%s has no kernel for %s with result %s", program->device->name,
                     op_name(info->op), shape_text(&info->shape, shape, sizeof shape));
}

int program_takes(const struct program *program, node n, struct error *error) {
    struct instruction instruction = {.n = n};
    describe_problem(&instruction.problem, program, n);
    const int code = find_kernel(&instruction, program->soft, error);
    program_release(&instruction);
    return code;
}

void program_release(const struct instruction *instruction) {
    if (instruction->kernel && instruction->kernel->release && !instruction->shared)
        instruction->kernel->release(instruction->plan);
}

static bool is_instruction(const struct program *program, node n) {
    const struct value *value = &program->values[n];
    return value->kept && !is_source(value->info.op) && value->root == n;
}

int program_choose(struct program *program, struct error *error) {
    size_t instructions = 0;
    for (node n = 0; n < program->count; n++) instructions += is_instruction(program, n);
    RETURN_IF(memory_array(&program->instructions, instructions, "instructions of a program", error));
    for (node n = 0; n < program->count; n++) {
        if (!is_instruction(program, n)) continue;
        struct instruction *instruction = &program->instructions[program->instruction_count++];
        instruction->n = n;
        describe_problem(&instruction->problem, program, n);
        const int code = find_kernel(instruction, program->soft, error);
        if (code == KERNEL_DECLINED) return program_no_kernel(program, n, error);
        RETURN_IF(code);
    }
    return OK;
}
