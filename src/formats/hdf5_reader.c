/* See hdf5_reader.h: the superblock, object headers and groups. */
#include "hdf5_reader.h"

#include <stdio.h>
#include <string.h>

#include "../base/bytes.h"
#include "hdf5_parts.h"

enum {
    STEPS_MOST = 20000000, /* messages, names and nodes that are looked at */
    LEVELS_MOST = 16,      /* of a B-tree */
    BLOCKS_MOST = 64,      /* of an object's header */
    OFFSET = 8,            /* bytes of a place or a size */
    ENTRY = 40             /* bytes of a name in a group */
};

const uint8_t *hdf5_bytes(const struct hdf5_reader *file, uint64_t at, uint64_t count) {
    return at <= file->length && count <= file->length - at ? file->bytes + at : NULL;
}

int hdf5_step(struct hdf5_reader *file, struct error *error) {
    if (file->steps++ < STEPS_MOST) return OK;
    return error_set(error, ERROR_FILE, "%s: more than %d entries are looked at, expected fewer", file->name,
                     STEPS_MOST);
}

int hdf5_damaged(const struct hdf5_reader *file, const char *what, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: damaged HDF5 file: %s", file->name, what);
}

int hdf5_reader_open(struct hdf5_reader *file, const char *name, const uint8_t *bytes, size_t length,
                     struct error *error) {
    enum { SUPERBLOCK = 24 };
    *file = (struct hdf5_reader){.name = name, .bytes = bytes, .length = length};
    if (length < SUPERBLOCK || memcmp(bytes, "\x89HDF\r\n\x1a\n", 8) != 0)
        return error_set(error, ERROR_FILE, "%s: found no HDF5 file (its first bytes are others)", name);
    const int version = bytes[8];
    if (version > 1)
        return error_set(error, ERROR_FILE,
                         "%s: found HDF5's superblock %d, expected 0 or 1, as Keras writes it", name,
                         version);
    if (bytes[13] != OFFSET || bytes[14] != OFFSET)
        return error_set(error, ERROR_FILE, "%s: found places of %d and sizes of %d bytes, expected %d", name,
                         bytes[13], bytes[14], OFFSET);
    /* base address, free space, end of the file, driver; then the root's name, its header */
    const uint64_t at = SUPERBLOCK + (version == 1 ? 4 : 0);
    const uint8_t *places = hdf5_bytes(file, at, 6 * OFFSET);
    if (!places) return hdf5_damaged(file, "it is cut", error);
    if (bytes_little(places, OFFSET) != 0)
        return error_set(error, ERROR_FILE, "%s: found a block of the user's in front, expected none", name);
    const uint64_t end = bytes_little(places + 2 * OFFSET, OFFSET);
    if (end > length)
        return error_set(error, ERROR_FILE, "%s: found %zu bytes, expected %llu, as its superblock says",
                         name, length, (unsigned long long)end);
    file->root = bytes_little(places + 5 * OFFSET, OFFSET);
    return OK;
}

/* --- object headers --- */

struct blocks {
    struct block {
        uint64_t at, bytes;
    } at[BLOCKS_MOST];
    int count;
};

static int add_block(const struct hdf5_reader *file, struct blocks *blocks, uint64_t at, uint64_t bytes,
                     struct error *error) {
    if (blocks->count == BLOCKS_MOST) return hdf5_damaged(file, "a header in too many pieces", error);
    if (!hdf5_bytes(file, at, bytes)) return hdf5_damaged(file, "a header lies outside of it", error);
    blocks->at[blocks->count++] = (struct block){at, bytes};
    return OK;
}

/* The message at *at, which moves on. */
static int read_message(const struct hdf5_reader *file, const struct block *block, uint64_t *at,
                        struct hdf5_message *message, struct error *error) {
    enum { HEAD = 8, SHARED = 2 };
    const uint8_t *head = file->bytes + block->at + *at;
    message->type = (int)bytes_little(head, 2);
    message->bytes = (size_t)bytes_little(head + 2, 2);
    message->shared = head[4] & SHARED;
    message->data = head + HEAD;
    *at += HEAD;
    if (message->bytes > block->bytes - *at) return hdf5_damaged(file, "a message is cut", error);
    *at += message->bytes;
    return OK;
}

int hdf5_messages(struct hdf5_reader *file, uint64_t object,
                  int (*each)(void *argument, const struct hdf5_message *message, bool *stop,
                              struct error *error),
                  void *argument, struct error *error) {
    enum { HEADER = 16, MESSAGE_LEAST = 8 };
    struct blocks blocks = {.count = 0};
    const uint8_t *header = hdf5_bytes(file, object, HEADER);
    bool stop = false;
    if (!header) return hdf5_damaged(file, "an object lies outside of it", error);
    if (header[0] != 1)
        return error_set(error, ERROR_FILE,
                         "%s: found an object header of another version, expected 1, as Keras writes it",
                         file->name);
    RETURN_IF(add_block(file, &blocks, object + HEADER, bytes_little(header + 8, 4), error));
    for (int b = 0; b < blocks.count; b++) {
        uint64_t at = 0;
        while (!stop && at + MESSAGE_LEAST <= blocks.at[b].bytes) {
            struct hdf5_message message;
            RETURN_IF(hdf5_step(file, error));
            RETURN_IF(read_message(file, &blocks.at[b], &at, &message, error));
            if (message.type == HDF5_CONTINUATION && message.bytes >= 2 * OFFSET)
                RETURN_IF(add_block(file, &blocks, bytes_little(message.data, OFFSET),
                                    bytes_little(message.data + OFFSET, OFFSET), error));
            else
                RETURN_IF(each(argument, &message, &stop, error));
        }
    }
    return OK;
}

