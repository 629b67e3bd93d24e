/* cifar10: the record format with every corruption, where files are looked for, and the official files where
 * they are. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <zlib.h>
#include "../../src/data/cifar.h"
#include "../../src/data/dataset.h"
#include "../../src/data/sources.h"
#include "../check.h"

enum { RECORDS = 7, GUARD = 16, FILES = 6, FILE_RECORDS = 10000, FILE_BYTES = FILE_RECORDS * CIFAR_RECORD };

static const char *const names[FILES] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                         "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};

/* --- records in memory --- */

static uint8_t value(int record, int channel, int row, int column) {
    return (uint8_t)(record * 131 + channel * 67 + row * 29 + column * 3);
}

static void make_records(uint8_t *bytes) {
    for (int r = 0; r < RECORDS; r++) {
        *bytes++ = (uint8_t)((3 * r + 9) % CIFAR_CLASSES);
        for (int c = 0; c < CIFAR_CHANNELS; c++)
            for (int y = 0; y < CIFAR_SIDE; y++)
                for (int x = 0; x < CIFAR_SIDE; x++) *bytes++ = value(r, c, y, x);
    }
}

static int parse(const uint8_t *bytes, size_t length, uint8_t *pixels, int *labels, struct error *error) {
    const struct cifar_file file = {.name = "f.bin", .bytes = bytes, .length = length};
    *error = (struct error){0};
    return cifar_parse(&file, RECORDS, pixels, labels, error);
}

static void check_records(void) {
    static uint8_t bytes[RECORDS * CIFAR_RECORD + 1], pixels[RECORDS * CIFAR_PIXELS + GUARD];
    int labels[RECORDS + 1];
    struct error error;
    const size_t whole = RECORDS * CIFAR_RECORD;
    memset(pixels, 77, sizeof pixels);
    labels[RECORDS] = -7;
    make_records(bytes);
    CHECK(parse(bytes, whole, pixels, labels, &error) == OK, "%s", error.words);
    long wrong = 0;
    for (int r = 0; r < RECORDS; r++) {
        CHECK(labels[r] == (3 * r + 9) % CIFAR_CLASSES, "label %d is %d", r, labels[r]);
        for (int y = 0; y < CIFAR_SIDE; y++)
            for (int x = 0; x < CIFAR_SIDE; x++)
                for (int c = 0; c < CIFAR_CHANNELS; c++)
                    wrong += pixels[((r * CIFAR_SIDE + y) * CIFAR_SIDE + x) * CIFAR_CHANNELS + c] !=
                             value(r, c, y, x);
    }
    CHECK(wrong == 0, "%ld pixels", wrong);
    for (int i = 0; i < GUARD; i++) CHECK(pixels[RECORDS * CIFAR_PIXELS + i] == 77, "written outside");
    CHECK(labels[RECORDS] == -7, "label written outside");
    const size_t lengths[] = {0, 1, CIFAR_RECORD, whole - CIFAR_RECORD, whole - 1, whole + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char expected[200];
        snprintf(expected, sizeof expected,
                 "f.bin: found %zu bytes, expected 21511: 7 records of a label and 32 x 32 x 3 pixels",
                 lengths[i]);
        CHECK(parse(bytes, lengths[i], pixels, labels, &error) == ERROR_FILE, "length %zu", lengths[i]);
        CHECK(strcmp(error.words, expected) == 0, "\n found    %s\n expected %s", error.words, expected);
    }
    bytes[4 * CIFAR_RECORD] = 10;
    CHECK(parse(bytes, whole, pixels, labels, &error) == ERROR_FILE, "label 10");
    CHECK(strcmp(error.words, "f.bin: found label 10 in record 5 (counted from 1), expected 0 to 9") == 0,
          "%s", error.words);
}

/* --- files --- */

struct folder {
    char path[64], cifar[96], inner[128], beside[128];
};

static void in(char out[200], const char *folder, const char *name) {
    snprintf(out, 200, "%s/%s", folder, name);
}

/* All black and of class 0, but for the first byte of a pixel and the label of record `record`; takes no room
 * on the disk. */
