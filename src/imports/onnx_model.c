/* See onnx_model.h. protobuf-c takes memory as the file says, so it is given a bounded amount: a file of
 * empty messages, of two bytes each, would become a hundred times its size. */
#include "onnx_model.h"

#include "../base/memory.h"
#include "onnx_layers.h"

struct budget {
    size_t left; /* bytes */
    bool spent;
    struct error *error; /* where memory runs out before that */
};

static void *take(void *data, size_t bytes) {
    struct budget *budget = data;
    void *block = NULL;
    const size_t taken = bytes + 2 * CACHE_LINE; /* what the allocator adds */
    budget->spent = budget->spent || taken > budget->left;
    if (budget->spent || memory_zeroed(&block, bytes, 1, "an ONNX model", budget->error) != OK) return NULL;
    budget->left -= taken;
    return block;
}

static void give_back(void *data, void *block) {
    (void)data;
    memory_free(block);
}

int onnx_parse(struct network_file *file, const char *path, const uint8_t *bytes, size_t count,
               struct error *error) {
    enum { TIMES = 4, FREE = 64 << 20 };
    struct budget budget = {.left = TIMES * count + FREE, .error = error};
    ProtobufCAllocator allocator = {.alloc = take, .free = give_back, .allocator_data = &budget};
    Onnx__ModelProto *model = onnx__model_proto__unpack(&allocator, count, bytes);
    if (!model) /* an earlier error stays */
        return error_set(error, ERROR_FILE, "%s: %s", path,
                         budget.spent ? "found more small parts than its size allows, expected an ONNX model"
                                      : "found no ONNX model, or one that is cut short");
    const int code = onnx_layers_read(file, model, path, count, error);
    onnx__model_proto__free_unpacked(model, &allocator);
    return code;
}
