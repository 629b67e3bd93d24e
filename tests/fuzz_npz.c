/* Fuzzing of NumPy's arrays: clang -fsanitize=fuzzer,address over this file and the library. The first byte
 * of the input chooses whether the rest is an archive or one array. Starts from valid ones of every kind of
 * item. */
#include <math.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/data/npz_examples.h"
#include "fuzz.h"
#include "npz_sample.h"

enum { FILES, ARCHIVES, MEMBERS, SETS };
static const char *const names[] = {"arrays", "archives", "members", "data sets", NULL};

static void fuzz_array(const struct npz_array *array) {
    const struct npy *npy = &array->npy;
    int64_t number;
    fuzz_require(npy->count >= 1 && npy->shape.rank >= 1 && npy->shape.rank <= MAX_RANK);
    for (size_t i = 0; i < npy->count && i < 4096; i++) {
        (void)npy_float(npy, npy->count - 1 - i);
        if (npy->kind != 'f') (void)npy_integer(npy, i, &number);
    }
}

static void check_part(const struct examples *examples, int classes) {
    for (int i = 0; i < examples->count; i++)
        fuzz_require(examples->labels[i] >= 0 && examples->labels[i] < classes);
    if (!examples->bytes)
        for (size_t i = 0; i < (size_t)examples->count * (size_t)examples->features; i++)
            fuzz_require(isfinite(examples->floats[i]));
}

static void fuzz_set(struct npz_pair *train, struct npz_pair *test, bool standardize) {
    const struct split split = {.share = 0.3, .seed = 1};
    struct dataset set = {0};
    struct error error = {0};
    if (npz_examples(&set, train, test, &split, standardize, &error) == OK) {
        fuzz.accepted[SETS]++;
        check_part(&set.train, set.classes);
        check_part(&set.test, set.classes);
    } else {
        fuzz_require(*error.words);
    }
    dataset_close(&set);
}

static void fuzz_archive(const uint8_t *bytes, size_t count, int choice) {
    static const char *const keys[] = {"x_train", "y_train", "x_test", "y_test"};
    struct zip zip;
    struct npz_pair train = {0}, test = {0};
    struct npz_array *const arrays[] = {&train.x, &train.y, &test.x, &test.y};
    struct error error = {0};
    char list[200];
    int code = zip_archive_open(&zip, "f", bytes, count, &error);
    if (code == OK) {
        fuzz.accepted[ARCHIVES]++;
        npz_names(&zip, list, sizeof list);
    }
    for (int i = 0; code == OK && i < 4; i++) {
        const struct zip_member *member = npz_find(&zip, keys[i]);
        if (member) code = npz_open(arrays[i], &zip, member, &error);
        if (!member || code != OK) continue;
        fuzz.accepted[MEMBERS]++;
        fuzz_array(arrays[i]);
    }
    fuzz_require(code == OK || *error.words);
    if (code == OK && train.x.npy.count > 0 && train.y.npy.count > 0)
        fuzz_set(&train, test.x.npy.count > 0 && test.y.npy.count > 0 ? &test : NULL, choice & 2);
    for (int i = 0; i < 4; i++) npz_close(arrays[i]);
    zip_archive_close(&zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_count(names);
    if (bytes < 2) return 0;
    /* Writable, as a file's private pages are. */
    uint8_t *copy = NULL;
    struct error error = {0};
    if (memory_array(&copy, bytes - 1, "a copy", &error) != OK) return 0;
    memcpy(copy, data + 1, bytes - 1);
    struct npz_array array;
    if (data[0] & 1) {
        fuzz_archive(copy, bytes - 1, data[0]);
    } else {
        if (npz_open_file(&array, "f", copy, bytes - 1, &error) == OK) {
            fuzz.accepted[FILES]++;
            fuzz_array(&array);
        } else {
            fuzz_require(*error.words);
        }
        npz_close(&array);
    }
    memory_free(copy);
    return 0;
}

static size_t make_array(uint8_t *out, unsigned seed, int columns, const char *dtype, int item) {
    static const uint8_t items[512] = {0, 1, 0, 2, 1, 3, 0, 0, 1, 1};
    char header[200];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (6,%s), }", dtype,
             seed & 1 ? "True" : "False",
             columns == 1   ? ""
             : columns == 2 ? " 2"
                            : " 2, 2");
    return sample_npy(out, 1 + (int)(seed % 3), header, items,
                      6 * (size_t)item * (size_t)(columns == 3 ? 4 : columns));
}

/* What NumPy would write: `seed` chooses kinds of items, dimensions, packing, and whether there is a test
 * part. */
static size_t make_sample(uint8_t *data, unsigned seed) {
    static const char *const dtypes[] = {"|u1", "<f4", ">f4", "<f2", ">f8",
                                         "<i8", ">u2", "|b1", "|i1", "<u4"};
    static const int bytes[] = {1, 4, 4, 2, 8, 8, 2, 1, 1, 4};
    const unsigned kind = seed % 10, columns = 1 + seed / 10 % 3;
    uint8_t array[1024];
    struct sample_zip zip = {.out = data + 1};
    size_t count = make_array(array, seed / 30, (int)columns, dtypes[kind], bytes[kind]);
    data[0] = (uint8_t)(seed / 60);
    if ((data[0] & 1) == 0) {
        memcpy(data + 1, array, count);
        return count + 1;
    }
    for (int part = 0; part < 2 - (int)(seed / 240 % 2); part++) {
        count = make_array(array, seed / 30, (int)columns, dtypes[kind], bytes[kind]);
        sample_add(&zip, part ? "x_test.npy" : "x_train.npy", array, count, seed / 120 % 2);
        count = make_array(array, 0, 1, "|u1", 1);
        sample_add(&zip, part ? "y_test.npy" : "y_train.npy", array, count, seed / 480 % 2);
    }
    return sample_end(&zip) + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0 && most >= 4096) {
        bytes = make_sample(data, seed / 16);
        if (seed / 16 % 4 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