static void make_file(const char *folder, const char *name, long bytes, int record, uint8_t label) {
    char path[200];
    in(path, folder, name);
    FILE *file = fopen(path, "wb");
    const uint8_t start[2] = {label, 200};
    CHECK(file && ftruncate(fileno(file), bytes) == 0 &&
              fseek(file, (long)record * CIFAR_RECORD, SEEK_SET) == 0 && fwrite(start, 1, 2, file) == 2,
          "%s was not written", path);
    if (file) fclose(file);
}

static void drop_file(const char *folder, const char *name) {
    char path[200];
    in(path, folder, name);
    remove(path);
}

static int open_from(const char *data_dir, struct dataset *dataset, const char *text, struct error *error) {
    struct choice choice;
    *error = (struct error){0};
    *dataset = (struct dataset){0};
    RETURN_IF(plugin_choose(&choice, &dataset_kind, text, error));
    return dataset_open(dataset, &choice, data_dir, error);
}

/* Must not open; the words are `folder`/`name` and then `words`. */
static void check_bad(const struct folder *at, const char *name, const char *words) {
    struct dataset set;
    struct error error;
    char expected[400];
    snprintf(expected, sizeof expected, "%s/%s%s", at->cifar, name, words);
    CHECK(open_from(at->path, &set, "cifar10:take=10001", &error) == ERROR_FILE, "%s", words);
    CHECK(strcmp(error.words, expected) == 0, "\n found    %s\n expected %s", error.words, expected);
}

static void check_content(const struct folder *at) {
    struct dataset set;
    struct error error;
    CHECK(open_from(at->path, &set, "cifar10:augment=none,take=10001", &error) == OK, "%s", error.words);
    if (error.code) return;
    CHECK(set.train.count == 10001 && set.test.count == 10000, "%d and %d", set.train.count, set.test.count);
    CHECK(set.train.features == CIFAR_PIXELS && set.classes == 10, "%d", set.train.features);
    CHECK(set.shape.rank == 3 && set.shape.dims[0] == 32 && set.shape.dims[1] == 32 && set.shape.dims[2] == 3,
          "shape");
    CHECK(strcmp(set.class_names[0], "airplane") == 0 && strcmp(set.class_names[3], "cat") == 0 &&
              strcmp(set.class_names[9], "truck") == 0,
          "%s", set.class_names[3]);
    for (int i = 0; i < set.train.count; i++) {
        const int expected = i == 3 ? 1 : i == 10000 ? 2 : 0;
        CHECK(set.train.labels[i] == expected &&
                  set.train.bytes[(size_t)i * CIFAR_PIXELS] == (expected ? 200 : 0),
              "example %d: class %d", i, set.train.labels[i]);
    }
    CHECK(set.test.labels[9999] == 9 && set.test.bytes[(size_t)9999 * CIFAR_PIXELS] == 200, "test");
    dataset_close(&set);
}

static void make_files(const char *folder) {
    make_file(folder, names[0], FILE_BYTES, 3, 1);
    make_file(folder, names[1], FILE_BYTES, 0, 2);
    make_file(folder, names[5], FILE_BYTES, 9999, 9);
}

static void check_corruptions(const struct folder *at) {
    static const char wrong[] = ", expected 30730000: 10000 records of a label and 32 x 32 x 3 pixels";
    char words[200];
    make_file(at->cifar, names[1], FILE_BYTES - CIFAR_RECORD, 0, 2); /* cut where a record ends */
    snprintf(words, sizeof words, ": found %d bytes%s", FILE_BYTES - CIFAR_RECORD, wrong);
    check_bad(at, names[1], words);
    make_file(at->cifar, names[1], FILE_BYTES + 1, 0, 2);
    snprintf(words, sizeof words, ": found %d bytes%s", FILE_BYTES + 1, wrong);
    check_bad(at, names[1], words);
    make_file(at->cifar, names[1], FILE_BYTES, 9999, 10);
    check_bad(at, names[1], ": found label 10 in record 10000 (counted from 1), expected 0 to 9");
    make_file(at->cifar, names[1], FILE_BYTES, 0, 2);
    make_file(at->cifar, names[5], FILE_BYTES, 0, 255);
    check_bad(at, names[5], ": found label 255 in record 1 (counted from 1), expected 0 to 9");
    make_files(at->cifar);
}

