/* See problem.h. */
#include "problem.h"

#include "../src/base/memory.h"

bool gpu_takes(const struct problem *problem) {
    const size_t most = INT32_MAX;
    for (int i = 0; i < problem->inputs; i++)
        if (shape_count(&problem->input[i].shape) > most) return false;
    return shape_count(&problem->output.shape) <= most;
}

bool gpu_takes_wide(const struct problem *problem) {
    for (int i = 0; i < problem->inputs; i++)
        if (problem->input[i].type == TYPE_BF16) return false;
    return problem->output.type != TYPE_BF16 && gpu_takes(problem);
}

int gpu_wide(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    return gpu_takes_wide(problem) ? OK : KERNEL_DECLINED;
}

void gpu_plan_free(void *plan) {
    memory_free(plan);
}

struct gpu_walk gpu_walk_of(const struct walk *walk) {
    struct gpu_walk out = {.rank = walk->rank, .count = 1};
    for (int axis = 0; axis < walk->rank; axis++) {
        out.dims[axis] = (uint32_t)walk->dims[axis];
        out.count *= out.dims[axis];
        for (int k = 0; k < 2; k++) out.stride[k][axis] = (uint32_t)walk->stride[k][axis];
    }
    return out;
}

struct scratch {
    const struct device *device;
    void *block;
};

int gpu_scratch_open(const struct problem *problem, size_t bytes, void **instance, struct error *error) {
    struct scratch *scratch = NULL;
    *instance = NULL;
    if (bytes == 0) return OK;
    RETURN_IF(memory_array(&scratch, 1, "a kernel's scratch memory", error));
    scratch->device = problem->device;
    const int code = gpu_allocate(problem->device, &scratch->block, bytes, op_name(problem->op), error);
    if (code != OK)
        memory_free(scratch);
    else
        *instance = scratch;
    return code;
}

void gpu_scratch_close(void *instance) {
    struct scratch *scratch = instance;
    if (!scratch) return;
    gpu_release(scratch->device, scratch->block);
    memory_free(scratch);
}

void *gpu_scratch_of(const struct call *call) {
    const struct scratch *scratch = call->instance;
    return scratch ? scratch->block : NULL;
}

/* The least whole number whose power reaches `length`. */
static size_t root_of(size_t length, int power) {
    for (size_t root = 1;; root++) {
        size_t product = root;
        for (int i = 1; i < power; i++) product *= root;
        if (product >= length) return root;
    }
}

struct gpu_passes gpu_passes_of(size_t outer, size_t length, size_t inner) {
    enum { SHORT = 128, BUSY = 1 << 16 };
    const size_t results = outer * inner;
    struct gpu_passes passes = {.count = length <= SHORT || results >= BUSY ? 1
                                         : length <= (size_t)SHORT * SHORT  ? 2
                                                                            : GPU_MOST_PASSES};
    const size_t each = root_of(length, passes.count); /* numbers that a thread adds up */
    for (int pass = 0; pass < passes.count; pass++) {
        const size_t chunks = pass == passes.count - 1 ? 1 : (length + each - 1) / each;
        passes.view[pass] =
            (struct gpu_view){(uint32_t)outer, (uint32_t)length, (uint32_t)inner, (uint32_t)chunks};
        length = chunks;
    }
    return passes;
}

static size_t parts_of(const struct gpu_view *view) {
    return (size_t)view->outer * view->chunks * view->inner;
}

size_t gpu_passes_parts(const struct gpu_passes *passes) {
    size_t parts = 0;
    for (int pass = 0; pass < passes->count - 1; pass++) parts += parts_of(&passes->view[pass]);
    return parts;
}

void *gpu_pass_result(const struct gpu_passes *passes, int pass, void *scratch, void *result) {
    float *at = scratch;
    if (pass == passes->count - 1) return result;
    for (int before = 0; before < pass; before++) at += parts_of(&passes->view[before]);
    return at;
}
