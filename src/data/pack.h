/* A pack: one file with all examples of a data set as they are kept in memory, so that training maps it and
 * reads nothing else. docs/files.md has its format. */
#ifndef TRAINER_DATA_PACK_H
#define TRAINER_DATA_PACK_H

#include "augment.h"
#include "dataset.h"

enum {
    PACK_VERSION = 2,      /* in version 1 blocks have PACK_BLOCK bytes, whatever the rows have */
    PACK_HEAD = 64,        /* bytes that are used of the first page */
    PACK_PAGE = 4096,      /* where data begin, and what values are aligned to */
    PACK_BLOCK = 1 << 20,  /* bytes that share a check sum, at most: see pack_block */
    PACK_CLASSES = 10000,  /* at most, as elsewhere */
    PACK_ABOUT = 64 << 20, /* bytes of the description, at most */
};
extern const char pack_magic[8];

/* Bytes that share a check sum: whole rows, where these are small, so that examples that are read together
 * (order=blocks) are checked together, and nothing else has to be read for it. */
static inline size_t pack_block(size_t row_bytes) {
    return row_bytes <= PACK_BLOCK ? PACK_BLOCK / row_bytes * row_bytes : PACK_BLOCK;
}

struct pack_made {
    int train, test; /* examples */
    size_t bytes;    /* of the file */
};

/* Writes the chosen data set as a pack; `path` has it when it is whole. A data set that hands its rows over
 * needs no memory for them; others are opened as for training. A packed data set trains to the same bits as
 * the one that it was made of. Errors: those of dataset_open; ERROR_FILE; ERROR_INTERRUPTED. */
int pack_write(const char *path, const struct choice *choice, const char *data_dir, struct pack_made *made,
               struct error *error);

/* What a pack says of its images. */
struct pack_images {
    bool any; /* it has bytes of [height, width, channels] */
    struct shape stored;
    bool whitened;
    struct augment_settings augment; /* settings that the data set had when it was packed */
};

/* The rows of the settings of images that a pack keeps, of a struct pack_images, ended by one without a name.
 */
extern const struct option pack_augment_rows[];

/* Fills the data set from a pack in memory, which has to outlive it: examples stay there, but nothing of them
 * is compared with its check sum yet but the labels. The examples' augment and `features`, and the shape of
 * what is augmented, are left to whoever reads `images`. name: of the file, for the words. On error the
 * caller closes. Errors: ERROR_FILE: not a pack, of a later version, cut, damaged, or made up; ERROR_DEVICE.
 */
int pack_read(struct dataset *dataset, struct pack_images *images, const char *name, const uint8_t *bytes,
              size_t length, struct error *error);

/* Compares all of an open pack with its check sums. Errors: ERROR_FILE, ERROR_INTERRUPTED. */
int pack_check(const struct dataset *dataset, struct error *error);

#endif
