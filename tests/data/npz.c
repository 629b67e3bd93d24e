/* NumPy's arrays: what is read of each kind, every error of a header with its exact words, archives, and the
 * data set made of them. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../src/base/memory.h"
#include "../../src/data/dataset.h"
#include "../../src/data/npz.h"
#include "../check.h"
#include "../npz_sample.h"

/* --- items --- */

static void check_items(const char *descr, const void *items, int item, const float *floats) {
    char header[200];
    uint8_t bytes[400];
    struct npy npy;
    struct error error = {0};
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }", descr);
    for (int major = 1; major <= 3; major++) {
        const size_t length = sample_npy(bytes + 1, major, header, items, 3 * (size_t)item);
        const int code = npy_parse(&npy, "a", bytes + 1, length, &error); /* on an odd boundary */
        CHECK(code == OK && npy.count == 3 && npy.shape.rank == 1, "%s: %s", descr, error.words);
        for (size_t i = 0; code == OK && i < 3; i++) {
            const float found = npy_float(&npy, i);
            CHECK(found == floats[i] || (isnan(found) && isnan(floats[i])), "%s: item %zu is %g", descr, i,
                  (double)found);
            int64_t number;
            if (npy.kind == 'f') continue;
            CHECK(npy_integer(&npy, i, &number) == (floats[i] < 0x1p63f), "%s: item %zu is an integer", descr,
                  i);
            CHECK(floats[i] >= 0x1p63f || (float)number == floats[i], "%s: item %zu is %lld", descr, i,
                  (long long)number);
        }
    }
}

static void check_kinds(void) {
    check_items("|b1", "\0\1\7", 1, (float[]){0, 1, 1});
    check_items("|u1", "\0\x80\xff", 1, (float[]){0, 128, 255});
    check_items("|i1", "\0\x80\xff", 1, (float[]){0, -128, -1});
    check_items("<u2", "\1\2\0\x80\xff\xff", 2, (float[]){513, 32768, 65535});
    check_items(">u2", "\1\2\0\x80\xff\xff", 2, (float[]){258, 128, 65535});
    check_items(">i2", "\1\2\x80\0\xff\xff", 2, (float[]){258, -32768, -1});
    check_items("<i4", "\1\0\0\0\0\0\0\x80\xff\xff\xff\xff", 4, (float[]){1, -0x1p31f, -1});
    check_items(">u4", "\1\0\0\0\0\0\0\x80\xff\xff\xff\xff", 4, (float[]){0x1p24f, 128, 0x1p32f});
    check_items("<i8", "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\xff\xff\xff\xff\xff\xff\xff\xff", 8,
                (float[]){1, -0x1p63f, -1});
    check_items(">u8", "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80\xff\xff\xff\xff\xff\xff\xff\xff", 8,
                (float[]){0x1p56f, 128, 0x1p64f});
    check_items("<f2", "\1\0\0\xc0\xff\x7b", 2, (float[]){0x1p-24f, -2, 65504});
    check_items(">f2", "\x7c\0\x7e\0\x35\x55", 2, (float[]){INFINITY, NAN, 0x1.554p-2f});
    check_items("<f4", "\0\0\x80\x3f\0\0\0\xc0\xff\xff\x7f\x7f", 4, (float[]){1, -2, 0x1.fffffep127f});
    check_items(">f4", "\x3f\x80\0\0\xc0\0\0\0\x7f\x80\0\0", 4, (float[]){1, -2, INFINITY});
    check_items(">f8", "\x3f\xf0\0\0\0\0\0\0\xff\xef\xff\xff\xff\xff\xff\xff\x47\xef\xff\xff\xef\xff\xff\xff",
                8, (float[]){1, -INFINITY, 0x1.fffffep127f});
}

/* [2, 3, 2] whose first index runs fastest. */
static void check_fortran(void) {
    const uint8_t items[12] = {0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11};
    uint8_t bytes[200];
    struct npy npy;
    struct error error = {0};
    void *block = NULL;
    const size_t length =
        sample_npy(bytes, 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2), }", items, 12);
    CHECK(npy_parse(&npy, "a", bytes, length, &error) == OK, "%s", error.words);
    CHECK(npy_to_c_order(&npy, &block, &error) == OK && !npy.fortran, "%s", error.words);
    for (int i = 0; i < 12; i++) CHECK(npy_float(&npy, (size_t)i) == (float)i, "item %d", i);
    memory_free(block);
}

/* --- headers --- */

static void check_header_error(int major, const char *header, const char *words) {
    uint8_t bytes[600];
    struct npy npy;
    struct error error = {0};
    const size_t length = sample_npy(bytes, major, header, "", 0);
    CHECK(npy_parse(&npy, "a", bytes, length, &error) == ERROR_FILE, "%s", header);
    CHECK(strcmp(error.words, words) == 0, "\n found    %s\n expected %s", error.words, words);
}

