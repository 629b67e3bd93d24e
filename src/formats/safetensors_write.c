/* safetensors, writing: the header is built in memory first, because its length comes before it and the
 * checksum is part of it; the data are written straight from where they are. */
#include "safetensors.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "../base/utf8.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values go to the file as they are");

enum { PREFIX_BYTES = 8, DATA_ALIGNMENT = 64 };
static const char no_checksum[] = "00000000";

static void put_quoted(struct text *text, const char *plain) {
    text_add(text, "\"");
    while (*plain != 0) {
        const size_t bytes = utf8_length(plain);
        const unsigned char first = (unsigned char)*plain;
        if (bytes == 0)
            text_add(text, "\\ufffd");
        else if (first == '"' || first == '\\')
            text_add(text, "\\%c", first);
        else if (first < 0x20)
            text_add(text, "\\u%04x", first);
        else
            text_add_bytes(text, plain, bytes);
        plain += bytes == 0 ? 1 : bytes;
    }
    text_add(text, "\"");
}

static size_t tensor_bytes(const struct tensor_entry *tensor) {
    return shape_count(&tensor->shape) * sizeof(float);
}

/* *digits = where the checksum's digits stand in the text. */
static void put_texts(struct text *text, const struct safetensors *content, bool checksum, size_t *digits) {
    const char *comma = "";
    text_add(text, "\"__metadata__\":{");
    if (checksum) {
        text_add(text, "\"checksum\":\"");
        *digits = text->used;
        text_add(text, "%s\"", no_checksum);
        comma = ",";
    }
    for (int i = 0; i < content->text_count; i++) {
        if (strcmp(content->texts[i].name, "checksum") == 0) continue; /* of another file */
        text_add(text, "%s", comma);
        put_quoted(text, content->texts[i].name);
        text_add(text, ":");
        put_quoted(text, content->texts[i].text);
        comma = ",";
    }
    text_add(text, "}");
}

static void put_tensor(struct text *text, const struct tensor_entry *tensor, size_t begin) {
    put_quoted(text, tensor->name);
    text_add(text, ":{\"dtype\":\"F32\",\"shape\":[");
    for (int i = 0; i < tensor->shape.rank; i++) text_add(text, i > 0 ? ",%d" : "%d", tensor->shape.dims[i]);
    text_add(text, "],\"data_offsets\":[%zu,%zu]}", begin, begin + tensor_bytes(tensor));
}

/* The whole header with its length in front and its padding behind. */
static void put_header(struct text *text, const struct safetensors *content, bool checksum, size_t *digits) {
    const bool has_texts = checksum || content->text_count > 0;
    text_add_bytes(text, "\0\0\0\0\0\0\0\0", PREFIX_BYTES);
    text_add(text, "{");
    if (has_texts) put_texts(text, content, checksum, digits);
    size_t begin = 0;
    for (int i = 0; i < content->tensor_count; i++) {
        if (i > 0 || has_texts) text_add(text, ",");
        put_tensor(text, &content->tensors[i], begin);
        begin += tensor_bytes(&content->tensors[i]);
    }
    text_add(text, "}");
    while (!text->cut && text->used % DATA_ALIGNMENT != 0) text_add(text, " ");
    if (text->cut) return;
    const uint64_t header_bytes = text->used - PREFIX_BYTES;
    memcpy(text->bytes, &header_bytes, sizeof header_bytes);
}

static void put_checksum(struct text *text, const struct safetensors *content, size_t digits) {
    uLong crc = crc32_z(0, (const Bytef *)text->bytes, text->used);
    for (int i = 0; i < content->tensor_count; i++)
        crc = crc32_z(crc, (const Bytef *)content->tensors[i].values, tensor_bytes(&content->tensors[i]));
    char computed[sizeof no_checksum];
    snprintf(computed, sizeof computed, "%08x", (unsigned)crc);
    memcpy(text->bytes + digits, computed, sizeof no_checksum - 1);
}

static int order_of_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two equal names make a file that nobody can read, and it would only be seen when it is needed. */
static int check_names(const struct safetensors *content, struct error *error) {
    const size_t count = (size_t)content->tensor_count + 1;
    const char **names;
    RETURN_IF(memory_array(&names, count, "the order of names", error));
    names[0] = "__metadata__";
    for (size_t i = 1; i < count; i++) names[i] = content->tensors[i - 1].name;
    qsort(names, count, sizeof *names, order_of_names);
    int code = OK;
    for (size_t i = 1; i < count && code == OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            code = error_set(error, ERROR_INTERNAL, "two tensors are named %.80s, expected different names",
                             names[i]);
    memory_free(names);
    return code;
}

int safetensors_write(FILE *file, const struct safetensors *content, bool checksum, struct error *error) {
    RETURN_IF(check_names(content, error));
    struct text header = text_growing(error);
    size_t digits = 0;
    put_header(&header, content, checksum, &digits);
    int code = text_end(&header);
    if (code == OK) {
        if (checksum) put_checksum(&header, content, digits);
        bool written = fwrite(header.bytes, 1, header.used, file) == header.used;
        for (int i = 0; i < content->tensor_count && written; i++) {
            const size_t bytes = tensor_bytes(&content->tensors[i]);
            written = bytes == 0 || fwrite(content->tensors[i].values, 1, bytes, file) == bytes;
        }
        if (!written) code = error_set(error, ERROR_FILE, "tensors cannot be written: %s", strerror(errno));
    }
    memory_free(header.bytes);
    return code;
}
