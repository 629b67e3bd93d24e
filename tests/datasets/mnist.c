/* mnist: small idx files made here with every corruption, and the official files where they are. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <zlib.h>
#include "../../src/data/dataset.h"
#include "../../src/data/idx.h"
#include "../check.h"

enum {
    SIDE = 28,
    PIXELS = SIDE * SIDE,
    TRAIN = 5,
    TEST = 3,
    FILES = 4,
    HEADER = 16,
    MOST = HEADER + TRAIN * PIXELS
};

static const char *const names[FILES] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

struct data {
    unsigned char bytes[FILES][MOST + 8];
    size_t length[FILES];
};

struct folder {
    char path[64], mnist[80], file[FILES][160], packed[FILES][160];
};

static void put(unsigned char *at, unsigned value) {
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static unsigned char pixel(int part, int i) {
    return (unsigned char)(i * 7 + i / PIXELS + 100 * part);
}

/* Four good files in memory. */
static void make_data(struct data *data) {
    memset(data, 0, sizeof *data);
    for (int part = 0; part < 2; part++) {
        const int count = part == 0 ? TRAIN : TEST;
        unsigned char *images = data->bytes[2 * part], *labels = data->bytes[2 * part + 1];
        put(images, IDX_IMAGES);
        put(images + 4, (unsigned)count);
        put(images + 8, SIDE);
        put(images + 12, SIDE);
        for (int i = 0; i < count * PIXELS; i++) images[HEADER + i] = pixel(part, i);
        put(labels, IDX_LABELS);
        put(labels + 4, (unsigned)count);
        for (int i = 0; i < count; i++) labels[8 + i] = (unsigned char)((9 + part - 2 * i) % 10);
        data->length[2 * part] = HEADER + (size_t)(count * PIXELS);
        data->length[2 * part + 1] = 8 + (size_t)count;
    }
}

static void write_bytes(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, length, file) == length, "%s was not written", path);
    if (file) fclose(file);
}

static void write_packed(const char *path, const void *bytes, size_t length) {
    gzFile file = gzopen(path, "wb");
    CHECK(file && gzwrite(file, bytes, (unsigned)length) == (int)length, "%s was not written", path);
    if (file) gzclose(file);
}

static void write_data(const struct folder *folder, const struct data *data) {
    for (int i = 0; i < FILES; i++) {
        remove(folder->packed[i]);
        write_bytes(folder->file[i], data->bytes[i], data->length[i]);
    }
}

static int open_from(const char *data_dir, struct dataset *dataset, const char *text, struct error *error) {
    struct choice choice;
    *error = (struct error){0};
    *dataset = (struct dataset){0};
    RETURN_IF(plugin_choose(&choice, &dataset_kind, text, error));
    return dataset_open(dataset, &choice, data_dir, error);
}

/* --- small files --- */

static void check_good(const struct folder *folder) {
    struct dataset set;
    struct error error;
    CHECK(open_from(folder->path, &set, "mnist", &error) == OK, "%s", error.words);
    if (error.code) return;
    CHECK(set.train.count == TRAIN && set.test.count == TEST, "%d and %d", set.train.count, set.test.count);
    CHECK(set.shape.rank == 1 && set.shape.dims[0] == PIXELS && set.train.features == PIXELS, "shape");
    CHECK(set.classes == 10 && strcmp(set.class_names[7], "7") == 0, "%d classes", set.classes);
    CHECK(set.train.floats == NULL && set.train.scale == 1.0f / 255.0f, "scale %g", (double)set.train.scale);
    for (int part = 0; part < 2; part++) {
        const struct examples *examples = part == 0 ? &set.train : &set.test;
        for (int i = 0; i < examples->count * PIXELS; i++)
            CHECK(examples->bytes[i] == pixel(part, i), "part %d, pixel %d is %d", part, i,
                  examples->bytes[i]);
        for (int i = 0; i < examples->count; i++)
            CHECK(examples->labels[i] == (9 + part - 2 * i) % 10, "part %d, label %d is %d", part, i,
                  examples->labels[i]);
    }
    dataset_close(&set);
    CHECK(open_from(folder->path, &set, "mnist:take=4", &error) == OK && set.train.count == 4 &&
              set.test.count == TEST,
          "%s", error.words);
    dataset_close(&set);
    CHECK(open_from(folder->path, &set, "mnist:take=6", &error) == ERROR_USAGE, "take");
    CHECK(strcmp(error.words, "mnist: found take=6, expected at most 5, the training examples there are") ==
              0,
          "%s", error.words);
}

