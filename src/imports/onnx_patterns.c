/* Layers that take several nodes in a file: silu, gelu and layer normalisation, as PyTorch writes them and
 * this program does. Each is found from its last node; what lies within must have no other use. */
#include <math.h>
#include <string.h>

#include "onnx_layers.h"

enum { WITHIN_MOST = 16 };

/* A pattern under way. */
struct finding {
    struct onnx_reading *reading;
    int within[WITHIN_MOST]; /* [count] nodes */
    int count;
};

/* The node that makes a value, if it is such an operator and the value has so many uses (0: any); it is then
 * within the pattern. NULL: it does not. */
static const onnx_op *maker_of(struct finding *finding, const char *name, const char *operation, int uses) {
    const struct onnx_graph *graph = &finding->reading->graph;
    const struct onnx_value *value = onnx_value(graph, name);
    if (!value || value->maker < 0 || value->is_result || finding->count == WITHIN_MOST) return NULL;
    const onnx_op *op = graph->proto->node[value->maker];
    if ((uses > 0 && value->uses != uses) || !op->op_type || strcmp(op->op_type, operation) != 0) return NULL;
    finding->within[finding->count++] = value->maker;
    return op;
}

/* A constant, of a tensor or a node. */
static const struct onnx_constant *constant_named(struct onnx_reading *reading, const char *name) {
    struct onnx_graph *graph = &reading->graph;
    struct onnx_value *value = onnx_value(graph, name);
    struct error ignored = {0}, *const error = graph->error;
    if (!value || value->state == ONNX_CONSTANT) return value ? &value->constant : NULL;
    const onnx_op *op = value->maker >= 0 ? graph->proto->node[value->maker] : NULL;
    int code = ERROR_FILE;
    graph->error = &ignored; /* what is wrong with it is said where it is needed */
    if (op && op->op_type && strcmp(op->op_type, "Constant") == 0) code = onnx_fold(graph, op);
    if (value->tensor) code = onnx_tensor(graph, value->tensor, name, &value->constant);
    if (value->tensor && code == OK) value->state = ONNX_CONSTANT;
    graph->error = error;
    return code == OK ? &value->constant : NULL;
}

static bool is_number(struct finding *finding, const char *name, float *number) {
    const struct onnx_constant *constant = constant_named(finding->reading, name);
    if (!constant || constant->count != 1 || !constant->floats) return false;
    *number = constant->floats[0];
    return true;
}

static bool near(double a, double b) {
    return fabs(a - b) < 1e-5;
}

static bool same(const onnx_op *op, size_t i, const char *name) {
    return strcmp(onnx_input_name(op, i), name) == 0;
}

/* --- x sigmoid(x), x hard_sigmoid(x) --- */

bool onnx_is_hard_sigmoid(const onnx_op *op) {
    return near((double)onnx_float_of(op, "alpha", 0.2f), 1.0 / 6.0) &&
           near((double)onnx_float_of(op, "beta", 0.5f), 0.5);
}

static bool find_silu(struct finding *finding, const onnx_op *last, struct onnx_pattern *pattern) {
    if (strcmp(last->op_type, "Mul") != 0) return false;
    for (size_t i = 0; i < 4; i++) {
        const bool hard = i >= 2;
        finding->count = 0;
        const onnx_op *sigmoid =
            maker_of(finding, onnx_input_name(last, i % 2), hard ? "HardSigmoid" : "Sigmoid", 1);
        if (!sigmoid || !same(last, 1 - i % 2, onnx_input_name(sigmoid, 0))) continue;
        if (hard && !onnx_is_hard_sigmoid(sigmoid)) continue;
        *pattern = (struct onnx_pattern){.kind = hard ? LAYER_hard_swish : LAYER_silu, .first = sigmoid};
        return true;
    }
    return false;
}

/* --- gelu: x (1 + erf(x / sqrt 2)) / 2, in any order --- */

/* A product: a number times up to two values. */
struct product {
    double number;
    const char *factor[2];
    const onnx_op *user[2]; /* whose input `at` the factor is */
    size_t at[2];
    int factors;
};

/* Multiplies by a node's input i; products within are multiplied out, so many deep. */
static bool multiply(struct finding *finding, const onnx_op *op, size_t i, struct product *product,
                     int deep) {
    const char *name = onnx_input_name(op, i);
    float number;
    if (is_number(finding, name, &number)) {
        product->number *= (double)number;
        return true;
    }
    const onnx_op *inner = deep > 0 ? maker_of(finding, name, "Mul", 1) : NULL;
    if (inner)
        return multiply(finding, inner, 0, product, deep - 1) &&
               multiply(finding, inner, 1, product, deep - 1);
    inner = deep > 0 ? maker_of(finding, name, "Div", 1) : NULL;
    if (inner && is_number(finding, onnx_input_name(inner, 1), &number)) {
        product->number /= (double)number;
        return multiply(finding, inner, 0, product, deep - 1);
    }
    if (inner || product->factors == 2) return false;
    product->user[product->factors] = op;
    product->at[product->factors] = i;
    product->factor[product->factors++] = name;
    return true;
}

