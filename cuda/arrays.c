/* GPU kernels of arrays.cu: their descriptors. All of them move boxes from one layout to another; where from
 * and where to is worked out once. A transposition reads along one axis and writes along another, so that
 * one of the two is not in neighbouring addresses: it costs some times what a copy does. Programs have few:
 * products take their operands either way. */
#include "../src/base/memory.h"
#include "problem.h"

struct moves {
    bool zeros; /* first, all over the output */
    int count;
    struct {
        struct gpu_walk walk;
        size_t x_bytes, y_bytes; /* where it begins in operand i and in the output */
    } move[MAX_INPUTS];
};

/* Adds a box that begins at these elements of operand and output. */
static void add_move(struct moves *moves, const struct walk *walk, size_t from, size_t to, size_t element) {
    moves->move[moves->count].walk = gpu_walk_of(walk);
    moves->move[moves->count].x_bytes = from * element;
    moves->move[moves->count++].y_bytes = to * element;
}

static size_t offset_of(const struct shape *shape, const int *begin) {
    size_t at = 0;
    for (int axis = 0; axis < shape->rank; axis++) at = at * (size_t)shape->dims[axis] + (size_t)begin[axis];
    return at;
}

static void plan_moves(const struct problem *problem, struct moves *moves) {
    const struct attributes *attributes = problem->attributes;
    const struct shape *from = &problem->input[0].shape, *to = &problem->output.shape;
    const size_t element = type_bytes(problem->output.type);
    size_t x[MAX_RANK] = {0}, y[MAX_RANK] = {0}, turned[MAX_RANK] = {0}, at = 0;
    struct walk walk;
    walk_strides(from, x);
    walk_strides(to, y);
    switch (problem->op) {
    case OP_transpose:
        for (int axis = 0; axis < to->rank; axis++) turned[axis] = x[attributes->order[axis]];
        walk_strided(&walk, to, turned, y);
        add_move(moves, &walk, 0, 0, element);
        return;
    case OP_concat:
        for (int i = 0; i < problem->inputs; i++) {
            walk_strides(&problem->input[i].shape, x);
            walk_strided(&walk, &problem->input[i].shape, x, y);
            add_move(moves, &walk, 0, at, element);
            at += (size_t)problem->input[i].shape.dims[attributes->axis] * y[attributes->axis];
        }
        return;
    case OP_slice:
        walk_strided(&walk, to, x, y);
        add_move(moves, &walk, offset_of(from, attributes->begin), 0, element);
        return;
    case OP_pad:
        moves->zeros = true;
        walk_strided(&walk, from, x, y);
        add_move(moves, &walk, 0, offset_of(to, attributes->begin), element);
        return;
    default: /* broadcast_to */
        walk_broadcast(&walk, to, from, to);
        add_move(moves, &walk, 0, 0, element);
    }
}

static int prepare_moves(const struct problem *problem, void **plan, struct error *error) {
    if (!gpu_takes_wide(problem)) return KERNEL_DECLINED;
    RETURN_IF(memory_zeroed(plan, 1, sizeof(struct moves), "a plan of moves", error));
    plan_moves(problem, *plan);
    return OK;
}

static int run_moves(const struct call *call, struct error *error) {
    const struct problem *problem = call->problem;
    const struct moves *moves = call->plan;
    const size_t element = type_bytes(problem->output.type);
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (moves->zeros)
        GPU_TRY(
            problem->device,
            cudaMemsetAsync(call->output, 0, shape_count(&problem->output.shape) * element, queue->stream),
            error);
    for (int i = 0; i < moves->count; i++)
        GPU_TRY(problem->device,
                launch_move(queue->stream, &moves->move[i].walk, element,
                            (const char *)call->input[i] + moves->move[i].x_bytes,
                            (char *)call->output + moves->move[i].y_bytes),
                error);
    return OK;
}

#define KERNEL(op)                                                                                           \
    const struct kernel gpu_##op = {                                                                         \
        .name = "cuda:" #op, .prepare = prepare_moves, .release = gpu_plan_free, .run = run_moves}
KERNEL(transpose);
KERNEL(concat);
KERNEL(slice);
KERNEL(pad);
KERNEL(broadcast_to);

static int run_dims(const struct call *call, const struct gpu_dims *dims, struct error *error) {
    struct queue *queue = gpu_call_queue(call, error);
    if (!queue) return error->code;
    if (dims->count > 0) /* a scalar's shape is an empty list */
        GPU_TRY(call->problem->device, launch_dims(queue->stream, dims, call->output), error);
    return OK;
}

static int run_shape(const struct call *call, struct error *error) {
    const struct shape *shape = &call->problem->input[0].shape;
    struct gpu_dims dims = {.count = shape->rank};
    for (int axis = 0; axis < shape->rank; axis++) dims.value[axis] = shape->dims[axis];
    return run_dims(call, &dims, error);
}
const struct kernel gpu_shape = {.name = "cuda:shape", .run = run_shape};

static int run_rank(const struct call *call, struct error *error) {
    const struct gpu_dims dims = {.count = 1, .value = {call->problem->input[0].shape.rank}};
    return run_dims(call, &dims, error);
}
const struct kernel gpu_rank = {.name = "cuda:rank", .run = run_rank};
