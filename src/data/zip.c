/* The directory of a zip archive. Every number in it is checked against the length before it is used, and no
 * two members share a byte: a small archive cannot unpack to more than its own bytes can hold. */
#include "zip.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "../base/bytes.h"
#include "../base/memory.h"

enum { /* bytes of the fixed part of each record */
       LOCAL = 30,
       ENTRY = 46,
       END = 22,
       LOCATOR_64 = 20,
       END_64 = 56,
       MOST_COMMENT = 0xFFFF,
       ZIP64_FIELD = 1,       /* number of the extra field */
       FLAG_DESCRIPTOR = 8,   /* CRC-32 and sizes follow the data */
       BEHIND_32 = UINT16_MAX /* a number of 16 bits that stands elsewhere */
};

static bool is_record(const uint8_t *bytes, char third, char fourth) {
    return bytes[0] == 'P' && bytes[1] == 'K' && bytes[2] == third && bytes[3] == fourth;
}

/* --- the end of the archive --- */

struct directory {
    uint64_t begin, bytes, count, end; /* end: where what follows it begins */
};

static int find_end(size_t *at, const struct zip *zip, struct error *error) {
    for (size_t comment = 0; comment <= MOST_COMMENT && comment + END <= zip->length; comment++) {
        *at = zip->length - END - comment;
        const uint8_t *record = zip->bytes + *at;
        if (is_record(record, 5, 6) && bytes_little(record + 20, 2) == comment) return OK;
    }
    return error_set(error, ERROR_FILE, "%s: found no zip archive, or one that is cut (no end record)",
                     zip->name);
}

/* The records of 64 bits in front of the end record, where there are any. */
static int read_end_64(struct directory *directory, const struct zip *zip, size_t end, struct error *error) {
    if (end < LOCATOR_64 || !is_record(zip->bytes + end - LOCATOR_64, 6, 7)) return OK;
    const uint64_t at = bytes_little(zip->bytes + end - LOCATOR_64 + 8, 8);
    if (end < LOCATOR_64 + END_64 || at > end - LOCATOR_64 - END_64 || !is_record(zip->bytes + at, 6, 6))
        return error_set(error, ERROR_FILE,
                         "%s: damaged zip archive: the zip64 end record is not where it is said", zip->name);
    const uint8_t *record = zip->bytes + at;
    directory->count = bytes_little(record + 32, 8);
    directory->bytes = bytes_little(record + 40, 8);
    directory->begin = bytes_little(record + 48, 8);
    directory->end = at;
    return OK;
}

static int read_end(struct directory *directory, const struct zip *zip, struct error *error) {
    size_t end = 0;
    RETURN_IF(find_end(&end, zip, error));
    const uint8_t *record = zip->bytes + end;
    *directory = (struct directory){.count = bytes_little(record + 10, 2),
                                    .bytes = bytes_little(record + 12, 4),
                                    .begin = bytes_little(record + 16, 4),
                                    .end = end};
    if (directory->count == BEHIND_32 || directory->bytes == UINT32_MAX || directory->begin == UINT32_MAX)
        RETURN_IF(read_end_64(directory, zip, end, error));
    if (directory->begin > directory->end || directory->bytes > directory->end - directory->begin ||
        directory->count > directory->bytes / ENTRY || directory->count > INT_MAX)
        return error_set(error, ERROR_FILE,
                         "%s: damaged zip archive: found a directory of %llu members in %llu bytes at %llu",
                         zip->name, (unsigned long long)directory->count,
                         (unsigned long long)directory->bytes, (unsigned long long)directory->begin);
    return OK;
}

/* --- one member --- */

static int wrong_member(const struct zip *zip, const struct zip_member *member, const char *what,
                        struct error *error) {
    const int shown = member->name_bytes < 60 ? (int)member->name_bytes : 60;
    return error_set(error, ERROR_FILE, "%s: damaged zip archive: member \"%.*s\": %s", zip->name, shown,
                     member->name, what);
}

