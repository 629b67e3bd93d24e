/* pictures: folders made here. Which files, in which order, of which class; whatever the number of threads;
 * what is left out, and what is wrong. A picture's one colour says which it is. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../src/base/rng.h"
#include "../../src/data/dataset.h"
#include "../check.h"
#include "../picture_files.h"

#if TRAINER_STB

enum { SIDE = 4, BYTES = SIDE * SIDE * 3, MOST = 100, TEXT = 400 };

struct place {
    char root[64];
};

static void in(char out[TEXT], const struct place *place, const char *name) {
    snprintf(out, TEXT, "%s/%s", place->root, name);
}

static void make_folder(const struct place *place, const char *name) {
    char path[TEXT];
    in(path, place, name);
    CHECK(mkdir(path, 0700) == 0, "%s", path);
}

static void write_file(const struct place *place, const char *name, const uint8_t *bytes, size_t count) {
    char path[TEXT];
    in(path, place, name);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0, "%s", path);
}

/* A BMP of the colour {number, 200 - number, 7}. */
static void write_picture(const struct place *place, const char *name, int number) {
    uint8_t pixels[BYTES], bytes[BMP_HEAD + BYTES];
    for (int i = 0; i < BYTES; i++)
        pixels[i] = (uint8_t)(i % 3 == 0 ? number : i % 3 == 1 ? 200 - number : 7);
    write_file(place, name, bytes, make_bmp(bytes, SIDE, SIDE, pixels));
}

static int open_set(struct dataset *dataset, const struct place *place, const char *folder,
                    const char *settings, struct error *error) {
    struct choice choice;
    char text[TEXT];
    *error = (struct error){0};
    *dataset = (struct dataset){0};
    snprintf(text, sizeof text, "pictures:dir=%s%s%s,%s", place->root, *folder ? "/" : "", folder, settings);
    RETURN_IF(plugin_choose(&choice, &dataset_kind, text, error));
    return dataset_open(dataset, &choice, NULL, error);
}

static void refused(const struct place *place, const char *folder, const char *settings, int code,
                    const char *words) {
    struct dataset dataset;
    struct error error;
    const int found = open_set(&dataset, place, folder, settings, &error);
    CHECK(found == code && strstr(error.words, words), "%s, %s: code %d, %s; expected %d, %s", folder,
          settings, found, error.words, code, words);
    CHECK(dataset.class_names == NULL && dataset.blocks[0] == NULL, "something is left open");
    dataset_close(&dataset);
}

/* Which picture stands at a place of a part; -1: none of ours, or of more than one colour. */
static int picture_of(const struct examples *examples, int at) {
    const uint8_t *bytes = examples->bytes + (size_t)at * BYTES;
    for (int i = 3; i < BYTES; i++)
        if (bytes[i] != bytes[i % 3]) return -1;
    return bytes[1] == 200 - bytes[0] && bytes[2] == 7 ? bytes[0] : -1;
}

/* In the order of names' bytes: classes B, a, b with 3, 4 and 5 pictures, numbered so. */
enum { PICTURES = 12 };
static const char *const names[PICTURES] = {
    "B/9.bmp", "B/Z.bmp",  "B/a.bmp",  "a/-.BMP", "a/10.bmp", "a/9.bmp", "a/é.bmp",
    "b/1.bmp", "b/10.bmp", "b/2.jpeg", "b/3.png", "b/4.Gif"}; /* what it is does not depend on its name */
static const int labels[PICTURES] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2};

/* Made last to first, so that no file system has them in order. */
static void make_pictures(const struct place *place, const char *folder) {
    char path[TEXT];
    static const char *const classes[] = {"b", "B", "a"};
    make_folder(place, folder);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, classes[i]);
        make_folder(place, path);
    }
    for (int i = PICTURES - 1; i >= 0; i--) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        write_picture(place, path, i);
    }
}

static int shuffled(int seed, int at) {
    return (int)rng_permute(rng_mix((uint64_t)seed, 0x637376), PICTURES, (uint32_t)at); /* as csv's rows */
}

static void check_part(const struct examples *examples, int seed, int first, int count, const char *what) {
    CHECK(examples->count == count, "%s: %d examples", what, examples->count);
    for (int i = 0; i < count && examples->count == count; i++) {
        const int expected = shuffled(seed, first + i);
        CHECK(picture_of(examples, i) == expected && examples->labels[i] == labels[expected],
              "%s: number %d is picture %d of class %d, expected %d", what, i, picture_of(examples, i),
              examples->labels[i], expected);
    }
}

