/* The idx format of the MNIST family: a big-endian header (magic, one size per dimension), then bytes. */
#ifndef TRAINER_DATA_IDX_H
#define TRAINER_DATA_IDX_H

#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"
#include "../device/device.h"

enum {
    IDX_LABELS = 0x0801, /* magic: unsigned bytes, 1 dimension */
    IDX_IMAGES = 0x0803, /* magic: unsigned bytes, 3 dimensions: images, rows, columns */
    IDX_MAX_RANK = 3,
};

/* A file in memory. */
struct idx_file {
    const char *name;     /* for the words */
    const uint8_t *bytes; /* [length], borrowed */
    size_t length;
};

struct idx {
    int rank, dims[IDX_MAX_RANK];
    const uint8_t *values; /* [dims[0]]...[dims[rank - 1]], inside the file */
};

/* Reads the header and holds it against the length. Errors: ERROR_FILE. */
int idx_parse(struct idx *idx, const struct idx_file *file, uint32_t magic, struct error *error);

/* A file of images and one of labels become examples (scale 1/255) that point into images->bytes;
 * *label_block (owned by the caller: memory_free; set even on error) holds the labels. Checks the images'
 * size, the number of labels and their range. Errors: ERROR_FILE. */
int idx_examples(struct examples *examples, void **label_block, const struct idx_file *images,
                 const struct idx_file *labels, int rows, int columns, int classes, struct error *error);

#endif
