/* The reader of HDF5 on files made here byte by byte: what it finds, every width and order of floats, and
 * what is wrong with a file that says too much. */
#include "../../src/formats/hdf5_reader.h"

#include <math.h>
#include <string.h>

#include "../check.h"

enum { MOST = 4096 };

struct made {
    uint8_t bytes[MOST];
    size_t count;
};

static void put(struct made *made, uint64_t value, int bytes) {
    for (int b = 0; b < bytes; b++) made->bytes[made->count++] = (uint8_t)(b < 8 ? value >> (8 * b) : 0);
}

static void put_text(struct made *made, const char *text, int bytes) {
    memcpy(made->bytes + made->count, text, strlen(text));
    made->count += (size_t)bytes;
}

static void put_at(struct made *made, size_t at, uint64_t value, int bytes) {
    const size_t count = made->count;
    made->count = at;
    put(made, value, bytes);
    made->count = count;
}

static void put_message(struct made *made, int type, int bytes) {
    put(made, (uint64_t)type, 2);
    put(made, (uint64_t)bytes, 2);
    put(made, 0, 4);
}

enum { END_AT = 40, ROOT_AT = 64, ROOT = 96, HEAP = 136, NAMES = 168, TREE = 200, NODE = 248, ARRAY = 300 };

struct wanted {
    int item, exponent, fraction; /* bytes, bits */
    bool big;
    uint64_t dims[3], claimed;
    int rank;
    const uint8_t *values;
    int bytes;
    bool whole, is_signed; /* integers */
};

/* As many bytes as floats take, of which 12 count. */
static void put_whole_type(struct made *made, const struct wanted *wanted) {
    put_message(made, 3, 20);
    put(made, 0x10, 1);
    put(made, (uint64_t)(wanted->big ? 1 : 0) | (wanted->is_signed ? 8 : 0), 1);
    put(made, 0, 2);
    put(made, (uint64_t)wanted->item, 4);
    put(made, 0, 2);
    put(made, (uint64_t)(8 * wanted->item), 2);
    put(made, 0, 8);
}

static void put_float_type(struct made *made, const struct wanted *wanted) {
    const int bits = 8 * wanted->item;
    put_message(made, 3, 20);
    put(made, 0x11, 1);
    put(made, wanted->big ? 1 : 0, 1);
    put(made, (uint64_t)(bits - 1), 1);
    put(made, 0, 1);
    put(made, (uint64_t)wanted->item, 4);
    put(made, 0, 2);
    put(made, (uint64_t)bits, 2);
    put(made, (uint64_t)wanted->fraction, 1);
    put(made, (uint64_t)wanted->exponent, 1);
    put(made, 0, 1);
    put(made, (uint64_t)wanted->fraction, 1);
    put(made, 0, 4);
}

/* A root group with the array "a". */
static void make(struct made *made, const struct wanted *wanted) {
    *made = (struct made){.count = 0};
    put_text(made, "\x89HDF\r\n\x1a\n", 8);
    put(made, 0, 5);
    put(made, 8, 1);
    put(made, 8, 1);
    put(made, 0, 9);
    for (int i = 0; i < 5; i++) put(made, 0, 8);
    put(made, ROOT, 8);
    made->count = ROOT;
    put(made, 1, 2);
    put(made, 1, 2);
    put(made, 1, 4);
    put(made, 24, 8);
    put_message(made, 17, 16);
    put(made, TREE, 8);
    put(made, HEAP, 8);
    made->count = HEAP;
    put_text(made, "HEAP", 8);
    put(made, 16, 8);
    put(made, 0, 8);
    put(made, NAMES, 8);
    put_text(made, "", 8);
    put_text(made, "a", 8);
    made->count = TREE;
    put_text(made, "TREE", 4);
    put(made, 0, 2);
    put(made, 1, 2);
    put(made, 0, 24);
    put(made, NODE, 8);
    put(made, 0, 8);
    made->count = NODE;
    put_text(made, "SNOD\1", 6);
    put(made, 1, 2);
    put(made, 8, 8);
    put(made, ARRAY, 8);
    made->count = ARRAY;
    const int space = 8 + 8 * wanted->rank, data = ARRAY + 16 + (8 + space) + 28 + 26;
    put(made, 1, 2);
    put(made, 3, 2);
    put(made, 1, 4);
    put(made, (uint64_t)(data - ARRAY - 16), 8);
    put_message(made, 1, space);
    put(made, 1, 1);
    put(made, (uint64_t)wanted->rank, 1);
    put(made, 0, 6);
    for (int i = 0; i < wanted->rank; i++) put(made, wanted->dims[i], 8);
    if (wanted->whole)
        put_whole_type(made, wanted);
    else
        put_float_type(made, wanted);
    put_message(made, 8, 18);
    put(made, 3, 1);
    put(made, 1, 1);
    put(made, (uint64_t)data, 8);
    put(made, wanted->claimed, 8);
    for (int i = 0; i < wanted->bytes; i++) put(made, wanted->values[i], 1);
    put_at(made, END_AT, made->count, 8);
}

