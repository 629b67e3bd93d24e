/* Convolutions as cuDNN is told of them, which of its engines may be used, and what is tried first.
 *
 * An engine says by numerical notes what it does to numbers. fp32 means no tensor cores, which would multiply
 * in tf32, and in no precision are operands converted to a lower one or sums kept in it. Winograd's method is
 * taken on small tiles alone: larger ones lose digits. Atomic additions, which give other bits in every run,
 * are left out only on a device that is to be deterministic. In bf16 x, kernel, y and bias are all bf16 to
 * cuDNN, sums are float32; so the gradient of a kernel is rounded to bf16 before it becomes float32 again: no
 * engine leaves it in float32, as the matrix product of unfold.c does. */
#include "convolution.h"

#include <stdint.h>
#include "../src/graph/window.h"

/* Fewer than these channels of a pixel are no 16 bytes of bf16, which cuDNN's tensor-core engines read at
 * once: most are far slower then than a matrix product. */
enum { FEW_CHANNELS = 8 };
/* Ways of one kind where none is measured: should the first turn out to be impossible. */
enum { WAYS_UNMEASURED = 4 };

static bool is_possible(const struct problem *problem, enum type type, const struct shape *shape) {
    const bool narrow = type == TYPE_BF16 && problem->device->precision == PRECISION_BF16;
    const size_t count = shape_count(shape);
    return (type == TYPE_FLOAT || narrow) && count > 0 && count <= INT32_MAX;
}

static bool takes(const struct problem *problem) {
    for (int i = 0; i < problem->inputs; i++)
        if (!is_possible(problem, problem->input[i].type, &problem->input[i].shape)) return false;
    if (problem->op == OP_conv2d_bias && problem->input[2].type != TYPE_FLOAT) return false;
    return is_possible(problem, problem->output.type, &problem->output.shape);
}

static void find_roles(const struct problem *problem, struct convolution_plan *plan) {
    switch (problem->op) {
    case OP_conv2d_grad_x:
        plan->told.direction = GRAD_X;
        plan->x = OUTPUT;
        plan->kernel = 0;
        plan->y = 1;
        break;
    case OP_conv2d_grad_kernel:
        plan->told.direction = GRAD_KERNEL;
        plan->x = 0;
        plan->kernel = OUTPUT;
        plan->y = 1;
        break;
    default:
        plan->told.direction = FORWARD;
        plan->x = 0;
        plan->kernel = 1;
        plan->y = OUTPUT;
    }
}

static const int *dims_of(const struct problem *problem, int operand) {
    return operand == OUTPUT ? problem->output.shape.dims : problem->input[operand].shape.dims;
}

int convolution_open(const struct problem *problem, struct convolution_plan *plan) {
    const struct attributes *attributes = problem->attributes;
    struct dnn_convolution *told = &plan->told;
    if (!takes(problem)) return KERNEL_DECLINED;
    plan->device = problem->device;
    find_roles(problem, plan);
    const int *x = dims_of(problem, plan->x), *kernel = dims_of(problem, plan->kernel);
    const int *y = dims_of(problem, plan->y);
    told->type = problem->device->precision == PRECISION_BF16 ? TYPE_BF16 : TYPE_FLOAT;
    for (int axis = 0; axis < 2; axis++) {
        const struct window w =
            window_along(x[axis + 1], kernel[axis], attributes->stride[axis], attributes->padding);
        told->before[axis] = w.before;
        told->after[axis] = w.after;
        told->stride[axis] = w.stride;
        told->x[2 + axis] = x[1 + axis];
        told->kernel[2 + axis] = kernel[axis];
        told->y[2 + axis] = y[1 + axis];
    }
    told->x[0] = x[0];
    told->x[1] = x[3];
    told->kernel[0] = kernel[3];
    told->kernel[1] = kernel[2];
    told->y[0] = y[0];
    told->y[1] = y[3];
    told->relu = attributes->activation == ACTIVATION_RELU;
    plan->window = kernel[0] * kernel[1] * kernel[2];
    plan->out = kernel[3];
    plan->fuses = problem->op == OP_conv2d_bias && (told->relu || attributes->activation == ACTIVATION_NONE);
    return OK;
}

unsigned convolution_forbidden(const struct device *device) {
    unsigned notes = DNN_NOTE(DOWN_CONVERT_INPUTS) | DNN_NOTE(REDUCED_PRECISION_REDUCTION) |
                     DNN_NOTE(WINOGRAD_TILE_6x6) | DNN_NOTE(WINOGRAD_TILE_13x13);
    if (device->precision == PRECISION_FP32) notes |= DNN_NOTE(TENSOR_CORE);
    if (device->deterministic) notes |= DNN_NOTE(NONDETERMINISTIC);
    return notes;
}

size_t convolution_budget(void) {
    return (size_t)256 << 20;
}

/* Those that are fused come first: a pass over y less. Should these be impossible when run, the others are
 * there; so there is room for some of each. */
int convolution_find_ways(const struct dnn_gpu *gpu, struct convolution_plan *plan, struct error *error) {
    const unsigned forbidden = convolution_forbidden(plan->device);
    const size_t budget = convolution_budget();
    const int most = plan->device->deterministic ? WAYS_UNMEASURED : WAYS_OF_A_KIND;
    struct dnn_convolution told = plan->told;
    plan->count = 0;
    told.fused = plan->fuses;
    if (told.fused)
        RETURN_IF(dnn_find_ways(gpu, &told, forbidden, budget, plan->ways, most, &plan->count, error));
    const int room = plan->count + most;
    told.fused = false;
    return dnn_find_ways(gpu, &told, forbidden, budget, plan->ways, room, &plan->count, error);
}

int convolution_candidates(const struct convolution_plan *plan) {
    return plan->count + (plan->unfolding ? plan->unfolding->count : 0);
}

/* A device that measures nothing takes the first candidate. */
bool convolution_is_unfolded(const struct convolution_plan *plan, int candidate, int *number) {
    const int products = plan->unfolding ? plan->unfolding->count : 0;
    const bool first = plan->told.kernel[1] < FEW_CHANNELS;
    const bool unfolded = first ? candidate < products : candidate >= plan->count;
    *number = candidate - (unfolded && !first ? plan->count : !unfolded && first ? products : 0);
    return unfolded;
}

struct dnn_convolution convolution_told(const struct convolution_plan *plan, const struct way *way) {
    struct dnn_convolution told = plan->told;
    told.fused = way->fused;
    return told;
}
