/* See onnx_file.h. */
#include "onnx_file.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "../base/memory.h"
#include "onnx.pb-c.h"

struct onnx_proto {
    Onnx__NodeProto node;
};

struct onnx_file {
    Onnx__NodeProto **nodes;     /* [node_count] */
    Onnx__TensorProto **tensors; /* [tensor_count] */
    int node_count, tensor_count;
    void **blocks; /* [block_count] all that was taken: texts, arrays, messages */
    int block_count;
    int opset;
    struct error *error;
};

/* The version of the format is the one that came with opset 13, or with 15 to 18. */
enum { OPSET = 13, IR_VERSION = 7, IR_VERSION_LATER = 8, FLOATS = 1, INTEGERS = 7 };
enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_INTS = 7 };

/* --- memory --- */

static int take_of(struct onnx_file *file, void *out, size_t count, size_t bytes) {
    RETURN_IF(
        memory_grow(&file->blocks, file->block_count, file->block_count + 1, "an ONNX model", file->error));
    RETURN_IF(memory_zeroed(&file->blocks[file->block_count], count, bytes, "an ONNX model", file->error));
    memcpy(out, &file->blocks[file->block_count++], sizeof(void *));
    return OK;
}
#define take(file, out, count) take_of((file), (out), (size_t)(count), sizeof **(out))

int onnx_take_floats(struct onnx_file *file, float **out, size_t floats) {
    return take(file, out, floats);
}

static int take_text(struct onnx_file *file, char **out, const char *text) {
    RETURN_IF(take(file, out, strlen(text) + 1));
    memcpy(*out, text, strlen(text));
    return OK;
}

/* --- pieces --- */

struct onnx_node onnx_begin(struct onnx_file *file, const char *operation) {
    struct onnx_node made = {.file = file};
    made.code = take(file, &made.proto, 1);
    if (made.code != OK) return made;
    Onnx__NodeProto *proto = &made.proto->node;
    onnx__node_proto__init(proto);
    made.code = take(file, &proto->input, MAX_INPUTS);
    if (made.code == OK) made.code = take(file, &proto->output, 1);
    if (made.code == OK) made.code = take(file, &proto->attribute, MAX_INPUTS);
    if (made.code == OK) made.code = take_text(file, &proto->op_type, operation);
    return made;
}

void onnx_input(struct onnx_node *made, const char *name) {
    if (made->code != OK) return;
    Onnx__NodeProto *proto = &made->proto->node;
    assert(proto->n_input < MAX_INPUTS);
    made->code = take_text(made->file, &proto->input[proto->n_input++], name);
}

static Onnx__AttributeProto *add_attribute(struct onnx_node *made, const char *name, int type) {
    Onnx__AttributeProto *attribute = NULL;
    if (made->code == OK) made->code = take(made->file, &attribute, 1);
    if (made->code != OK) return NULL;
    onnx__attribute_proto__init(attribute);
    attribute->has_type = 1;
    attribute->type = type;
    Onnx__NodeProto *proto = &made->proto->node;
    assert(proto->n_attribute < MAX_INPUTS);
    proto->attribute[proto->n_attribute++] = attribute;
    made->code = take_text(made->file, &attribute->name, name);
    return attribute;
}

void onnx_int(struct onnx_node *made, const char *name, int value) {
    Onnx__AttributeProto *attribute = add_attribute(made, name, ATTRIBUTE_INT);
    if (!attribute) return;
    attribute->has_i = 1;
    attribute->i = value;
}

void onnx_float(struct onnx_node *made, const char *name, float value) {
    Onnx__AttributeProto *attribute = add_attribute(made, name, ATTRIBUTE_FLOAT);
    if (!attribute) return;
    attribute->has_f = 1;
    attribute->f = value;
}

void onnx_ints(struct onnx_node *made, const char *name, const int *values, int count) {
    Onnx__AttributeProto *attribute = add_attribute(made, name, ATTRIBUTE_INTS);
    if (made->code == OK) made->code = take(made->file, &attribute->ints, count);
    for (int i = 0; made->code == OK && i < count; i++) attribute->ints[attribute->n_ints++] = values[i];
}

int onnx_end(struct onnx_node *made, const char *name, const char *output) {
    struct onnx_file *file = made->file;
    RETURN_IF(made->code);
    Onnx__NodeProto *proto = &made->proto->node;
    RETURN_IF(take_text(file, &proto->name, name));
    RETURN_IF(take_text(file, &proto->output[proto->n_output++], output));
    RETURN_IF(
        memory_grow(&file->nodes, file->node_count, file->node_count + 1, "an ONNX model", file->error));
    file->nodes[file->node_count++] = proto;
    return OK;
}

static int add_tensor(struct onnx_file *file, const char *name, int type, const struct shape *shape,
                      void *values, size_t bytes) {
    Onnx__TensorProto *tensor = NULL;
    RETURN_IF(take(file, &tensor, 1));
    onnx__tensor_proto__init(tensor);
    RETURN_IF(take_text(file, &tensor->name, name));
    RETURN_IF(take(file, &tensor->dims, MAX_RANK));
    tensor->has_data_type = tensor->has_raw_data = 1;
    tensor->data_type = type;
    tensor->raw_data = (ProtobufCBinaryData){.len = bytes, .data = values};
    for (int i = 0; i < shape->rank; i++) tensor->dims[tensor->n_dims++] = shape->dims[i];
    RETURN_IF(memory_grow(&file->tensors, file->tensor_count, file->tensor_count + 1, "an ONNX model",
                          file->error));
    file->tensors[file->tensor_count++] = tensor;
    return OK;
}