/* Whether the node is an Add of the number `plus` and `times` erf(x / sqrt 2). */
static bool is_share(struct finding *finding, const char *name, const char *x, double *times, double *plus) {
    const onnx_op *add = maker_of(finding, name, "Add", 1);
    float number = 0.0f;
    if (!add) return false;
    const size_t constant = is_number(finding, onnx_input_name(add, 0), &number) ? 0 : 1;
    struct product erf = {.number = 1.0}, scaled = {.number = 1.0};
    if (!is_number(finding, onnx_input_name(add, constant), &number)) return false;
    if (!multiply(finding, add, 1 - constant, &erf, 2) || erf.factors != 1) return false;
    const onnx_op *function = maker_of(finding, erf.factor[0], "Erf", 1);
    if (!function || !multiply(finding, function, 0, &scaled, 2) || scaled.factors != 1) return false;
    *times = erf.number;
    *plus = (double)number;
    return strcmp(scaled.factor[0], x) == 0 && near(scaled.number, sqrt(0.5));
}

static bool find_gelu(struct finding *finding, const onnx_op *last, struct onnx_pattern *pattern) {
    struct product product = {.number = 1.0};
    if (strcmp(last->op_type, "Mul") != 0) return false;
    finding->count = 0;
    if (!multiply(finding, last, 0, &product, 2) || !multiply(finding, last, 1, &product, 2)) return false;
    const int count = finding->count;
    for (int i = 0; i < 2 && product.factors == 2; i++) {
        double times, plus;
        finding->count = count;
        if (!is_share(finding, product.factor[i], product.factor[1 - i], &times, &plus)) continue;
        if (!near(product.number * times, 0.5) || !near(product.number * plus, 0.5)) continue;
        *pattern =
            (struct onnx_pattern){.kind = LAYER_gelu, .first = product.user[1 - i], .x = product.at[1 - i]};
        return true;
    }
    return false;
}

/* --- layer normalisation: (x - mean) / sqrt(variance + epsilon), scaled and shifted --- */

/* A mean over one axis, which it keeps. */
static bool is_mean(struct finding *finding, const onnx_op *mean, int64_t *axis) {
    int count = 0;
    struct onnx_graph *graph = &finding->reading->graph;
    if (onnx_int_of(mean, "keepdims", 1) != 1) return false;
    if (*onnx_input_name(mean, 1) && !constant_named(finding->reading, onnx_input_name(mean, 1)))
        return false;
    struct error ignored = {0}, *const error = graph->error;
    graph->error = &ignored;
    const int code = onnx_list(graph, mean, "axes", 1, axis, 1, &count);
    graph->error = error;
    return code == OK && count == 1;
}

/* The deviation from the mean, of which the name is given, and the axis. */
static const onnx_op *find_deviation(struct finding *finding, const char *name, int uses, int64_t *axis) {
    const onnx_op *deviation = maker_of(finding, name, "Sub", uses);
    const onnx_op *mean =
        deviation ? maker_of(finding, onnx_input_name(deviation, 1), "ReduceMean", 1) : NULL;
    if (!mean || !same(deviation, 0, onnx_input_name(mean, 0)) || !is_mean(finding, mean, axis)) return NULL;
    return deviation;
}

/* Whether the value is the mean of the deviation's squares plus epsilon. */
static bool is_variance(struct finding *finding, const char *name, const char *deviation, int64_t axis,
                        float *epsilon) {
    const onnx_op *add = maker_of(finding, name, "Add", 1);
    float power;
    int64_t own_axis = 0;
    if (!add) return false;
    const size_t constant = is_number(finding, onnx_input_name(add, 0), epsilon) ? 0 : 1;
    if (!is_number(finding, onnx_input_name(add, constant), epsilon)) return false;
    const onnx_op *mean = maker_of(finding, onnx_input_name(add, 1 - constant), "ReduceMean", 1);
    if (!mean || !is_mean(finding, mean, &own_axis) || own_axis != axis) return false;
    const onnx_op *square = maker_of(finding, onnx_input_name(mean, 0), "Mul", 1);
    if (square) return same(square, 0, deviation) && same(square, 1, deviation);
    square = maker_of(finding, onnx_input_name(mean, 0), "Pow", 1);
    return square && same(square, 0, deviation) && is_number(finding, onnx_input_name(square, 1), &power) &&
           near((double)power, 2.0);
}

