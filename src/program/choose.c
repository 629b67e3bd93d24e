/* Steps and their kernels: of each operation's kernels on the device, the first one that takes the task. */
#include "../base/memory.h"
#include "passes.h"

static void describe_task(struct task *task, const struct program *program, node n) {
    const struct node_info *info = &program->values[n].info;
    *task = (struct task){
        .op = info->op, .attributes = &info->attributes, .inputs = info->inputs, .device = program->device};
    for (int i = 0; i < info->inputs; i++) {
        const struct node_info *operand = &program->values[info->input[i]].info;
        task->input[i].shape = operand->shape;
        task->input[i].type = operand->type;
    }
    task->output.shape = info->shape;
    task->output.type = info->type;
}

static int try_kernel(struct step *step, const struct kernel *kernel, struct error *error) {
    const int code = kernel->prepare ? kernel->prepare(&step->task, &step->plan, error) : OK;
    if (code == OK) step->kernel = kernel;
    return code;
}

/* Sets kernel and plan of a step; KERNEL_DECLINED when no kernel of the device takes it. */
static int find_kernel(struct step *step, bool soft, struct error *error) {
    const struct device *device = step->task.device;
    const struct kernel *const *kernels = is_transfer(step->task.op)
                                              ? program_transfers(step->task.op)
                                              : device->backend->kernels(device, step->task.op);
    for (; *kernels && !device->without[step->task.op]; kernels++) {
        const int code = try_kernel(step, *kernels, error);
        if (code != KERNEL_DECLINED) return code;
    }
    return soft && !is_transfer(step->task.op) ? try_kernel(step, &program_soft_kernel, error)
                                               : KERNEL_DECLINED;
}

int program_no_kernel(const struct program *program, node n, struct error *error) {
    const struct node_info *info = &program->values[n].info;
    char shape[96];
    return error_set(error, ERROR_DEVICE, "%s has no kernel for %s with result %s", program->device->name,
                     op_name(info->op), shape_text(&info->shape, shape, sizeof shape));
}

int program_takes(const struct program *program, node n, struct error *error) {
    struct step step = {.n = n};
    describe_task(&step.task, program, n);
    const int code = find_kernel(&step, program->soft, error);
    if (code == OK && step.kernel->release) step.kernel->release(step.plan);
    return code;
}

static bool is_step(const struct program *program, node n) {
    const struct value *value = &program->values[n];
    return value->kept && !is_source(value->info.op) && value->root == n;
}

int program_choose(struct program *program, struct error *error) {
    size_t steps = 0;
    for (node n = 0; n < program->count; n++) steps += is_step(program, n);
    RETURN_IF(
        memory_zeroed((void **)&program->steps, steps, sizeof *program->steps, "steps of a program", error));
    for (node n = 0; n < program->count; n++) {
        if (!is_step(program, n)) continue;
        struct step *step = &program->steps[program->step_count++];
        step->n = n;
        describe_task(&step->task, program, n);
        const int code = find_kernel(step, program->soft, error);
        if (code == KERNEL_DECLINED) return program_no_kernel(program, n, error);
        RETURN_IF(code);
    }
    return OK;
}
