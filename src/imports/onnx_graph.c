/* Values by name, and what nodes have. See onnx_graph.h. */
#include "onnx_graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"

enum { OPSET_LEAST = 6, OPSET_MOST = 26 };

/* A text of the file, which may not be there. */
static const char *words_of(const char *text) {
    return text ? text : "";
}

int onnx_wrong(const struct onnx_graph *graph, const onnx_op *op, const char *format, ...) {
    char words[300];
    const char *name = words_of(op->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    if (!*name) name = op->n_output > 0 ? words_of(op->output[0]) : "without a name";
    return error_set(graph->error, ERROR_FILE, "%s: node %.80s: %s", graph->path, name, words);
}

/* --- values --- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct onnx_value *)a)->name, ((const struct onnx_value *)b)->name);
}

struct onnx_value *onnx_value(const struct onnx_graph *graph, const char *name) {
    const struct onnx_value key = {.name = name};
    if (!*name) return NULL;
    return bsearch(&key, graph->values, (size_t)graph->count, sizeof *graph->values, by_name);
}

/* All names, sorted; an initializer may be an input, too. */
static int collect_values(struct onnx_graph *graph) {
    const Onnx__GraphProto *proto = graph->proto;
    size_t most = proto->n_input + proto->n_initializer;
    int made = 0, kept = 0;
    for (size_t i = 0; i < proto->n_node; i++) most += proto->node[i]->n_output;
    RETURN_IF(memory_array(&graph->values, most, "an ONNX graph", graph->error));
    for (size_t i = 0; i < proto->n_initializer; i++)
        graph->values[made++] = (struct onnx_value){
            .name = words_of(proto->initializer[i]->name), .tensor = proto->initializer[i], .maker = -1};
    for (size_t i = 0; i < proto->n_input; i++)
        graph->values[made++] = (struct onnx_value){.name = words_of(proto->input[i]->name), .maker = -1};
    for (size_t i = 0; i < proto->n_node; i++)
        for (size_t k = 0; k < proto->node[i]->n_output; k++)
            graph->values[made++] =
                (struct onnx_value){.name = words_of(proto->node[i]->output[k]), .maker = (int)i};
    qsort(graph->values, (size_t)made, sizeof *graph->values, by_name);
    for (int i = 0; i < made; i++) {
        const struct onnx_value *value = &graph->values[i];
        struct onnx_value *last = kept > 0 ? &graph->values[kept - 1] : NULL;
        if (!*value->name) continue; /* a result that nobody takes */
        if (!last || strcmp(last->name, value->name) != 0) {
            graph->values[kept++] = *value;
            continue;
        }
        if (value->maker >= 0 || last->maker >= 0 || !value->tensor == !last->tensor)
            return error_set(graph->error, ERROR_FILE, "%s: found the value %.80s twice, expected it once",
                             graph->path, value->name);
        if (value->tensor) last->tensor = value->tensor;
    }
    graph->count = kept;
    return OK;
}

/* The one input that is no initializer. */
static int find_input(struct onnx_graph *graph) {
    const Onnx__GraphProto *proto = graph->proto;
    for (size_t i = 0; i < proto->n_input; i++) {
        const struct onnx_value *value = onnx_value(graph, words_of(proto->input[i]->name));
        if (!value || value->tensor) continue;
        if (graph->input)
            return error_set(graph->error, ERROR_FILE,
                             "%s: found the inputs %.80s and %.80s, expected one input", graph->path,
                             graph->input->name, value->name);
        graph->input = proto->input[i];
    }
    if (graph->input) return OK;
    return error_set(graph->error, ERROR_FILE, "%s: found no input, expected one", graph->path);
}

/* What the results are computed from. Nodes follow those that they need, so one pass from the end is enough;
 * of a file where they do not, a node meets an operand that is not there. */
static int mark_needed(struct onnx_graph *graph) {
    const Onnx__GraphProto *proto = graph->proto;
    RETURN_IF(memory_array(&graph->needed, proto->n_node, "an ONNX graph", graph->error));
    for (size_t i = 0; i < proto->n_output; i++) {
        struct onnx_value *value = onnx_value(graph, words_of(proto->output[i]->name));
        if (!value)
            return error_set(graph->error, ERROR_FILE, "%s: output %.80s: no node makes it", graph->path,
                             words_of(proto->output[i]->name));
        value->uses++;
        value->is_result = true;
    }
    for (size_t i = proto->n_node; i-- > 0;) {
        const onnx_op *op = proto->node[i];
        for (size_t k = 0; k < op->n_output; k++) {
            const struct onnx_value *value = onnx_value(graph, words_of(op->output[k]));
            if (value && value->uses > 0) graph->needed[i] = true;
        }
        for (size_t k = 0; k < op->n_input && graph->needed[i]; k++) {
            struct onnx_value *value = onnx_value(graph, onnx_input_name(op, k));
            if (value) value->uses++;
        }
    }
    return OK;
}

static int read_opset(struct onnx_graph *graph, const Onnx__ModelProto *model) {
    const char *other = NULL;
    bool known = false;
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *domain = words_of(model->opset_import[i]->domain);
        const bool is_usual = !*domain || strcmp(domain, "ai.onnx") == 0;
        if (is_usual) graph->opset = model->opset_import[i]->version;
        if (!is_usual) other = domain;
        known = known || is_usual;
    }
    if (graph->opset >= OPSET_LEAST && graph->opset <= OPSET_MOST) return OK;
    if (!known)
        return error_set(graph->error, ERROR_FILE,
                         "%s: found %s%.60s, expected those of ONNX itself, opset %d to %d", graph->path,
                         other ? "operators of the domain " : "no opset of its operators", other ? other : "",
                         OPSET_LEAST, OPSET_MOST);
    return error_set(graph->error, ERROR_FILE, "%s: found operators of opset %lld, expected %d to %d",
                     graph->path, (long long)graph->opset, OPSET_LEAST, OPSET_MOST);
}