static void check_order(const struct place *place) {
    struct dataset dataset;
    struct error error;
    for (int seed = 1; seed < 4; seed++) {
        char settings[100];
        snprintf(settings, sizeof settings, "size=4x4,test=0.25,split_seed=%d", seed);
        CHECK(open_set(&dataset, place, "all", settings, &error) == OK, "%s", error.words);
        if (error.code != OK) return;
        CHECK(dataset.classes == 3 && strcmp(dataset.class_names[0], "B") == 0 &&
                  strcmp(dataset.class_names[1], "a") == 0 && strcmp(dataset.class_names[2], "b") == 0,
              "classes");
        CHECK(shape_equal(&dataset.shape, &SHAPE(SIDE, SIDE, 3)) && dataset.train.features == BYTES, "shape");
        CHECK(*dataset.notice == '\0' && dataset.fit == PICTURE_CROP, "notice: %s", dataset.notice);
        check_part(&dataset.train, seed, 0, 9, "training");
        check_part(&dataset.test, seed, 9, 3, "tests");
        dataset_close(&dataset);
    }
    CHECK(open_set(&dataset, place, "all", "size=4x4,test=0.25,take=5", &error) == OK, "%s", error.words);
    check_part(&dataset.train, 1, 0, 5, "the first 5");
    check_part(&dataset.test, 1, 9, 3, "tests of the first 5");
    dataset_close(&dataset);
    refused(place, "all", "size=4x4,test=0.25,take=10", ERROR_USAGE,
            "found take=10, expected at most 9, the training examples there are");
    CHECK(open_set(&dataset, place, "all", "size=4x4,test=0.999", &error) == OK && dataset.train.count == 1,
          "%s", error.words);
    dataset_close(&dataset);
}

/* Folders train and test: the tests in the order of their names, also where classes are missing there. */
static void check_parts(const struct place *place) {
    struct dataset dataset;
    struct error error;
    make_folder(place, "parts");
    make_pictures(place, "parts/train");
    make_folder(place, "parts/test");
    make_folder(place, "parts/test/b");
    refused(place, "parts", "size=4x4", ERROR_FILE, "parts/test: found no picture, expected files in .png");
    write_picture(place, "parts/test/b/2.bmp", 51);
    write_picture(place, "parts/test/b/10.bmp", 50);
    make_folder(place, "parts/test/a"); /* without a picture */
    CHECK(open_set(&dataset, place, "parts", "size=4x4", &error) == OK, "%s", error.words);
    if (error.code == OK) {
        check_part(&dataset.train, 1, 0, PICTURES, "training in a folder");
        CHECK(dataset.test.count == 2 && picture_of(&dataset.test, 0) == 50 &&
                  picture_of(&dataset.test, 1) == 51 && dataset.test.labels[0] == 2 &&
                  dataset.test.labels[1] == 2,
              "%d tests", dataset.test.count);
    }
    dataset_close(&dataset);
    make_folder(place, "parts/test/c");
    refused(place, "parts", "size=4x4", ERROR_FILE, "parts/test/c: a class that ");
}

/* One colour stays that colour in any size: what is scaled is rounded. */
static void check_colours(const struct place *place) {
    static const char *const settings[] = {"size=32x32,test=0.25", "size=1x3,test=0.25,fit=squash"};
    for (int s = 0; s < 2; s++) {
        struct dataset dataset;
        struct error error;
        CHECK(open_set(&dataset, place, "all", settings[s], &error) == OK, "%s", error.words);
        for (int i = 0; i < dataset.train.count * dataset.train.features; i++) {
            const int number = shuffled(1, i / dataset.train.features), expected = i % 3 == 0   ? number
                                                                                   : i % 3 == 1 ? 200 - number
                                                                                                : 7;
            CHECK(dataset.train.bytes[i] == expected, "%s: number %d is %d, expected %d", settings[s], i,
                  dataset.train.bytes[i], expected);
        }
        dataset_close(&dataset);
    }
}

