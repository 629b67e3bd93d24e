/* Reference kernels: reductions. An operand is seen as [outer, length, inner] with the middle axis reduced;
 * rows of `inner` are combined whole, so that sums over the batch vectorise, and a sum along the last axis
 * runs in LANES partial sums of fixed order. */
#include <string.h>
#include "../device/formulas.h"
#include "bf16.h"
#include "reference.h"

enum { LANES = 16 };

struct view {
    size_t outer, length, inner;
};

static struct view view_of(const struct problem *problem) {
    const struct shape *shape = &problem->input[0].shape;
    const int axis = problem->attributes->axis;
    struct view view = {1, 1, 1};
    if (axis == ALL_AXES) {
        view.length = shape_count(shape);
        return view;
    }
    for (int i = 0; i < axis; i++) view.outer *= (size_t)shape->dims[i];
    view.length = (size_t)shape->dims[axis];
    for (int i = axis + 1; i < shape->rank; i++) view.inner *= (size_t)shape->dims[i];
    return view;
}

static float sum_run(const float *x, size_t length) {
    float lanes[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= length; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++) lanes[lane] += x[i + lane];
    float sum = 0.0f;
    for (size_t lane = 0; lane < LANES; lane++) sum += lanes[lane];
    for (; i < length; i++) sum += x[i];
    return sum;
}

static void sum_floats(struct view view, const float *x, float *restrict y) {
    for (size_t o = 0; o < view.outer; o++, x += view.length * view.inner, y += view.inner) {
        if (view.inner == 1) {
            *y = sum_run(x, view.length);
            continue;
        }
        memcpy(y, x, view.inner * sizeof *y);
        for (size_t l = 1; l < view.length; l++)
            for (size_t i = 0; i < view.inner; i++) y[i] += x[l * view.inner + i];
    }
}

/* As rows of `inner`; the sums are float32. */
static void sum_narrow(struct view view, const bf16 *x, float *restrict y) {
    memset(y, 0, view.inner * sizeof *y);
    for (size_t l = 0; l < view.length; l++)
        for (size_t i = 0; i < view.inner; i++) y[i] += bf16_float(x[l * view.inner + i]);
}

static void sum_ints(struct view view, const int *x, int *y) {
    for (size_t o = 0; o < view.outer; o++, x += view.length * view.inner, y += view.inner)
        for (size_t i = 0; i < view.inner; i++) {
            unsigned sum = 0; /* wraps around */
            for (size_t l = 0; l < view.length; l++) sum += (unsigned)x[l * view.inner + i];
            y[i] = (int)sum;
        }
}

static int run_reduce_sum(const struct call *call, struct error *error) {
    (void)error;
    if (call->problem->output.type == TYPE_INT)
        sum_ints(view_of(call->problem), call->input[0], call->output);
    else if (call->problem->input[0].type == TYPE_BF16)
        sum_narrow(view_of(call->problem), call->input[0], call->output);
    else
        sum_floats(view_of(call->problem), call->input[0], call->output);
    return OK;
}
/* A sum is float32, also that of bf16. */
static int prepare_sum(const struct problem *problem, void **plan, struct error *error) {
    (void)plan, (void)error;
    return problem->output.type == TYPE_BF16 ? KERNEL_DECLINED : OK;
}
const struct kernel reference_reduce_sum = {
    .name = "reference:reduce_sum", .prepare = prepare_sum, .run = run_reduce_sum};

static int run_decayed(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const int first = problem->attributes->keep ? 0 : 1;
    float y = first ? *(const float *)call->input[0] : 0.0f;
    for (int v = first; v < problem->inputs; v++) {
        const float *values = call->input[v];
        const size_t count = shape_count(&problem->input[v].shape);
        double sum = 0.0;
        for (size_t i = 0; i < count; i++) sum += (double)values[i] * (double)values[i];
        y += problem->attributes->share * (float)sum;
    }
    *(float *)call->output = y;
    return OK;
}
const struct kernel reference_decayed = {.name = "reference:decayed", .run = run_decayed};

static int run_reduce_mean(const struct call *call, struct error *error) {
    (void)error;
    const struct view view = view_of(call->problem);
    float *y = call->output;
    sum_floats(view, call->input[0], y);
    for (size_t i = 0; i < view.outer * view.inner; i++) y[i] /= (float)view.length;
    return OK;
}
const struct kernel reference_reduce_mean = {.name = "reference:reduce_mean", .run = run_reduce_mean};

static void max_floats(struct view view, const float *x, float *restrict y) {
    for (size_t o = 0; o < view.outer; o++, x += view.length * view.inner, y += view.inner) {
        memcpy(y, x, view.inner * sizeof *y);
        for (size_t l = 1; l < view.length; l++)
            for (size_t i = 0; i < view.inner; i++) y[i] = formula_largest(y[i], x[l * view.inner + i]);
    }
}

static void max_ints(struct view view, const int *x, int *y) {
    for (size_t o = 0; o < view.outer; o++, x += view.length * view.inner, y += view.inner) {
        memcpy(y, x, view.inner * sizeof *y);
        for (size_t l = 1; l < view.length; l++)
            for (size_t i = 0; i < view.inner; i++)
                if (x[l * view.inner + i] > y[i]) y[i] = x[l * view.inner + i];
    }
}

static int run_reduce_max(const struct call *call, struct error *error) {
    (void)error;
    if (call->problem->output.type == TYPE_INT)
        max_ints(view_of(call->problem), call->input[0], call->output);
    else
        max_floats(view_of(call->problem), call->input[0], call->output);
    return OK;
}
const struct kernel reference_reduce_max = {.name = "reference:reduce_max", .run = run_reduce_max};

/* The first of equal ones. */
static int run_argmax(const struct call *call, struct error *error) {
    (void)error;
    const struct view view = view_of(call->problem);
    const bool ints = call->problem->input[0].type == TYPE_INT;
    const float *floats = call->input[0];
    const int *whole = call->input[0];
    int *y = call->output;
    for (size_t o = 0; o < view.outer; o++)
        for (size_t i = 0; i < view.inner; i++) {
            const size_t first = o * view.length * view.inner + i;
            size_t best = 0;
            for (size_t l = 1; l < view.length; l++) {
                const size_t at = first + l * view.inner, champion = first + best * view.inner;
                if (ints ? whole[at] > whole[champion] : floats[at] > floats[champion]) best = l;
            }
            y[o * view.inner + i] = (int)best;
        }
    return OK;
}
const struct kernel reference_argmax = {.name = "reference:argmax", .run = run_argmax};