static void check_headers(void) {
#define HEADER(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }"
    const struct {
        const char *header, *words;
    } cases[] = {
        {HEADER("'|O'", "False", "(3,)"),
         "a: found Python objects (dtype object), expected numbers: save it with a dtype of numbers, "
         "astype('float32')"},
        {HEADER("[('x', '<f4')]", "False", "(3,)"), "a: found records (a dtype of fields), expected numbers"},
        {HEADER("'<U3'", "False", "(3,)"),
         "a: found dtype '<U3', expected bytes, integers, floats or bools of 1 to 8 bytes"},
        {HEADER("'|f4'", "False", "(3,)"),
         "a: found dtype '|f4', expected bytes, integers, floats or bools of 1 to 8 bytes"},
        {HEADER("'<f4", "False", "(3,)"),
         "a: found dtype '<f4, ', expected bytes, integers, floats or bools of 1 to 8 bytes"},
        {HEADER("3", "False", "(3,)"),
         "a: header: found \"3, 'fortran_order': Fals\", expected a dtype such as '<f4'"},
        {HEADER("'<f4'", "0", "(3,)"), "a: header: found \"0, 'shape': (3,), }\", expected True or False"},
        {HEADER("'<f4'", "False", "()"), "a: found a single number, expected an array"},
        {HEADER("'<f4'", "False", "(0, 3)"), "a: shape: found size 0, expected 1 to 2147483647"},
        {HEADER("'<f4'", "False", "(2147483648,)"),
         "a: shape: found size 2147483648, expected 1 to 2147483647"},
        {HEADER("'<f4'", "False", "(9223372036854775808,)"),
         "a: shape: found size 9223372036854775808, expected 1 to 2147483647"},
        {HEADER("'<f4'", "False", "(-1,)"), "a: header: found \"-1,), }\", expected a size"},
        {HEADER("'<f4'", "False", "(1, 1, 1, 1, 1, 1, 1)"),
         "a: found more than 6 dimensions, expected 1 to 6"},
        {HEADER("'<f4'", "False", "(2147483647, 2147483647, 4)"),
         "a: found shape [2147483647, 2147483647, 4], more than can be addressed"},
        {HEADER("'<f4'", "False", "(3,)"), "a: found 0 bytes of items, expected 12, <f4 [3]"},
        {HEADER("'<f4'", "False", "(3"), "a: header: found \"}\", expected a size"},
        {"{'descr': '<f4', 'shape': (3,)}", "a: header: found \"\", expected descr, fortran_order and shape"},
        {"{'descr': '<f4', 'descr': '<f4'}",
         "a: header: found key 'descr', expected descr, fortran_order and shape, once each"},
        {"{'more': 1}", "a: header: found key 'more', expected descr, fortran_order and shape, once each"},
        {"__import__('os')", "a: header: found \"__import__('os')\", expected '{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_header_error(1 + (int)(i % 2), cases[i].header, cases[i].words);
    check_header_error(4, "{}", "a: found version 4.0 of the format, expected 1.0, 2.0 or 3.0");
}

/* --- archives and data sets --- */

struct files {
    char folder[64], npz[100], x[100], y[100];
    uint8_t archive[4000];
    size_t bytes;
};

/* x_train: f4 [4, 2], y_train: u1 [4]; `deflated`: x is. */
static void make_archive(struct files *files, bool deflated) {
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 9};
    uint8_t array[400];
    struct sample_zip zip = {.out = files->archive};
    size_t bytes = sample_npy(array, 1, HEADER("'<f4'", "False", "(4, 2)"), x, sizeof x);
    sample_add(&zip, "x_train.npy", array, bytes, deflated);
    bytes = sample_npy(array, 2, HEADER("'|u1'", "False", "(4,)"), "\3\1\3\1", 4);
    sample_add(&zip, "y_train.npy", array, bytes, false);
    files->bytes = sample_end(&zip);
}

static int open_text(const struct files *files, struct dataset *dataset, const char *settings,
                     struct error *error) {
    char text[300];
    struct choice choice;
    FILE *file = fopen(files->npz, "wb");
    if (file) {
        fwrite(files->archive, 1, files->bytes, file);
        fclose(file);
    }
    snprintf(text, sizeof text, "npz:file=%s%s", files->npz, settings);
    *error = (struct error){0};
    *dataset = (struct dataset){0};
    RETURN_IF(plugin_choose(&choice, &dataset_kind, text, error));
    return dataset_open(dataset, &choice, NULL, error);
}

static void check_dataset(struct files *files) {
    for (int deflated = 0; deflated < 2; deflated++) {
        struct dataset set;
        struct error error;
        make_archive(files, deflated);
        CHECK(open_text(files, &set, ",standardize=0,test=0.25", &error) == OK, "%s", error.words);
        if (error.code != OK) continue;
        CHECK(set.train.count == 3 && set.test.count == 1 && set.classes == 2, "counts");
        CHECK(strcmp(set.class_names[0], "1") == 0 && strcmp(set.class_names[1], "3") == 0,
              "classes in order");
        for (int i = 0; i < 4; i++) {
            const struct examples *part = i < 3 ? &set.train : &set.test;
            const float first = part->floats[i < 3 ? 2 * i : 0];
            CHECK(part->labels[i < 3 ? i : 0] == (first == 1 || first == 5), "the class of %g",
                  (double)first);
        }
        dataset_close(&set);
        CHECK(open_text(files, &set, "", &error) == OK && set.mean && set.deviation, "%s", error.words);
        dataset_close(&set);
    }
}

/* Every byte of an archive, changed: the same data set, or one line; nothing else. What is not covered by a
 * check sum is all that may be accepted: dates, versions, attributes. */
static void check_every_byte(struct files *files) {
    int accepted = 0;
    make_archive(files, true);
    for (size_t at = 0; at < files->bytes; at++) {
        struct dataset set;
        struct error error;
        const uint8_t before = files->archive[at];
        files->archive[at] ^= 0x41;
        if (open_text(files, &set, ",standardize=0", &error) == OK) {
            accepted++;
            CHECK(set.train.count == 3 && set.classes == 2, "byte %zu", at);
        } else {
            CHECK(*error.words && (error.code == ERROR_FILE || error.code == ERROR_USAGE), "byte %zu: %d", at,
                  error.code);
        }
        dataset_close(&set);
        files->archive[at] = before;
    }
    CHECK(accepted > 20 && accepted < 90, "%d bytes do not matter", accepted);
}

/* The n-th request for memory fails, for every n: an error, no leak, no crash. */
static void check_memory_failures(struct files *files) {
    long asked = 0;
    bool opened = false;
    make_archive(files, true);
    for (int n = 1; !opened; n++) {
        char request[24];
        struct dataset set;
        struct error error;
        snprintf(request, sizeof request, "%ld", asked += n);
        setenv("TRAINER_FAIL_ALLOCATION", request, 1);
        const int code = open_text(files, &set, "", &error);
        opened = code == OK;
        CHECK(opened || (code == ERROR_DEVICE && *error.words), "code %d", code);
        CHECK(!opened || n > 12, "only %d requests", n);
        dataset_close(&set);
    }
    unsetenv("TRAINER_FAIL_ALLOCATION");
}

/* --- in place --- */

static void write_file(const char *path, const uint8_t *bytes, size_t count) {
    FILE *file = fopen(path, "wb");
    if (!file) return;
    fwrite(bytes, 1, count, file);
    fclose(file);
}

/* Whether this process has the file mapped. */
static bool is_mapped(const char *path) {
    char line[512];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) found = found || strstr(line, path);
    if (maps) fclose(maps);
    return found;
}

