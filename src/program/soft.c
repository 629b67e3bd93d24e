/* Soft placement: an instruction whose operation has no kernel on its device runs on the CPU instead.
 *
 * The CPU's kernel is wrapped: operands are brought into the host's memory, it computes there, and the
 * result is sent back. The wrapper is a kernel like any other, so the rest of the program is unaware of
 * it. */
#include "../base/memory.h"
#include "../base/text.h"
#include "../device/copy.h"
#include "passes.h"

#include <string.h>

/* What both the program and its arenas need of the CPU's kernel. */
struct soft {
    struct problem problem; /* as the CPU sees it */
    struct device cpu;
    const struct kernel *kernel;
    void *plan;
};

struct soft_instance {
    const struct soft *soft;
    void *instance; /* of the CPU's kernel */
    void *input[MAX_INPUTS], *output;
};

static size_t bytes_of(const struct shape *shape, enum type type) {
    return shape_count(shape) * type_bytes(type);
}

static const struct backend *find_cpu(void) {
    const struct backend *const *backend = backends;
    while (*backend && strcmp((*backend)->name, "cpu") != 0) backend++;
    return *backend;
}

static bool is_narrow(const struct problem *problem) {
    bool narrow = problem->output.type == TYPE_BF16;
    for (int i = 0; i < problem->inputs; i++) narrow = narrow || problem->input[i].type == TYPE_BF16;
    return narrow;
}

static void release(void *plan) {
    struct soft *soft = plan;
    if (soft->kernel && soft->kernel->release) soft->kernel->release(soft->plan);
    memory_free(soft);
}

static int choose(struct soft *soft, struct error *error) {
    for (const struct kernel *const *kernel = soft->cpu.backend->kernels(&soft->cpu, soft->problem.op);
         *kernel; kernel++) {
        const int code = (*kernel)->prepare ? (*kernel)->prepare(&soft->problem, &soft->plan, error) : OK;
        if (code == KERNEL_DECLINED) continue;
        if (code == OK) soft->kernel = *kernel;
        return code;
    }
    return KERNEL_DECLINED;
}

static int prepare(const struct problem *problem, void **plan, struct error *error) {
    const struct backend *cpu = find_cpu();
    if (!cpu || cpu == problem->device->backend || is_narrow(problem)) return KERNEL_DECLINED;
    struct soft *soft = NULL;
    RETURN_IF(memory_array(&soft, 1, "an instruction on the CPU", error));
    soft->cpu = (struct device){.backend = cpu, .name = "cpu", .threads = 1};
    soft->problem = *problem;
    soft->problem.device = &soft->cpu;
    const int code = choose(soft, error);
    if (code == OK)
        *plan = soft;
    else
        release(soft);
    return code;
}

static void unbind(void *instance) {
    struct soft_instance *own = instance;
    if (own->instance && own->soft->kernel->unbind) own->soft->kernel->unbind(own->instance);
    for (int i = 0; i < MAX_INPUTS; i++) memory_free(own->input[i]);
    memory_free(own->output);
    memory_free(own);
}

static int bind_all(struct soft_instance *own, struct error *error) {
    const struct soft *soft = own->soft;
    const struct problem *problem = &soft->problem;
    for (int i = 0; i < problem->inputs; i++)
        RETURN_IF(memory_zeroed(&own->input[i],
                                bytes_of(&problem->input[i].shape, problem->input[i].type) + 1, 1,
                                "an operand on the CPU", error));
    RETURN_IF(memory_zeroed(&own->output, bytes_of(&problem->output.shape, problem->output.type) + 1, 1,
                            "a result on the CPU", error));
    return soft->kernel->bind ? soft->kernel->bind(problem, soft->plan, &own->instance, error) : OK;
}

static int bind(const struct problem *problem, const void *plan, void **instance, struct error *error) {
    struct soft_instance *own = NULL;
    (void)problem;
    RETURN_IF(memory_array(&own, 1, "an instruction on the CPU", error));
    own->soft = plan;
    const int code = bind_all(own, error);
    if (code == OK)
        *instance = own;
    else
        unbind(own);
    return code;
}

static int run(const struct call *call, struct error *error) {
    const struct soft_instance *own = call->instance;
    const struct soft *soft = own->soft;
    const struct problem *problem = &soft->problem;
    const struct device *device = call->problem->device;
    struct call inner = {
        .problem = problem, .plan = soft->plan, .instance = own->instance, .output = own->output};
    for (int i = 0; i < problem->inputs; i++) {
        RETURN_IF(device_copy(NULL, own->input[i], device, call->input[i],
                              bytes_of(&problem->input[i].shape, problem->input[i].type), error));
        inner.input[i] = own->input[i];
    }
    RETURN_IF(soft->kernel->run(&inner, error));
    return device_copy(device, call->output, NULL, own->output,
                       bytes_of(&problem->output.shape, problem->output.type), error);
}

static void describe(const void *plan, char *out, size_t bytes) {
    snprintf(out, bytes, "on the CPU: %s", ((const struct soft *)plan)->kernel->name);
}

const struct kernel program_soft_kernel = {.name = "cpu",
                                           .prepare = prepare,
                                           .release = release,
                                           .bind = bind,
                                           .unbind = unbind,
                                           .run = run,
                                           .describe = describe};

bool program_soft(const struct program *program, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    bool said[OPS] = {false};
    for (int s = 0; s < program->instruction_count; s++) {
        const struct instruction *instruction = &program->instructions[s];
        if (instruction->kernel != &program_soft_kernel || said[instruction->problem.op]) continue;
        text_item(&text, ", ", "%s", op_name(instruction->problem.op));
        said[instruction->problem.op] = true;
    }
    return text.used > 0;
}
