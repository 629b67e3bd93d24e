/* See hdf5_reader.h: what values are, attributes of texts, and arrays. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/bytes.h"
#include "../base/memory.h"
#include "hdf5_parts.h"
#include "hdf5_reader.h"

enum { OFFSET = 8, SPACE_BYTES = 100 };

/* --- datatypes and dataspaces --- */

/* IEEE 754 of 2, 4 and 8 bytes: where exponent and fraction are. */
static bool is_ieee(const uint8_t *data, size_t item) {
    static const struct {
        size_t item;
        uint8_t places[8]; /* bit offset, bits; exponent: first bit, bits; fraction: first bit, bits */
    } rows[] = {{2, {0, 0, 16, 0, 10, 5, 0, 10}},
                {4, {0, 0, 32, 0, 23, 8, 0, 23}},
                {8, {0, 0, 64, 0, 52, 11, 0, 52}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].item == item && memcmp(rows[i].places, data + 8, sizeof rows[i].places) == 0) return true;
    return false;
}

/* All bits of 1, 2, 4 or 8 bytes. */
static bool is_whole(const uint8_t *data, size_t item) {
    const bool is_wide = item == 1 || item == 2 || item == 4 || item == 8;
    return is_wide && bytes_little(data + 8, 2) == 0 && bytes_little(data + 10, 2) == 8 * item;
}

int hdf5_type_read(const struct hdf5_reader *file, const uint8_t *data, size_t bytes, struct hdf5_type *type,
                   struct error *error) {
    static const char *const classes[] = {"integers",     "floats of another format",
                                          "times",        "texts",
                                          "bit fields",   "opaque items",
                                          "compounds",    "references",
                                          "enumerations", "variable lists",
                                          "arrays"};
    enum {
        HEAD = 8,
        FLOAT = 20,
        WHOLE = 12,
        SIGNED = 8,
        CLASS_WHOLE = 0,
        CLASS_FLOAT = 1,
        CLASS_TEXT = 3,
        CLASS_LIST = 9,
        LISTED_TEXT = 1
    };
    if (bytes < HEAD) return hdf5_damaged(file, "a datatype is cut", error);
    const int class = data[0] & 15;
    *type = (struct hdf5_type){.kind = HDF5_OTHER,
                               .item = (size_t)bytes_little(data + 4, 4),
                               .big_endian = data[1] & 1,
                               .is_signed = data[1] & SIGNED,
                               .what = class < (int)(sizeof classes / sizeof *classes) ? classes[class]
                                                                                       : "items"};
    if (class == CLASS_FLOAT && bytes >= FLOAT && is_ieee(data, type->item)) type->kind = HDF5_FLOATS;
    if (class == CLASS_WHOLE && bytes >= WHOLE && is_whole(data, type->item)) type->kind = HDF5_INTEGERS;
    if (class == CLASS_TEXT && type->item > 0) type->kind = HDF5_FIXED_TEXTS;
    if (class == CLASS_LIST && (data[1] & 15) == LISTED_TEXT && type->item == 2 * OFFSET)
        type->kind = HDF5_TEXTS;
    return OK;
}

int hdf5_space_read(const struct hdf5_reader *file, const uint8_t *data, size_t bytes, struct shape *shape,
                    struct error *error) {
    const int version = bytes >= 4 ? data[0] : 0, rank = bytes >= 4 ? data[1] : 0;
    const size_t head = version == 1 ? 8 : 4;
    enum { SIZE_MOST = 1 << 30, IS_NULL = 2 };
    if (version < 1 || version > 2 || bytes < head + (size_t)rank * OFFSET)
        return hdf5_damaged(file, "a dataspace is cut", error);
    if (rank > MAX_RANK)
        return error_set(error, ERROR_FILE, "%s: found an array of %d dimensions, expected at most %d",
                         file->name, rank, MAX_RANK);
    *shape = (struct shape){.rank = rank};
    if (version == 2 && data[3] == IS_NULL) *shape = (struct shape){.rank = 1};
    for (int i = 0; i < rank; i++) {
        const uint64_t size = bytes_little(data + head + (size_t)i * OFFSET, OFFSET);
        if (size > SIZE_MOST)
            return error_set(error, ERROR_FILE, "%s: found a dimension of %llu, expected at most %d",
                             file->name, (unsigned long long)size, SIZE_MOST);
        shape->dims[i] = (int)size;
    }
    return OK;
}