/* The numbers of 64 bits, in this order, of those that are said to be there. False: they are not. */
static bool read_extra(const uint8_t *extra, size_t bytes, uint64_t *const *wide, int count) {
    for (size_t at = 0; bytes - at >= 4;) {
        const size_t size = (size_t)bytes_little(extra + at + 2, 2);
        at += 4;
        if (size > bytes - at) return false;
        if (bytes_little(extra + at - 4, 2) != ZIP64_FIELD) {
            at += size;
            continue;
        }
        if (size < 8 * (size_t)count) return false;
        for (int i = 0; i < count; i++) *wide[i] = bytes_little(extra + at + 8 * (size_t)i, 8);
        return true;
    }
    return count == 0;
}

/* Puts the sizes of a record, and its place if there is one, where they belong. */
static bool read_sizes(struct zip_member *member, const uint8_t *sizes, const uint8_t *place,
                       const uint8_t *extra, size_t extra_bytes) {
    uint64_t *wide[3];
    int count = 0;
    member->packed = bytes_little(sizes, 4);
    member->unpacked = bytes_little(sizes + 4, 4);
    if (place) member->begin = bytes_little(place, 4);
    if (member->unpacked == UINT32_MAX) wide[count++] = &member->unpacked;
    if (member->packed == UINT32_MAX) wide[count++] = &member->packed;
    if (place && member->begin == UINT32_MAX) wide[count++] = &member->begin;
    return read_extra(extra, extra_bytes, wide, count);
}

/* What follows the data, if the flags say so: a mark that may be missing, the CRC-32, and both sizes, of 32
 * or 64 bits. */
static bool has_descriptor(const struct zip *zip, const struct zip_member *member, uint64_t limit) {
    for (int marked = 0; marked < 2; marked++) {
        for (int wide = 4; wide <= 8; wide += 4) {
            const uint64_t bytes = (uint64_t)(4 * marked + 4 + 2 * wide);
            const uint8_t *at = zip->bytes + member->end;
            if (limit - member->end < bytes || (marked && !is_record(at, 7, 8))) continue;
            at += 4 * marked;
            if (bytes_little(at, 4) == member->crc && bytes_little(at + 4, wide) == member->packed &&
                bytes_little(at + 4 + wide, wide) == member->unpacked)
                return true;
        }
    }
    return false;
}

/* Holds the member's own header against what the directory says of it, and finds its end. */
static int read_local(struct zip_member *member, const struct zip *zip, uint64_t limit, struct error *error) {
    struct zip_member own = {0};
    if (limit < LOCAL || member->begin > limit - LOCAL || !is_record(zip->bytes + member->begin, 3, 4))
        return wrong_member(zip, member, "no header where it is said to begin", error);
    const uint8_t *local = zip->bytes + member->begin;
    const size_t name_bytes = (size_t)bytes_little(local + 26, 2),
                 extra_bytes = (size_t)bytes_little(local + 28, 2);
    const uint64_t data = member->begin + LOCAL + name_bytes + extra_bytes;
    if (data > limit || name_bytes != member->name_bytes ||
        memcmp(local + LOCAL, member->name, name_bytes) != 0)
        return wrong_member(zip, member, "its header has another name", error);
    if (member->packed > limit - data) return wrong_member(zip, member, "longer than the archive", error);
    member->end = data + member->packed;
    if ((int)bytes_little(local + 8, 2) != member->method)
        return wrong_member(zip, member, "its header has another method", error);
    if (bytes_little(local + 6, 2) & FLAG_DESCRIPTOR)
        return has_descriptor(zip, member, limit)
                   ? OK
                   : wrong_member(zip, member, "other sizes or another CRC-32 behind its data", error);
    if (!read_sizes(&own, local + 18, NULL, local + LOCAL + name_bytes, extra_bytes) ||
        own.packed != member->packed || own.unpacked != member->unpacked ||
        (uint32_t)bytes_little(local + 14, 4) != member->crc)
        return wrong_member(zip, member, "its header has other sizes or another CRC-32", error);
    return OK;
}

