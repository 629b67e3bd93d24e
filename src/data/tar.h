/* tar archives (POSIX ustar), gzipped or not, read once from front to back. Only regular files are given;
 * folders, links and extension records are skipped. Nothing is written: where a file goes is the caller's
 * choice, so no name in an archive can reach out of a folder. */
#ifndef TRAINER_DATA_TAR_H
#define TRAINER_DATA_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include "../base/error.h"

enum { TAR_NAME_BYTES = 257 }; /* prefix, slash, name and a 0 */

struct tar {
    const char *path;   /* borrowed, for the words */
    void *stream;       /* zlib's, owned */
    long long left;     /* bytes of the file in hand that were not read */
    long long padding;  /* bytes behind them, up to a whole block */
    long long unpacked; /* bytes that came out so far */
};

struct tar_file {
    char name[TAR_NAME_BYTES];
    long long bytes;
};

/* Errors of all: ERROR_FILE: not there, damaged gzip data, a header without its checksum, a cut archive, one
 * of more than FILE_UNPACKED_MOST bytes. */
int tar_open(struct tar *tar, const char *path, struct error *error);
/* The next regular file; *found is false at the archive's end. */
int tar_next(struct tar *tar, struct tar_file *file, bool *found, struct error *error);
/* Up to `bytes` bytes of it; *got is 0 at its end. */
int tar_read(struct tar *tar, void *out, size_t bytes, size_t *got, struct error *error);
void tar_close(struct tar *tar); /* safe on a zeroed one */

#endif
