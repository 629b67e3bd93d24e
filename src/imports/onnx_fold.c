/* Nodes whose results are known before the network runs: constants, and what exporters compute from shapes so
 * that a Reshape gets its sizes. The batch stays a mark among the numbers (ONNX_BATCH), which may be moved,
 * but not calculated with. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "onnx_graph.h"

enum { TO_FLOAT = 1, TO_INT32 = 6, TO_INT64 = 7, TO_HALF = 10, TO_DOUBLE = 11 };

static size_t item_of(const struct onnx_constant *constant) {
    return constant->whole ? sizeof *constant->whole : sizeof *constant->floats;
}

static const char *data_of(const struct onnx_constant *constant) {
    return constant->whole ? (const char *)constant->whole : (const char *)constant->floats;
}

static int end_fold(const struct onnx_graph *graph, const onnx_op *op, const struct onnx_constant *constant) {
    struct onnx_value *value = onnx_value(graph, op->n_output > 0 ? op->output[0] : "");
    if (!value) return onnx_wrong(graph, op, "found no output, expected one");
    value->constant = *constant;
    value->state = ONNX_CONSTANT;
    return OK;
}

/* The same numbers in another shape. */
static int end_as(const struct onnx_graph *graph, const onnx_op *op, const struct onnx_constant *from,
                  const struct shape *shape) {
    struct onnx_constant same = *from;
    same.shape = *shape;
    if (shape_count(shape) != from->count)
        return onnx_wrong(graph, op, "found %zu numbers, which do not fit the shape", from->count);
    return end_fold(graph, op, &same);
}

/* Room for what is made of `from`, of another count; *data of its items. */
static int begin_like(struct onnx_graph *graph, const struct onnx_constant *from, size_t count,
                      struct onnx_constant *made, char **data) {
    *made = (struct onnx_constant){.count = count};
    RETURN_IF(onnx_block(graph, data, count, item_of(from)));
    if (from->whole)
        made->whole = (const int64_t *)(const void *)*data;
    else
        made->floats = (const float *)(const void *)*data;
    return OK;
}

/* Input i, of either type. */
static int any_input(struct onnx_graph *graph, const onnx_op *op, size_t i,
                     const struct onnx_constant **out) {
    struct error ignored = {0}, *const error = graph->error;
    graph->error = &ignored;
    const int code = onnx_whole_input(graph, op, i, out);
    graph->error = error;
    return code == OK ? OK : onnx_float_input(graph, op, i, out);
}

/* --- made from nothing, or from a shape --- */

static int fold_constant(struct onnx_graph *graph, const onnx_op *op) {
    struct onnx_constant made = {.count = 1};
    for (size_t i = 0; i < op->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = op->attribute[i];
        const char *name = attribute->name ? attribute->name : "";
        if (strcmp(name, "value") == 0 && attribute->t) {
            RETURN_IF(onnx_tensor(graph, attribute->t, op->output[0], &made));
            return end_fold(graph, op, &made);
        }
        if (strncmp(name, "value_", 6) != 0) continue;
        const bool is_list = name[strlen(name) - 1] == 's';
        if (strncmp(name, "value_int", 9) == 0) {
            made.whole = is_list ? attribute->ints : &attribute->i;
            made.count = is_list ? attribute->n_ints : 1;
        } else if (strncmp(name, "value_float", 11) == 0) {
            made.floats = is_list ? attribute->floats : &attribute->f;
            made.count = is_list ? attribute->n_floats : 1;
        } else {
            continue;
        }
        if (made.count > INT_MAX) break;
        if (is_list) made.shape = SHAPE((int)made.count);
        return end_fold(graph, op, &made);
    }
    return onnx_wrong(graph, op, "found no value, expected a tensor, whole numbers or floats");
}

static int fold_shape(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_value *value = onnx_operand(graph, op, 0);
    int64_t dims[MAX_RANK + 1], *numbers = NULL;
    int rank = 0;
    if (!value) return graph->error->code;
    if (value->state == ONNX_FLOW) {
        dims[rank++] = ONNX_BATCH;
        for (int i = 0; i < value->flow.theirs.rank; i++) dims[rank++] = value->flow.theirs.dims[i];
    } else {
        const struct onnx_constant *constant = NULL;
        RETURN_IF(any_input(graph, op, 0, &constant));
        for (int i = 0; i < constant->shape.rank; i++) dims[rank++] = constant->shape.dims[i];
    }
    int64_t start = onnx_int_of(op, "start", 0), end = onnx_int_of(op, "end", rank);
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    if (start < 0 || end > rank || start > end)
        return onnx_wrong(graph, op, "start and end are not within %d dimensions", rank);
    RETURN_IF(onnx_block(graph, &numbers, (size_t)(end - start), sizeof *numbers));
    memcpy(numbers, dims + start, (size_t)(end - start) * sizeof *numbers);
    return end_fold(graph, op,
                    &(struct onnx_constant){.shape = SHAPE((int)(end - start)),
                                            .count = (size_t)(end - start),
                                            .whole = numbers});
}