/* Reads the entry at *at and moves on to the next. */
static int read_entry(struct zip_member *member, const struct zip *zip, const struct directory *directory,
                      uint64_t *at, struct error *error) {
    const uint8_t *entry = zip->bytes + *at;
    const uint64_t left = directory->begin + directory->bytes - *at;
    const size_t bytes = left < ENTRY
                             ? 0
                             : ENTRY + (size_t)bytes_little(entry + 28, 2) +
                                   (size_t)bytes_little(entry + 30, 2) + (size_t)bytes_little(entry + 32, 2);
    if (bytes == 0 || bytes > left || !is_record(entry, 1, 2))
        return error_set(error, ERROR_FILE,
                         "%s: damaged zip archive: found no entry at byte %llu of its directory", zip->name,
                         (unsigned long long)(*at - directory->begin));
    *member = (struct zip_member){.name = (const char *)entry + ENTRY,
                                  .name_bytes = (size_t)bytes_little(entry + 28, 2),
                                  .flags = (int)bytes_little(entry + 8, 2),
                                  .method = (int)bytes_little(entry + 10, 2),
                                  .crc = (uint32_t)bytes_little(entry + 16, 4)};
    if (!read_sizes(member, entry + 20, entry + 42, entry + ENTRY + member->name_bytes,
                    (size_t)bytes_little(entry + 30, 2)))
        return wrong_member(zip, member, "no sizes of 64 bits where they are said to be", error);
    *at += bytes;
    RETURN_IF(read_local(member, zip, directory->begin, error));
    if (member->method == ZIP_STORED && member->packed != member->unpacked)
        return wrong_member(zip, member, "stored, with two different sizes", error);
    return OK;
}

/* --- all of them --- */

static int compare_places(const void *a, const void *b) {
    const struct zip_member *one = a, *other = b;
    return (one->begin > other->begin) - (one->begin < other->begin);
}

static bool same_name(const struct zip_member *a, const struct zip_member *b) {
    return a->name_bytes == b->name_bytes && memcmp(a->name, b->name, a->name_bytes) == 0;
}

static int check_apart(const struct zip *zip, struct error *error) {
    for (int i = 1; i < zip->count; i++) {
        if (zip->members[i].begin < zip->members[i - 1].end)
            return wrong_member(zip, &zip->members[i], "overlaps another one", error);
        for (int j = 0; j < i; j++)
            if (same_name(&zip->members[i], &zip->members[j]))
                return wrong_member(zip, &zip->members[i], "two of that name", error);
    }
    return OK;
}

int zip_archive_open(struct zip *zip, const char *name, const uint8_t *bytes, size_t length,
                     struct error *error) {
    enum { MOST_MEMBERS = 4096 };
    struct directory directory;
    *zip = (struct zip){.name = name, .bytes = bytes, .length = length};
    RETURN_IF(read_end(&directory, zip, error));
    if (directory.count > MOST_MEMBERS)
        return error_set(error, ERROR_FILE, "%s: found %llu members, expected at most %d", name,
                         (unsigned long long)directory.count, MOST_MEMBERS);
    RETURN_IF(memory_array(&zip->members, directory.count, "members of an archive", error));
    uint64_t at = directory.begin;
    for (uint64_t i = 0; i < directory.count; i++)
        RETURN_IF(read_entry(&zip->members[zip->count++], zip, &directory, &at, error));
    if (at != directory.begin + directory.bytes)
        return error_set(error, ERROR_FILE,
                         "%s: damaged zip archive: the directory has %llu bytes more than its %d members",
                         name, (unsigned long long)(directory.begin + directory.bytes - at), zip->count);
    qsort(zip->members, (size_t)zip->count, sizeof *zip->members, compare_places);
    return check_apart(zip, error);
}

void zip_archive_close(struct zip *zip) {
    memory_free(zip->members);
    *zip = (struct zip){0};
}
