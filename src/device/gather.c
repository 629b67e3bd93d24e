/* See gather.h. A backend may have copied all examples long before, unchecked: that does no harm, since no
 * row gets into a batch before its bytes here, from which it was copied, are right. */
#include "gather.h"

#include "../base/checked.h"
#include "../base/mapping.h"

static const uint8_t *row_of(const struct examples *examples, int number) {
    return examples_rows(examples) + (size_t)number * examples_row_bytes(examples);
}

int examples_use_one(const struct examples *examples, int number, struct error *error) {
    if (!examples->checked) return OK;
    return checked_use(examples->checked, row_of(examples, number), examples_row_bytes(examples), error);
}

int examples_use(const struct examples *examples, const struct indices *indices, struct error *error) {
    for (int i = 0; i < indices->count && examples->checked; i++)
        RETURN_IF(examples_use_one(examples, indices->index[i], error));
    return OK;
}

/* Of a run of rows; the last one may end where the examples do. */
static size_t run_bytes(const struct examples *examples, const struct soon *soon, int run) {
    const int left = examples->count - soon->first[run], count = soon->length < left ? soon->length : left;
    return (size_t)count * examples_row_bytes(examples);
}

/* First room, then what is to fill it. */
static void read_ahead(const struct examples *examples, const struct soon *soon) {
    if (!examples->checked) return;
    for (int i = soon->count; examples->scarce && i < soon->count + soon->used; i++)
        mapping_used(examples->scarce, row_of(examples, soon->first[i]), run_bytes(examples, soon, i));
    for (int i = 0; i < soon->count; i++)
        mapping_soon(row_of(examples, soon->first[i]), run_bytes(examples, soon, i));
}

int device_gather(const struct device *device, const struct examples *examples, const struct indices *indices,
                  float *out, struct error *error) {
    read_ahead(examples, &indices->soon);
    RETURN_IF(examples_use(examples, indices, error));
    return device->backend->gather(device, examples, indices, out, error);
}

int device_pick(const struct device *device, void *picks, const struct examples *examples,
                const struct indices *indices, int number, bool *picked, struct error *error) {
    RETURN_IF(device->backend->picker->pick(device, picks, indices, number, picked, error));
    if (!*picked) return OK;
    read_ahead(examples, &indices->soon);
    return examples_use(examples, indices, error);
}
