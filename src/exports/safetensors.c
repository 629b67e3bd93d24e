/* safetensors: the weights by name, and what the training knew of its examples as texts. */
#include "../formats/safetensors.h"

#include <string.h>

#include "../base/memory.h"
#include "../infer/arrays.h"

/* The texts of the checkpoint, without the units of values: what is exported says values as they are. */
static int copy_texts(struct safetensors *to, const struct safetensors *from, struct error *error) {
    RETURN_IF(memory_array(&to->texts, from->text_count + 1, "texts", error));
    for (int i = 0; i < from->text_count; i++)
        if (strncmp(from->texts[i].name, "target_", 7) != 0) to->texts[to->text_count++] = from->texts[i];
    return OK;
}

static int write(FILE *file, const struct exported *exported, struct error *error) {
    struct arrays arrays = {0};
    struct safetensors content = {0};
    int code = arrays_open(&arrays, exported, error);
    if (code == OK) code = copy_texts(&content, &exported->restored->content, error);
    if (code == OK) code = memory_array(&content.tensors, arrays.count, "the weights as arrays", error);
    for (int i = 0; code == OK && i < arrays.count; i++)
        content.tensors[content.tensor_count++] = (struct tensor_entry){.name = arrays.arrays[i].name,
                                                                        .shape = arrays.arrays[i].shape,
                                                                        .values = arrays.arrays[i].values};
    if (code == OK) code = safetensors_write(file, &content, true, error);
    memory_free(content.tensors);
    memory_free(content.texts);
    arrays_close(&arrays);
    return code;
}

const struct format format_safetensors = {
    .plugin = {.name = "safetensors", .help = "the weights by name, for PyTorch (--names=torch) and others"},
    .arrays = true,
    .write = write,
};
