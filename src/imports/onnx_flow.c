/* Flows: what the network computes, from layer to layer, and how its elements lie here and in the file. See
 * onnx_layers.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx_layers.h"

const struct onnx_flow *onnx_flow(const struct onnx_reading *reading, const onnx_op *op, size_t i) {
    const struct onnx_value *value = onnx_operand(&reading->graph, op, i);
    if (value && value->state == ONNX_FLOW) return &value->flow;
    if (value)
        onnx_wrong(&reading->graph, op,
                   "found %s of the constant %.60s, expected one of what the network computes", op->op_type,
                   value->name);
    return NULL;
}

/* --- layers --- */

struct layer *onnx_add_layer(struct onnx_reading *reading, const onnx_op *op, enum layer_kind kind,
                             const struct onnx_flow *const *flows, int count) {
    struct error why = {0};
    struct layer *layer = layers_add(&reading->file->list, kind, ERROR_FILE, &why);
    if (!layer && why.code == ERROR_FILE) onnx_wrong(&reading->graph, op, "%s", why.words);
    if (!layer) error_set(reading->graph.error, why.code, "%s", why.words);
    if (!layer) return NULL;
    layer->inputs = count;
    for (int i = 0; i < count; i++) layer->input[i] = flows[i]->layer;
    return layer;
}

/* Whether its attributes are what could be typed; each becomes what would be read from its text. */
static int check_attributes(const struct onnx_reading *reading, const onnx_op *op, struct layer *layer) {
    const struct layer_row *of = &layer_rows[layer->kind];
    for (const struct option *row = of->attributes; row->name; row++) {
        char text[100];
        struct error why = {0};
        option_text(row, &layer->values, text, sizeof text);
        if (!*text || row->type == OPTION_FLAG) continue;
        if (option_set(of->attributes, &layer->values, of->name, row->name, text, &why) != OK)
            return onnx_wrong(&reading->graph, op, "%s", why.words);
    }
    return OK;
}

/* Elements of an example; what is larger than any network's is an error. */
static int check_size(const struct onnx_reading *reading, const onnx_op *op, const struct shape *shape) {
    enum { COUNT_MOST = 1 << 28 };
    char words[100];
    size_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 1 || (size_t)shape->dims[i] > COUNT_MOST / count)
            return onnx_wrong(&reading->graph, op, "its result is %s per example, expected 1 to 2^28 numbers",
                              shape_text(shape, words, sizeof words));
        count *= (size_t)shape->dims[i];
    }
    return OK;
}

int onnx_pass(struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *flow) {
    struct onnx_value *value = onnx_value(&reading->graph, op->n_output > 0 ? op->output[0] : "");
    if (!value) return onnx_wrong(&reading->graph, op, "found no output, expected one");
    const bool sole = flow->sole && value->uses == 1;
    value->flow = *flow;
    value->flow.sole = sole;
    value->state = ONNX_FLOW;
    return OK;
}

int onnx_end_layer(struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *flow) {
    struct layer_list *list = &reading->file->list;
    struct onnx_flow made = *flow;
    RETURN_IF(check_attributes(reading, op, &list->layers[list->count - 1]));
    RETURN_IF(check_size(reading, op, &flow->ours));
    made.layer = list->count - 1;
    made.sole = true;
    return onnx_pass(reading, op, &made);
}

/* A layer of which the file has no node: *flow is then what it gives. */
static int add_between(struct onnx_reading *reading, const onnx_op *op, enum layer_kind kind,
                       const struct shape *ours, struct onnx_flow *flow) {
    struct layer *layer = onnx_add_layer(reading, op, kind, (const struct onnx_flow *const[]){flow}, 1);
    if (!layer) return reading->graph.error->code;
    if (kind == LAYER_reshape) {
        layer->values.shape.count = ours->rank;
        memcpy(layer->values.shape.at, ours->dims, sizeof ours->dims);
    }
    RETURN_IF(check_attributes(reading, op, layer));
    flow->ours = *ours;
    flow->layer = reading->file->list.count - 1;
    flow->sole = true;
    return OK;
}

/* --- how elements lie --- */

static struct shape turned(const struct shape *theirs) {
    return SHAPE(theirs->dims[1], theirs->dims[2], theirs->dims[0]);
}

/* Whether channels first and channels last are the same order. */
static bool either_way(const struct shape *theirs) {
    return theirs->rank == 3 && (theirs->dims[0] == 1 || theirs->dims[1] * theirs->dims[2] == 1);
}

bool onnx_is_image(const struct onnx_flow *flow) {
    if (flow->theirs.rank != 3) return false;
    if (flow->image.rank == 3) return true;
    const struct shape image = turned(&flow->theirs);
    return either_way(&flow->theirs) && shape_equal(&flow->ours, &image);
}