/* --- groups --- */

struct group {
    uint64_t tree;
    const uint8_t *names; /* [names_bytes] */
    uint64_t names_bytes;
    bool there;
};

struct reading {
    struct hdf5_reader *file;
    struct group group;
    struct hdf5_wanted *wanted;
};

/* Names that are messages, in the header itself or in a heap. */
static int read_links(const struct reading *reading, const struct hdf5_message *message,
                      struct error *error) {
    enum { FLAGS = 1, HEAD = 2, HAS_ORDER = 1, ORDER = 8 };
    if (message->type == HDF5_LINK)
        return hdf5_link_read(reading->file, message->data, message->bytes, reading->wanted, error);
    const size_t heap = message->bytes > FLAGS && (message->data[FLAGS] & HAS_ORDER) ? HEAD + ORDER : HEAD;
    if (message->bytes < heap + 2 * OFFSET)
        return hdf5_damaged(reading->file, "a group's header is cut", error);
    const uint64_t heap_at = bytes_little(message->data + heap, OFFSET);
    if (heap_at == UINT64_MAX) return OK;
    return hdf5_links_find(reading->file, heap_at, bytes_little(message->data + heap + OFFSET, OFFSET),
                           reading->wanted, error);
}

static int read_group(void *argument, const struct hdf5_message *message, bool *stop, struct error *error) {
    enum { HEAP = 32 };
    struct reading *reading = argument;
    const struct hdf5_reader *file = reading->file;
    if (message->type == HDF5_LINK || message->type == HDF5_LINKS) {
        RETURN_IF(read_links(reading, message, error));
        *stop = reading->wanted->object != 0;
        return OK;
    }
    if (message->type != HDF5_GROUP || message->bytes < 2 * OFFSET) return OK;
    const uint8_t *heap = hdf5_bytes(file, bytes_little(message->data + OFFSET, OFFSET), HEAP);
    if (!heap || memcmp(heap, "HEAP", 5) != 0) return hdf5_damaged(file, "a group without names", error);
    reading->group.tree = bytes_little(message->data, OFFSET);
    reading->group.names_bytes = bytes_little(heap + 8, OFFSET);
    reading->group.names = hdf5_bytes(file, bytes_little(heap + 24, OFFSET), reading->group.names_bytes);
    if (!reading->group.names) return hdf5_damaged(file, "a group's names lie outside of it", error);
    reading->group.there = *stop = true;
    return OK;
}

/* Names in their order, with the objects that they stand for. */
static int look_at_names(struct hdf5_reader *file, const struct group *group, uint64_t at,
                         struct hdf5_wanted *wanted, struct error *error) {
    enum { HEAD = 8 };
    const uint8_t *head = hdf5_bytes(file, at, HEAD);
    if (!head || memcmp(head, "SNOD\1", 5) != 0) return hdf5_damaged(file, "a group without entries", error);
    const int count = (int)bytes_little(head + 6, 2);
    const uint8_t *entry = hdf5_bytes(file, at + HEAD, (uint64_t)count * ENTRY);
    if (!entry) return hdf5_damaged(file, "a group's entries are cut", error);
    for (int i = 0; i < count && wanted->object == 0; i++, entry += ENTRY) {
        const uint64_t name = bytes_little(entry, OFFSET);
        RETURN_IF(hdf5_step(file, error));
        if (name >= group->names_bytes || group->names_bytes - name <= wanted->length) continue;
        if (memcmp(group->names + name, wanted->name, wanted->length) == 0 &&
            group->names[name + wanted->length] == '\0')
            wanted->object = bytes_little(entry + OFFSET, OFFSET);
    }
    return OK;
}

/* Nodes below a node are one level lower, so that a loop of them ends. `level`: of this one. */
static int look_at_node(struct hdf5_reader *file, const struct group *group, uint64_t at, int level,
                        struct hdf5_wanted *wanted, struct error *error) {
    enum { HEAD = 24 };
    RETURN_IF(hdf5_step(file, error));
    const uint8_t *head = hdf5_bytes(file, at, HEAD);
    if (!head || memcmp(head, "TREE\0", 5) != 0 || (level >= 0 && head[5] != level) || head[5] > LEVELS_MOST)
        return hdf5_damaged(file, "a group without a tree of entries", error);
    const int count = (int)bytes_little(head + 6, 2);
    const uint8_t *children = hdf5_bytes(file, at + HEAD, (uint64_t)count * 2 * OFFSET + OFFSET);
    if (!children) return hdf5_damaged(file, "a group's tree is cut", error);
    for (int i = 0; i < count && wanted->object == 0; i++) {
        const uint64_t child = bytes_little(children + (2 * i + 1) * OFFSET, OFFSET);
        if (head[5] == 0)
            RETURN_IF(look_at_names(file, group, child, wanted, error));
        else
            RETURN_IF(look_at_node(file, group, child, head[5] - 1, wanted, error));
    }
    return OK;
}

int hdf5_reader_find(struct hdf5_reader *file, const char *path, uint64_t *object, struct error *error) {
    *object = file->root;
    while (*path && *object != 0) {
        struct hdf5_wanted wanted = {.name = path, .length = strcspn(path, "/")};
        struct reading reading = {.file = file, .wanted = &wanted};
        RETURN_IF(hdf5_messages(file, *object, read_group, &reading, error));
        if (reading.group.there && wanted.length > 0)
            RETURN_IF(look_at_node(file, &reading.group, reading.group.tree, -1, &wanted, error));
        *object = wanted.object;
        path += wanted.length;
        path += *path == '/';
    }
    return OK;
}
