/* Fuzzing of the CIFAR reader: clang -fsanitize=fuzzer,address over this file and the library. The first two
 * bytes say how many records are expected and how the rest is stretched: what follows is repeated up to the
 * length of that many records, so that short inputs can be whole files; a byte more or less by the second
 * one. */
#include "../src/base/memory.h"
#include "../src/data/cifar.h"
#include "fuzz.h"

static const char *const kinds[] = {"files", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    enum { MOST = 4 };
    fuzz_count(kinds);
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
            fuzz.accepted[0]++;
            fuzz_require(length == whole);
            for (int r = 0; r < records; r++)
                fuzz_require(labels[r] >= 0 && labels[r] < CIFAR_CLASSES &&
                             labels[r] == copy[r * CIFAR_RECORD]);
            fuzz_require(pixels[records * CIFAR_PIXELS - 1] == copy[whole - 1]);
        } else {
            fuzz_require(*error.words != '\0');
        }
    }
    memory_free(copy);
    memory_free(pixels);
    memory_free(labels);
    return 0;
}