static int read_path(const struct made *made, const char *path, struct npy *array, struct error *error) {
    struct hdf5_reader file;
    uint64_t object = 0;
    *error = (struct error){0};
    RETURN_IF(hdf5_reader_open(&file, "f", made->bytes, made->count, error));
    RETURN_IF(hdf5_reader_find(&file, path, &object, error));
    if (object == 0) return error_set(error, ERROR_INTERNAL, "nothing is called %s", path);
    return hdf5_reader_array(&file, object, path, array, error);
}

static int read(const struct made *made, struct npy *array, struct error *error) {
    return read_path(made, "a", array, error);
}

static const uint8_t one_two[][16] = {{0, 0x3c, 0, 0xc0},
                                      {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0},
                                      {0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0xc0}};
static const struct wanted widths[] = {{.item = 2,
                                        .exponent = 5,
                                        .fraction = 10,
                                        .dims = {2},
                                        .rank = 1,
                                        .claimed = 4,
                                        .values = one_two[0],
                                        .bytes = 4},
                                       {.item = 4,
                                        .exponent = 8,
                                        .fraction = 23,
                                        .big = true,
                                        .dims = {1, 2},
                                        .rank = 2,
                                        .claimed = 8,
                                        .values = one_two[1],
                                        .bytes = 8},
                                       {.item = 8,
                                        .exponent = 11,
                                        .fraction = 52,
                                        .dims = {2, 1, 1},
                                        .rank = 3,
                                        .claimed = 16,
                                        .values = one_two[2],
                                        .bytes = 16}};

static void test_widths(void) {
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct made made;
        struct npy array = {0};
        struct error error;
        float values[2] = {0};
        make(&made, &widths[i]);
        CHECK(read(&made, &array, &error) == OK, "%s", error.words);
        CHECK(array.count == 2 && array.shape.rank == widths[i].rank, "%zu items", array.count);
        CHECK(npy_floats(&array, 0, 2, values, &error) == OK && values[0] == 1.0f && values[1] == -2.0f,
              "float%d: %g %g", 8 * widths[i].item, (double)values[0], (double)values[1]);
    }
}

static void refused(struct wanted wanted, const char *words) {
    struct made made;
    struct npy array;
    struct error error;
    make(&made, &wanted);
    CHECK(read(&made, &array, &error) == ERROR_FILE && strstr(error.words, words), "said %s, expected %s",
          error.words, words);
}

static void test_sizes(void) {
    struct wanted wanted = widths[1];
    wanted.claimed = 1ull << 40;
    refused(wanted, "an array lies outside of it");
    wanted.claimed = 8;
    wanted.dims[0] = 3;
    refused(wanted, "found 8 bytes, expected as many as the shape [3, 2] needs");
    wanted.dims[0] = 1ull << 31;
    refused(wanted, "found a dimension of 2147483648");
    wanted.dims[0] = 0;
    refused(wanted, "found the shape [0, 2], expected sizes of 1 or more");
    wanted = (struct wanted){.item = 4,
                             .exponent = 8,
                             .fraction = 23,
                             .rank = 3,
                             .claimed = 8,
                             .dims = {1 << 30, 1 << 30, 16},
                             .values = one_two[1],
                             .bytes = 8};
    refused(wanted, "found 8 bytes, expected as many as the shape"); /* 2^64 items are none in 64 bits */
    wanted = widths[0];
    wanted.exponent = 8;
    refused(wanted, "found floats of another format, expected float16, float32 or float64");
}

