/* See hdf5_parts.h: groups of which each name is a message, as libhdf5 has them where a name is not ASCII.
 * A few lie in the group's header. Of more, the messages are in a heap, and a tree has where each is in it,
 * by a hash that is not looked at here. Source: as hdf5_reader.h says, "Link Message", "Fractal Heap" and
 * "Version 2 B-trees". */
#include <string.h>

#include "../base/bytes.h"
#include "hdf5_parts.h"

enum { OFFSET = 8, LEVELS_MOST = 8, RECORD = 11, RECORD_HASH = 4, NODE_HEAD = 6, NODE_TAIL = 4 };

/* --- a name --- */

int hdf5_link_read(const struct hdf5_reader *file, const uint8_t *data, size_t bytes,
                   struct hdf5_wanted *wanted, struct error *error) {
    enum { WIDTH = 3, HAS_ORDER = 4, HAS_TYPE = 8, HAS_CHARACTERS = 16, HARD = 0 };
    if (bytes < 2 || data[0] != 1) return hdf5_damaged(file, "a name in a group is cut", error);
    const int flags = data[1];
    const size_t type_at = 2, width = (size_t)1 << (flags & WIDTH),
                 length_at = type_at + (flags & HAS_TYPE ? 1 : 0) + (flags & HAS_ORDER ? 8 : 0) +
                             (flags & HAS_CHARACTERS ? 1 : 0),
                 name_at = length_at + width;
    if (name_at > bytes) return hdf5_damaged(file, "a name in a group is cut", error);
    const uint64_t length = bytes_little(data + length_at, (int)width);
    if (length > bytes - name_at) return hdf5_damaged(file, "a name in a group is cut", error);
    if (length != wanted->length || memcmp(data + name_at, wanted->name, wanted->length) != 0) return OK;
    if ((flags & HAS_TYPE) && data[type_at] != HARD)
        return error_set(error, ERROR_FILE, "%s: %.*s: found a link to another place, expected what it is",
                         file->name, (int)wanted->length, wanted->name);
    if (bytes - name_at - wanted->length < OFFSET)
        return hdf5_damaged(file, "a name in a group is cut", error);
    wanted->object = bytes_little(data + name_at + wanted->length, OFFSET);
    return OK;
}

/* --- the heap --- */

/* Blocks of the same size side by side, `width` a row; from the third row on they are twice as large as in
 * the row before. */
struct heap {
    int offset_bytes; /* of a place in the heap */
    uint64_t width, first, largest;
    uint64_t root; /* a block, or, if there are rows, the list of blocks */
    uint64_t rows;
    size_t head; /* bytes before the objects of a block, and before a list of blocks */
};

static int open_heap(const struct hdf5_reader *file, uint64_t at, struct heap *heap, struct error *error) {
    enum { HEAD = 142, FILTERS = 7, WIDTH = 110, FIRST = 112, LARGEST = 120, BITS = 128, ROOT = 132 };
    enum { ROWS = 140, LARGEST_MOST = 1 << 30 };
    const uint8_t *head = hdf5_bytes(file, at, HEAD);
    if (!head || memcmp(head, "FRHP\0", 5) != 0 || bytes_little(head + FILTERS, 2) != 0)
        return hdf5_damaged(file, "a group's names lie in no heap", error);
    *heap = (struct heap){.offset_bytes = (int)(bytes_little(head + BITS, 2) + 7) / 8,
                          .width = bytes_little(head + WIDTH, 2),
                          .first = bytes_little(head + FIRST, OFFSET),
                          .largest = bytes_little(head + LARGEST, OFFSET),
                          .root = bytes_little(head + ROOT, OFFSET),
                          .rows = bytes_little(head + ROWS, 2)};
    heap->head = 5 + OFFSET + (size_t)heap->offset_bytes;
    if (heap->offset_bytes < 1 || heap->offset_bytes > OFFSET || heap->width == 0 || heap->first == 0 ||
        heap->largest > LARGEST_MOST)
        return hdf5_damaged(file, "a heap with other sizes", error);
    return OK;
}

/* *data: what is from a place in the heap on, *bytes up to the end of its block. */
static int find_in_heap(const struct hdf5_reader *file, const struct heap *heap, uint64_t place,
                        const uint8_t **data, size_t *bytes, struct error *error) {
    uint64_t block = heap->root, size = heap->first;
    if (heap->rows > 0) {
        uint64_t row = 0;
        for (; row < heap->rows && size <= heap->largest && place >= heap->width * size; row++) {
            place -= heap->width * size;
            if (row > 0) size *= 2;
        }
        const uint64_t listed = (row * heap->width + place / size) * OFFSET;
        const uint8_t *list = hdf5_bytes(file, heap->root, heap->head + listed + OFFSET);
        if (row == heap->rows || size > heap->largest || !list || memcmp(list, "FHIB\0", 5) != 0)
            return hdf5_damaged(file, "a name lies in no block", error);
        block = bytes_little(list + heap->head + listed, OFFSET);
        place %= size;
    }
    const uint8_t *found = hdf5_bytes(file, block, size);
    if (!found || memcmp(found, "FHDB\0", 5) != 0 || place < heap->head || place >= size)
        return hdf5_damaged(file, "a name lies in no block", error);
    *data = found + place;
    *bytes = (size_t)(size - place);
    return OK;
}

