/* Fuzzing of the idx format: clang -fsanitize=fuzzer,address over this file and the library. The input is a
 * file of images and one of labels, cut where its first two bytes say. Starts from valid pairs, and mends
 * magic numbers, sizes and the cut after most mutations, since nothing beyond them would be reached
 * otherwise. */
#include <string.h>
#include "../src/base/memory.h"
#include "../src/data/idx.h"
#include "fuzz.h"

enum { SIDE = 4, PIXELS = SIDE * SIDE, CLASSES = 10, CUT = 2, IMAGES_HEAD = 16, LABELS_HEAD = 8 };
enum { PAIRS, LONE };
static const char *const names[] = {"pairs of files", "single files", NULL};

static void check_pair(const struct idx_file *images, const struct idx_file *labels) {
    struct examples examples;
    struct error error = {0};
    void *block = NULL;
    if (idx_examples(&examples, &block, images, labels, SIDE, SIDE, CLASSES, &error) == OK) {
        fuzz.accepted[PAIRS]++;
        fuzz_require((size_t)examples.count * PIXELS + IMAGES_HEAD == images->length);
        fuzz_require((size_t)examples.count + LABELS_HEAD == labels->length);
        fuzz_require(memcmp(images->bytes, "\0\0\10\3", 4) == 0 &&
                     memcmp(labels->bytes, "\0\0\10\1", 4) == 0);
        for (int i = 0; i < examples.count; i++)
            fuzz_require(examples.labels[i] == labels->bytes[LABELS_HEAD + i] &&
                         examples.labels[i] < CLASSES);
        fuzz_require(memcmp(examples.bytes, images->bytes + IMAGES_HEAD, images->length - IMAGES_HEAD) == 0);
    } else {
        fuzz_require(error.code == ERROR_FILE && *error.words);
    }
    memory_free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_count(names);
    if (bytes < CUT) return 0;
    const size_t rest = bytes - CUT, wanted = (size_t)(data[0] << 8 | data[1]),
                 cut = wanted < rest ? wanted : rest;
    const struct idx_file images = {.name = "images", .bytes = data + CUT, .length = cut},
                          labels = {.name = "labels", .bytes = data + CUT + cut, .length = rest - cut},
                          both = {.name = "both", .bytes = data + CUT, .length = rest};
    struct idx idx;
    struct error error = {0};
    check_pair(&images, &labels);
    if (idx_parse(&idx, &both, data[0] & 1 ? IDX_IMAGES : IDX_LABELS, &error) == OK) {
        size_t values = 1;
        fuzz.accepted[LONE]++;
        for (int d = 0; d < idx.rank; d++) values *= (size_t)idx.dims[d];
        fuzz_require(idx.values + values == data + bytes);
    } else {
        fuzz_require(error.code == ERROR_FILE && *error.words);
    }
    return 0;
}

static uint8_t *put_head(uint8_t *at, uint32_t magic, const uint32_t *sizes) {
    const uint32_t numbers[] = {magic, sizes[0], sizes[1], sizes[2]};
    for (unsigned i = 0; i <= (magic & 0xff); i++, at += 4)
        for (int byte = 0; byte < 4; byte++) at[byte] = (uint8_t)(numbers[i] >> (24 - 8 * byte));
    return at;
}

/* Heads and cut as they must be for as many examples as there is room for, with `less` labels less; returns
 * the bytes that are then used. */
static size_t recover(uint8_t *data, size_t bytes, uint32_t less) {
    const size_t heads = CUT + IMAGES_HEAD + LABELS_HEAD;
    const uint32_t count = bytes > heads ? (uint32_t)((bytes - heads) / (PIXELS + 1)) : 0;
    const size_t cut = IMAGES_HEAD + (size_t)count * PIXELS;
    if (count <= less || cut > UINT16_MAX) return bytes;
    data[0] = (uint8_t)(cut >> 8);
    data[1] = (uint8_t)cut;
    put_head(data + CUT, IDX_IMAGES, (const uint32_t[]){count, SIDE, SIDE});
    put_head(data + CUT + cut, IDX_LABELS, (const uint32_t[]){count - less, 0, 0});
    return heads + (size_t)count * (PIXELS + 1) - less;
}

/* One to four examples; or one file alone. */
static size_t make_sample(uint8_t *data, size_t most, unsigned seed) {
    const uint32_t count = 1 + seed % 4;
    size_t bytes = CUT + IMAGES_HEAD + LABELS_HEAD + count * (PIXELS + 1);
    if (bytes > most) return 0;
    for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)(i * seed % CLASSES);
    bytes = recover(data, bytes, 0);
    if (seed / 4 % 4 > 0) return bytes;
    data[0] = (uint8_t)(seed / 16 % 2);
    uint8_t *end = put_head(data + CUT, data[0] ? IDX_IMAGES : IDX_LABELS, (const uint32_t[]){count, 2, 3});
    return (size_t)(end - data) + count * (data[0] ? 6 : 1);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0) {
        const size_t made = make_sample(data, most, seed / 16);
        if (made > 0) return made;
    }
    bytes = LLVMFuzzerMutate(data, bytes, most);
    return seed / 16 % 4 == 0 ? bytes : recover(data, bytes, seed / 64 % 8 == 0);
}