/* Items of a shape that `bytes` bytes hold; -1: more. */
static long long items_in(const struct shape *shape, size_t item, uint64_t bytes) {
    uint64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        const uint64_t size = (uint64_t)shape->dims[i];
        if (size > 0 && count > bytes / size) return -1;
        count *= size;
    }
    return item > 0 && count <= bytes / item ? (long long)count : count == 0 ? 0 : -1;
}

/* --- attributes --- */

struct attribute {
    struct hdf5_reader *file;
    const char *name;
    bool there;
    struct hdf5_type type;
    struct shape shape;
    const uint8_t *data; /* [bytes] */
    size_t bytes;
};

static size_t padded(size_t bytes, int version) {
    return version == 1 ? (bytes + 7) / 8 * 8 : bytes;
}

static int read_attribute(void *argument, const struct hdf5_message *message, bool *stop,
                          struct error *error) {
    struct attribute *attribute = argument;
    const struct hdf5_reader *file = attribute->file;
    if (message->type != HDF5_ATTRIBUTE) return OK;
    if (message->bytes < 9 || message->shared) return hdf5_damaged(file, "an attribute is cut", error);
    const uint8_t *data = message->data;
    const int version = data[0];
    const size_t head = version == 3 ? 9 : 8, name = (size_t)bytes_little(data + 2, 2),
                 type = (size_t)bytes_little(data + 4, 2), space = (size_t)bytes_little(data + 6, 2),
                 type_at = head + padded(name, version), space_at = type_at + padded(type, version),
                 value_at = space_at + padded(space, version);
    if (version < 1 || version > 3 || value_at > message->bytes)
        return hdf5_damaged(file, "an attribute is cut", error);
    const size_t length = strlen(attribute->name);
    if (name != length + 1 || memcmp(data + head, attribute->name, length) != 0) return OK;
    RETURN_IF(hdf5_type_read(file, data + type_at, type, &attribute->type, error));
    RETURN_IF(hdf5_space_read(file, data + space_at, space, &attribute->shape, error));
    attribute->data = data + value_at;
    attribute->bytes = message->bytes - value_at;
    attribute->there = *stop = true;
    return OK;
}

/* Object `index` of the heap at `at`, where texts of any length are. */
static int find_in_heap(struct hdf5_reader *file, uint64_t at, uint64_t index, const uint8_t **data,
                        uint64_t *bytes, struct error *error) {
    enum { HEAD = 16, OBJECT = 16 };
    const uint8_t *heap = hdf5_bytes(file, at, HEAD);
    const uint64_t size = heap ? bytes_little(heap + 8, OFFSET) : 0;
    if (!heap || memcmp(heap, "GCOL\1", 5) != 0 || !hdf5_bytes(file, at, size))
        return hdf5_damaged(file, "a text that is nowhere", error);
    for (uint64_t from = HEAD; from + OBJECT <= size;) {
        const uint64_t number = bytes_little(heap + from, 2);
        RETURN_IF(hdf5_step(file, error));
        *bytes = bytes_little(heap + from + 8, OFFSET);
        *data = heap + from + OBJECT;
        if (number == 0 || *bytes > size - from - OBJECT) break;
        if (number == index) return OK;
        from += OBJECT + (*bytes + 7) / 8 * 8;
    }
    return hdf5_damaged(file, "a text that is nowhere", error);
}

