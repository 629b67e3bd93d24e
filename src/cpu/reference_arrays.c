/* Reference kernels: operations that only move elements, or return a shape. */
#include <string.h>
#include "reference.h"

/* y in order, x along the walk's first strides; elements of 1 or 4 bytes. */
static void gather_walk(struct walk *walk, const void *x, size_t bytes, void *y) {
    const size_t length = walk->dims[walk->rank - 1], step = walk->stride[0][walk->rank - 1];
    const uint32_t *words = x;
    const uint8_t *small = x;
    uint32_t *to_words = y;
    uint8_t *to_small = y;
    for (size_t row = 0; row < walk->rows; row++, walk_row(walk)) {
        const size_t from = walk->offset[0], to = row * length;
        if (step == 1)
            memcpy(to_small + to * bytes, small + from * bytes, length * bytes);
        else if (bytes == 4)
            for (size_t i = 0; i < length; i++) to_words[to + i] = words[from + i * step];
        else
            for (size_t i = 0; i < length; i++) to_small[to + i] = small[from + i * step];
    }
}

static int run_broadcast_to(const struct call *call, struct error *error) {
    (void)error;
    struct walk walk;
    walk_broadcast(&walk, &call->problem->output.shape, &call->problem->input[0].shape, NULL);
    gather_walk(&walk, call->input[0], type_bytes(call->problem->output.type), call->output);
    return OK;
}
const struct kernel reference_broadcast_to = {.name = "reference:broadcast_to", .run = run_broadcast_to};

static int run_transpose(const struct call *call, struct error *error) {
    (void)error;
    const struct shape *from = &call->problem->input[0].shape;
    size_t of_input[MAX_RANK] = {0}, stride[MAX_RANK] = {0};
    walk_strides(from, of_input);
    for (int axis = 0; axis < from->rank; axis++)
        stride[axis] = of_input[call->problem->attributes->order[axis]];
    struct walk walk;
    walk_strided(&walk, &call->problem->output.shape, stride, NULL);
    gather_walk(&walk, call->input[0], type_bytes(call->problem->output.type), call->output);
    return OK;
}
const struct kernel reference_transpose = {.name = "reference:transpose", .run = run_transpose};

/* Bytes of everything from an axis on. */
static size_t bytes_from(const struct shape *shape, int axis, enum type type) {
    size_t bytes = type_bytes(type);
    for (; axis < shape->rank; axis++) bytes *= (size_t)shape->dims[axis];
    return bytes;
}

static int run_concat(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    const int axis = problem->attributes->axis;
    const size_t row = bytes_from(&problem->output.shape, axis, problem->output.type);
    const size_t rows = bytes_from(&problem->output.shape, 0, problem->output.type) / row;
    char *to = call->output;
    for (int i = 0; i < problem->inputs; i++) {
        const size_t part = bytes_from(&problem->input[i].shape, axis, problem->output.type);
        const char *from = call->input[i];
        for (size_t r = 0; r < rows; r++) memcpy(to + r * row, from + r * part, part);
        to += part;
    }
    return OK;
}
const struct kernel reference_concat = {.name = "reference:concat", .run = run_concat};

/* Moves the dense `box` out of (into_full false) or into the value of shape `full`, where it begins at
 * `begin`. */
static void move_box(char *box, const struct shape *size, char *full, const struct shape *shape,
                     const int *begin, enum type type, bool into_full) {
    const int last = size->rank - 1;
    const size_t row = size->rank > 0 ? bytes_from(size, last, type) : type_bytes(type);
    const size_t rows = bytes_from(size, 0, type) / row;
    int index[MAX_RANK] = {0};
    for (size_t r = 0; r < rows; r++, box += row) {
        size_t at = 0;
        for (int axis = 0; axis <= last; axis++)
            at = at * (size_t)shape->dims[axis] + (size_t)(begin[axis] + index[axis]);
        char *there = full + at * type_bytes(type);
        if (into_full)
            memcpy(there, box, row);
        else
            memcpy(box, there, row);
        for (int axis = last - 1; axis >= 0 && ++index[axis] == size->dims[axis]; axis--) index[axis] = 0;
    }
}

static int run_slice(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    move_box(call->output, &problem->output.shape, (char *)call->input[0], &problem->input[0].shape,
             problem->attributes->begin, problem->output.type, false);
    return OK;
}
const struct kernel reference_slice = {.name = "reference:slice", .run = run_slice};

static int run_pad(const struct call *call, struct error *error) {
    (void)error;
    const struct problem *problem = call->problem;
    memset(call->output, 0, bytes_from(&problem->output.shape, 0, problem->output.type));
    move_box((char *)call->input[0], &problem->input[0].shape, call->output, &problem->output.shape,
             problem->attributes->begin, problem->output.type, true);
    return OK;
}
const struct kernel reference_pad = {.name = "reference:pad", .run = run_pad};

static int run_shape(const struct call *call, struct error *error) {
    (void)error;
    const struct shape *shape = &call->problem->input[0].shape;
    memcpy(call->output, shape->dims, (size_t)shape->rank * sizeof(int));
    return OK;
}
const struct kernel reference_shape = {.name = "reference:shape", .run = run_shape};

static int run_rank(const struct call *call, struct error *error) {
    (void)error;
    *(int *)call->output = call->problem->input[0].shape.rank;
    return OK;
}
const struct kernel reference_rank = {.name = "reference:rank", .run = run_rank};
