/* See same_data.h. */
#include "same_data.h"

#include "../base/checked.h"
#include "../base/crc32c.h"
#include "../base/rng.h"

enum { HASHED = 4096 }; /* examples */

static int mix_example(const struct examples *examples, int example, uint64_t *hash, struct error *error) {
    const size_t row = examples_row_bytes(examples), label = examples_label_bytes(examples);
    const uint8_t *bytes = examples_rows(examples) + (size_t)example * row;
    const uint8_t *labels = examples_labels(examples);
    if (examples->checked) RETURN_IF(checked_use(examples->checked, bytes, row, error));
    *hash = rng_mix(*hash, crc32c(0, bytes, row));
    if (labels) *hash = rng_mix(*hash, crc32c(0, labels + (size_t)example * label, label));
    return OK;
}

int dataset_hash(const struct dataset *dataset, uint64_t *hash, struct error *error) {
    const struct examples *train = &dataset->train;
    const int step = train->count / HASHED + 1;
    *hash = rng_mix((uint64_t)dataset->task, (uint64_t)dataset->classes);
    for (int axis = 0; axis < dataset->shape.rank; axis++)
        *hash = rng_mix(*hash, (uint64_t)dataset->shape.dims[axis]);
    for (int i = 0; i < train->count; i += step) RETURN_IF(mix_example(train, i, hash, error));
    return OK;
}