int onnx_as_image(struct onnx_reading *reading, const onnx_op *op, struct onnx_flow *flow) {
    char words[100];
    if (flow->theirs.rank != 3)
        return onnx_wrong(&reading->graph, op,
                          "its input is %s per example, expected channels, rows and columns",
                          shape_text(&flow->theirs, words, sizeof words));
    if (flow->image.rank == 0 && !either_way(&flow->theirs))
        return onnx_wrong(&reading->graph, op,
                          "its input %s has its channels first only by a reshape, expected an image",
                          shape_text(&flow->theirs, words, sizeof words));
    const struct shape image = turned(&flow->theirs);
    if (shape_equal(&flow->ours, &image)) return OK;
    return add_between(reading, op, LAYER_reshape, &image, flow);
}

int onnx_as_row(struct onnx_reading *reading, const onnx_op *op, struct onnx_flow *flow) {
    const struct shape row = SHAPE((int)shape_count(&flow->theirs));
    if (flow->ours.rank == 1) return OK;
    return add_between(reading, op, LAYER_flatten, &row, flow);
}

int onnx_as_it_is(struct onnx_reading *reading, const onnx_op *op, struct onnx_flow *flow) {
    char words[100];
    if (flow->image.rank == 3)
        return onnx_wrong(&reading->graph, op,
                          "its input %s lies as rows, columns, channels here, expected no order of its own",
                          shape_text(&flow->theirs, words, sizeof words));
    if (shape_equal(&flow->ours, &flow->theirs)) return OK;
    return add_between(reading, op, LAYER_reshape, &flow->theirs, flow);
}

/* Whether they are the same but for sizes of 1. */
static bool same_but_ones(const struct shape *a, const struct shape *b) {
    int i = 0, k = 0;
    for (;;) {
        while (i < a->rank && a->dims[i] == 1) i++;
        while (k < b->rank && b->dims[k] == 1) k++;
        if (i == a->rank || k == b->rank) return i == a->rank && k == b->rank;
        if (a->dims[i++] != b->dims[k++]) return false;
    }
}

int onnx_reshape(struct onnx_reading *reading, const onnx_op *op, const struct onnx_flow *from,
                 const struct shape *theirs) {
    struct onnx_flow flow = *from;
    char before[100], after[100];
    flow.theirs = *theirs;
    if (flow.image.rank == 3 && theirs->rank != 1) {
        const struct shape image = theirs->rank == 3 ? turned(theirs) : SCALAR;
        if (!shape_equal(&image, &flow.image))
            return onnx_wrong(
                &reading->graph, op, "found %s made %s, which %s, expected an image to stay one, or a row",
                shape_text(&from->theirs, before, sizeof before), shape_text(theirs, after, sizeof after),
                !same_but_ones(&from->theirs, theirs) ? "mixes channels with rows or columns"
                : theirs->rank > from->theirs.rank    ? "adds an axis to an image"
                                                      : "takes an axis from an image");
    }
    if (theirs->rank == 1) RETURN_IF(onnx_as_row(reading, op, &flow));
    return onnx_pass(reading, op, &flow);
}

size_t onnx_place(const struct onnx_flow *flow, size_t i) {
    if (flow->image.rank == 0) return i;
    const size_t area = (size_t)flow->image.dims[0] * (size_t)flow->image.dims[1];
    return i % area * (size_t)flow->image.dims[2] + i / area;
}

void onnx_lay_image(struct onnx_flow *flow, int rows, int columns, int channels) {
    flow->theirs = SHAPE(channels, rows, columns);
    flow->ours = SHAPE(rows, columns, channels);
    flow->image = either_way(&flow->theirs) ? SCALAR : flow->ours;
}

/* --- numbers --- */

/* Whether the number gives x, or the next float on either side of it. */
static bool gives(double number, float scale, float x, bool nearly) {
    const float product = (float)number * scale;
    if (product >= x && product <= x) return true;
    return nearly && product >= nextafterf(x, -INFINITY) && product <= nextafterf(x, INFINITY);
}

double onnx_shortest(float x, float scale) {
    /* As few digits as somebody would type, then as many as tell all floats apart; a few more are not worth
     * the last bit of a product. */
    static const struct {
        int first, last;
        bool nearly;
    } digits[] = {{1, 7, false}, {1, 4, true}, {8, 9, false}};
    const double wanted = (double)x / (double)scale;
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++)
        for (int count = digits[i].first; count <= digits[i].last; count++) {
            char text[40];
            snprintf(text, sizeof text, "%.*g", count, wanted);
            const double number = strtod(text, NULL);
            if (gives(number, scale, x, digits[i].nearly && scale > 1.0f)) return number;
        }
    return wanted;
}
