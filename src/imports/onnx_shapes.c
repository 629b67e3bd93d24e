/* Operators that only move numbers, or join several values: reshapes, transposes of layouts, Concat, Add,
 * Mul. See onnx_layers.h. */
#include <string.h>

#include "onnx_layers.h"

/* --- other shapes --- */

int onnx_flatten(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    const int64_t axis = onnx_int_of(op, "axis", 1);
    if (!x) return reading->graph.error->code;
    if (axis != 1 && axis != -x->theirs.rank)
        return onnx_wrong(&reading->graph, op, "found axis %lld, expected 1: a row per example",
                          (long long)axis);
    return onnx_reshape(reading, op, x, &SHAPE((int)shape_count(&x->theirs)));
}

/* Whether a size stands for the batch. */
static bool is_batch(const struct onnx_graph *graph, int64_t size) {
    return size == ONNX_BATCH || (graph->batch > 0 && size == graph->batch);
}

/* sizes[count] of a Reshape, the batch first, as the shape of an example. */
static int read_sizes(const struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *x,
                      const int64_t *sizes, size_t count, struct shape *shape) {
    const int64_t numbers = (int64_t)shape_count(&x->theirs);
    const bool zeros_copy = onnx_int_of(op, "allowzero", 0) == 0;
    int64_t known = 1;
    int open = -1;
    char words[100];
    *shape = (struct shape){0};
    for (size_t i = 1; i < count && i <= MAX_RANK; i++) {
        int64_t size = sizes[i];
        if (size == 0 && zeros_copy && (int)i <= x->theirs.rank) size = x->theirs.dims[i - 1];
        if (size == -1 && open < 0 && sizes[0] != -1) open = (int)i - 1;
        if ((size < 1 || size > numbers) && open != (int)i - 1) break;
        shape->dims[shape->rank++] = size < 1 ? 1 : (int)size;
        known *= size < 1 ? 1 : size;
        if (known > numbers) break;
    }
    if (open >= 0 && known <= numbers) shape->dims[open] = (int)(numbers / known);
    const bool batch =
        count > 0 && (sizes[0] == -1 || (sizes[0] == 0 && zeros_copy) || is_batch(&reading->graph, sizes[0]));
    if (batch && count > 1 && shape->rank == (int)count - 1 && known <= numbers &&
        (int64_t)shape_count(shape) == numbers)
        return OK;
    return onnx_wrong(&reading->graph, op, "found a shape that does not keep the batch and %s per example",
                      shape_text(&x->theirs, words, sizeof words));
}

int onnx_reshape_node(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    int64_t sizes[MAX_RANK + 1];
    int count = 0;
    struct shape shape;
    if (!x) return reading->graph.error->code;
    RETURN_IF(onnx_list(&reading->graph, op, "shape", 1, sizes, MAX_RANK + 1, &count));
    if (count < 0) return onnx_wrong(&reading->graph, op, "found no shape, expected a constant");
    RETURN_IF(read_sizes(reading, op, x, sizes, (size_t)count, &shape));
    return onnx_reshape(reading, op, x, &shape);
}

/* marked[axis]: the axes that are named, of `rank` with the batch, which is none of them. */
static int mark_axes(struct onnx_reading *reading, const onnx_op *op, int rank, bool *marked, int *count) {
    int64_t axes[MAX_RANK];
    RETURN_IF(onnx_list(&reading->graph, op, "axes", 1, axes, MAX_RANK, count));
    for (int i = 0; i < *count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank + (*marked ? *count : 0) : axes[i];
        if (axis < 1 || axis >= rank + (*marked ? *count : 0) || marked[axis])
            return onnx_wrong(&reading->graph, op,
                              "axes: found %lld, expected others than the batch, each once",
                              (long long)axes[i]);
        marked[axis] = true;
    }
    return OK;
}

int onnx_squeeze(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    bool gone[2 * MAX_RANK + 1] = {false};
    struct shape shape = {0};
    int count = 0;
    if (!x) return reading->graph.error->code;
    RETURN_IF(mark_axes(reading, op, x->theirs.rank + 1, gone, &count));
    for (int i = 0; i < x->theirs.rank; i++) {
        const int length = x->theirs.dims[i];
        if (gone[i + 1] && length != 1)
            return onnx_wrong(&reading->graph, op, "found an axis of length %d, expected 1", length);
        if (count < 0 ? length != 1 : !gone[i + 1]) shape.dims[shape.rank++] = length;
    }
    if (shape.rank == 0)
        return onnx_wrong(&reading->graph, op, "found no axis left but the batch, expected one or more");
    return onnx_reshape(reading, op, x, &shape);
}