/* Images of bytes stay in the mapped file; what is held out changes places there, not in it. */
static void check_in_place(const struct files *files) {
    uint8_t bytes[400], again[400];
    char text[500];
    const uint8_t pixels[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const size_t length = sample_npy(bytes, 1, HEADER("'|u1'", "False", "(4, 2, 2)"), pixels, 16);
    struct choice choice;
    struct dataset set;
    struct error error = {0};
    write_file(files->x, bytes, length);
    uint8_t labels[200];
    write_file(files->y, labels, sample_npy(labels, 1, HEADER("'|i1'", "False", "(4,)"), "\0\1\0\1", 4));
    snprintf(text, sizeof text, "npz:x=%s,y=%s,x_test=%s,y_test=%s", files->x, files->y, files->x, files->y);
    CHECK(plugin_choose(&choice, &dataset_kind, text, &error) == OK, "%s", error.words);
    CHECK(dataset_open(&set, &choice, NULL, &error) == OK, "%s", error.words);
    if (error.code != OK) return;
    CHECK(set.train.bytes == set.files[0].bytes + (length - 16),
          "the images are not where the file is mapped");
    CHECK(is_mapped(files->x), "not mapped");
    CHECK(set.shape.rank == 2 && set.train.scale == 1.0f / 255.0f && set.blocks[0] == NULL, "images");
    CHECK(dataset_hold_out(&set, 0.5, &error) == OK, "%s", error.words);
    dataset_close(&set);
    CHECK(set.files[0].bytes == NULL && !is_mapped(files->x) && !is_mapped(files->y), "still mapped");
    FILE *file = fopen(files->x, "rb");
    CHECK(file && fread(again, 1, sizeof again, file) == length && memcmp(bytes, again, length) == 0,
          "the file has changed");
    if (file) fclose(file);
}

int main(void) {
    struct files files = {.folder = "/tmp/trainer-npz-XXXXXX"};
    check_kinds();
    check_fortran();
    check_headers();
    CHECK(mkdtemp(files.folder) != NULL, "no temporary folder");
    snprintf(files.npz, sizeof files.npz, "%s/a.npz", files.folder);
    snprintf(files.x, sizeof files.x, "%s/x.npy", files.folder);
    snprintf(files.y, sizeof files.y, "%s/y.npy", files.folder);
    check_dataset(&files);
    check_every_byte(&files);
    check_memory_failures(&files);
    check_in_place(&files);
    remove(files.npz);
    remove(files.x);
    remove(files.y);
    rmdir(files.folder);
    return check_end();
}
