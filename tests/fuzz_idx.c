/* Fuzzing of the idx format and of gzip in memory: clang -fsanitize=fuzzer,address over this file and the
 * library. The input is a file of images and one of labels, cut where its first two bytes say. Says at the
 * end how many inputs were accepted. */
#include <stdio.h>
#include <stdlib.h>
#include "../src/base/memory.h"
#include "../src/data/gunzip.h"
#include "../src/data/idx.h"

static long pairs, packed, inputs;

static void report(void) {
    fprintf(stderr, "accepted: %ld pairs of files, %ld gzip streams of %ld inputs\n", pairs, packed, inputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    enum { SIDE = 4, CLASSES = 10, LIMIT = 1 << 16 };
    if (inputs++ == 0) atexit(report);
    if (bytes < 2) return 0;
    const size_t rest = bytes - 2, wanted = (size_t)(data[0] << 8 | data[1]),
                 cut = wanted < rest ? wanted : rest;
    const struct idx_file images = {.name = "images", .bytes = data + 2, .length = cut},
                          labels = {.name = "labels", .bytes = data + 2 + cut, .length = rest - cut};
    struct examples examples;
    struct error error = {0};
    void *block = NULL;
    if (idx_examples(&examples, &block, &images, &labels, SIDE, SIDE, CLASSES, &error) == OK) {
        pairs++;
        long sum = 0;
        for (int i = 0; i < examples.count; i++) {
            if (examples.labels[i] < 0 || examples.labels[i] >= CLASSES) abort();
            for (int p = 0; p < SIDE * SIDE; p++) sum += examples.bytes[i * SIDE * SIDE + p];
        }
        if (sum < 0) abort();
    } else if (!*error.words) {
        abort();
    }
    memory_free(block);
    char *out = NULL;
    size_t got;
    error = (struct error){0};
    if (data_gunzip("f", data + 2, rest, LIMIT, &out, &got, &error) == OK) {
        packed++;
        if (got > LIMIT || out[got] != 0) abort();
    }
    memory_free(out);
    return 0;
}