static void check_take(const struct folder *at) {
    struct dataset set;
    struct error error;
    /* Only the files that are needed are read: the others are not even there. */
    drop_file(at->cifar, names[1]);
    CHECK(open_from(at->path, &set, "cifar10:take=10000", &error) == OK && set.train.count == 10000, "%s",
          error.words);
    CHECK(shape_equal(&set.shape, &SHAPE(24, 24, 3)) && set.train.augment.flip == 1 &&
              set.train.augment.standardize == 1,
          "not cut out, flipped and standardized, as it usually is");
    dataset_close(&set);
    make_files(at->cifar);
    CHECK(open_from(at->path, &set, "cifar10:take=20001", &error) == ERROR_FILE &&
              strstr(error.words, "data_batch_3.bin") != NULL,
          "%s", error.words);
    make_file(at->cifar, names[2], FILE_BYTES, 0, 2);
    make_file(at->cifar, names[3], FILE_BYTES, 0, 2);
    make_file(at->cifar, names[4], FILE_BYTES, 0, 2);
    CHECK(open_from(at->path, &set, "cifar10:take=50001", &error) == ERROR_USAGE &&
              strcmp(error.words,
                     "cifar10: found take=50001, expected at most 50000, the training examples there are") ==
                  0,
          "%s", error.words);
    for (int i = 2; i < 5; i++) drop_file(at->cifar, names[i]);
}

static void pack(const char *folder, const char *name, long cut) {
    static uint8_t bytes[FILE_BYTES];
    char path[200], packed[210];
    in(path, folder, name);
    snprintf(packed, sizeof packed, "%s.gz", path);
    FILE *file = fopen(path, "rb");
    gzFile out = gzopen(packed, "wb1");
    CHECK(file && out && fread(bytes, 1, sizeof bytes, file) == sizeof bytes &&
              gzwrite(out, bytes, sizeof bytes) == FILE_BYTES,
          "%s was not packed", path);
    if (file) fclose(file);
    if (out) gzclose(out);
    remove(path);
    struct stat about;
    if (cut > 0) CHECK(stat(packed, &about) == 0 && truncate(packed, about.st_size - cut) == 0, "not cut");
}

static void check_packed(const struct folder *at) {
    struct dataset set;
    struct error error;
    static const char packed[] = "data_batch_2.bin.gz";
    pack(at->cifar, names[1], 0);
    check_content(at);
    make_files(at->cifar);
    drop_file(at->cifar, packed);
    pack(at->cifar, names[1], 9);
    CHECK(open_from(at->path, &set, "cifar10:take=10001", &error) == ERROR_FILE &&
              strstr(error.words, "data_batch_2.bin.gz") != NULL,
          "%s", error.words);
    drop_file(at->cifar, packed);
    make_files(at->cifar);
}

/* The folder of the archive counts too, inside the data set's and beside it; a missing file is named. */
static void check_search(const struct folder *at) {
    struct dataset set;
    struct error error;
    char expected[700];
    const char *const inner[] = {at->inner, at->beside};
    for (int i = 0; i < 2; i++) {
        for (int f = 0; f < 6; f++) drop_file(at->cifar, names[f]);
        CHECK(mkdir(inner[i], 0700) == 0, "no folder %s", inner[i]);
        make_files(inner[i]);
        check_content(at);
        for (int f = 0; f < 6; f++) drop_file(inner[i], names[f]);
        rmdir(inner[i]);
    }
    make_file(at->cifar, names[0], FILE_BYTES, 3, 1);
    char advice[200];
    snprintf(
        expected, sizeof expected,
        "cifar10: found no "
        "test_batch.bin (nor test_batch.bin.gz), %s; looked in %s, /nonexistent/home/.cache/trainer/cifar10,"
        " and in cifar-10-batches-bin in or beside it (--data-dir=DIR or TRAINER_DATA adds a place)",
        source_advice("cifar10", "test_batch.bin", advice, sizeof advice), at->cifar);
    CHECK(open_from(at->path, &set, "cifar10:take=1", &error) == ERROR_FILE, "a file is missing");
    CHECK(strcmp(error.words, expected) == 0, "\n found    %s\n expected %s", error.words, expected);
    setenv("TRAINER_DATA", at->path, 1);
    make_files(at->cifar);
    CHECK(open_from(NULL, &set, "cifar10:take=1", &error) == OK, "%s", error.words);
    dataset_close(&set);
}