int onnx_graph_open(struct onnx_graph *graph, const Onnx__ModelProto *model, const char *path,
                    struct error *error) {
    *graph = (struct onnx_graph){.path = path, .proto = model->graph, .error = error};
    if (!model->graph || model->graph->n_node == 0 || model->graph->n_output == 0)
        return error_set(error, ERROR_FILE, "%s: found no network, expected an ONNX model with one", path);
    RETURN_IF(read_opset(graph, model));
    RETURN_IF(collect_values(graph));
    RETURN_IF(find_input(graph));
    return mark_needed(graph);
}

void onnx_graph_close(struct onnx_graph *graph) {
    for (int i = 0; i < graph->data_count; i++) mapping_close(&graph->data[i].mapping);
    for (int i = 0; i < graph->block_count; i++) memory_free(graph->blocks[i]);
    memory_free(graph->blocks);
    memory_free(graph->needed);
    memory_free(graph->values);
    *graph = (struct onnx_graph){0};
}

/* --- what a node has --- */

const char *onnx_input_name(const onnx_op *op, size_t i) {
    return i < op->n_input ? words_of(op->input[i]) : "";
}

struct onnx_value *onnx_operand(const struct onnx_graph *graph, const onnx_op *op, size_t i) {
    const char *name = onnx_input_name(op, i);
    struct onnx_value *value = onnx_value(graph, name);
    if (!*name)
        onnx_wrong(graph, op, "input %zu is missing", i + 1);
    else if (!value)
        onnx_wrong(graph, op, "its input %.80s is made by nobody", name);
    else if (value->state == ONNX_UNKNOWN && !value->tensor)
        onnx_wrong(graph, op, "its input %.80s is not computed before it", name);
    else
        return value;
    return NULL;
}

static const Onnx__AttributeProto *attribute_of(const onnx_op *op, const char *name) {
    for (size_t i = 0; i < op->n_attribute; i++)
        if (strcmp(words_of(op->attribute[i]->name), name) == 0) return op->attribute[i];
    return NULL;
}

int64_t onnx_int_of(const onnx_op *op, const char *name, int64_t usual) {
    const Onnx__AttributeProto *attribute = attribute_of(op, name);
    return attribute ? attribute->i : usual;
}

float onnx_float_of(const onnx_op *op, const char *name, float usual) {
    const Onnx__AttributeProto *attribute = attribute_of(op, name);
    return attribute ? attribute->f : usual;
}

bool onnx_word_is(const onnx_op *op, const char *name, const char *word) {
    const Onnx__AttributeProto *attribute = attribute_of(op, name);
    return attribute && attribute->s.len == strlen(word) &&
           memcmp(attribute->s.data, word, attribute->s.len) == 0;
}

int onnx_ints_of(const struct onnx_graph *graph, const onnx_op *op, const char *name, int64_t *out,
                 size_t count) {
    const Onnx__AttributeProto *attribute = attribute_of(op, name);
    if (!attribute || attribute->n_ints == 0) return OK;
    if (attribute->n_ints != count)
        return onnx_wrong(graph, op, "%s: found %zu numbers, expected %zu", name, attribute->n_ints, count);
    memcpy(out, attribute->ints, count * sizeof *out);
    return OK;
}

int onnx_list(struct onnx_graph *graph, const onnx_op *op, const char *name, size_t i, int64_t *out, int most,
              int *count) {
    const Onnx__AttributeProto *attribute = attribute_of(op, name);
    const struct onnx_constant *constant = NULL;
    *count = -1;
    if (!attribute && !*onnx_input_name(op, i)) return OK;
    if (!attribute) RETURN_IF(onnx_whole_input(graph, op, i, &constant));
    const size_t numbers = attribute ? attribute->n_ints : constant->count;
    if (numbers > (size_t)most)
        return onnx_wrong(graph, op, "%s: found %zu numbers, expected at most %d", name, numbers, most);
    if (numbers > 0) memcpy(out, attribute ? attribute->ints : constant->whole, numbers * sizeof *out);
    *count = (int)numbers;
    return OK;
}

int onnx_number(struct onnx_graph *graph, const onnx_op *op, const char *name, size_t i, float usual,
                float *out) {
    const struct onnx_constant *constant = NULL;
    *out = onnx_float_of(op, name, usual);
    if (!*onnx_input_name(op, i)) return OK;
    RETURN_IF(onnx_float_input(graph, op, i, &constant));
    if (constant->count != 1)
        return onnx_wrong(graph, op, "%s: found %zu numbers, expected one", name, constant->count);
    *out = constant->floats[0];
    return OK;
}
