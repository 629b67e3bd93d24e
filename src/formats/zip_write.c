/* See zip_write.h. */
#include "zip_write.h"

#include <string.h>
#include <zlib.h>

#include "../base/bytes.h"
#include "../base/memory.h"

enum {
    NAME_BYTES = 120,
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    VERSION = 20,
    UTF8_NAMES = 0x800,
    FIRST_DAY = 0x21 /* 1980-01-01 */
};
static const uint32_t local_mark = 0x04034b50, central_mark = 0x02014b50, end_mark = 0x06054b50;

struct zip_member {
    char name[NAME_BYTES];
    uint32_t crc, bytes, at;
};

static unsigned char *put(unsigned char *to, uint32_t value, int bytes) {
    bytes_put_little(to, bytes, value);
    return to + bytes;
}

/* What the two headers of a member have in common: version to extract to the length of its extra field. */
static unsigned char *put_common(unsigned char *to, const struct zip_member *member) {
    to = put(to, VERSION, 2);
    to = put(to, UTF8_NAMES, 2);
    to = put(to, 0, 2); /* stored */
    to = put(to, 0, 2);
    to = put(to, FIRST_DAY, 2);
    to = put(to, member->crc, 4);
    to = put(to, member->bytes, 4);
    to = put(to, member->bytes, 4);
    to = put(to, (uint32_t)strlen(member->name), 2);
    return put(to, 0, 2);
}

static int write_bytes(struct zip_writing *zip, const void *bytes, size_t count, struct error *error) {
    zip->bytes += count;
    if (zip->bytes > UINT32_MAX)
        return error_set(error, ERROR_FILE, "found more than 4 GiB, expected less in a zip archive");
    if (fwrite(bytes, 1, count, zip->file) == count) return OK;
    return error_set(error, ERROR_FILE, "cannot be written");
}

static uint32_t crc_of(const struct zip_piece *pieces, int count) {
    uLong crc = crc32(0, NULL, 0);
    for (int i = 0; i < count; i++) crc = crc32_z(crc, pieces[i].at, pieces[i].bytes);
    return (uint32_t)crc;
}

int zip_add(struct zip_writing *zip, const char *name, const struct zip_piece *pieces, int count,
            struct error *error) {
    unsigned char header[LOCAL_BYTES];
    uint64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pieces[i].bytes;
    if (zip->bytes + bytes > UINT32_MAX || zip->count == UINT16_MAX || strlen(name) >= NAME_BYTES)
        return error_set(
            error, ERROR_FILE,
            "%.80s: found a member too large or too many, expected less than 4 GiB in a zip archive", name);
    RETURN_IF(memory_grow(&zip->members, zip->count, zip->count + 1, "an archive's list", error));
    struct zip_member *member = &zip->members[zip->count++];
    *member = (struct zip_member){
        .crc = crc_of(pieces, count), .bytes = (uint32_t)bytes, .at = (uint32_t)zip->bytes};
    snprintf(member->name, sizeof member->name, "%s", name);
    put_common(put(header, local_mark, 4), member);
    RETURN_IF(write_bytes(zip, header, sizeof header, error));
    RETURN_IF(write_bytes(zip, member->name, strlen(member->name), error));
    for (int i = 0; i < count; i++) RETURN_IF(write_bytes(zip, pieces[i].at, pieces[i].bytes, error));
    return OK;
}

static int write_central(struct zip_writing *zip, const struct zip_member *member, struct error *error) {
    unsigned char header[CENTRAL_BYTES], *to = put(put(header, central_mark, 4), VERSION, 2);
    to = put_common(to, member);
    to = put(put(put(put(to, 0, 2), 0, 2), 0, 2), 0, 4); /* comment, disk, attributes */
    put(to, member->at, 4);
    RETURN_IF(write_bytes(zip, header, sizeof header, error));
    return write_bytes(zip, member->name, strlen(member->name), error);
}

int zip_end(struct zip_writing *zip, struct error *error) {
    unsigned char end[END_BYTES], *to = put(put(put(end, end_mark, 4), 0, 2), 0, 2);
    const uint64_t begin = zip->bytes;
    for (int i = 0; i < zip->count; i++) RETURN_IF(write_central(zip, &zip->members[i], error));
    to = put(put(to, (uint32_t)zip->count, 2), (uint32_t)zip->count, 2);
    to = put(put(to, (uint32_t)(zip->bytes - begin), 4), (uint32_t)begin, 4);
    put(to, 0, 2);
    return write_bytes(zip, end, sizeof end, error);
}

void zip_close(struct zip_writing *zip) {
    memory_free(zip->members);
    *zip = (struct zip_writing){0};
}
