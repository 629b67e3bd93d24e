/* Bytes in blocks, each with a check sum that is compared when the block is first used: so a large file opens
 * at once, costs one pass over what is used of it, and nothing damaged is ever worked on. Any thread may use
 * any range at any time. */
#ifndef TRAINER_BASE_CHECKED_H
#define TRAINER_BASE_CHECKED_H

#include <stddef.h>
#include <stdint.h>
#include "error.h"

struct checked_bytes {
    const uint8_t *bytes; /* [length] borrowed */
    size_t length, block; /* the last block may be shorter */
    size_t offset;        /* of the first byte in its file, for the words */
    const uint32_t *sums; /* [checked_blocks] CRC-32C of each, borrowed */
};

struct checked; /* one block of memory: memory_free */

/* *checked = so that nothing has been compared. name: of the file, copied. Errors: ERROR_DEVICE (memory). */
int checked_open(struct checked **checked, const char *name, const struct checked_bytes *bytes,
                 struct error *error);

size_t checked_blocks(size_t length, size_t block);

/* Before bytes[count], a range of them, are used. Errors: ERROR_FILE, naming the block that is not what was
 * written. */
int checked_use(struct checked *checked, const void *bytes, size_t count, struct error *error);

#endif