static int read_number(const struct made *made, double *number, struct error *error) {
    struct hdf5_reader file;
    uint64_t object = 0;
    *error = (struct error){0};
    RETURN_IF(hdf5_reader_open(&file, "f", made->bytes, made->count, error));
    RETURN_IF(hdf5_reader_find(&file, "a", &object, error));
    return hdf5_reader_number(&file, object, "a", number, error);
}

/* Of any width, order and sign, without dimensions; other than one of them is none. */
static void test_numbers(void) {
    static const uint8_t minus_two[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe},
                         most[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    const struct {
        struct wanted wanted;
        double number;
    } rows[] = {
        {{.item = 8, .whole = true, .is_signed = true, .big = true, .values = minus_two, .bytes = 8}, -2},
        {{.item = 2, .whole = true, .values = minus_two + 6, .bytes = 2}, 0xfeff},
        {{.item = 1, .whole = true, .is_signed = true, .rank = 2, .dims = {1, 1}, .values = most, .bytes = 1},
         -1},
        {{.item = 8, .whole = true, .values = most, .bytes = 8}, (double)INFINITY},
        {{.item = 4, .exponent = 8, .fraction = 23, .big = true, .values = one_two[1], .bytes = 4}, 1},
    };
    struct made made;
    struct error error;
    struct npy array;
    double number = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wanted wanted = rows[i].wanted;
        wanted.claimed = (uint64_t)wanted.bytes;
        make(&made, &wanted);
        const int code = read_number(&made, &number, &error);
        CHECK(code == OK && (number == rows[i].number), "row %zu: %g, %s", i, number, error.words);
    }
    struct wanted wanted = rows[0].wanted;
    wanted.claimed = 8;
    wanted.rank = 1;
    wanted.dims[0] = 2;
    make(&made, &wanted);
    CHECK(read_number(&made, &number, &error) == ERROR_FILE && strstr(error.words, "expected one"), "%s",
          error.words);
    wanted.dims[0] = 1;
    make(&made, &wanted);
    CHECK(read(&made, &array, &error) == ERROR_FILE &&
              strstr(error.words, "a: found integers, expected float16, float32 or float64"),
          "%s", error.words);
}

/* --- groups whose names are messages --- */

enum {
    LINKS = 1000,
    LINKS_HEAP = 1100,
    LINKS_TREE = 1300,
    LEAF = 1400,
    NODE_BYTES = 64,
    BLOCK = 1500,
    BLOCK_BYTES = 512
};
enum { LINK_BYTES = 14, BLOCK_HEAD = 21, NAMES_IN_HEAP = 3 };

/* The array is "\u00e4" or another name of two bytes. */
static void put_link(struct made *made, const char *name) {
    put(made, 1, 1);
    put(made, 0x10, 1); /* the characters are said: UTF-8 */
    put(made, 1, 1);
    put(made, 2, 1);
    put_text(made, name, 2);
    put(made, ARRAY, 8);
}

static void put_header(struct made *made, int type, int bytes) {
    made->count = LINKS;
    put(made, 1, 2);
    put(made, 1, 2);
    put(made, 1, 4);
    put(made, (uint64_t)bytes + 8, 8);
    put_message(made, type, bytes);
}

static void make_links(struct made *made) {
    make(made, &widths[0]);
    put_header(made, 6, LINK_BYTES);
    put_link(made, "\xc3\xa4");
    put_at(made, ROOT_AT, LINKS, 8);
    put_at(made, END_AT, made->count, 8);
}

/* A heap of one block, or, with rows, of a list of blocks, the second of which it is. */
static void put_heap(struct made *made, int rows) {
    made->count = LINKS_HEAP;
    put_text(made, "FRHP", 5);
    put(made, 7, 2);
    made->count = LINKS_HEAP + 110;
    put(made, 4, 2);
    put(made, BLOCK_BYTES, 8);
    put(made, 1 << 16, 8);
    put(made, 32, 2);
    put(made, 1, 2);
    put(made, rows ? (uint64_t)LINKS + 48 : BLOCK, 8);
    put(made, (uint64_t)rows, 2);
    made->count = LINKS + 48;
    put_text(made, "FHIB", 17);
    put(made, 0, 8);
    put(made, BLOCK, 8);
}

