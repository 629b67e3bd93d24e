/* See data.h. */
#include "data.h"

#include "../base/memory.h"
#include "../data/same_data.h"

int data_open(struct dataset *dataset, const struct config *config, struct error *error) {
    struct choice *choice = NULL;
    RETURN_IF(memory_array(&choice, 1, "a choice", error));
    int code = plugin_choose(choice, &dataset_kind, config->dataset, error);
    if (code == OK)
        code = dataset_open(dataset, choice, config->data_dir[0] ? config->data_dir : NULL, error);
    memory_free(choice);
    return code;
}

int data_fingerprint(const struct dataset *dataset, struct fingerprint *data, struct error *error) {
    *data = (struct fingerprint){.examples = (uint64_t)dataset->train.count,
                                 .floats = (uint64_t)dataset->train.features};
    return dataset_hash(dataset, &data->layout, error);
}
