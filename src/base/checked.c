/* See checked.h. Two threads that use a block first at the same time both compare it: that is rare, harmless,
 * and cheaper than a lock. */
#include "checked.h"

#include <stdatomic.h>
#include <stdio.h>
#include "crc32c.h"
#include "mapping.h"
#include "memory.h"

struct checked {
    char name[256];
    struct checked_bytes of;
    atomic_uchar done[]; /* [blocks] 1: compared, and right */
};

size_t checked_blocks(size_t length, size_t block) {
    return length / block + (length % block > 0);
}

int checked_open(struct checked **checked, const char *name, const struct checked_bytes *bytes,
                 struct error *error) {
    void *room = NULL;
    RETURN_IF(memory_zeroed(&room, sizeof **checked + checked_blocks(bytes->length, bytes->block), 1,
                            "which blocks are checked", error));
    *checked = room;
    (*checked)->of = *bytes;
    snprintf((*checked)->name, sizeof(*checked)->name, "%s", name);
    return OK;
}

static int compare(struct checked *checked, size_t block, struct error *error) {
    const struct checked_bytes *of = &checked->of;
    const size_t begin = block * of->block, left = of->length - begin,
                 count = left < of->block ? left : of->block;
    mapping_soon(of->bytes + begin, count); /* all of it at once, if it is a file's */
    const uint32_t found = crc32c(0, of->bytes + begin, count);
    if (found != of->sums[block])
        return error_set(
            error, ERROR_FILE, "%s: damaged: bytes %zu to %zu have the check sum %08x, expected %08x",
            checked->name, of->offset + begin, of->offset + begin + count - 1, found, of->sums[block]);
    atomic_store_explicit(&checked->done[block], 1, memory_order_relaxed);
    return OK;
}

int checked_use(struct checked *checked, const void *bytes, size_t count, struct error *error) {
    if (count == 0) return OK;
    const size_t at = (size_t)((const uint8_t *)bytes - checked->of.bytes), size = checked->of.block;
    for (size_t block = at / size; block <= (at + count - 1) / size; block++)
        if (!atomic_load_explicit(&checked->done[block], memory_order_relaxed))
            RETURN_IF(compare(checked, block, error));
    return OK;
}
