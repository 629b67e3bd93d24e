/* Fuzzing of packs: clang -fsanitize=fuzzer,address over this file and the library. The input is a
 * description and data, which get check sums that are right, so that what is behind these is reached; or,
 * where its first byte is odd, a file as it is. */
#include <math.h>
#include "../src/base/memory.h"
#include "../src/data/pack.h"
#include "fuzz.h"
#include "pack_sample.h"

enum { READ, CHECKED };
static const char *const names[] = {"packs", "whole ones", NULL};

static void check_labels(const struct dataset *set, const struct examples *examples) {
    const bool classes = set->task == TASK_CLASSES;
    fuzz_require(classes ? examples->labels && !examples->targets : examples->outputs == set->classes);
    for (int i = 0; classes && i < examples->count; i++)
        fuzz_require(examples->labels[i] >= 0 && examples->labels[i] < set->classes);
    for (int i = 0; !classes && i < examples->count * set->classes; i++)
        fuzz_require(isfinite(examples->targets[i]));
}

static void check_part(const struct dataset *set, const struct examples *examples,
                       const struct pack_images *images) {
    const size_t row = shape_count(&images->stored) * (examples->bytes ? 1 : sizeof(float)),
                 bytes = row * (size_t)examples->count;
    const uint8_t *rows = examples_rows(examples);
    unsigned sum = 0;
    fuzz_require(examples->count >= 1);
    check_labels(set, examples);
    for (size_t i = 0; i < bytes; i++) sum += rows[i];
    fuzz_require(sum + 1 > 0 || bytes > 0);
}

static void fuzz_file(const uint8_t *bytes, size_t length) {
    struct dataset set = {0};
    struct pack_images images;
    struct error error = {0};
    if (pack_read(&set, &images, "f", bytes, length, &error) == OK) {
        fuzz.accepted[READ]++;
        fuzz_require(set.classes >= 1 && set.class_names && set.train.features >= 1);
        check_part(&set, &set.train, &images);
        check_part(&set, &set.test, &images);
        if (!images.any) fuzz.accepted[CHECKED] += pack_check(&set, &error) == OK;
    } else {
        fuzz_require(error.code == ERROR_FILE && *error.words);
    }
    dataset_close(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    uint8_t *file = NULL;
    struct error error = {0};
    fuzz_count(names);
    if (bytes < 1 + SAMPLE_DATA) return 0;
    if (memory_array(&file, bytes + 2 * SAMPLE_PAGE, "a pack", &error) != OK) return 0;
    size_t length = bytes - 1;
    if (data[0] & 1)
        memcpy(file, data + 1, length);
    else
        length = sample_pack(file, (const char *)data + 1 + SAMPLE_DATA, bytes - 1 - SAMPLE_DATA, data + 1,
                             SAMPLE_DATA);
    fuzz_file(file, length);
    memory_free(file);
    return 0;
}

static size_t make_sample(uint8_t *data, unsigned seed) {
    const char *about = pack_samples[seed / 2 % PACK_SAMPLES];
    data[0] = 0;
    sample_data(data + 1, about);
    memcpy(data + 1 + SAMPLE_DATA, about, strlen(about));
    return 1 + SAMPLE_DATA + strlen(about);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 8 == 0 && most >= 4096) {
        bytes = make_sample(data, seed / 8);
        if (seed / 8 % 16 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
