/* Fuzzing of safetensors: clang -fsanitize=fuzzer,address over this file and the library. Starts from valid
 * files that our own writer makes, and mends the header's length and the checksum after most mutations, since
 * nothing beyond them would be reached otherwise. Says at the end how many inputs were accepted, and fails
 * when none was beside the samples. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "../src/formats/safetensors.h"

enum { SAMPLES = 4, SAMPLE_BYTES = 1024 };

static struct {
    uint8_t bytes[SAMPLE_BYTES];
    size_t used;
} samples[SAMPLES];
static long accepted, inputs;

static void require(int condition) {
    if (!condition) abort();
}

static void report(void) {
    fprintf(stderr, "accepted: %ld of %ld inputs\n", accepted, inputs);
    if (inputs > 1000 && accepted == 0) _exit(1);
}

/* Whatever is accepted can be read to its last float and text, and writes a file that is accepted with the
 * same in it. */
static void check_content(const struct safetensors *content) {
    unsigned sum = 0;
    for (int i = 0; i < content->tensor_count; i++) {
        const struct tensor_entry *tensor = &content->tensors[i];
        const size_t floats = shape_count(&tensor->shape);
        require((uintptr_t)tensor->values % sizeof(float) == 0);
        for (size_t n = 0; n < floats * sizeof(float); n++) sum += ((const uint8_t *)tensor->values)[n];
        require(safetensors_tensor(content, tensor->name) == tensor);
    }
    for (int i = 0; i < content->text_count; i++)
        require(safetensors_text(content, content->texts[i].name) == content->texts[i].text);
    char *bytes = NULL;
    size_t used = 0;
    FILE *file = open_memstream(&bytes, &used);
    struct error error = {0};
    require(file && safetensors_write(file, content, sum % 2 == 0, &error) == OK && fclose(file) == 0);
    struct safetensors again;
    require(safetensors_parse("again", bytes, used, &again, &error) == OK);
    require(again.tensor_count == content->tensor_count);
    for (int i = 0; i < again.tensor_count; i++) {
        const struct tensor_entry *a = &again.tensors[i], *b = &content->tensors[i];
        require(strcmp(a->name, b->name) == 0 && shape_equal(&a->shape, &b->shape));
        require(memcmp(a->values, b->values, shape_count(&a->shape) * sizeof(float)) == 0);
    }
    safetensors_free(&again);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    struct safetensors content;
    struct error error = {0};
    inputs++;
    if (safetensors_parse("f", (const char *)data, bytes, &content, &error) == OK) {
        accepted++;
        check_content(&content);
    } else {
        require(error.code == ERROR_FILE && *error.words);
        require(content.tensor_count == 0 && content.blocks[2] == NULL);
    }
    safetensors_free(&content);
    return 0;
}

static void make_sample(int n) {
    static const float values[] = {1, -2, 3.5f, 0, 5, 6};
    struct tensor_entry tensors[] = {{.name = "dense1/kernel", .shape = SHAPE(2, 3), .values = values},
                                     {.name = "dense1/bias", .shape = SHAPE(1), .values = values},
                                     {.name = "scale \"\\\n", .shape = SCALAR, .values = values}};
    struct text_entry texts[] = {{"step", "17"}, {"model", "mlp:hidden=3"}};
    const struct safetensors content = {
        .tensors = tensors, .tensor_count = n, .texts = texts, .text_count = n % 3};
    struct error error = {0};
    FILE *file = fmemopen(samples[n].bytes, SAMPLE_BYTES, "wb");
    require(file && safetensors_write(file, &content, n != 2, &error) == OK && fflush(file) == 0);
    samples[n].used = (size_t)ftell(file);
    fclose(file);
    struct safetensors read;
    require(safetensors_parse("sample", (const char *)samples[n].bytes, samples[n].used, &read, &error) ==
            OK);
    safetensors_free(&read);
}

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerInitialize(int *count, char ***arguments) {
    (void)count, (void)arguments;
    for (int i = 0; i < SAMPLES; i++) make_sample(i);
    atexit(report);
    return 0;
}

/* Makes the length that of the header as it is now, and the checksum true. */
static void recover(uint8_t *data, size_t bytes, const uint8_t *header_end) {
    if (bytes < 10) return;
    const uint64_t length = (uint64_t)(header_end - data) - 8;
    if (length <= bytes - 8) memcpy(data, &length, sizeof length);
    uint8_t *digits = memmem(data, bytes, "\"checksum\":\"", 12);
    if (!digits || (size_t)(data + bytes - digits) < 20) return;
    char text[9];
    memcpy(digits + 12, "00000000", 8);
    snprintf(text, sizeof text, "%08x", (unsigned)crc32_z(0, data, bytes));
    memcpy(digits + 12, text, 8);
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    const unsigned n = seed % SAMPLES;
    if ((bytes < 16 || seed % 64 == 0) && samples[n].used <= most) {
        memcpy(data, samples[n].bytes, samples[n].used);
        bytes = samples[n].used;
    }
    bytes = LLVMFuzzerMutate(data, bytes, most);
    if (seed / 64 % 4 == 0 || bytes < 10) return bytes;
    const uint8_t *end = memrchr(data, '}', bytes);
    if (!end) return bytes;
    end++;
    while (end < data + bytes && *end == ' ') end++;
    recover(data, bytes, end);
    return bytes;
}