/* Text i, in *text[*bytes]. */
static int find_text(const struct attribute *attribute, int i, const uint8_t **text, uint64_t *bytes,
                     struct error *error) {
    const uint8_t *item = attribute->data + (size_t)i * attribute->type.item;
    if (attribute->type.kind == HDF5_FIXED_TEXTS) {
        *text = item;
        *bytes = attribute->type.item;
        return OK;
    }
    const uint64_t length = bytes_little(item, 4);
    if (length == 0) {
        *text = item;
        *bytes = 0;
        return OK;
    }
    RETURN_IF(find_in_heap(attribute->file, bytes_little(item + 4, OFFSET), bytes_little(item + 12, 4), text,
                           bytes, error));
    if (*bytes < length) return hdf5_damaged(attribute->file, "a text is cut", error);
    *bytes = length;
    return OK;
}

static int copy_texts(const struct attribute *attribute, int count, struct hdf5_texts *texts,
                      struct error *error) {
    uint64_t all = 0;
    RETURN_IF(memory_array(&texts->texts, count, attribute->name, error));
    for (int i = 0; i < count; i++) {
        const uint8_t *text = NULL;
        uint64_t bytes = 0;
        RETURN_IF(find_text(attribute, i, &text, &bytes, error));
        all += bytes;
        if (all > attribute->file->length)
            return hdf5_damaged(attribute->file, "its texts are longer than all of it", error);
        RETURN_IF(memory_array(&texts->texts[i], bytes + 1, attribute->name, error));
        memcpy(texts->texts[i], text, bytes);
        texts->count++;
    }
    return OK;
}

int hdf5_reader_texts(struct hdf5_reader *file, uint64_t object, const char *name, struct hdf5_texts *texts,
                      struct error *error) {
    struct attribute attribute = {.file = file, .name = name};
    *texts = (struct hdf5_texts){0};
    RETURN_IF(hdf5_messages(file, object, read_attribute, &attribute, error));
    if (!attribute.there) return OK;
    const long long count = items_in(&attribute.shape, attribute.type.item, attribute.bytes);
    if (count == 0) return OK; /* an empty list has any type */
    if (attribute.type.kind != HDF5_TEXTS && attribute.type.kind != HDF5_FIXED_TEXTS)
        return error_set(error, ERROR_FILE, "%s: %s: found %s, expected texts", file->name, name,
                         attribute.type.kind == HDF5_FLOATS ? "floats" : attribute.type.what);
    if (count < 0) return hdf5_damaged(file, "an attribute is cut", error);
    const int code = copy_texts(&attribute, (int)count, texts, error);
    if (code != OK) hdf5_texts_close(texts);
    return code;
}

void hdf5_texts_close(struct hdf5_texts *texts) {
    for (int i = 0; i < texts->count; i++) memory_free(texts->texts[i]);
    memory_free(texts->texts);
    *texts = (struct hdf5_texts){0};
}

/* --- arrays --- */

struct array {
    const struct hdf5_reader *file;
    bool typed, shaped, placed;
    struct hdf5_type type;
    struct shape shape;
    const uint8_t *data; /* [bytes] */
    uint64_t bytes;
};

static int read_layout(struct array *array, const struct hdf5_message *message, struct error *error) {
    enum { COMPACT = 0, CONTIGUOUS = 1, HEAD = 2, CLOSE = HEAD + 2 };
    const uint8_t *data = message->data;
    const int version = message->bytes >= CLOSE ? data[0] : -1,
              class = message->bytes >= CLOSE ? data[1] : -1;
    if (version != 3 && version != 4)
        return error_set(error, ERROR_FILE, "%s: found a layout of version %d, expected 3 or 4",
                         array->file->name, version);
    if (class == COMPACT) {
        array->data = data + CLOSE;
        array->bytes = bytes_little(data + HEAD, 2);
        if (array->bytes > message->bytes - CLOSE) return hdf5_damaged(array->file, "an array is cut", error);
    } else if (class == CONTIGUOUS && message->bytes >= HEAD + 2 * OFFSET) {
        array->bytes = bytes_little(data + HEAD + OFFSET, OFFSET);
        array->data = hdf5_bytes(array->file, bytes_little(data + HEAD, OFFSET), array->bytes);
        if (!array->data) return hdf5_damaged(array->file, "an array lies outside of it", error);
    } else {
        return error_set(error, ERROR_FILE, "%s: found an array in chunks, expected it in one piece",
                         array->file->name);
    }
    array->placed = true;
    return OK;
}