static void make_heap(struct made *made, int rows) {
    static const char *const names[NAMES_IN_HEAP] = {"\xc3\xbc", "\xc3\xa4", "bb"};
    const uint64_t first = BLOCK_HEAD + (uint64_t)(rows ? BLOCK_BYTES : 0);
    make(made, &widths[0]);
    put_header(made, 2, 18);
    put(made, 0, 2);
    put(made, LINKS_HEAP, 8);
    put(made, LINKS_TREE, 8);
    put_heap(made, rows);
    made->count = LINKS_TREE;
    put_text(made, "BTHD", 5);
    put(made, 5, 1);
    put(made, NODE_BYTES, 4);
    put(made, 11, 2);
    put(made, 0, 4);
    put(made, LEAF, 8);
    put(made, NAMES_IN_HEAP, 2);
    made->count = LEAF;
    put_text(made, "BTLF", 5);
    put(made, 5, 1);
    for (uint64_t i = 0; i < NAMES_IN_HEAP; i++) {
        put(made, 0, 5);
        put(made, first + LINK_BYTES * i, 4);
        put(made, LINK_BYTES, 2);
    }
    made->count = BLOCK;
    put_text(made, "FHDB", BLOCK_HEAD);
    for (int i = 0; i < NAMES_IN_HEAP; i++) put_link(made, names[i]);
    made->count = BLOCK + BLOCK_BYTES;
    put_at(made, ROOT_AT, LINKS, 8);
    put_at(made, END_AT, made->count, 8);
}

/* Every byte that is something else: what it is then, or an error with words. */
static void damage(const struct made *made, const char *path) {
    struct npy array;
    struct error error;
    for (size_t at = 8; at < made->count; at++)
        for (int value = 0; value < 256; value += 51) {
            struct made bad = *made;
            bad.bytes[at] = (uint8_t)value;
            CHECK(read_path(&bad, path, &array, &error) == OK || *error.words, "byte %zu: no words", at);
        }
}

static void test_links(void) {
    struct made made;
    struct npy array = {0};
    struct error error;
    for (int form = 0; form < 3; form++) {
        if (form == 0)
            make_links(&made);
        else
            make_heap(&made, form - 1);
        CHECK(read_path(&made, "\xc3\xa4", &array, &error) == OK && array.count == 2, "form %d: %s", form,
              error.words);
        CHECK(read_path(&made, "\xc3\xa5", &array, &error) == ERROR_INTERNAL, "form %d: %s", form,
              error.words);
        damage(&made, "\xc3\xa4");
        damage(&made, "\xc3\xa5");
    }
    make_heap(&made, 0);
    made.bytes[BLOCK] = 'X';
    CHECK(read_path(&made, "\xc3\xa4", &array, &error) == ERROR_FILE &&
              strstr(error.words, "a name lies in no block"),
          "%s", error.words);
}

/* What is behind the end is no part of it. */
static void test_end(void) {
    struct made made;
    struct npy array;
    struct error error;
    make(&made, &widths[1]);
    made.count--;
    char words[100];
    snprintf(words, sizeof words, "f: found %zu bytes, expected %zu, as its superblock says", made.count,
             made.count + 1);
    CHECK(read(&made, &array, &error) == ERROR_FILE && strcmp(error.words, words) == 0, "%s", error.words);
    made.count += 9;
    CHECK(read(&made, &array, &error) == OK, "%s", error.words);
}

/* A tree that is its own child, and every cut: an error, and an end. */
static void test_damage(void) {
    struct made made, cut;
    struct npy array;
    struct error error;
    make(&made, &widths[1]);
    made.bytes[TREE + 5] = 1; /* a level above, whose child it is */
    made.bytes[TREE + 32] = TREE;
    CHECK(read(&made, &array, &error) == ERROR_FILE && strstr(error.words, "without a tree"), "%s",
          error.words);
    make(&made, &widths[1]);
    for (int said = 0; said < 2; said++) {
        for (size_t count = 0; count < made.count; count++) {
            cut = made;
            cut.count = count;
            CHECK(read(&cut, &array, &error) != OK && *error.words, "%zu of its bytes were taken", count);
        }
        put_at(&made, END_AT, 0, 8); /* then the places in it tell */
    }
    damage(&made, "a");
}

int main(void) {
    test_widths();
    test_sizes();
    test_numbers();
    test_links();
    test_end();
    test_damage();
    return check_end();
}