int onnx_floats(struct onnx_file *file, const char *name, const struct shape *shape, const float *values) {
    /* protobuf-c's data are not const, though packing only reads them. */
    return add_tensor(file, name, FLOATS, shape, (void *)(uintptr_t)values,
                      shape_count(shape) * sizeof *values);
}

int onnx_integers(struct onnx_file *file, const char *name, const int *values, int count) {
    int64_t *wide = NULL;
    RETURN_IF(take(file, &wide, count));
    for (int i = 0; i < count; i++) wide[i] = values[i];
    return add_tensor(file, name, INTEGERS, &SHAPE(count), wide, (size_t)count * sizeof *wide);
}

/* --- the model --- */

static int make_value(struct onnx_file *file, Onnx__ValueInfoProto **out, const struct onnx_value *of) {
    const struct shape *shape = of->shape;
    Onnx__ValueInfoProto *value = NULL;
    Onnx__TypeProto__Tensor *tensor = NULL;
    Onnx__TensorShapeProto__Dimension *dimensions = NULL;
    RETURN_IF(take(file, &value, 1));
    onnx__value_info_proto__init(value);
    RETURN_IF(take_text(file, &value->name, of->name));
    RETURN_IF(take(file, &value->type, 1));
    onnx__type_proto__init(value->type);
    RETURN_IF(take(file, &tensor, 1));
    onnx__type_proto__tensor__init(tensor);
    value->type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = FLOATS;
    RETURN_IF(take(file, &tensor->shape, 1));
    onnx__tensor_shape_proto__init(tensor->shape);
    RETURN_IF(take(file, &tensor->shape->dim, shape->rank));
    RETURN_IF(take(file, &dimensions, shape->rank));
    for (int i = 0; i < shape->rank; i++) {
        onnx__tensor_shape_proto__dimension__init(&dimensions[i]);
        if (i == 0) RETURN_IF(take_text(file, &dimensions[i].dim_param, "N"));
        dimensions[i].has_dim_value = i > 0;
        dimensions[i].dim_value = shape->dims[i];
        tensor->shape->dim[tensor->shape->n_dim++] = &dimensions[i];
    }
    *out = value;
    return OK;
}

static int add_notes(struct onnx_file *file, Onnx__ModelProto *model, const struct onnx_note *notes,
                     int count) {
    RETURN_IF(take(file, &model->metadata_props, count + 1));
    for (int i = 0; i < count; i++) {
        const struct onnx_note *note = &notes[i];
        Onnx__StringStringEntryProto *entry = NULL;
        if (!note->text) continue;
        RETURN_IF(take(file, &entry, 1));
        onnx__string_string_entry_proto__init(entry);
        RETURN_IF(take_text(file, &entry->key, note->name));
        RETURN_IF(take_text(file, &entry->value, note->text));
        model->metadata_props[model->n_metadata_props++] = entry;
    }
    return OK;
}

/* The whole model as bytes, and these to the stream. */
static int pack(struct onnx_file *file, const Onnx__ModelProto *model, FILE *stream) {
    const size_t size = onnx__model_proto__get_packed_size(model);
    uint8_t *bytes = NULL;
    if (size > INT32_MAX)
        return error_set(file->error, ERROR_FILE, "onnx: found %zu bytes, expected at most 2 GiB", size);
    RETURN_IF(take(file, &bytes, size));
    onnx__model_proto__pack(model, bytes);
    if (fwrite(bytes, 1, size, stream) == size) return OK;
    return error_set(file->error, ERROR_FILE, "onnx: cannot be written");
}

int onnx_write(struct onnx_file *file, const struct onnx_ends *ends, const struct onnx_note *notes, int count,
               FILE *stream) {
    static char producer[] = "trainer", version[] = TRAINER_VERSION, graph_name[] = "network", domain[] = "";
    Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__OperatorSetIdProto opset = ONNX__OPERATOR_SET_ID_PROTO__INIT, *opsets[] = {&opset};
    Onnx__ValueInfoProto *inputs[1], *outputs[2];
    RETURN_IF(make_value(file, &inputs[0], &ends->input));
    for (; graph.n_output < 2 && ends->outputs[graph.n_output].name; graph.n_output++)
        RETURN_IF(make_value(file, &outputs[graph.n_output], &ends->outputs[graph.n_output]));
    RETURN_IF(add_notes(file, &model, notes, count));
    graph.n_node = (size_t)file->node_count;
    graph.node = file->nodes;
    graph.name = graph_name;
    graph.n_initializer = (size_t)file->tensor_count;
    graph.initializer = file->tensors;
    graph.n_input = 1;
    graph.input = inputs;
    graph.output = outputs;
    opset.domain = domain;
    opset.has_version = 1;
    opset.version = file->opset;
    model.has_ir_version = 1;
    model.ir_version = file->opset > OPSET ? IR_VERSION_LATER : IR_VERSION;
    model.producer_name = producer;
    model.producer_version = version;
    model.graph = &graph;
    model.n_opset_import = 1;
    model.opset_import = opsets;
    return pack(file, &model, stream);
}

int onnx_open(struct onnx_file **out, struct error *error) {
    *out = NULL;
    RETURN_IF(memory_array(out, 1, "an ONNX model", error));
    (*out)->error = error;
    (*out)->opset = OPSET;
    return OK;
}

void onnx_needs(struct onnx_file *file, int opset) {
    if (file->opset < opset) file->opset = opset;
}

void onnx_close(struct onnx_file *file) {
    if (!file) return;
    for (int i = 0; i < file->block_count; i++) memory_free(file->blocks[i]);
    memory_free(file->blocks);
    memory_free(file->nodes);
    memory_free(file->tensors);
    memory_free(file);
}