int onnx_unsqueeze(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    bool made[2 * MAX_RANK + 1] = {true}; /* axes count those that are made; the batch is none */
    struct shape shape = {0};
    int count = 0;
    if (!x) return reading->graph.error->code;
    RETURN_IF(mark_axes(reading, op, x->theirs.rank + 1, made, &count));
    if (count < 1 || x->theirs.rank + count > MAX_RANK)
        return onnx_wrong(&reading->graph, op, "found %d axes, expected 1 to %d", count,
                          MAX_RANK - x->theirs.rank);
    for (int i = 0, from = 0; i < x->theirs.rank + count; i++)
        shape.dims[shape.rank++] = made[i + 1] ? 1 : x->theirs.dims[from++];
    return onnx_reshape(reading, op, x, &shape);
}

/* Channels to the front or to the back: it is only how the elements lie that changes there. */
int onnx_transpose(struct onnx_reading *reading, const onnx_op *op) {
    static const int64_t to_first[4] = {0, 3, 1, 2}, to_last[4] = {0, 2, 3, 1}, as_it_is[4] = {0, 1, 2, 3};
    const struct onnx_flow *x = onnx_flow(reading, op, 0);
    int64_t order[4] = {3, 2, 1, 0};
    if (!x) return reading->graph.error->code;
    struct onnx_flow flow = *x;
    if (x->theirs.rank != 3) return onnx_as_image(reading, op, &flow);
    RETURN_IF(onnx_ints_of(&reading->graph, op, "perm", order, 4));
    if (memcmp(order, as_it_is, sizeof order) == 0) return onnx_pass(reading, op, &flow);
    if (memcmp(order, to_first, sizeof order) == 0) {
        RETURN_IF(onnx_as_it_is(reading, op, &flow));
        onnx_lay_image(&flow, flow.ours.dims[0], flow.ours.dims[1], flow.ours.dims[2]);
        return onnx_pass(reading, op, &flow);
    }
    if (memcmp(order, to_last, sizeof order) == 0) {
        RETURN_IF(onnx_as_image(reading, op, &flow));
        flow.theirs = flow.ours;
        flow.image = SCALAR;
        return onnx_pass(reading, op, &flow);
    }
    return onnx_wrong(
        &reading->graph, op,
        "found perm %lld, %lld, %lld, %lld, expected 0, 3, 1, 2 or 0, 2, 3, 1: channels to the front or back",
        (long long)order[0], (long long)order[1], (long long)order[2], (long long)order[3]);
}

/* --- several values --- */

enum { PARTS_MOST = 64 };

/* All inputs, laid out in one way. */
static int read_parts(struct onnx_reading *reading, const onnx_op *op, struct onnx_flow *parts,
                      bool *images) {
    if (op->n_input < 1 || op->n_input > PARTS_MOST)
        return onnx_wrong(&reading->graph, op, "found %zu inputs, expected 1 to %d", op->n_input, PARTS_MOST);
    bool equal = true;
    *images = false;
    for (size_t i = 0; i < op->n_input; i++) {
        const struct onnx_flow *part = onnx_flow(reading, op, i);
        if (!part) return reading->graph.error->code;
        parts[i] = *part;
        *images = *images || onnx_is_image(part);
        if (part->theirs.rank != parts[0].theirs.rank)
            return onnx_wrong(&reading->graph, op, "found inputs of %d and %d dimensions, expected as many",
                              parts[0].theirs.rank + 1, part->theirs.rank + 1);
        equal = equal && shape_equal(&part->theirs, &parts[0].theirs) &&
                shape_equal(&part->ours, &parts[0].ours) && shape_equal(&part->image, &parts[0].image);
    }
    for (size_t i = 0; i < op->n_input && *images; i++) RETURN_IF(onnx_as_image(reading, op, &parts[i]));
    if (equal && strcmp(op->op_type, "Concat") != 0) return OK; /* element by element, however they lie */
    for (size_t i = 0; i < op->n_input && !*images; i++) RETURN_IF(onnx_as_it_is(reading, op, &parts[i]));
    return OK;
}

/* One layer of all parts, or, of more than a layer takes, one of what came so far and the next ones. */
static int join(struct onnx_reading *reading, const onnx_op *op, enum layer_kind kind, int axis,
                struct onnx_flow *parts, int count, const struct onnx_flow *result) {
    const struct onnx_flow *taken[MAX_INPUTS] = {&parts[0]};
    struct onnx_flow sum = parts[0];
    int done = 1;
    if (count == 1) return onnx_pass(reading, op, &parts[0]);
    while (done < count) {
        int inputs = 1;
        for (; inputs < MAX_INPUTS && done < count; inputs++) taken[inputs] = &parts[done++];
        struct layer *layer = onnx_add_layer(reading, op, kind, taken, inputs);
        if (!layer) return reading->graph.error->code;
        if (kind == LAYER_concat) layer->values.axis = axis;
        sum.layer = reading->file->list.count - 1;
        taken[0] = &sum;
    }
    return onnx_end_layer(reading, op, result);
}