/* The files of `data` must not open; the words name file `which` and go on with `words`. */
static void check_bad(const struct folder *folder, const struct data *data, int which, const char *words) {
    struct dataset set;
    struct error error;
    write_data(folder, data);
    CHECK(open_from(folder->path, &set, "mnist", &error) == ERROR_FILE, "%s", words);
    const size_t length = strlen(folder->file[which]);
    CHECK(strncmp(error.words, folder->file[which], length) == 0, "%s: expected %s", error.words,
          folder->file[which]);
    CHECK(strlen(error.words) > length && strncmp(error.words + length, words, strlen(words)) == 0,
          "\n found    %s\n expected ...%s", error.words, words);
    dataset_close(&set);
}

static void check_corruptions(const struct folder *folder) {
    struct data data;
    make_data(&data);
    put(data.bytes[0], IDX_LABELS);
    check_bad(folder, &data, 0, ": magic 0x00000801, expected 0x00000803");
    make_data(&data);
    put(data.bytes[3], IDX_IMAGES);
    check_bad(folder, &data, 3, ": magic 0x00000803, expected 0x00000801");
    make_data(&data);
    data.length[0]--;
    check_bad(folder, &data, 0, ": found 3919 bytes after the header, expected 3920");
    make_data(&data);
    data.length[2]++;
    check_bad(folder, &data, 2, ": found 2353 bytes after the header, expected 2352");
    make_data(&data);
    data.length[1] = 7;
    check_bad(folder, &data, 1, ": found 7 bytes, expected a header of 8");
    make_data(&data);
    data.length[0] = 0;
    check_bad(folder, &data, 0, ": found 0 bytes, expected a header of 16");
    make_data(&data);
    put(data.bytes[1] + 4, TRAIN - 1);
    data.length[1]--;
    check_bad(folder, &data, 1, ": found 4 labels, expected 5, one for each image of ");
    make_data(&data);
    data.bytes[3][8 + 2] = 10;
    check_bad(folder, &data, 3, ": found label 10 in example 3 (counted from 1), expected 0 to 9");
    make_data(&data);
    put(data.bytes[0] + 8, SIDE / 2);
    put(data.bytes[0] + 12, SIDE * 2);
    check_bad(folder, &data, 0, ": found images of 14 x 56, expected 28 x 28");
    make_data(&data);
    put(data.bytes[0] + 4, 0);
    check_bad(folder, &data, 0, ": found size 0 in dimension 1, expected 1 to 2147483647");
    make_data(&data);
    put(data.bytes[0] + 12, 0x80000000u);
    check_bad(folder, &data, 0, ": found size 2147483648 in dimension 3, expected 1 to 2147483647");
    make_data(&data); /* 2^24 * 2^20 * 2^20 = 2^64: must not wrap around to 0 */
    put(data.bytes[0] + 4, 1u << 24);
    put(data.bytes[0] + 8, 1u << 20);
    put(data.bytes[0] + 12, 1u << 20);
    data.length[0] = HEADER;
    check_bad(folder, &data, 0, ": found size 1048576 in dimension 3");
}

static void check_packed(const struct folder *folder) {
    struct data data;
    make_data(&data);
    write_data(folder, &data);
    for (int i = 0; i < FILES; i++) {
        remove(folder->file[i]);
        write_packed(folder->packed[i], data.bytes[i], data.length[i]);
    }
    check_good(folder);
    unsigned char packed[MOST + 200];
    FILE *file = fopen(folder->packed[0], "rb");
    const size_t length = file ? fread(packed, 1, sizeof packed, file) : 0;
    if (file) fclose(file);
    CHECK(length > 200, "%zu bytes", length);
    struct dataset set;
    struct error error;
    write_bytes(folder->packed[0], packed, length - 100);
    CHECK(open_from(folder->path, &set, "mnist", &error) == ERROR_FILE, "truncated gzip");
    CHECK(strstr(error.words, folder->packed[0]) != NULL, "%s", error.words);
    packed[length / 2] ^= 0x55;
    write_bytes(folder->packed[0], packed, length);
    CHECK(open_from(folder->path, &set, "mnist", &error) == ERROR_FILE, "broken gzip");
    CHECK(strstr(error.words, folder->packed[0]) != NULL, "%s", error.words);
    for (int i = 0; i < FILES; i++) remove(folder->packed[i]);
}

