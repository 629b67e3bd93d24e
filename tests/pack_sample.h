/* Packs made in memory, with check sums that are right whatever their description says. */
#ifndef TRAINER_TESTS_PACK_SAMPLE_H
#define TRAINER_TESTS_PACK_SAMPLE_H

#include <stdint.h>
#include <string.h>
#include "../src/base/crc32c.h"

enum { SAMPLE_PAGE = 4096, SAMPLE_BLOCK = 1 << 20 };

static inline void pack_number(uint8_t *at, size_t bytes, uint64_t number) {
    memcpy(at, &number, bytes);
}

/* out = a pack of the data, which begin at SAMPLE_PAGE, and the description; returns its bytes. `out` is on a
 * boundary of 64 bytes. */
static inline size_t sample_pack(uint8_t *out, const char *about, size_t about_bytes, const uint8_t *data,
                                 size_t data_bytes) {
    const size_t blocks = (data_bytes + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK, about_at = SAMPLE_PAGE + data_bytes,
                 sums_at = (about_at + about_bytes + 3) / 4 * 4, length = sums_at + 4 * blocks;
    memset(out, 0, SAMPLE_PAGE);
    memcpy(out, "\x89PACK\r\n\x1a", 8);
    memcpy(out + SAMPLE_PAGE, data, data_bytes);
    memcpy(out + about_at, about, about_bytes);
    memset(out + about_at + about_bytes, 0, sums_at - about_at - about_bytes);
    for (size_t b = 0; b < blocks; b++) {
        const size_t left = data_bytes - b * SAMPLE_BLOCK, count = left < SAMPLE_BLOCK ? left : SAMPLE_BLOCK;
        pack_number(out + sums_at + 4 * b, 4, crc32c(0, data + b * SAMPLE_BLOCK, count));
    }
    pack_number(out + 8, 4, 1);
    pack_number(out + 16, 8, length);
    pack_number(out + 24, 8, about_at);
    pack_number(out + 32, 8, about_bytes);
    pack_number(out + 40, 8, sums_at);
    pack_number(out + 48, 4, crc32c(0, about, about_bytes));
    pack_number(out + 52, 4, crc32c(0, out + sums_at, 4 * blocks));
    pack_number(out + 56, 4, SAMPLE_BLOCK);
    pack_number(out + 12, 4, crc32c(0, out + 16, 48));
    return length;
}

/* Four and two examples of 6 bytes: images of [1, 2, 3] and rows of a table in two classes, and rows with two
 * labels or two values each. */
enum { SAMPLE_DATA = 256 };
#define SAMPLE_PARTS(labels)                                                                                 \
    "{\"made_of\":\"npz\",\"train\":{\"examples\":4,\"values\":4096,\"" labels "\":4224},"                   \
    "\"test\":{\"examples\":2,\"values\":4160,\"" labels "\":4288},\"values\":\"bytes\",\"scale\":0.5,"      \
    "\"measured\":false,\"whitened\":false,\"fit\":\"crop\",\"classes\":[\"a\",\"b\"],"
#define SAMPLE_ROWS "\"shape\":[6],\"settings\":{}"
static const char sample_images[] =
    SAMPLE_PARTS("labels") "\"shape\":[1,2,3],\"image\":[1,2,3],"
                           "\"settings\":{\"augment\":\"none\",\"flip\":\"1\"}}",
                  sample_table[] = SAMPLE_PARTS("labels") SAMPLE_ROWS
                  ",\"features\":[\"p\",\"q\",\"r\",\"s\",\"t\",\"u\"],"
                  "\"mean\":[1,2,3,4,5,6],\"deviation\":[1,1,1,1,1,2]}",
                  sample_labels[] = SAMPLE_PARTS("targets") "\"task\":\"labels\"," SAMPLE_ROWS "}",
                  sample_values[] =
                      SAMPLE_PARTS("targets") "\"task\":\"values\"," SAMPLE_ROWS
                                              ",\"target_mean\":[0.5,7],\"target_deviation\":[2,3]}";
static const char *const pack_samples[] = {sample_images, sample_table, sample_labels, sample_values};
enum { PACK_SAMPLES = sizeof pack_samples / sizeof *pack_samples };

/* The data of a sample: labels are classes, or 0 and 1 as floats. */
static inline void sample_data(uint8_t data[SAMPLE_DATA], const char *about) {
    const int labels[] = {0, 1, 1, 0};
    const float targets[] = {0, 1, 1, 1, 0, 0, 1, 0};
    memset(data, 0, SAMPLE_DATA);
    for (int i = 0; i < 24; i++) data[i] = (uint8_t)(10 * i);
    for (int i = 0; i < 12; i++) data[64 + i] = (uint8_t)(100 + i);
    if (strstr(about, "\"targets\"")) {
        memcpy(data + 128, targets, sizeof targets);
        memcpy(data + 192, targets, 4 * sizeof *targets);
    } else {
        memcpy(data + 128, labels, sizeof labels);
        memcpy(data + 192, labels, 2 * sizeof *labels);
    }
}

#endif