/* Bit for bit the same for any number of threads, also of pictures that are scaled. */
static void check_threads(const struct place *place) {
    struct dataset one, many;
    struct error error;
    static const char *const settings[] = {"size=3x5,channels=1,fit=squash", "size=7x2", "size=32x32"};
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        for (int threads = 2; threads <= 16; threads *= 2) {
            char text[100];
            snprintf(text, sizeof text, "%s,threads=1", settings[s]);
            CHECK(open_set(&one, place, "all", text, &error) == OK, "%s", error.words);
            snprintf(text, sizeof text, "%s,threads=%d", settings[s], threads);
            CHECK(open_set(&many, place, "all", text, &error) == OK, "%s", error.words);
            const size_t bytes = (size_t)one.train.count * (size_t)one.train.features;
            CHECK(one.train.count == many.train.count &&
                      memcmp(one.train.bytes, many.train.bytes, bytes) == 0 &&
                      memcmp(one.train.labels, many.train.labels, (size_t)one.train.count * sizeof(int)) == 0,
                  "%s: %d threads", settings[s], threads);
            dataset_close(&one);
            dataset_close(&many);
        }
}

/* Links are followed, hidden and other files are not read, folders within classes are not entered. */
static void check_others(const struct place *place) {
    struct dataset dataset;
    struct error error;
    char path[TEXT], target[TEXT];
    make_pictures(place, "mixed");
    write_file(place, "mixed/.hidden", (const uint8_t *)"x", 1);
    write_file(place, "mixed/a/.DS_Store.png", (const uint8_t *)"x", 1);
    make_folder(place, "mixed/.cache");
    write_file(place, "mixed/README.txt", (const uint8_t *)"x", 1);
    write_file(place, "mixed/a/bmp", (const uint8_t *)"x", 1);
    make_folder(place, "mixed/b/1");
    write_picture(place, "mixed/b/1/1.bmp", 99);
    make_folder(place, "mixed/b/x.png"); /* no picture, whatever its name */
    in(path, place, "mixed/B/pipe.png");
    CHECK(mkfifo(path, 0600) == 0, "%s", path); /* whoever opens it waits */
    CHECK(open_set(&dataset, place, "mixed", "size=4x4,test=0.25", &error) == OK, "%s", error.words);
    check_part(&dataset.train, 1, 0, 9, "among other files");
    CHECK(strncmp(dataset.notice, "5 other files or folders not used, the first is ", 48) == 0 &&
              strstr(dataset.notice, "/mixed/README.txt"),
          "notice: %s", dataset.notice);
    dataset_close(&dataset);
    /* The same data set through links to a class and to files. */
    make_folder(place, "links");
    make_folder(place, "links/a");
    in(target, place, "mixed/B");
    in(path, place, "links/B");
    CHECK(symlink(target, path) == 0, "%s", path);
    for (int i = 3; i < 7; i++) {
        snprintf(target, sizeof target, "../../all/%s", names[i]);
        snprintf(path, sizeof path, "%s/links/%s", place->root, names[i]);
        CHECK(symlink(target, path) == 0, "%s", path);
    }
    CHECK(open_set(&dataset, place, "links", "size=4x4", &error) == OK && dataset.classes == 2 &&
              dataset.train.count + dataset.test.count == 7,
          "links: %s", error.words);
    dataset_close(&dataset);
    in(path, place, "links/a/z.png");
    CHECK(symlink("nowhere", path) == 0, "%s", path);
    refused(place, "links", "size=4x4", ERROR_FILE, "links/a/z.png: No such file");
}

