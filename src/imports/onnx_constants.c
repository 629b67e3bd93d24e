/* The numbers of an ONNX file's tensors: where they lie, in the file or in another one beside it, and what
 * type they have. Bytes are little-endian there, as on the machines that the program is for. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "../base/file.h"
#include "../base/half.h"
#include "../base/memory.h"
#include "onnx_graph.h"

enum { FLOAT = 1, INT32 = 6, INT64 = 7, FLOAT16 = 10, DOUBLE = 11, ELSEWHERE = 1 };

#define COMPUTED_MOST ((size_t)1 << 29) /* bytes of constants that are computed or converted */

int onnx_block(struct onnx_graph *graph, void *out, size_t count, size_t bytes) {
    enum { FIRST_ROOM = 32 };
    void *block = NULL;
    if (count > (COMPUTED_MOST - graph->computed) / bytes)
        return error_set(graph->error, ERROR_FILE,
                         "%s: found constants of more than %zu MB to compute, expected fewer", graph->path,
                         COMPUTED_MOST >> 20);
    if (graph->block_count == graph->block_room) {
        const int room = graph->block_room > 0 ? 2 * graph->block_room : FIRST_ROOM;
        RETURN_IF(memory_grow(&graph->blocks, graph->block_room, room, "constants", graph->error));
        graph->block_room = room;
    }
    RETURN_IF(memory_zeroed(&block, count, bytes, "constants", graph->error));
    graph->computed += count * bytes;
    graph->blocks[graph->block_count++] = block;
    memcpy(out, &block, sizeof block);
    return OK;
}

static int tensor_wrong(const struct onnx_graph *graph, const char *name, const char *words) {
    return error_set(graph->error, ERROR_FILE, "%s: tensor %.80s: %s", graph->path, name, words);
}

/* --- data in another file --- */

static const char *entry_of(const Onnx__TensorProto *tensor, const char *key) {
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = tensor->external_data[i];
        if (entry->key && entry->value && strcmp(entry->key, key) == 0) return entry->value;
    }
    return NULL;
}

/* A whole number of an entry; without it `usual`. False: it is none. */
static bool entry_number(const Onnx__TensorProto *tensor, const char *key, size_t usual, size_t *number) {
    const char *text = entry_of(tensor, key);
    *number = usual;
    if (!text) return true;
    if (strspn(text, "0123456789") != strlen(text)) return false;
    return sscanf(text, "%18zu", number) == 1 && strlen(text) <= 18;
}

/* The file of that name in the model's folder, mapped once. */
static int map_data(struct onnx_graph *graph, const char *tensor, const char *name,
                    const struct mapping **mapping) {
    char path[PATH_BYTES];
    const char *slash = strrchr(graph->path, '/');
    for (int i = 0; i < graph->data_count; i++) {
        *mapping = &graph->data[i].mapping;
        if (strcmp(graph->data[i].name, name) == 0) return OK;
    }
    if (strchr(name, '/') || strchr(name, '\\') || name[0] == '.' ||
        strlen(name) >= sizeof graph->data[0].name)
        return tensor_wrong(graph, tensor,
                            "found its data in another folder, expected them in a file beside the model");
    if (graph->data_count == ONNX_DATA_FILES)
        return tensor_wrong(graph, tensor, "found its data in one more file, expected at most 16");
    const int folder = slash ? (int)(slash - graph->path) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*s%s", folder, graph->path, name) >= (int)sizeof path)
        return tensor_wrong(graph, tensor, "the name of the file with its data is too long");
    if (mapping_open(&graph->data[graph->data_count].mapping, path, graph->error) != OK)
        return error_prefix(graph->error, "%s: the data of tensor %.80s: ", graph->path, tensor);
    snprintf(graph->data[graph->data_count].name, sizeof graph->data[0].name, "%s", name);
    *mapping = &graph->data[graph->data_count++].mapping;
    return OK;
}

/* *data = its `bytes` bytes. */
static int find_elsewhere(struct onnx_graph *graph, const Onnx__TensorProto *tensor, const char *name,
                          size_t bytes, const uint8_t **data) {
    const struct mapping *mapping = NULL;
    const char *location = entry_of(tensor, "location");
    size_t offset = 0, length = 0;
    if (!location || !*location || !entry_number(tensor, "offset", 0, &offset) ||
        !entry_number(tensor, "length", bytes, &length))
        return tensor_wrong(graph, name, "expected a location, an offset and a length of its data");
    RETURN_IF(map_data(graph, name, location, &mapping));
    if (length != bytes || offset > mapping->length || bytes > mapping->length - offset)
        return error_set(graph->error, ERROR_FILE,
                         "%s: tensor %.80s: found %zu bytes from %zu on in %.80s of %zu, expected %zu",
                         graph->path, name, length, offset, location, mapping->length, bytes);
    *data = mapping->bytes + offset;
    return OK;
}

/* --- types --- */

/* Its data as bytes, and how many elements of `item` bytes they are: raw, elsewhere, or as numbers. */
static int find_data(struct onnx_graph *graph, const Onnx__TensorProto *tensor, const char *name,
                     size_t count, size_t item, const void *numbers, size_t number_count, const void **data) {
    const uint8_t *bytes = tensor->raw_data.data;
    size_t found = number_count;
    if (tensor->data_location == ELSEWHERE) {
        RETURN_IF(find_elsewhere(graph, tensor, name, count * item, &bytes));
        found = count;
    } else if (number_count > 0 || !tensor->has_raw_data) {
        bytes = numbers;
    } else {
        found = tensor->raw_data.len % item == 0 ? tensor->raw_data.len / item : SIZE_MAX;
    }
    if (found != count)
        return error_set(graph->error, ERROR_FILE,
                         "%s: tensor %.80s: its data do not fit its shape, %zu numbers", graph->path, name,
                         count);
    *data = bytes;
    if (count == 0 || (uintptr_t)bytes % item == 0) return OK;
    void *aligned = NULL;
    RETURN_IF(onnx_block(graph, &aligned, count, item));
    memcpy(aligned, bytes, count * item);
    *data = aligned;
    return OK;
}