/* Sizes of a shape, as int. */
static int read_sizes(const struct onnx_graph *graph, const onnx_op *op, const struct onnx_constant *sizes,
                      struct shape *shape) {
    enum { COUNT_MOST = 1 << 30 };
    size_t count = 1;
    *shape = (struct shape){0};
    if (sizes->count > MAX_RANK) return onnx_wrong(graph, op, "expected at most %d dimensions", MAX_RANK);
    for (size_t i = 0; i < sizes->count; i++) {
        const int64_t size = sizes->whole[i];
        if (size < 0 || size > COUNT_MOST || (size_t)size * count > COUNT_MOST)
            return onnx_wrong(graph, op, "its sizes are not a shape that is supported here");
        shape->dims[shape->rank++] = (int)size;
        count *= (size_t)size;
    }
    return OK;
}

static int fold_fill(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_constant *sizes = NULL;
    static const float zero[1] = {0.0f};
    struct onnx_constant made, one = {.count = 1, .floats = zero};
    struct shape shape;
    char *data = NULL;
    RETURN_IF(onnx_whole_input(graph, op, 0, &sizes));
    RETURN_IF(read_sizes(graph, op, sizes, &shape));
    for (size_t i = 0; i < op->n_attribute; i++)
        if (op->attribute[i]->t) RETURN_IF(onnx_tensor(graph, op->attribute[i]->t, "value", &one));
    if (one.count != 1) return onnx_wrong(graph, op, "found %zu values, expected one", one.count);
    RETURN_IF(begin_like(graph, &one, shape_count(&shape), &made, &data));
    for (size_t i = 0; i < made.count; i++) memcpy(data + i * item_of(&one), data_of(&one), item_of(&one));
    made.shape = shape;
    return end_fold(graph, op, &made);
}

/* --- moved --- */

/* Unsqueeze, Squeeze, Reshape of a constant. */
static int fold_reshape(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_constant *from = NULL, *sizes = NULL;
    struct shape shape = {0};
    size_t known = 1;
    int open = -1;
    RETURN_IF(any_input(graph, op, 0, &from));
    if (strcmp(op->op_type, "Reshape") != 0) {
        /* Whatever the axes are: one number stays one, and a row stays a row. */
        const bool wider = strcmp(op->op_type, "Unsqueeze") == 0;
        if (from->shape.rank > 1 || (wider && from->shape.rank > 0))
            return onnx_wrong(graph, op, "found more than one dimension of a constant, expected one number");
        shape = wider || from->count != 1 ? SHAPE((int)from->count) : SCALAR;
        return end_as(graph, op, from, &shape);
    }
    RETURN_IF(onnx_whole_input(graph, op, 1, &sizes));
    if (sizes->count > MAX_RANK) return onnx_wrong(graph, op, "expected at most %d dimensions", MAX_RANK);
    for (size_t i = 0; i < sizes->count; i++) {
        const int64_t size = sizes->whole[i];
        if (size < -1 || size > (int64_t)from->count || (size == -1 && open >= 0))
            return onnx_wrong(graph, op, "its sizes do not fit %zu numbers", from->count);
        if (size == -1) open = (int)i;
        shape.dims[shape.rank++] = size == -1 ? 1 : (int)size;
        known *= size == -1 ? 1 : (size_t)size;
        if (known > from->count)
            return onnx_wrong(graph, op, "its sizes do not fit %zu numbers", from->count);
    }
    if (open >= 0 && known > 0) shape.dims[open] = (int)(from->count / known);
    return end_as(graph, op, from, &shape);
}