/* The first damaged one is named, the same for any number of threads; or all are left out. */
static void check_damaged(const struct place *place) {
    struct dataset dataset;
    struct error error;
    char words[TEXT];
    const int bad[] = {shuffled(1, 2), shuffled(1, 7), shuffled(1, 10)};
    make_pictures(place, "damaged");
    for (int i = 0; i < 3; i++) {
        snprintf(words, sizeof words, "damaged/%s", names[bad[i]]);
        write_file(place, words, (const uint8_t *)"GIF89a and no more", 18);
    }
    snprintf(words, sizeof words, "damaged/%s: ", names[bad[0]]);
    for (int threads = 1; threads <= 8; threads *= 2) {
        char settings[100];
        snprintf(settings, sizeof settings, "size=4x4,test=0.25,threads=%d", threads);
        refused(place, "damaged", settings, ERROR_FILE, words);
        snprintf(settings, sizeof settings, "size=4x4,test=0.25,threads=%d,damaged=skip,take=6", threads);
        CHECK(open_set(&dataset, place, "damaged", settings, &error) == OK, "%s", error.words);
        CHECK(dataset.train.count == 6 && dataset.test.count == 2, "%d and %d left", dataset.train.count,
              dataset.test.count);
        static const int left[] = {0, 1, 3, 4, 5, 6}, tests[] = {9, 11};
        for (int i = 0; error.code == OK && i < 6; i++)
            CHECK(picture_of(&dataset.train, i) == shuffled(1, left[i]) &&
                      dataset.train.labels[i] == labels[shuffled(1, left[i])],
                  "left: number %d is %d", i, picture_of(&dataset.train, i));
        for (int i = 0; error.code == OK && i < 2; i++)
            CHECK(picture_of(&dataset.test, i) == shuffled(1, tests[i]), "left: test %d is %d", i,
                  picture_of(&dataset.test, i));
        CHECK(strncmp(dataset.notice, "3 damaged pictures left out, the first is ", 42) == 0 &&
                  strstr(dataset.notice, words),
              "notice: %s", dataset.notice);
        dataset_close(&dataset);
    }
    for (int i = 0; i < PICTURES; i++) {
        snprintf(words, sizeof words, "damaged/%s", names[i]);
        write_file(place, words, (const uint8_t *)"no", 2);
    }
    refused(place, "damaged", "damaged=skip", ERROR_FILE,
            "damaged: of 10 training pictures none can be read, as ");
}

static void check_errors(const struct place *place) {
    make_folder(place, "none");
    refused(place, "none", "size=4x4", ERROR_FILE, "none: found 0 folders, expected one per class");
    make_folder(place, "none/cat");
    refused(place, "none", "size=4x4", ERROR_FILE,
            "none: found one class, \"cat\", expected a folder for each");
    make_folder(place, "none/dog");
    refused(place, "none", "size=4x4", ERROR_FILE,
            "none/cat: found no picture, expected files in .png, .jpg");
    make_folder(place, "none/cat/deep");
    refused(place, "none", "size=4x4", ERROR_FILE, "none/cat: found no picture, only 1 folder, expected");
    refused(place, "nowhere", "size=4x4", ERROR_FILE, "nowhere: No such file or directory");
    refused(place, "all/B/9.bmp", "size=4x4", ERROR_FILE, "9.bmp: Not a directory");
    make_folder(place, "named");
    make_folder(place, "named/a\tb");
    refused(place, "named", "size=4x4", ERROR_FILE, "a class's folder, expected a name without a tab");
    make_folder(place, "latin");
    make_folder(place, "latin/caf\xe9");
    refused(place, "latin", "size=4x4", ERROR_FILE, "a class's folder, expected a name in UTF-8");
    static const char *const sizes[] = {"x",      "4x",    "x4",   "0x4",  "4x0",
                                        "4097x4", "4x4x4", "-4x4", "4 x4", "99999999999999999999x4"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char settings[60];
        snprintf(settings, sizeof settings, "size=%s", sizes[i]);
        refused(place, "all", settings, ERROR_USAGE, "expected height x width, 1 to 4096 each, as in 32x32");
    }
    refused(place, "all", "size=200x200,flip=1", ERROR_USAGE,
            "120000 numbers per image, expected at most 65536");
    struct dataset dataset = {0};
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &dataset_kind, "pictures", &error) == OK &&
              dataset_open(&dataset, &choice, NULL, &error) == ERROR_USAGE &&
              strstr(error.words, "expected pictures:dir=DIR"),
          "%s", error.words);
}

static void check_all(void) {
    struct place place = {"/tmp/trainer-pictures-XXXXXX"};
    char command[100];
    CHECK(mkdtemp(place.root) != NULL, "no folder");
    make_pictures(&place, "all");
    check_order(&place);
    check_parts(&place);
    check_colours(&place);
    check_threads(&place);
    check_others(&place);
    check_damaged(&place);
    check_errors(&place);
    snprintf(command, sizeof command, "rm -rf '%s'", place.root);
    CHECK(system(command) == 0, "%s", command);
}

#else

static void check_all(void) {
    struct dataset dataset = {0};
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &dataset_kind, "pictures:dir=.", &error) == OK &&
              dataset_open(&dataset, &choice, NULL, &error) == ERROR_USAGE &&
              strstr(error.words, "it has no stb_image (Debian: libstb-dev)"),
          "%s", error.words);
}

#endif

int main(void) {
    check_all();
    return check_end();
}