static int read_part(void *argument, const struct hdf5_message *message, bool *stop, struct error *error) {
    struct array *array = argument;
    (void)stop;
    if (message->shared && message->type == HDF5_DATATYPE)
        return error_set(error, ERROR_FILE, "%s: found a datatype with a name of its own, expected floats",
                         array->file->name);
    if (message->type == HDF5_DATASPACE) {
        array->shaped = true;
        return hdf5_space_read(array->file, message->data, message->bytes, &array->shape, error);
    }
    if (message->type == HDF5_DATATYPE) {
        array->typed = true;
        return hdf5_type_read(array->file, message->data, message->bytes, &array->type, error);
    }
    return message->type == HDF5_LAYOUT ? read_layout(array, message, error) : OK;
}

/* Its parts are there; *count: items that its shape says, -1 where it has not as many bytes. */
static int find_array(struct hdf5_reader *file, uint64_t object, const char *path, struct array *array,
                      long long *count, struct error *error) {
    *array = (struct array){.file = file};
    RETURN_IF(hdf5_messages(file, object, read_part, array, error));
    if (!array->typed || !array->shaped || !array->placed)
        return error_set(error, ERROR_FILE, "%s: %s: found a group, expected an array", file->name, path);
    *count = items_in(&array->shape, array->type.item, array->bytes);
    return OK;
}

static int other_type(const struct array *array, const char *path, const char *expected,
                      struct error *error) {
    const enum hdf5_kind kind = array->type.kind;
    return error_set(error, ERROR_FILE, "%s: %s: found %s, expected %s", array->file->name, path,
                     kind == HDF5_TEXTS || kind == HDF5_FIXED_TEXTS ? "texts" : array->type.what, expected);
}

static struct npy items_of(const struct array *array, const char *path, char kind, long long count) {
    return (struct npy){.name = path,
                        .kind = kind,
                        .item = (int)array->type.item,
                        .big_endian = array->type.big_endian,
                        .shape = array->shape,
                        .count = (size_t)count,
                        .values = array->data};
}

int hdf5_reader_array(struct hdf5_reader *file, uint64_t object, const char *path, struct npy *out,
                      struct error *error) {
    struct array array;
    char shape[SPACE_BYTES];
    long long count = 0;
    RETURN_IF(find_array(file, object, path, &array, &count, error));
    if (array.type.kind != HDF5_FLOATS) return other_type(&array, path, "float16, float32 or float64", error);
    shape_text(&array.shape, shape, sizeof shape);
    if (array.shape.rank == 0 || count == 0)
        return error_set(error, ERROR_FILE, "%s: %s: found the shape %s, expected sizes of 1 or more",
                         file->name, path, shape);
    if (count < 0)
        return error_set(error, ERROR_FILE,
                         "%s: %s: found %llu bytes, expected as many as the shape %s needs", file->name, path,
                         (unsigned long long)array.bytes, shape);
    *out = items_of(&array, path, 'f', count);
    return OK;
}

int hdf5_reader_number(struct hdf5_reader *file, uint64_t object, const char *path, double *number,
                       struct error *error) {
    struct array array;
    int64_t whole = 0;
    long long count = 0;
    RETURN_IF(find_array(file, object, path, &array, &count, error));
    if (array.type.kind != HDF5_FLOATS && array.type.kind != HDF5_INTEGERS)
        return other_type(&array, path, "a number", error);
    if (count != 1)
        return error_set(error, ERROR_FILE, "%s: %s: found other than one number, expected one", file->name,
                         path);
    const char kind = array.type.kind == HDF5_FLOATS ? 'f' : array.type.is_signed ? 'i' : 'u';
    const struct npy item = items_of(&array, path, kind, count);
    if (kind == 'f')
        *number = (double)npy_float(&item, 0);
    else
        *number = npy_integer(&item, 0, &whole) ? (double)whole : (double)INFINITY;
    return OK;
}
