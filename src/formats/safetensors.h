/* safetensors files: named float32 arrays and a map of texts (format: huggingface.co/docs/safetensors,
 * version 0.3).
 *
 * Header: 8 bytes little-endian length, then JSON, then the data. Strict on reading: header at most 100 MB,
 * offsets inside the file, without gaps or overlaps, dtype F32, sizes that match the shapes. */
#ifndef TRAINER_OUTPUT_SAFETENSORS_H
#define TRAINER_OUTPUT_SAFETENSORS_H

#include <stdio.h>
#include "../base/error.h"
#include "../graph/shape.h"

struct tensor_entry {
    const char *name;
    struct shape shape;
    const float *values; /* [shape_count], borrowed; for reading: inside the file's memory */
};
struct text_entry {
    const char *name, *text;
};
struct safetensors {
    struct tensor_entry *tensors; /* [tensor_count] */
    int tensor_count;
    struct text_entry *texts; /* [text_count]: __metadata__ */
    int text_count;
    void *blocks[4]; /* owned memory behind the above when read; the last: of a text that was put in later */
};

/* Writes to an open stream, tensors and texts in the order given. When `checksum` is true a text "checksum"
 * comes first: the CRC-32 of the whole file, in eight digits 0-9a-f, taken with those digits as zeros; one
 * that is given, of another file, is left out. Names and texts are UTF-8; a byte that is not becomes U+FFFD.
 * The values must not change meanwhile. Errors: ERROR_FILE: the stream; ERROR_INTERNAL: a name twice. */
int safetensors_write(FILE *file, const struct safetensors *content, bool checksum, struct error *error);

/* Reads and checks `path`; where a "checksum" text is there, it must fit. Errors: ERROR_FILE naming path,
 * what was found, what was expected. */
int safetensors_read(const char *path, struct safetensors *content, struct error *error);
/* The same from memory, `name` for the words; data must stay. (The fuzzers' way in.) */
int safetensors_parse(const char *name, const char *data, size_t bytes, struct safetensors *content,
                      struct error *error);
void safetensors_free(struct safetensors *content); /* of what was read; safe on a zeroed one */

const struct tensor_entry *safetensors_tensor(const struct safetensors *content,
                                              const char *name);                   /* or NULL */
const char *safetensors_text(const struct safetensors *content, const char *name); /* or NULL */

#endif
