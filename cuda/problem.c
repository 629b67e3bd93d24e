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

static uint32_t power_of_two_from(size_t least, uint32_t most) {
    uint32_t power = 1;
    while (power < least && power < most) power *= 2;
    return power;
}

static size_t over(size_t n, size_t by) {
    return (n + by - 1) / by;
}

/* The least whole number whose square reaches n. */
static size_t root_of(size_t n) {
    size_t root = 1;
    while (root * root < n) root++;
    return root;
}

enum { THREADS = 256, LANES = 32, BATCH = 4 }; /* BATCH: elements that a thread has in flight at once */

/* A group is as wide as the inner axis, at most a warp; a warp is enough for it where no thread of it gets
 * more than two batches. */
static struct gpu_view view_of(size_t outer, size_t length, size_t inner, uint32_t columns, size_t chunks) {
    const uint32_t lanes = LANES / columns;
    const size_t part = over(length, chunks);
    return (struct gpu_view){.outer = (uint32_t)outer,
                             .length = (uint32_t)length,
                             .inner = (uint32_t)inner,
                             .chunks = (uint32_t)chunks,
                             .columns = columns,
                             .rows = part > (size_t)2 * BATCH * lanes ? THREADS / columns
                                                                      : power_of_two_from(part, lanes)};
}

static uint32_t columns_of(size_t inner, size_t wide) {
    return power_of_two_from(over(inner, wide), LANES);
}

/* In one pass: where there are few groups, narrower ones, so that more rows are read at once, though no less
 * than 32 neighbouring bytes of each. */
static struct gpu_view whole_view_of(size_t outer, size_t length, size_t inner, size_t wide) {
    enum { GROUPS = 128 };
    const uint32_t least = wide > 1 ? 2 : 8;
    uint32_t columns = columns_of(inner, wide);
    while (columns > least && length > (size_t)BATCH * (THREADS / columns) &&
           outer * over(inner, columns * wide) < GROUPS)
        columns /= 2;
    return view_of(outer, length, inner, columns, 1);
}

struct gpu_passes gpu_passes_of(size_t outer, size_t length, size_t inner, size_t wide, size_t wide_parts) {
    enum { SHORT = 4 * BATCH, BUSY = 512, ENOUGH = 2048, LAST = 16 };
    if (inner % wide > 0) wide = 1;
    if (inner % wide_parts > 0) wide_parts = 1;
    struct gpu_passes passes = {.count = 1, .view = {whole_view_of(outer, length, inner, wide)}};
    const struct gpu_view *view = &passes.view[0];
    if (over(length, view->rows) <= SHORT || outer * over(inner, view->columns * wide) >= BUSY) return passes;
    const uint32_t columns = columns_of(inner, wide), rows = THREADS / columns;
    const size_t groups = outer * over(inner, columns * wide);
    const size_t limits[] = {length / rows / BATCH, over(ENOUGH, groups), (size_t)LAST * rows};
    size_t chunks = root_of(length);
    for (int i = 0; i < 3; i++) chunks = limits[i] < chunks ? limits[i] : chunks;
    if (chunks < 2) return passes;
    /* so that a thread has whole batches */
    const size_t batches = over(length, (size_t)rows * BATCH), each = (batches + chunks / 2) / chunks;
    chunks = over(batches, each > 0 ? each : 1);
    passes.count = 2;
    passes.view[0] = view_of(outer, length, inner, columns, chunks);
    passes.view[1] = whole_view_of(outer, chunks, inner, wide_parts);
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
