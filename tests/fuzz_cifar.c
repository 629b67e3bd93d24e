/* Fuzzing of the CIFAR reader: clang -fsanitize=fuzzer,address over this file and the library. The first two
 * bytes say how many records are expected and how the rest is stretched: what follows is repeated up to the
 * length of that many records, so that short inputs can be whole files; a byte more or less by the second
 * one. Says at the end how many were accepted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/data/cifar.h"

static long accepted, inputs;

static void report(void) {
    fprintf(stderr, "accepted: %ld of %ld inputs\n", accepted, inputs);
    if (accepted == 0) _Exit(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    enum { MOST = 4 };
    if (inputs++ == 0) atexit(report);
    if (bytes < 3) return 0;
    const int records = 1 + data[0] % MOST;
    const size_t whole = (size_t)records * CIFAR_RECORD, rest = bytes - 2;
    const size_t length = data[1] < 128 ? whole : data[1] < 160 ? whole + data[1] - 144 : rest;
    uint8_t *copy = NULL, *pixels = NULL;
    int *labels = NULL;
    struct error error = {0};
    if (memory_zeroed((void **)&copy, length, 1, "file", &error) == OK &&
        memory_zeroed((void **)&pixels, (size_t)records, CIFAR_PIXELS, "pixels", &error) == OK &&
        memory_zeroed((void **)&labels, (size_t)records, sizeof *labels, "labels", &error) == OK) {
        for (size_t i = 0; i < length; i++) copy[i] = data[2 + i % rest];
        const struct cifar_file file = {.name = "f", .bytes = copy, .length = length};
        if (cifar_parse(&file, records, pixels, labels, &error) == OK) {
            accepted++;
            if (length != whole) abort();
            for (int r = 0; r < records; r++)
                if (labels[r] < 0 || labels[r] >= CIFAR_CLASSES || labels[r] != copy[r * CIFAR_RECORD])
                    abort();
            if (memcmp(&pixels[(records - 1) * CIFAR_PIXELS + CIFAR_PIXELS - 1], &copy[whole - 1], 1) != 0)
                abort();
        } else if (!*error.words) {
            abort();
        }
    }
    memory_free(copy);
    memory_free(pixels);
    memory_free(labels);
    return 0;
}
