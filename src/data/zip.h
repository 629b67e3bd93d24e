/* zip archives in memory, as far as programs write them for data: members stored or deflated, sizes of 64
 * bits, sizes behind the data. The central directory says what is there; what it says is held against the
 * members themselves. Source: PKWARE, APPNOTE.TXT 6.3.10. */
#ifndef TRAINER_DATA_ZIP_H
#define TRAINER_DATA_ZIP_H

#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_member {
    const char *name; /* [name_bytes] in the archive, without a 0 */
    size_t name_bytes;
    int flags, method;
    uint32_t crc;              /* of what it unpacks to */
    uint64_t packed, unpacked; /* bytes; packed ones are in the archive, unpacked ones only said */
    uint64_t begin, end;       /* of its own header and data, in the archive */
};

struct zip {
    const char *name;     /* for the words; borrowed */
    const uint8_t *bytes; /* [length], borrowed */
    size_t length;
    struct zip_member *members; /* [count], owned, in the order of their places */
    int count;
};

/* Reads the directory: every member lies inside the archive, apart from the others, and its own header says
 * the same. Errors: ERROR_FILE. On error the caller closes. */
int zip_archive_open(struct zip *zip, const char *name, const uint8_t *bytes, size_t length,
                     struct error *error);
void zip_archive_close(struct zip *zip); /* safe on a zeroed or half-open one */

/* A member being read. */
struct zip_reader {
    const struct zip_member *member;
    const char *name;     /* for the words; borrowed */
    const uint8_t *bytes; /* what is left of it in the archive */
    uint64_t left;
    void *stream; /* zlib's, owned; NULL: stored */
    uint64_t given;
    uint32_t crc; /* of the bytes given */
};

/* Errors: ERROR_FILE: encrypted, or packed in another way. On error the caller closes. */
int zip_reader_open(struct zip_reader *reader, const struct zip *zip, const struct zip_member *member,
                    const char *name, struct error *error);
/* Writes up to `most` bytes into out: fewer only at the end. Errors: ERROR_FILE: damaged data. */
int zip_read(struct zip_reader *reader, uint8_t *out, size_t most, size_t *got, struct error *error);
/* Whether what was read is all there is, with the right size and CRC-32. Errors: ERROR_FILE. */
int zip_finish(struct zip_reader *reader, struct error *error);
void zip_reader_close(struct zip_reader *reader); /* safe on a zeroed or half-open one */

/* The data of a stored member, in the archive, when its CRC-32 is right. Errors: ERROR_FILE. */
int zip_stored(const uint8_t **data, const struct zip *zip, const struct zip_member *member, const char *name,
               struct error *error);

#endif
