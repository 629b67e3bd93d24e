/* Arrays and archives of them, made in memory as NumPy and zipfile write them. */
#ifndef TRAINER_TESTS_NPZ_SAMPLE_H
#define TRAINER_TESTS_NPZ_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* out = an array of version `major`.0; returns its bytes. */
static inline size_t sample_npy(uint8_t *out, int major, const char *header, const void *items,
                                size_t bytes) {
    const size_t prefix = major == 1 ? 10 : 12, text = strlen(header), unpadded = prefix + text + 1,
                 padding = (64 - unpadded % 64) % 64, head = text + padding + 1;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)major;
    out[7] = 0;
    for (size_t b = 0; b < prefix - 8; b++) out[8 + b] = (uint8_t)(head >> (8 * b));
    memcpy(out + prefix, header, text);
    memset(out + prefix + text, ' ', padding);
    out[prefix + head - 1] = '\n';
    if (bytes > 0) memcpy(out + prefix + head, items, bytes);
    return prefix + head + bytes;
}

enum { SAMPLE_MEMBERS = 8, SAMPLE_DIRECTORY = 100 * SAMPLE_MEMBERS };

struct sample_zip {
    uint8_t *out;
    size_t used;
    uint8_t directory[SAMPLE_DIRECTORY];
    size_t directory_bytes;
    int count;
};

static inline void sample_number(uint8_t *out, int bytes, uint64_t value) {
    for (int b = 0; b < bytes; b++) out[b] = (uint8_t)(value >> (8 * b));
}

/* Adds a member; a deflated one is one stored block, up to 65535 bytes. */
static inline void sample_add(struct sample_zip *zip, const char *name, const uint8_t *bytes, size_t count,
                              bool deflated) {
    const size_t packed = count + (deflated ? 5 : 0), name_bytes = strlen(name), begin = zip->used;
    uint8_t *local = zip->out + begin, *entry = zip->directory + zip->directory_bytes, *data;
    memset(local, 0, 30);
    memcpy(local, "PK\3\4\x14", 5);
    sample_number(local + 8, 2, deflated ? 8 : 0);
    sample_number(local + 14, 4, crc32(0, bytes, (uInt)count));
    sample_number(local + 18, 4, packed);
    sample_number(local + 22, 4, count);
    sample_number(local + 26, 2, name_bytes);
    memcpy(local + 30, name, name_bytes);
    data = local + 30 + name_bytes;
    if (deflated) {
        *data = 1; /* the last block, stored */
        sample_number(data + 1, 2, count);
        sample_number(data + 3, 2, ~count);
        data += 5;
    }
    memcpy(data, bytes, count);
    zip->used += 30 + name_bytes + packed;
    memset(entry, 0, 46);
    memcpy(entry, "PK\1\2\x14\0", 6);
    memcpy(entry + 6, local + 4, 26);
    sample_number(entry + 42, 4, begin);
    memcpy(entry + 46, name, name_bytes);
    zip->directory_bytes += 46 + name_bytes;
    zip->count++;
}

/* Returns the archive's bytes. */
static inline size_t sample_end(struct sample_zip *zip) {
    uint8_t *end = zip->out + zip->used + zip->directory_bytes;
    memcpy(zip->out + zip->used, zip->directory, zip->directory_bytes);
    memset(end, 0, 22);
    memcpy(end, "PK\5\6", 4);
    sample_number(end + 8, 2, (uint64_t)zip->count);
    sample_number(end + 10, 2, (uint64_t)zip->count);
    sample_number(end + 12, 4, zip->directory_bytes);
    sample_number(end + 16, 4, zip->used);
    return zip->used + zip->directory_bytes + 22;
}

#endif