/* Whether the value is the deviation over the root of the variance; then *deviation is its node. */
static bool is_normal(struct finding *finding, const char *name, const onnx_op **deviation,
                      struct onnx_pattern *pattern) {
    const onnx_op *over = maker_of(finding, name, "Div", 1), *times = NULL, *root = NULL;
    float power;
    if (!over) times = maker_of(finding, name, "Mul", 1);
    if (!over && !times) return false;
    const char *x = onnx_input_name(over ? over : times, 0), *by = onnx_input_name(over ? over : times, 1);
    *deviation = find_deviation(finding, x, 0, &pattern->axis);
    if (!*deviation) return false;
    root = maker_of(finding, by, over ? "Sqrt" : "Pow", 1);
    if (!root ||
        (times && (!is_number(finding, onnx_input_name(root, 1), &power) || !near((double)power, -0.5))))
        return false;
    return is_variance(finding, onnx_input_name(root, 0), x, pattern->axis, &pattern->epsilon);
}

static bool find_layer_norm(struct finding *finding, const onnx_op *last, struct onnx_pattern *pattern) {
    const onnx_op *deviation = NULL;
    if (strcmp(last->op_type, "Add") != 0) return false;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++) {
            finding->count = 0;
            const onnx_op *scaled = maker_of(finding, onnx_input_name(last, i), "Mul", 1);
            if (!scaled || !constant_named(finding->reading, onnx_input_name(scaled, 1 - k)) ||
                !constant_named(finding->reading, onnx_input_name(last, 1 - i)))
                continue;
            *pattern = (struct onnx_pattern){
                .kind = LAYER_layer_norm, .scale_node = scaled, .scale = 1 - k, .shift = 1 - i};
            if (!is_normal(finding, onnx_input_name(scaled, k), &deviation, pattern)) continue;
            pattern->first = deviation;
            return true;
        }
    return false;
}

/* --- all of them --- */

static int times_used(const onnx_op *op, const char *name) {
    int times = 0;
    for (size_t i = 0; i < op->n_input; i++) times += same(op, i, name);
    return times;
}

/* Uses of a value by the nodes of the pattern and its last one. */
static int uses_by(const struct finding *finding, const onnx_op *last, const char *name) {
    int uses = times_used(last, name);
    for (int i = 0; i < finding->count; i++)
        uses += times_used(finding->reading->graph.proto->node[finding->within[i]], name);
    return uses;
}

/* Whether what the nodes within make is used within only; what they share is met once. */
static bool is_closed(struct finding *finding, const onnx_op *last) {
    const struct onnx_graph *graph = &finding->reading->graph;
    int kept = 0;
    for (int i = 0; i < finding->count; i++) {
        bool met = false;
        for (int k = 0; k < kept; k++) met = met || finding->within[k] == finding->within[i];
        if (!met) finding->within[kept++] = finding->within[i];
    }
    finding->count = kept;
    for (int i = 0; i < kept; i++) {
        const onnx_op *op = graph->proto->node[finding->within[i]];
        const struct onnx_value *value = onnx_value(graph, op->output[0]);
        if (!value || value->uses != uses_by(finding, last, value->name)) return false;
        if (finding->reading->inside[finding->within[i]]) return false;
    }
    return true;
}

static bool find(struct finding *finding, const onnx_op *last, struct onnx_pattern *pattern) {
    return find_silu(finding, last, pattern) || find_gelu(finding, last, pattern) ||
           find_layer_norm(finding, last, pattern);
}

int onnx_find_patterns(struct onnx_reading *reading) {
    const Onnx__GraphProto *proto = reading->graph.proto;
    for (size_t i = proto->n_node; i-- > 0;) {
        struct finding finding = {.reading = reading};
        struct onnx_pattern pattern;
        reading->patterns[i].kind = LAYER_NONE;
        const onnx_op *last = proto->node[i];
        if (!reading->graph.needed[i] || reading->inside[i] || !last->op_type) continue;
        if (!find(&finding, last, &pattern) || !is_closed(&finding, last)) continue;
        struct onnx_value *x = onnx_value(&reading->graph, onnx_input_name(pattern.first, pattern.x));
        if (!x) continue;
        x->uses += 1 - uses_by(&finding, last, x->name);
        for (int k = 0; k < finding.count; k++) reading->inside[finding.within[k]] = true;
        reading->patterns[i] = pattern;
    }
    return OK;
}