/* Two bytes each, or, as numbers, the same bits in an int32 each. */
static int read_halves(struct onnx_graph *graph, const Onnx__TensorProto *tensor, const char *name,
                       size_t count, float **out) {
    const bool wide = tensor->n_int32_data > 0;
    const void *data = NULL;
    RETURN_IF(find_data(graph, tensor, name, count, wide ? sizeof(int32_t) : sizeof(uint16_t),
                        tensor->int32_data, tensor->n_int32_data, &data));
    RETURN_IF(onnx_block(graph, out, count, sizeof **out));
    for (size_t i = 0; i < count; i++)
        (*out)[i] = half_float(wide ? ((const uint32_t *)data)[i] & 0xffff : ((const uint16_t *)data)[i]);
    return OK;
}

static int read_numbers(struct onnx_graph *graph, const Onnx__TensorProto *tensor, const char *name,
                        struct onnx_constant *constant) {
    const size_t count = constant->count;
    const void *data = NULL;
    int64_t *wide = NULL;
    float *narrow = NULL;
    switch (tensor->data_type) {
    case FLOAT:
        RETURN_IF(find_data(graph, tensor, name, count, sizeof(float), tensor->float_data,
                            tensor->n_float_data, &data));
        constant->floats = data;
        return OK;
    case INT64:
        RETURN_IF(find_data(graph, tensor, name, count, sizeof(int64_t), tensor->int64_data,
                            tensor->n_int64_data, &data));
        constant->whole = data;
        return OK;
    case INT32:
        RETURN_IF(find_data(graph, tensor, name, count, sizeof(int32_t), tensor->int32_data,
                            tensor->n_int32_data, &data));
        RETURN_IF(onnx_block(graph, &wide, count, sizeof *wide));
        for (size_t i = 0; i < count; i++) wide[i] = ((const int32_t *)data)[i];
        constant->whole = wide;
        return OK;
    case FLOAT16:
        RETURN_IF(read_halves(graph, tensor, name, count, &narrow));
        constant->floats = narrow;
        return OK;
    case DOUBLE:
        RETURN_IF(find_data(graph, tensor, name, count, sizeof(double), tensor->double_data,
                            tensor->n_double_data, &data));
        RETURN_IF(onnx_block(graph, &narrow, count, sizeof *narrow));
        for (size_t i = 0; i < count; i++) narrow[i] = (float)((const double *)data)[i];
        constant->floats = narrow;
        return OK;
    default:
        return error_set(graph->error, ERROR_FILE,
                         "%s: tensor %.80s: found type %d, expected float, float16, double, int32 or int64 "
                         "(1, 10, 11, 6, 7)",
                         graph->path, name, (int)tensor->data_type);
    }
}

int onnx_tensor(struct onnx_graph *graph, const Onnx__TensorProto *tensor, const char *name,
                struct onnx_constant *constant) {
    enum { COUNT_MOST = 1 << 30 };
    *constant = (struct onnx_constant){.count = 1};
    if (tensor->n_dims > MAX_RANK) return tensor_wrong(graph, name, "expected at most 6 dimensions");
    for (size_t i = 0; i < tensor->n_dims; i++) {
        const int64_t length = tensor->dims[i];
        if (length < 0 || length > COUNT_MOST || (size_t)length * constant->count > COUNT_MOST)
            return tensor_wrong(graph, name, "expected at most 2^30 numbers");
        constant->shape.dims[constant->shape.rank++] = (int)length;
        constant->count *= (size_t)length;
    }
    return read_numbers(graph, tensor, name, constant);
}

/* --- as operands --- */

/* Input i of a node as a constant, read from its tensor the first time; NULL: it is none. */
static const struct onnx_constant *constant_of(struct onnx_graph *graph, const onnx_op *op, size_t i) {
    struct onnx_value *value = onnx_operand(graph, op, i);
    if (!value) return NULL;
    if (value->state == ONNX_UNKNOWN) {
        if (onnx_tensor(graph, value->tensor, value->name, &value->constant) != OK) return NULL;
        value->state = ONNX_CONSTANT;
    }
    if (value->state == ONNX_CONSTANT) return &value->constant;
    onnx_wrong(graph, op, "its input %.80s is computed from the network's input, expected a constant",
               value->name);
    return NULL;
}

static int typed_input(struct onnx_graph *graph, const onnx_op *op, size_t i, bool floats,
                       const struct onnx_constant **out) {
    static const char *const kinds[] = {"whole numbers", "floats"};
    *out = constant_of(graph, op, i);
    if (!*out) return graph->error->code;
    if ((*out)->count == 0 || (floats ? (*out)->floats != NULL : (*out)->whole != NULL)) return OK;
    return onnx_wrong(graph, op, "its input %.80s has %s, expected %s", onnx_input_name(op, i),
                      kinds[!floats], kinds[floats]);
}

int onnx_float_input(struct onnx_graph *graph, const onnx_op *op, size_t i,
                     const struct onnx_constant **out) {
    return typed_input(graph, op, i, true, out);
}

int onnx_whole_input(struct onnx_graph *graph, const onnx_op *op, size_t i,
                     const struct onnx_constant **out) {
    return typed_input(graph, op, i, false, out);
}