static int fold_concat(struct onnx_graph *graph, const onnx_op *op) {
    struct onnx_constant made;
    const struct onnx_constant *part = NULL, *first = NULL;
    size_t count = 0, at = 0;
    char *data = NULL;
    for (size_t i = 0; i < op->n_input; i++) {
        RETURN_IF(any_input(graph, op, i, &part));
        if (!first && part->count > 0) first = part;
        if (part->shape.rank != 1 || (first && part->count > 0 && item_of(part) != item_of(first)))
            return onnx_wrong(graph, op, "found a part with %d dimensions, expected rows of one type",
                              part->shape.rank);
        count += part->count;
    }
    if (!first || count > INT_MAX) return onnx_wrong(graph, op, "found %zu numbers", count);
    RETURN_IF(begin_like(graph, first, count, &made, &data));
    for (size_t i = 0; i < op->n_input; i++) {
        RETURN_IF(any_input(graph, op, i, &part));
        if (part->count > 0) memcpy(data + at, data_of(part), part->count * item_of(part));
        at += part->count * item_of(part);
    }
    made.shape = SHAPE((int)count);
    return end_fold(graph, op, &made);
}

/* Of one dimension. */
static int fold_gather(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_constant *from = NULL, *places = NULL;
    struct onnx_constant made;
    char *data = NULL;
    RETURN_IF(any_input(graph, op, 0, &from));
    RETURN_IF(onnx_whole_input(graph, op, 1, &places));
    if (from->shape.rank != 1 || places->shape.rank > 1 || onnx_int_of(op, "axis", 0) > 0)
        return onnx_wrong(graph, op, "found %d dimensions, expected numbers out of one row",
                          from->shape.rank);
    RETURN_IF(begin_like(graph, from, places->count, &made, &data));
    for (size_t i = 0; i < places->count; i++) {
        int64_t place = places->whole[i];
        if (place < 0) place += (int64_t)from->count;
        if (place < 0 || place >= (int64_t)from->count)
            return onnx_wrong(graph, op, "found the place %lld, expected one of %zu",
                              (long long)places->whole[i], from->count);
        memcpy(data + i * item_of(from), data_of(from) + (size_t)place * item_of(from), item_of(from));
    }
    made.shape = places->shape;
    return end_fold(graph, op, &made);
}

/* A part of a row, forwards. */
static int fold_slice(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_constant *from = NULL;
    int64_t start = 0, end = 0, axis = 0, step = 1;
    int starts, ends, axes, steps;
    RETURN_IF(any_input(graph, op, 0, &from));
    RETURN_IF(onnx_list(graph, op, "starts", 1, &start, 1, &starts));
    RETURN_IF(onnx_list(graph, op, "ends", 2, &end, 1, &ends));
    RETURN_IF(onnx_list(graph, op, "axes", 3, &axis, 1, &axes));
    RETURN_IF(onnx_list(graph, op, "steps", 4, &step, 1, &steps));
    const int64_t length = (int64_t)from->count;
    if (from->shape.rank != 1 || starts != 1 || ends != 1 || axis > 0 || step != 1)
        return onnx_wrong(graph, op, "expected a part of one row, in steps of 1");
    if (start < 0) start = start < -length ? 0 : start + length;
    if (end < 0) end = end < -length ? 0 : end + length;
    if (start > length) start = length;
    if (end > length) end = length;
    if (end < start) end = start;
    struct onnx_constant made = {.shape = SHAPE((int)(end - start)), .count = (size_t)(end - start)};
    if (from->whole)
        made.whole = from->whole + start;
    else
        made.floats = from->floats + start;
    return end_fold(graph, op, &made);
}

/* Of a matrix. */
static int fold_transpose(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_constant *from = NULL;
    struct onnx_constant made;
    int64_t order[2] = {1, 0};
    char *data = NULL;
    RETURN_IF(any_input(graph, op, 0, &from));
    RETURN_IF(onnx_ints_of(graph, op, "perm", order, 2));
    if (from->shape.rank != 2)
        return onnx_wrong(graph, op, "found %d dimensions of a constant, expected 2", from->shape.rank);
    if (order[0] == 0) return end_as(graph, op, from, &from->shape);
    RETURN_IF(begin_like(graph, from, from->count, &made, &data));
    const size_t rows = (size_t)from->shape.dims[0], columns = (size_t)from->shape.dims[1],
                 item = item_of(from);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            memcpy(data + (c * rows + r) * item, data_of(from) + (r * columns + c) * item, item);
    made.shape = SHAPE(from->shape.dims[1], from->shape.dims[0]);
    return end_fold(graph, op, &made);
}

static int fold_identity(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_constant *from = NULL;
    RETURN_IF(any_input(graph, op, 0, &from));
    return end_fold(graph, op, from);
}

/* --- calculated --- */

