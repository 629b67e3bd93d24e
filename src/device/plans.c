/* See plans.h. A list is long enough: a network has some dozens of problems, and they are looked up when a
 * program is compiled. */
#include "plans.h"

#include <string.h>

#include "../base/memory.h"

/* With a problem of its own: who asked for the plan first may be gone before it. */
struct kept_plan {
    const struct kernel *kernel;
    struct device device;
    struct attributes attributes;
    struct problem problem; /* of these two */
    int code;               /* OK or KERNEL_DECLINED */
    void *plan;
    struct kept_plan *next;
};

int plans_open(struct plans *plans, struct error *error) {
    *plans = (struct plans){0};
    RETURN_IF(world_open_threads(&plans->world, error));
    lock_open(&plans->lock, plans->world);
    return OK;
}

void plans_close(struct plans *plans) {
    for (struct kept_plan *kept = plans->first; kept;) {
        struct kept_plan *next = kept->next;
        if (kept->code == OK && kept->kernel->release) kept->kernel->release(kept->plan);
        memory_free(kept);
        kept = next;
    }
    world_close(plans->world);
    *plans = (struct plans){0};
}

static bool same_device(const struct device *a, const struct device *b) {
    return a->backend == b->backend && a->label == b->label && a->precision == b->precision &&
           a->deterministic == b->deterministic && a->reference_only == b->reference_only;
}

static bool same_problem(const struct problem *a, const struct problem *b) {
    bool same = a->op == b->op && a->inputs == b->inputs && same_device(a->device, b->device) &&
                a->output.type == b->output.type && shape_equal(&a->output.shape, &b->output.shape) &&
                memcmp(a->attributes, b->attributes, sizeof *a->attributes) == 0;
    for (int i = 0; same && i < a->inputs; i++)
        same = a->input[i].type == b->input[i].type && shape_equal(&a->input[i].shape, &b->input[i].shape);
    return same;
}

static int make(struct plans *plans, const struct kernel *kernel, const struct problem *problem,
                const struct kept_plan **out, struct error *error) {
    struct kept_plan *kept = NULL;
    RETURN_IF(memory_array(&kept, 1, "a plan", error));
    kept->kernel = kernel;
    kept->device = *problem->device;
    kept->problem = *problem;
    kept->problem.device = &kept->device;
    memcpy(&kept->attributes, problem->attributes, sizeof kept->attributes);
    kept->problem.attributes = &kept->attributes;
    kept->code = kernel->prepare(&kept->problem, &kept->plan, error);
    if (kept->code != OK && kept->code != KERNEL_DECLINED) {
        const int code = kept->code;
        memory_free(kept);
        return code;
    }
    kept->next = plans->first;
    plans->first = kept;
    *out = kept;
    return OK;
}

int plans_prepare(struct plans *plans, const struct kernel *kernel, const struct problem *problem,
                  void **plan, struct error *error) {
    int code = OK;
    lock_take(&plans->lock);
    const struct kept_plan *kept = plans->first;
    while (kept && (kept->kernel != kernel || !same_problem(&kept->problem, problem))) kept = kept->next;
    if (!kept) code = make(plans, kernel, problem, &kept, error);
    lock_release(&plans->lock);
    if (code != OK) return code;
    *plan = kept->plan;
    return kept->code;
}
