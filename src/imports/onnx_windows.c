/* Windows over images: pooling, padding, and what convolutions share with them. Explicit pads that are
 * neither none nor those of TensorFlow's "same" become a layer of zeros. See onnx_layers.h. */
#include <limits.h>
#include <string.h>

#include "onnx_layers.h"

enum { LENGTH_MOST = 1 << 20 }; /* of a window, a stride or a pad */

/* So many numbers of an attribute, each within its range; out[count] has what they are without it. */
static int read_lengths(const struct onnx_graph *graph, const onnx_op *op, const char *name, int64_t least,
                        int *out, int count) {
    int64_t numbers[4];
    for (int i = 0; i < count; i++) numbers[i] = out[i];
    RETURN_IF(onnx_ints_of(graph, op, name, numbers, (size_t)count));
    for (int i = 0; i < count; i++) {
        if (numbers[i] < least || numbers[i] > LENGTH_MOST)
            return onnx_wrong(graph, op, "%s: found %lld, expected %lld to %d", name, (long long)numbers[i],
                              (long long)least, LENGTH_MOST);
        out[i] = (int)numbers[i];
    }
    return OK;
}

/* Pads as "same" has them; the odd one in front for SAME_LOWER. */
static void pad_same(struct onnx_windows *windows, const struct onnx_flow *x, bool lower) {
    for (int axis = 0; axis < 2; axis++) {
        const struct window same =
            window_along(x->ours.dims[axis], windows->window[axis], windows->stride[axis], PADDING_SAME);
        windows->pads[axis] = lower ? same.after : same.before;
        windows->pads[axis + 2] = lower ? same.before : same.after;
    }
}

/* What the last window lacks where a part of one counts. */
static void pad_ceil(struct onnx_windows *windows, const struct onnx_flow *x) {
    for (int axis = 0; axis < 2; axis++) {
        const int in = x->ours.dims[axis], stride = windows->stride[axis];
        const int room = in + windows->pads[axis] + windows->pads[axis + 2] - windows->window[axis];
        if (room < 0 || room % stride == 0) continue;
        const int last = (room / stride + 1) * stride; /* where it begins, pads included */
        if (last >= in + windows->pads[axis]) continue;
        windows->pads[axis + 2] += last - room;
        windows->ceil = true;
    }
}

int onnx_read_windows(struct onnx_reading *reading, const onnx_op *op, const int *kernel,
                      const struct onnx_flow *x, struct onnx_windows *windows) {
    const struct onnx_graph *graph = &reading->graph;
    int dilations[2] = {1, 1};
    *windows = (struct onnx_windows){.stride = {1, 1}, .padding = PADDING_VALID};
    if (kernel) memcpy(windows->window, kernel, sizeof windows->window);
    RETURN_IF(read_lengths(graph, op, "kernel_shape", 1, windows->window, 2));
    RETURN_IF(read_lengths(graph, op, "strides", 1, windows->stride, 2));
    RETURN_IF(read_lengths(graph, op, "dilations", 1, dilations, 2));
    RETURN_IF(read_lengths(graph, op, "pads", 0, windows->pads, 4));
    for (int axis = 0; axis < 2; axis++) {
        if (kernel && kernel[axis] != windows->window[axis])
            return onnx_wrong(graph, op, "kernel_shape: found %d, expected %d as its weights have",
                              windows->window[axis], kernel[axis]);
        if (dilations[axis] != 1 && windows->window[axis] > 1)
            return onnx_wrong(graph, op, "found dilations of %d, expected 1", dilations[axis]);
    }
    if (onnx_word_is(op, "auto_pad", "SAME_UPPER")) pad_same(windows, x, false);
    if (onnx_word_is(op, "auto_pad", "SAME_LOWER")) pad_same(windows, x, true);
    if (onnx_word_is(op, "auto_pad", "VALID")) memset(windows->pads, 0, sizeof windows->pads);
    if (onnx_int_of(op, "ceil_mode", 0) != 0) pad_ceil(windows, x);
    for (int axis = 0; axis < 2; axis++)
        if (x->ours.dims[axis] + windows->pads[axis] + windows->pads[axis + 2] < windows->window[axis])
            return onnx_wrong(graph, op, "windows of %dx%d do not fit into %dx%d", windows->window[0],
                              windows->window[1], x->ours.dims[0], x->ours.dims[1]);
    return OK;
}

static bool no_pads(const struct onnx_windows *windows) {
    static const int none[4] = {0};
    return memcmp(windows->pads, none, sizeof none) == 0;
}