static int fold_cast(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_constant *from = NULL;
    const int64_t to = onnx_int_of(op, "to", 0);
    const bool to_whole = to == TO_INT32 || to == TO_INT64;
    RETURN_IF(any_input(graph, op, 0, &from));
    if (!to_whole && to != TO_FLOAT && to != TO_HALF && to != TO_DOUBLE)
        return onnx_wrong(
            graph, op, "found type %lld, expected float, float16, double, int32 or int64 (1, 10, 11, 6, 7)",
            (long long)to);
    struct onnx_constant made = {.shape = from->shape, .count = from->count};
    if (from->count == 0 || to_whole == (from->whole != NULL)) return end_fold(graph, op, from);
    int64_t *whole = NULL;
    float *floats = NULL;
    if (to_whole) RETURN_IF(onnx_block(graph, &whole, from->count, sizeof *whole));
    if (!to_whole) RETURN_IF(onnx_block(graph, &floats, from->count, sizeof *floats));
    for (size_t i = 0; i < from->count; i++) {
        if (to_whole ? !(fabsf(from->floats[i]) < 9e18f) : from->whole[i] == ONNX_BATCH)
            return onnx_wrong(graph, op, "found a number that it cannot turn");
        if (to_whole)
            whole[i] = (int64_t)from->floats[i];
        else
            floats[i] = (float)from->whole[i];
    }
    made.whole = whole;
    made.floats = floats;
    return end_fold(graph, op, &made);
}

static bool calculate(const char *operation, int64_t a, int64_t b, int64_t *out) {
    if (a == ONNX_BATCH || b == ONNX_BATCH) return false;
    if (strcmp(operation, "Add") == 0) return !__builtin_add_overflow(a, b, out);
    if (strcmp(operation, "Sub") == 0) return !__builtin_sub_overflow(a, b, out);
    if (strcmp(operation, "Mul") == 0) return !__builtin_mul_overflow(a, b, out);
    if (b <= 0) return false;
    *out = a / b;
    return true;
}

/* Of whole numbers: sizes. */
static int fold_arithmetic(struct onnx_graph *graph, const onnx_op *op) {
    const struct onnx_constant *a = NULL, *b = NULL;
    int64_t *out = NULL;
    RETURN_IF(onnx_whole_input(graph, op, 0, &a));
    RETURN_IF(onnx_whole_input(graph, op, 1, &b));
    const struct onnx_constant *larger = b->count > a->count ? b : a;
    if (a->count == 0 || b->count == 0 || (a->count != b->count && a->count != 1 && b->count != 1))
        return onnx_wrong(graph, op, "found %zu and %zu numbers, expected as many", a->count, b->count);
    RETURN_IF(onnx_block(graph, &out, larger->count, sizeof *out));
    for (size_t i = 0; i < larger->count; i++)
        if (!calculate(op->op_type, a->whole[a->count > 1 ? i : 0], b->whole[b->count > 1 ? i : 0], &out[i]))
            return onnx_wrong(graph, op,
                              "found a calculation with the size of the batch, or one that overflows");
    return end_fold(graph, op, &(struct onnx_constant){larger->shape, larger->count, NULL, out});
}

/* --- the table --- */

static const struct {
    const char *operation;
    int (*fold)(struct onnx_graph *graph, const onnx_op *op);
    bool always; /* not only of constants */
} folds[] = {{"Constant", fold_constant, true},    {"Shape", fold_shape, true},
             {"ConstantOfShape", fold_fill, true}, {"Unsqueeze", fold_reshape, false},
             {"Squeeze", fold_reshape, false},     {"Reshape", fold_reshape, false},
             {"Concat", fold_concat, false},       {"Gather", fold_gather, false},
             {"Slice", fold_slice, false},         {"Transpose", fold_transpose, false},
             {"Identity", fold_identity, false},   {"Cast", fold_cast, false},
             {"Add", fold_arithmetic, false},      {"Sub", fold_arithmetic, false},
             {"Mul", fold_arithmetic, false},      {"Div", fold_arithmetic, false}};

static int place_of(const onnx_op *op) {
    for (size_t i = 0; i < sizeof folds / sizeof *folds; i++)
        if (strcmp(folds[i].operation, op->op_type) == 0) return (int)i;
    return -1;
}

bool onnx_folds(const struct onnx_graph *graph, const onnx_op *op) {
    const int place = place_of(op);
    if (place < 0) return false;
    for (size_t i = 0; i < op->n_input && !folds[place].always; i++) {
        const struct onnx_value *value = onnx_value(graph, onnx_input_name(op, i));
        if (value && value->state != ONNX_CONSTANT && !value->tensor) return false;
    }
    return folds[place].always || op->n_input > 0;
}

int onnx_fold(struct onnx_graph *graph, const onnx_op *op) {
    return folds[place_of(op)].fold(graph, op);
}