static void check_files(void) {
    struct folder at = {.path = "/tmp/trainer-cifar-XXXXXX"};
    setenv("HOME", "/nonexistent/home", 1);
    unsetenv("TRAINER_DATA");
    CHECK(mkdtemp(at.path) != NULL, "no temporary folder");
    snprintf(at.cifar, sizeof at.cifar, "%s/cifar10", at.path);
    snprintf(at.inner, sizeof at.inner, "%s/cifar-10-batches-bin", at.cifar);
    snprintf(at.beside, sizeof at.beside, "%s/cifar-10-batches-bin", at.path);
    CHECK(mkdir(at.cifar, 0700) == 0, "no folder %s", at.cifar);
    make_files(at.cifar);
    check_content(&at);
    check_corruptions(&at);
    check_take(&at);
    check_packed(&at);
    check_search(&at);
    for (int f = 0; f < FILES; f++) drop_file(at.cifar, names[f]);
    rmdir(at.cifar);
    rmdir(at.path);
}

/* --- the official files --- */

static const uint8_t *pixel(const struct examples *examples, int i, int row, int column) {
    return examples->bytes + ((size_t)i * CIFAR_PLANE + (size_t)(row * CIFAR_SIDE + column)) * CIFAR_CHANNELS;
}

static long sum(const struct examples *examples, int first, int count, int channel) {
    long total = 0;
    for (size_t i = (size_t)first * CIFAR_PLANE; i < (size_t)(first + count) * CIFAR_PLANE; i++)
        total += examples->bytes[i * CIFAR_CHANNELS + (size_t)channel];
    return total;
}

/* The numbers were counted by another program from the same files. */
static void check_official(const char *data_dir) {
    static const int first[8] = {6, 9, 9, 4, 1, 1, 2, 7};
    struct dataset set;
    struct error error;
    CHECK(open_from(data_dir, &set, "cifar10", &error) == OK, "%s", error.words);
    if (error.code) return;
    CHECK(set.train.count == 50000 && set.test.count == 10000, "%d and %d", set.train.count, set.test.count);
    for (int i = 0; i < 8; i++) CHECK(set.train.labels[i] == first[i], "label %d", i);
    CHECK(sum(&set.train, 0, 50000, 0) == 6415714204L && sum(&set.train, 0, 50000, 1) == 6295060180L &&
              sum(&set.train, 0, 50000, 2) == 5829907619L,
          "sums of the channels");
    const uint8_t expected[][3] = {{59, 62, 63}, {43, 46, 45}, {119, 77, 37}, {123, 92, 72}};
    const int at[][2] = {{0, 0}, {0, 1}, {5, 7}, {31, 31}};
    for (int i = 0; i < 4; i++)
        CHECK(memcmp(pixel(&set.train, 0, at[i][0], at[i][1]), expected[i], 3) == 0, "pixel %d", i);
    const uint8_t last[3] = {73, 78, 75};
    CHECK(memcmp(pixel(&set.test, 9999, 0, 0), last, 3) == 0 && set.test.labels[9999] == 7, "last image");
    for (int part = 0; part < 2; part++) {
        const struct examples *examples = part == 0 ? &set.train : &set.test;
        int counts[10] = {0};
        for (int i = 0; i < examples->count; i++) counts[examples->labels[i]]++;
        for (int c = 0; c < 10; c++) CHECK(counts[c] == examples->count / 10, "class %d: %d", c, counts[c]);
    }
    dataset_close(&set);
}

int main(void) {
    char path[1024] = "", data_dir[512] = "";
    const char *given = getenv("TRAINER_DATA");
    if (given && strlen(given) < sizeof data_dir) {
        strcpy(data_dir, given);
        snprintf(path, sizeof path, "%s/cifar10/%s.gz", data_dir, names[0]);
    }
    if (*path && access(path, R_OK) == 0)
        check_official(data_dir);
    else
        fprintf(stderr, "the official files are not in TRAINER_DATA: only files made here tested\n");
    check_records();
    check_files();
    return check_end();
}