bool onnx_pads_are_usual(struct onnx_windows *windows, const struct onnx_flow *x) {
    struct onnx_windows same = *windows;
    if (no_pads(windows)) return true;
    pad_same(&same, x, false);
    if (memcmp(same.pads, windows->pads, sizeof same.pads) != 0) return false;
    windows->padding = PADDING_SAME;
    return true;
}

/* *flow with so many zeros around its rows and columns, top, left, bottom, right. */
static int add_pad(struct onnx_reading *reading, const onnx_op *op, const int pads[4],
                   struct onnx_flow *flow) {
    struct layer *layer = onnx_add_layer(reading, op, LAYER_pad, (const struct onnx_flow *const[]){flow}, 1);
    if (!layer) return reading->graph.error->code;
    const bool is_even = pads[0] == pads[2] && pads[1] == pads[3];
    struct option_sizes *around = &layer->values.around;
    if (is_even)
        *around = (struct option_sizes){pads[0] == pads[1] ? 1 : 2, {pads[0], pads[1]}};
    else
        *around = (struct option_sizes){4, {pads[0], pads[2], pads[1], pads[3]}};
    for (int i = 0; i < 4; i++)
        if (pads[i] > 1000)
            return onnx_wrong(&reading->graph, op, "found pads of %d, expected at most 1000", pads[i]);
    flow->ours.dims[0] += pads[0] + pads[2];
    flow->ours.dims[1] += pads[1] + pads[3];
    flow->layer = reading->file->list.count - 1;
    flow->sole = true;
    return OK;
}

int onnx_add_zeros(struct onnx_reading *reading, const onnx_op *op, struct onnx_windows *windows,
                   struct onnx_flow *x) {
    RETURN_IF(add_pad(reading, op, windows->pads, x));
    onnx_lay_image(x, x->ours.dims[0], x->ours.dims[1], x->ours.dims[2]);
    memset(windows->pads, 0, sizeof windows->pads);
    return OK;
}

/* As one number where both are the same. */
static struct option_sizes sizes_of(const int lengths[2]) {
    return (struct option_sizes){lengths[0] == lengths[1] ? 1 : 2, {lengths[0], lengths[1]}};
}

void onnx_set_windows(const struct onnx_windows *windows, const struct onnx_flow *x, int channels,
                      struct layer *layer, struct onnx_flow *flow) {
    const bool pools = layer->kind == LAYER_maxpool || layer->kind == LAYER_avgpool;
    const int *const usual = pools ? windows->window : (const int[]){1, 1};
    int out[2];
    for (int axis = 0; axis < 2; axis++)
        out[axis] =
            window_along(x->ours.dims[axis], windows->window[axis], windows->stride[axis], windows->padding)
                .out;
    layer->values.window = sizes_of(windows->window);
    if (!pools) layer->values.window = (struct option_sizes){2, {windows->window[0], windows->window[1]}};
    if (memcmp(windows->stride, usual, sizeof windows->stride) != 0)
        layer->values.stride = sizes_of(windows->stride);
    layer->values.padding = (int)windows->padding;
    onnx_lay_image(flow, out[0], out[1], channels);
}

/* --- operators --- */

static int end_pool(struct onnx_reading *reading, const onnx_op *op, enum layer_kind kind,
                    const struct onnx_windows *windows, const struct onnx_flow *x) {
    struct onnx_flow flow = {.at_least_zero = x->at_least_zero};
    struct layer *layer = onnx_add_layer(reading, op, kind, (const struct onnx_flow *const[]){x}, 1);
    if (!layer) return reading->graph.error->code;
    onnx_set_windows(windows, x, x->ours.dims[2], layer, &flow);
    return onnx_end_layer(reading, op, &flow);
}

/* What is padded never counts: zeros do the same only where nothing is below them. */
int onnx_maxpool(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    struct onnx_windows windows;
    if (!from) return reading->graph.error->code;
    struct onnx_flow x = *from;
    RETURN_IF(onnx_as_image(reading, op, &x));
    RETURN_IF(onnx_read_windows(reading, op, NULL, &x, &windows));
    if (!onnx_pads_are_usual(&windows, &x)) {
        for (int i = 0; i < 4; i++)
            if (windows.pads[i] >= windows.window[i % 2] || !x.at_least_zero)
                return onnx_wrong(
                    &reading->graph, op,
                    "found pads %d, %d, %d, %d around what may be below 0, expected a relu before it, "
                    "or none, or those of SAME_UPPER",
                    windows.pads[0], windows.pads[1], windows.pads[2], windows.pads[3]);
        RETURN_IF(onnx_add_zeros(reading, op, &windows, &x));
    }
    return end_pool(reading, op, LAYER_maxpool, &windows, &x);
}

