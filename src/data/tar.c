/* tar archives: each file begins with a block of 512 bytes; its bytes follow, padded to whole blocks; a
 * block of zeros ends the archive (POSIX.1-1988, "ustar"). zlib reads plain archives and gzipped ones
 * alike. */
#include "tar.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include "../base/file.h"

enum {
    BLOCK = 512,
    NAME_AT = 0,
    NAME_LONG = 100,
    SIZE_AT = 124,
    SIZE_LONG = 12,
    SUM_AT = 148,
    SUM_LONG = 8,
    KIND_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_LONG = 155,
    STEP_BYTES = 1 << 16
};

int tar_open(struct tar *tar, const char *path, struct error *error) {
    *tar = (struct tar){.path = path, .stream = gzopen(path, "rbe")};
    if (tar->stream != NULL) return OK;
    return error_set(error, ERROR_FILE, "%s: cannot be read", path);
}

void tar_close(struct tar *tar) {
    if (tar->stream != NULL) gzclose_r(tar->stream);
    *tar = (struct tar){0};
}

/* Exactly `bytes` bytes, or none at the end of the stream when `may_end`. */
static int read_bytes(struct tar *tar, void *out, size_t bytes, bool may_end, size_t *got,
                      struct error *error) {
    const int count = gzread(tar->stream, out, (unsigned)bytes);
    int state = Z_OK;
    gzerror(tar->stream, &state);
    *got = count > 0 ? (size_t)count : 0;
    tar->unpacked += (long long)*got;
    if (count < 0 || (state != Z_OK && state != Z_STREAM_END))
        return error_set(error, ERROR_FILE, "%s: damaged or cut gzip data", tar->path);
    if (*got == bytes || (*got == 0 && may_end)) return OK;
    return error_set(error, ERROR_FILE, "%s: the archive ends too early", tar->path);
}

/* Octal digits, blanks around them. False: something else, or nothing. */
static bool read_octal(const unsigned char *field, int length, long long *value) {
    int i = 0;
    *value = 0;
    while (i < length && field[i] == ' ') i++;
    const int first = i;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++) *value = *value * 8 + (field[i] - '0');
    const bool is_ended = i == length || field[i] == ' ' || field[i] == '\0';
    return i > first && is_ended;
}

/* The sum of a header's bytes, its own field taken as blanks. */
static long long sum_of(const unsigned char *header) {
    long long sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += i >= SUM_AT && i < SUM_AT + SUM_LONG ? ' ' : header[i];
    return sum;
}

static int parse_header(struct tar *tar, const unsigned char *header, struct tar_file *file,
                        struct error *error) {
    const bool is_ustar = memcmp(header + MAGIC_AT, "ustar", 5) == 0;
    const char *name = (const char *)header + NAME_AT, *prefix = (const char *)header + PREFIX_AT;
    const int name_bytes = (int)strnlen(name, NAME_LONG),
              prefix_bytes = is_ustar ? (int)strnlen(prefix, PREFIX_LONG) : 0;
    long long sum = 0;
    snprintf(file->name, sizeof file->name, "%.*s%s%.*s", prefix_bytes, prefix, prefix_bytes > 0 ? "/" : "",
             name_bytes, name);
    if (!read_octal(header + SUM_AT, SUM_LONG, &sum) || sum != sum_of(header))
        return error_set(error, ERROR_FILE, "%s: a header without its checksum, expected a tar archive",
                         tar->path);
    if (!read_octal(header + SIZE_AT, SIZE_LONG, &file->bytes))
        return error_set(error, ERROR_FILE, "%s: %s: no usable size", tar->path, file->name);
    if (file->bytes > FILE_UNPACKED_MOST - tar->unpacked)
        return error_set(error, ERROR_FILE, "%s: more than %d bytes, unpacked", tar->path,
                         FILE_UNPACKED_MOST);
    tar->left = file->bytes;
    tar->padding = (BLOCK - file->bytes % BLOCK) % BLOCK;
    return OK;
}

/* Skips what was not read. */
static int skip_rest(struct tar *tar, struct error *error) {
    unsigned char nowhere[STEP_BYTES];
    size_t got;
    for (long long rest = tar->left + tar->padding; rest > 0; rest -= (long long)got)
        RETURN_IF(read_bytes(tar, nowhere, rest < STEP_BYTES ? (size_t)rest : (size_t)STEP_BYTES, false, &got,
                             error));
    tar->left = tar->padding = 0;
    return OK;
}

int tar_next(struct tar *tar, struct tar_file *file, bool *found, struct error *error) {
    static const unsigned char zeros[BLOCK];
    unsigned char header[BLOCK];
    size_t got;
    *found = false;
    for (;;) {
        RETURN_IF(skip_rest(tar, error));
        RETURN_IF(read_bytes(tar, header, sizeof header, true, &got, error));
        if (got == 0 || memcmp(header, zeros, sizeof header) == 0) return OK;
        RETURN_IF(parse_header(tar, header, file, error));
        *found = header[KIND_AT] == '0' || header[KIND_AT] == '\0';
        if (*found) return OK;
    }
}

int tar_read(struct tar *tar, void *out, size_t bytes, size_t *got, struct error *error) {
    const size_t wanted = (long long)bytes < tar->left ? bytes : (size_t)tar->left;
    *got = 0;
    if (wanted == 0) return OK;
    RETURN_IF(read_bytes(tar, out, wanted, false, got, error));
    tar->left -= (long long)*got;
    return OK;
}