/* --- the tree --- */

struct tree {
    const struct heap *heap;
    uint64_t node_bytes;
    uint64_t most[LEVELS_MOST + 1]; /* records in a node of each level, 0 being the lowest */
    int pointer[LEVELS_MOST + 1];   /* bytes of a pointer to a child, in a node of each level */
};

static int bytes_of(uint64_t number) {
    int bytes = 1;
    while (bytes < OFFSET && number >> (8 * bytes) != 0) bytes++;
    return bytes;
}

/* A pointer has a place, how many records the child has, and, above the second level, how many are in all
 * below; each in as many bytes as the most of them take. */
static void measure(struct tree *tree, int levels) {
    uint64_t below = tree->most[0] = (tree->node_bytes - NODE_HEAD - NODE_TAIL) / RECORD;
    for (int level = 1; level <= levels; level++) {
        const int pointer = OFFSET + bytes_of(tree->most[0]) + (level > 1 ? bytes_of(below) : 0);
        const uint64_t taken = NODE_HEAD + NODE_TAIL + (uint64_t)pointer;
        tree->pointer[level] = pointer;
        tree->most[level] =
            tree->node_bytes > taken ? (tree->node_bytes - taken) / (RECORD + (uint64_t)pointer) : 0;
        below = (tree->most[level] + 1) * below + tree->most[level];
    }
}

/* Which is a byte of flags, the place in the heap, and its length. */
static int look_at_record(struct hdf5_reader *file, const struct tree *tree, const uint8_t *record,
                          struct hdf5_wanted *wanted, struct error *error) {
    enum { KIND = 0xf0, ID = RECORD - RECORD_HASH };
    const uint8_t *id = record + RECORD_HASH, *data = NULL;
    size_t bytes = 0;
    RETURN_IF(hdf5_step(file, error));
    if ((id[0] & KIND) != 0 || 1 + tree->heap->offset_bytes > ID)
        return hdf5_damaged(file, "a name that lies elsewhere", error);
    RETURN_IF(
        find_in_heap(file, tree->heap, bytes_little(id + 1, tree->heap->offset_bytes), &data, &bytes, error));
    return hdf5_link_read(file, data, bytes, wanted, error);
}

static int look_at_node(struct hdf5_reader *file, const struct tree *tree, uint64_t at, uint64_t count,
                        int level, struct hdf5_wanted *wanted, struct error *error) {
    RETURN_IF(hdf5_step(file, error));
    const uint8_t *node = hdf5_bytes(file, at, tree->node_bytes);
    if (!node || memcmp(node, level > 0 ? "BTIN\0\5" : "BTLF\0\5", NODE_HEAD) != 0 ||
        count > tree->most[level] || tree->most[level] == 0)
        return hdf5_damaged(file, "a group without a tree of names", error);
    const uint8_t *records = node + NODE_HEAD, *child = records + count * RECORD;
    for (uint64_t i = 0; i < count && wanted->object == 0; i++)
        RETURN_IF(look_at_record(file, tree, records + i * RECORD, wanted, error));
    for (uint64_t i = 0; level > 0 && i <= count && wanted->object == 0; i++, child += tree->pointer[level])
        RETURN_IF(look_at_node(file, tree, bytes_little(child, OFFSET),
                               bytes_little(child + OFFSET, bytes_of(tree->most[0])), level - 1, wanted,
                               error));
    return OK;
}

int hdf5_links_find(struct hdf5_reader *file, uint64_t heap_at, uint64_t tree_at, struct hdf5_wanted *wanted,
                    struct error *error) {
    enum { HEAD = 26, NODE_BYTES = 6, RECORD_BYTES = 10, LEVELS = 12, ROOT = 16, COUNT = 24 };
    struct heap heap;
    const uint8_t *head = hdf5_bytes(file, tree_at, HEAD);
    if (!head || memcmp(head, "BTHD\0\5", NODE_HEAD) != 0 || bytes_little(head + RECORD_BYTES, 2) != RECORD ||
        bytes_little(head + LEVELS, 2) > LEVELS_MOST ||
        bytes_little(head + NODE_BYTES, 4) < NODE_HEAD + NODE_TAIL + RECORD)
        return hdf5_damaged(file, "a group without a tree of names", error);
    RETURN_IF(open_heap(file, heap_at, &heap, error));
    struct tree tree = {.heap = &heap, .node_bytes = bytes_little(head + NODE_BYTES, 4)};
    const int levels = (int)bytes_little(head + LEVELS, 2);
    measure(&tree, levels);
    if (bytes_little(head + ROOT, OFFSET) == UINT64_MAX) return OK; /* it has no names */
    return look_at_node(file, &tree, bytes_little(head + ROOT, OFFSET), bytes_little(head + COUNT, 2), levels,
                        wanted, error);
}
