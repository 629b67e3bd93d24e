/* Files read piece by piece, gunzipped when they are gzip, so that they may be larger than memory. */
#ifndef TRAINER_BASE_FILE_READER_H
#define TRAINER_BASE_FILE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include "error.h"

enum { FILE_FRONT_BYTES = 512 };

struct file_reader {
    void *file;                   /* zlib's; NULL: not open */
    const char *path;             /* borrowed, for the words */
    size_t limit;                 /* bytes that it may be at most, unpacked */
    size_t used;                  /* bytes read so far */
    size_t likely;                /* how many there are, most likely: a first guess */
    bool packed;                  /* it is gzip */
    char front[FILE_FRONT_BYTES]; /* what was looked at and is still to be read */
    size_t front_at, front_end;
};

/* Opens a file (`path` is borrowed), or standard input. More than `limit` bytes, or more than a gzip file may
 * become (file.h), is an error when they are read. Errors: ERROR_FILE. */
int file_reader_open(struct file_reader *reader, const char *path, size_t limit, struct error *error);
int file_reader_standard_input(struct file_reader *reader, size_t limit, struct error *error);
/* Reads up to `room` bytes (at least 1, at most 1 GiB); *got is 0 at the end only. Errors: ERROR_FILE. */
int file_reader_read(struct file_reader *reader, char *out, size_t room, size_t *got, struct error *error);
/* The file's first bytes, which will be read all the same: *front = FILE_FRONT_BYTES of them, or all there
 * are. To be called before anything is read, any number of times. */
int file_reader_look(struct file_reader *reader, const char **front, size_t *bytes, struct error *error);
/* The rest, in one block (owned by the caller, memory_free), with a 0 byte behind the last. */
int file_reader_rest(struct file_reader *reader, char **data, size_t *bytes, struct error *error);
void file_reader_close(struct file_reader *reader); /* safe on a zeroed one */

#endif