int onnx_concat(struct onnx_reading *reading, const onnx_op *op) {
    struct onnx_flow parts[PARTS_MOST];
    char words[2][100];
    bool images = false;
    RETURN_IF(read_parts(reading, op, parts, &images));
    const int rank = parts[0].theirs.rank + 1;
    int64_t axis = onnx_int_of(op, "axis", 0);
    if (axis < 0) axis += rank;
    if (axis < 1 || axis >= rank)
        return onnx_wrong(&reading->graph, op, "found axis %lld, expected another than the batch",
                          (long long)onnx_int_of(op, "axis", 0));
    const int at = (int)axis - 1;
    struct onnx_flow result = parts[0];
    for (size_t i = 1; i < op->n_input; i++) {
        struct shape others = parts[i].theirs;
        others.dims[at] = result.theirs.dims[at];
        if (!shape_equal(&others, &result.theirs) ||
            parts[i].theirs.dims[at] > (1 << 28) - result.theirs.dims[at])
            return onnx_wrong(&reading->graph, op,
                              "found %s and %s along axis %lld, expected the same other sizes",
                              shape_text(&result.theirs, words[0], sizeof words[0]),
                              shape_text(&parts[i].theirs, words[1], sizeof words[1]), (long long)axis);
        result.theirs.dims[at] += parts[i].theirs.dims[at];
        result.at_least_zero = result.at_least_zero && parts[i].at_least_zero;
    }
    const int ours = !images ? at : at == 0 ? 2 : at - 1;
    if (images)
        onnx_lay_image(&result, result.theirs.dims[1], result.theirs.dims[2], result.theirs.dims[0]);
    else
        result.ours = result.theirs;
    return join(reading, op, LAYER_concat, ours == result.ours.rank - 1 ? -1 : ours + 1, parts,
                (int)op->n_input, &result);
}

int onnx_add(struct onnx_reading *reading, const onnx_op *op) {
    struct onnx_flow parts[PARTS_MOST];
    char words[2][100];
    bool images = false, is_bias = false;
    if (op->n_input == 2) RETURN_IF(onnx_add_bias(reading, op, &is_bias));
    if (is_bias) return OK;
    RETURN_IF(read_parts(reading, op, parts, &images));
    for (size_t i = 1; i < op->n_input; i++) {
        if (!shape_equal(&parts[i].theirs, &parts[0].theirs))
            return onnx_wrong(&reading->graph, op, "found %s and %s, expected the same shape",
                              shape_text(&parts[0].theirs, words[0], sizeof words[0]),
                              shape_text(&parts[i].theirs, words[1], sizeof words[1]));
        parts[0].at_least_zero = parts[0].at_least_zero && parts[i].at_least_zero;
    }
    return join(reading, op, LAYER_add, 0, parts, (int)op->n_input, &parts[0]);
}

/* Sizes are the same or 1. */
int onnx_mul(struct onnx_reading *reading, const onnx_op *op) {
    struct onnx_flow parts[PARTS_MOST];
    char words[2][100];
    bool images = false;
    RETURN_IF(read_parts(reading, op, parts, &images));
    struct onnx_flow result = parts[0];
    const bool equal = op->n_input > 1 && shape_equal(&parts[1].theirs, &parts[0].theirs);
    for (size_t i = 1; i < op->n_input; i++) {
        const struct shape *theirs = &parts[i].theirs;
        for (int axis = 0; axis < theirs->rank; axis++) {
            int *length = &result.theirs.dims[axis];
            if (*length != theirs->dims[axis] && *length != 1 && theirs->dims[axis] != 1)
                return onnx_wrong(&reading->graph, op, "found %s and %s, expected the same sizes, or 1",
                                  shape_text(&parts[0].theirs, words[0], sizeof words[0]),
                                  shape_text(theirs, words[1], sizeof words[1]));
            if (*length == 1) *length = theirs->dims[axis];
        }
        result.at_least_zero = result.at_least_zero && parts[i].at_least_zero;
    }
    const int *dims = result.theirs.dims;
    if (images) onnx_lay_image(&result, dims[1], dims[2], dims[0]);
    if (!images && !equal) result.ours = result.theirs;
    return join(reading, op, LAYER_multiply, 0, parts, (int)op->n_input, &result);
}