/* Where files are looked for, and what is said when they are nowhere. */
static void check_search(const struct folder *folder) {
    struct dataset set;
    struct error error;
    struct data data;
    char expected[700];
    make_data(&data);
    write_data(folder, &data);
    setenv("TRAINER_DATA", folder->path, 1);
    setenv("HOME", "/nonexistent/home", 1);
    CHECK(open_from("/nonexistent/given", &set, "mnist", &error) == OK, "%s", error.words);
    dataset_close(&set);
    remove(folder->file[3]);
    CHECK(open_from("/nonexistent/given", &set, "mnist", &error) == ERROR_FILE, "a file is missing");
    snprintf(expected, sizeof expected,
             "mnist: found no t10k-labels-idx1-ubyte (nor "
             "t10k-labels-idx1-ubyte.gz), %s; looked in "
             "/nonexistent/given/mnist, %s, /nonexistent/home/.cache/trainer/mnist (--data-dir=DIR or "
             "TRAINER_DATA adds "
             "a place)",
             TRAINER_CURL
                 ? "trainer fetch mnist downloads it"
                 : "it is at https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz",
             folder->mnist);
    CHECK(strcmp(error.words, expected) == 0, "\n found    %s\n expected %s", error.words, expected);
    unsetenv("TRAINER_DATA");
    unsetenv("HOME");
    CHECK(open_from(NULL, &set, "mnist", &error) == ERROR_FILE &&
              strstr(error.words, "mnist: no folder to look in") != NULL,
          "%s", error.words);
}

static void check_small(void) {
    struct data data;
    struct folder folder = {.path = "/tmp/trainer-mnist-XXXXXX"};
    CHECK(mkdtemp(folder.path) != NULL, "no temporary folder");
    snprintf(folder.mnist, sizeof folder.mnist, "%s/mnist", folder.path);
    for (int i = 0; i < FILES; i++) {
        snprintf(folder.file[i], sizeof folder.file[i], "%s/%s", folder.mnist, names[i]);
        snprintf(folder.packed[i], sizeof folder.packed[i], "%s/%s.gz", folder.mnist, names[i]);
    }
    CHECK(mkdir(folder.mnist, 0700) == 0, "no folder %s", folder.mnist);
    make_data(&data);
    write_data(&folder, &data);
    check_good(&folder);
    check_corruptions(&folder);
    check_packed(&folder);
    check_search(&folder);
    for (int i = 0; i < FILES; i++) remove(folder.file[i]);
    rmdir(folder.mnist);
    rmdir(folder.path);
}

/* --- the official files --- */

static long sum(const struct examples *examples, int first, int count) {
    long total = 0;
    for (size_t i = (size_t)first * PIXELS; i < (size_t)(first + count) * PIXELS; i++)
        total += examples->bytes[i];
    return total;
}

/* The numbers were counted by another program from the same files. */
static void check_official(const char *data_dir) {
    struct dataset set;
    struct error error;
    const int classes[2][10] = {{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949},
                                {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}};
    CHECK(open_from(data_dir, &set, "mnist", &error) == OK, "%s", error.words);
    if (error.code) return;
    CHECK(set.train.count == 60000 && set.test.count == 10000, "%d and %d", set.train.count, set.test.count);
    CHECK(set.train.labels[0] == 5 && set.train.labels[1] == 0 && set.test.labels[0] == 7, "first labels");
    CHECK(sum(&set.train, 0, 60000) == 1567298545, "%ld", sum(&set.train, 0, 60000));
    CHECK(sum(&set.test, 0, 10000) == 264923200, "%ld", sum(&set.test, 0, 10000));
    CHECK(sum(&set.train, 0, 1) == 27525 && sum(&set.train, 59999, 1) == 20920, "first and last image");
    for (int part = 0; part < 2; part++) {
        const struct examples *examples = part == 0 ? &set.train : &set.test;
        int counts[10] = {0};
        for (int i = 0; i < examples->count; i++) counts[examples->labels[i]]++;
        for (int c = 0; c < 10; c++) CHECK(counts[c] == classes[part][c], "class %d: %d", c, counts[c]);
    }
    dataset_close(&set);
}

int main(void) {
    char path[1024] = "", data_dir[512] = "";
    const char *given = getenv("TRAINER_DATA");
    if (given && strlen(given) < sizeof data_dir) {
        strcpy(data_dir, given);
        snprintf(path, sizeof path, "%s/mnist/%s.gz", data_dir, names[0]);
    }
    if (*path && access(path, R_OK) == 0)
        check_official(data_dir);
    else
        fprintf(stderr, "the official files are not in TRAINER_DATA: only small files tested\n");
    check_small();
    return check_end();
}
