/* The idx format. Everything is checked against the length before it is used, so a file cannot make us
 * allocate more than a small multiple of its own size. */
#include "idx.h"

#include <limits.h>
#include "../base/bytes.h"
#include "../base/memory.h"

int idx_parse(struct idx *idx, const struct idx_file *file, uint32_t magic, struct error *error) {
    *idx = (struct idx){.rank = (int)(magic & 0xff)};
    const size_t header = 4 + 4 * (size_t)idx->rank;
    if (file->length < header)
        return error_set(error, ERROR_FILE, "%s: found %zu bytes, expected a header of %zu", file->name,
                         file->length, header);
    const uint32_t found = (uint32_t)bytes_big(file->bytes, 4);
    if (found != magic)
        return error_set(error, ERROR_FILE, "%s: magic 0x%08x, expected 0x%08x", file->name, found, magic);
    uint64_t values = 1;
    for (int d = 0; d < idx->rank; d++) {
        const uint32_t size = (uint32_t)bytes_big(file->bytes + 4 + 4 * d, 4);
        if (size < 1 || size > INT_MAX || values > INT64_MAX / size)
            return error_set(error, ERROR_FILE, "%s: found size %u in dimension %d, expected 1 to %d",
                             file->name, size, d + 1, INT_MAX);
        idx->dims[d] = (int)size;
        values *= size;
    }
    if (file->length - header != values)
        return error_set(error, ERROR_FILE, "%s: found %zu bytes after the header, expected %llu", file->name,
                         file->length - header, (unsigned long long)values);
    idx->values = file->bytes + header;
    return OK;
}

static int convert_labels(int *out, const struct idx *idx, const char *name, int classes,
                          struct error *error) {
    for (int i = 0; i < idx->dims[0]; i++) {
        if (idx->values[i] >= classes)
            return error_set(error, ERROR_FILE,
                             "%s: found label %d in example %d (counted from 1), expected 0 to %d", name,
                             idx->values[i], i + 1, classes - 1);
        out[i] = idx->values[i];
    }
    return OK;
}

int idx_examples(struct examples *examples, void **label_block, const struct idx_file *images,
                 const struct idx_file *labels, int rows, int columns, int classes, struct error *error) {
    struct idx pixels, numbers;
    RETURN_IF(idx_parse(&pixels, images, IDX_IMAGES, error));
    RETURN_IF(idx_parse(&numbers, labels, IDX_LABELS, error));
    if (pixels.dims[1] != rows || pixels.dims[2] != columns)
        return error_set(error, ERROR_FILE, "%s: found images of %d x %d, expected %d x %d", images->name,
                         pixels.dims[1], pixels.dims[2], rows, columns);
    if (numbers.dims[0] != pixels.dims[0])
        return error_set(error, ERROR_FILE, "%s: found %d labels, expected %d, one for each image of %s",
                         labels->name, numbers.dims[0], pixels.dims[0], images->name);
    RETURN_IF(memory_zeroed(label_block, (size_t)pixels.dims[0], sizeof(int), "labels", error));
    RETURN_IF(convert_labels(*label_block, &numbers, labels->name, classes, error));
    *examples = (struct examples){
        .count = pixels.dims[0],
        .features = rows * columns,
        .bytes = pixels.values,
        .scale = 1.0f / 255.0f,
        .labels = *label_block,
    };
    return OK;
}
