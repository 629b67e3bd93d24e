/* gzip in memory, for files that are embedded in the program. Files on disk are unpacked by file_read. */
#ifndef TRAINER_DATA_GUNZIP_H
#define TRAINER_DATA_GUNZIP_H

#include <stddef.h>
#include "../base/error.h"

/* *out = the unpacked bytes (owned by the caller: memory_free; one 0 byte follows the last). `name` is for
 * the words. More than `limit` bytes, a broken or a cut stream, or bytes after it are errors. Errors:
 * ERROR_FILE. */
int data_gunzip(const char *name, const void *packed, size_t packed_bytes, size_t limit, char **out,
                size_t *out_bytes, struct error *error);

#endif