int onnx_avgpool(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    const bool counts_pads = onnx_int_of(op, "count_include_pad", 0) != 0;
    struct onnx_windows windows;
    if (!from) return reading->graph.error->code;
    struct onnx_flow x = *from;
    RETURN_IF(onnx_as_image(reading, op, &x));
    RETURN_IF(onnx_read_windows(reading, op, NULL, &x, &windows));
    if (counts_pads ? windows.ceil : !onnx_pads_are_usual(&windows, &x))
        return onnx_wrong(
            &reading->graph, op,
            "found pads %d, %d, %d, %d with ceil_mode %d and count_include_pad %d, expected none, those "
            "of SAME_UPPER that do not count, or any that count",
            windows.pads[0], windows.pads[1], windows.pads[2], windows.pads[3],
            onnx_int_of(op, "ceil_mode", 0) != 0, counts_pads);
    if (counts_pads && !no_pads(&windows)) RETURN_IF(onnx_add_zeros(reading, op, &windows, &x));
    return end_pool(reading, op, LAYER_avgpool, &windows, &x);
}

/* Pads of all axes, of the batch first: pads[axis] before, pads[rank + axis] after. */
static int read_pads(struct onnx_reading *reading, const onnx_op *op, int rank, int64_t *pads) {
    struct onnx_graph *graph = &reading->graph;
    int64_t numbers[2 * MAX_RANK], axes[MAX_RANK];
    int count, axis_count;
    float value = 0.0f;
    RETURN_IF(onnx_list(graph, op, "pads", 1, numbers, 2 * MAX_RANK, &count));
    RETURN_IF(onnx_number(graph, op, "value", 2, 0.0f, &value));
    RETURN_IF(onnx_list(graph, op, "axes", 3, axes, MAX_RANK, &axis_count));
    if (axis_count < 0)
        for (axis_count = 0; axis_count < rank; axis_count++) axes[axis_count] = axis_count;
    if (value < 0.0f || value > 0.0f || onnx_word_is(op, "mode", "reflect") ||
        onnx_word_is(op, "mode", "edge") || onnx_word_is(op, "mode", "wrap"))
        return onnx_wrong(graph, op, "found other pads than zeros, expected zeros");
    if (count != 2 * axis_count)
        return onnx_wrong(graph, op, "found %d pads, expected %d", count, 2 * axis_count);
    memset(pads, 0, 2 * (size_t)rank * sizeof *pads);
    for (int i = 0; i < axis_count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 0 || axis >= rank)
            return onnx_wrong(graph, op, "axes: found %lld, expected 0 to %d", (long long)axes[i], rank - 1);
        pads[axis] = numbers[i];
        pads[rank + axis] = numbers[axis_count + i];
    }
    return OK;
}

int onnx_pad(struct onnx_reading *reading, const onnx_op *op) {
    const struct onnx_flow *from = onnx_flow(reading, op, 0);
    int64_t pads[2 * (MAX_RANK + 1)];
    int around[4];
    if (!from) return reading->graph.error->code;
    struct onnx_flow flow = *from;
    if (flow.theirs.rank != 3) return onnx_as_image(reading, op, &flow);
    const bool is_image = onnx_is_image(&flow);
    RETURN_IF(is_image ? onnx_as_image(reading, op, &flow) : onnx_as_it_is(reading, op, &flow));
    RETURN_IF(read_pads(reading, op, 4, pads));
    const int rows = is_image ? 2 : 1, channels = is_image ? 1 : 3;
    for (int i = 0; i < 4; i++) {
        const int64_t pad = pads[(i >= 2 ? 4 : 0) + rows + i % 2];
        if (pad < 0 || pad > LENGTH_MOST)
            return onnx_wrong(&reading->graph, op, "found pads of %lld, expected 0 or more", (long long)pad);
        around[i] = (int)pad;
    }
    if (pads[0] != 0 || pads[4] != 0 || pads[channels] != 0 || pads[4 + channels] != 0)
        return onnx_wrong(&reading->graph, op,
                          "found pads of the batch or of channels, expected rows and columns");
    if (around[0] + around[1] + around[2] + around[3] == 0) return onnx_pass(reading, op, &flow);
    RETURN_IF(add_pad(reading, op, around, &flow));
    if (is_image)
        onnx_lay_image(&flow, flow.ours.dims[0], flow.ours.dims[1], flow.ours.dims[2]);
    else
        flow.theirs = flow.ours;
    return onnx_end_layer(reading, op, &flow);
}
