/* safetensors: the weights by name, and what the training knew of its examples as texts. */
#include "../formats/safetensors.h"

#include "../base/memory.h"
#include "../infer/arrays.h"

static int write(FILE *file, const struct exported *exported, struct error *error) {
    struct arrays arrays = {0};
    struct safetensors content = {.texts = exported->restored->content.texts,
                                  .text_count = exported->restored->content.text_count};
    int code = arrays_open(&arrays, exported, error);
    if (code == OK) code = memory_array(&content.tensors, arrays.count, "the weights as arrays", error);
    for (int i = 0; code == OK && i < arrays.count; i++)
        content.tensors[content.tensor_count++] = (struct tensor_entry){.name = arrays.arrays[i].name,
                                                                        .shape = arrays.arrays[i].shape,
                                                                        .values = arrays.arrays[i].values};
    if (code == OK) code = safetensors_write(file, &content, false, error);
    memory_free(content.tensors);
    arrays_close(&arrays);
    return code;
}

const struct format format_safetensors = {
    .plugin = {.name = "safetensors", .help = "the weights by name, for PyTorch (--names=torch) and others"},
    .arrays = true,
    .write = write,
};
