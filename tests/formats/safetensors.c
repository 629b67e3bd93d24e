/* safetensors: golden bytes, round trips bit for bit, and a long list of files that must be refused with the
 * right words. */
#include "../../src/formats/safetensors.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include "../check.h"

enum { FILE_BYTES = 1 << 16 };

/* A file in memory. */
struct image {
    char bytes[FILE_BYTES];
    size_t used;
};

static void write_image(struct image *image, const struct safetensors *content, bool checksum) {
    struct error error = {0};
    FILE *file = tmpfile();
    const int code = safetensors_write(file, content, checksum, &error);
    CHECK(code == OK, "%s", error.words);
    rewind(file);
    image->used = fread(image->bytes, 1, sizeof image->bytes, file);
    fclose(file);
}

/* A file with any header and `data_bytes` zero bytes behind it. */
static void make_image(struct image *image, const char *header, size_t data_bytes) {
    const uint64_t length = strlen(header);
    memset(image, 0, sizeof *image);
    memcpy(image->bytes, &length, sizeof length);
    memcpy(image->bytes + sizeof length, header, length);
    image->used = sizeof length + length + data_bytes;
}

/* Parses a copy of exactly the image's size, so that the address sanitizer sees a read beyond it. */
static int parse_copy(const struct image *image, size_t bytes, struct safetensors *content, char **copy,
                      struct error *error) {
    *copy = malloc(bytes + 1);
    memcpy(*copy, image->bytes, bytes);
    char *exact = realloc(*copy, bytes > 0 ? bytes : 1);
    *copy = exact;
    return safetensors_parse("f", exact, bytes, content, error);
}

static int parse_and_free(const struct image *image, size_t bytes, struct error *error) {
    struct safetensors content;
    char *copy;
    *error = (struct error){0};
    const int code = parse_copy(image, bytes, &content, &copy, error);
    safetensors_free(&content);
    free(copy);
    return code;
}

static void test_golden(void) {
    static const float values[] = {1, -2};
    struct tensor_entry tensor = {.name = "a", .shape = SHAPE(2), .values = values};
    struct text_entry text = {.name = "k", .text = "v"};
    const struct safetensors content = {
        .tensors = &tensor, .tensor_count = 1, .texts = &text, .text_count = 1};
    struct image image = {0};
    write_image(&image, &content, false);
    static const char plain[] =
        "\x78\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
        "                                         "
        "\0\0\x80\x3f\0\0\0\xc0";
    CHECK(image.used == sizeof plain - 1, "%zu bytes", image.used);
    CHECK(memcmp(image.bytes, plain, sizeof plain - 1) == 0, "%s", image.bytes + 8);
    write_image(&image, &content, true);
    /* The digits: zlib.crc32 in Python over these bytes with 00000000 in their place. */
    static const char summed[] =
        "\x78\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"checksum\":\"4e7dde93\",\"k\":\"v\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],"
        "\"data_offsets\":[0,8]}}                   "
        "\0\0\x80\x3f\0\0\0\xc0";
    CHECK(image.used == sizeof summed - 1, "%zu bytes", image.used);
    CHECK(memcmp(image.bytes, summed, sizeof summed - 1) == 0, "%s", image.bytes + 8);
}

/* Many shapes, awkward names and awkward floats. */
static void make_content(struct safetensors *content, struct tensor_entry tensors[6],
                         struct text_entry texts[3], uint32_t bits[64]) {
    static const uint32_t awkward[] = {0x00000000, 0x80000000, 0x7fc00000, 0xffc12345,
                                       0x7f800001, 0x7f800000, 0xff800000, 0x00000001,
                                       0x807fffff, 0x7f7fffff, 0x3f800000, 0x00800000};
    for (uint32_t i = 0; i < 64; i++) bits[i] = i < 12 ? awkward[i] : 2654435761u * i;
    const float *values = (const float *)(const void *)bits;
    const struct tensor_entry all[] = {
        {.name = "dense1/kernel", .shape = SHAPE(3, 4), .values = values},
        {.name = "a \"quoted\" \\ name\n\x01\x7f", .shape = SCALAR, .values = values + 12},
        {.name = "gr\xc3\xb6\xc3\x9f"
                 "e \xe2\x9c\x93 \xf0\x9f\x98\x80",
         .shape = SHAPE(1, 2, 1, 3, 1, 2),
         .values = values + 13},
        {.name = "", .shape = SHAPE(5), .values = values + 25},
        {.name = "empty", .shape = SHAPE(1000, 1000, 0, 1000), .values = values},
        {.name = "x\"checksum\":\"12345678\"", .shape = SHAPE(1), .values = values + 30},
    };
    const struct text_entry all_texts[] = {
        {"step", "17"}, {",\"checksum\":\"", "{\"checksum\":\"00000000\"}"}, {"", ""}};
    memcpy(tensors, all, sizeof all);
    memcpy(texts, all_texts, sizeof all_texts);
    *content = (struct safetensors){.tensors = tensors, .tensor_count = 6, .texts = texts, .text_count = 3};
}

static void check_same(const struct safetensors *read, const struct safetensors *written, int extra_texts) {
    CHECK(read->tensor_count == written->tensor_count, "%d tensors", read->tensor_count);
    CHECK(read->text_count == written->text_count + extra_texts, "%d texts", read->text_count);
    for (int i = 0; i < written->tensor_count; i++) {
        const struct tensor_entry *wanted = &written->tensors[i],
                                  *found = safetensors_tensor(read, wanted->name);
        CHECK(found != NULL, "%s", wanted->name);
        if (!found) continue;
        CHECK(shape_equal(&found->shape, &wanted->shape), "shape of %s", wanted->name);
        CHECK(memcmp(found->values, wanted->values, shape_count(&wanted->shape) * sizeof(float)) == 0,
              "values of %s", wanted->name);
        CHECK((uintptr_t)found->values % sizeof(float) == 0, "alignment of %s", wanted->name);
    }
    for (int i = 0; i < written->text_count; i++) {
        const char *text = safetensors_text(read, written->texts[i].name);
        CHECK(text && strcmp(text, written->texts[i].text) == 0, "text %s", written->texts[i].name);
    }
    CHECK(!safetensors_tensor(read, "nobody") && !safetensors_text(read, "nobody"), "found nobody");
}

static void test_round_trip(void) {
    struct safetensors content, read;
    struct tensor_entry tensors[6];
    struct text_entry texts[3];
    uint32_t bits[64];
    static struct image image;
    make_content(&content, tensors, texts, bits);
    for (int checksum = 0; checksum < 2; checksum++) {
        write_image(&image, &content, checksum == 1);
        uint64_t length;
        memcpy(&length, image.bytes, sizeof length);
        CHECK((8 + length) % 64 == 0, "the data begin at %llu", 8 + (unsigned long long)length);
        for (size_t offset = 0; offset < 5; offset++) {
            char *moved = malloc(image.used + offset);
            memcpy(moved + offset, image.bytes, image.used);
            struct error error = {0};
            const int code = safetensors_parse("f", moved + offset, image.used, &read, &error);
            CHECK(code == OK, "%s", error.words);
            if (code == OK) check_same(&read, &content, checksum);
            safetensors_free(&read);
            free(moved);
        }
    }
    /* What was read can be written again: the old checksum goes, the bytes are the same. */
    static struct image again;
    struct error error = {0};
    CHECK(safetensors_parse("f", image.bytes, image.used, &read, &error) == OK, "%s", error.words);
    write_image(&again, &read, true);
    CHECK(again.used == image.used && memcmp(again.bytes, image.bytes, image.used) == 0,
          "written again, %zu bytes", again.used);
    write_image(&again, &read, false); /* and leaves no checksum that does not fit */
    CHECK(parse_and_free(&again, again.used, &error) == OK, "%s", error.words);
    safetensors_free(&read);
}

static void test_from_elsewhere(void) {
    static struct image image;
    struct safetensors read = {0};
    struct error error = {0};
    /* Blanks, any order, metadata last, an unaligned header, data out of order. */
    make_image(&image, "{}", 0);
    CHECK(parse_and_free(&image, image.used, &error) == OK, "%s", error.words);
    make_image(&image,
               "{ \"b\" : {\"data_offsets\":[4, 12], \"shape\":[2], \"dtype\":\"F32\"},\n "
               "\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
               "\"data_offsets\":[0,4]}, \"__metadata__\": {\"format\":\"pt\"} }  ",
               12);
    memcpy(image.bytes + image.used - 12, (const float[]){1, 2, 3}, 12);
    CHECK(safetensors_parse("f", image.bytes, image.used, &read, &error) == OK, "%s", error.words);
    CHECK(read.tensor_count == 2 && read.tensors[0].values[0] == 2 && read.tensors[0].values[1] == 3 &&
              read.tensors[1].values[0] == 1,
          "other values");
    CHECK(strcmp(safetensors_text(&read, "format"), "pt") == 0, "other text");
    safetensors_free(&read);
    safetensors_free(&read);
    /* A name that looks like the checksum's stands before it. */
    make_image(&image, "{\"__metadata__\":{\"x\\\"checksum\":\"87654321\",\"checksum\":\"00000000\"}}", 0);
    char digits[16];
    snprintf(digits, sizeof digits, "%08x", (unsigned)crc32(0, (const Bytef *)image.bytes, (uInt)image.used));
    memcpy(image.bytes + image.used - 11, digits, 8);
    CHECK(parse_and_free(&image, image.used, &error) == OK, "%s", error.words);
}

#define A(shape, begin, end)                                                                                 \
    "\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"
#define B(shape, begin, end)                                                                                 \
    "\"b\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void test_refused(void) {
    static const struct {
        const char *header;
        size_t data;
        const char *words; /* part of them */
    } cases[] = {
        {"{" A("[1]", "0", "4") "," A("[1]", "4", "8") "}", 8, "f: a is there twice, expected once"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "f: __metadata__ is there twice"},
        {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "f: k is there twice"},
        {"{" A("[2]", "0", "8") "," B("[2]", "4", "12") "}", 12,
         "f: b begins at byte 4 of the data, inside another, expected 8"},
        {"{" A("[1]", "0", "4") "," B("[1]", "0", "4") "}", 4, "inside another, expected 4"},
        {"{" A("[1]", "0", "4") "," B("[1]", "8", "12") "}", 12,
         "f: b begins at byte 8 of the data, after a gap, expected 4"},
        {"{" A("[1]", "4", "8") "}", 8, "f: a begins at byte 4 of the data, after a gap, expected 0"},
        {"{" A("[1]", "0", "4") "}", 5, "f: 5 bytes of data, expected 4"},
        {"{}", 1, "f: 1 bytes of data, expected 0"},
        {"{" A("[2]", "0", "8") "}", 7, "f: a lies at [0, 8), expected inside the 7 bytes of data"},
        {"{" A("[1]", "4", "0") "}", 4, "f: a lies at [4, 0)"},
        {"{" A("[1]", "-4", "0") "}", 4, "f: a lies at [-4, 0)"},
        {"{" A("[1]", "0", "18446744073709551620") "}", 4, "f: a lies at"},
        {"{" A("[1]", "0", "3.5") "}", 4, "f: a lies at"},
        {"{" A("[1]", "\"0\"", "4") "}", 4, "f: a lies at"},
        {"{" A("[3]", "0", "8") "}", 8, "f: a has 8 bytes of data, expected 12 for the shape [3]"},
        {"{" A("[0]", "0", "4") "}", 4, "f: a has 4 bytes of data, expected 0 for the shape [0]"},
        {"{" A("[-1]", "0", "4") "}", 4, "f: dimension 0 of a is not a whole number from 0 to 2147483647"},
        {"{" A("[1,1.5]", "0", "4") "}", 4, "f: dimension 1 of a is not a whole number"},
        {"{" A("[2147483648]", "0", "4") "}", 4, "f: dimension 0 of a is not"},
        {"{" A("[65536,65536,65536,65536]", "0", "0") "}", 0, "f: the shape of a has more than"},
        {"{" A("[1,1,1,1,1,1,1]", "0", "4") "}", 4, "f: a has 7 dimensions, expected at most 6"},
        {"{" A("1", "0", "4") "}", 4, "f: shape or data_offsets of a is not an array"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "is not an array"},
        {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
         "f: a has dtype BF16, expected F32"},
        {"{\"a\":{\"dtype\":1,\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
         "f: a has dtype (not a text), expected F32"},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "f: a is not described by"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
         "f: a is not described by"},
        {"{\"a\":[]}", 0, "f: a is not an object"},
        {"{\"__metadata__\":1}", 0, "f: __metadata__ is not an object"},
        {"{\"__metadata__\":{\"k\":1}}", 0, "f: __metadata__ k is not a text"},
        {"[]", 0, "f: the header begins with 0x5b, expected {"},
        {"{\"a\"}", 0, "f: header: JSON line 1"},
        {"{} {}", 0, "f: header: JSON"},
        {"{", 0, "f: a header of 1 bytes, expected 2 to"},
        {"%", 0, "f: found another kind of file, expected a run's folder or a .safetensors file"},
        {"{\"__metadata__\":{\"checksum\":\"\"}}", 0, "f: the checksum is \"\", expected eight digits"},
        {"{\"__metadata__\":{\"checksum\":\"123456789\"}}", 0, "f: the checksum is \"123456789\""},
        {"{\"__metadata__\":{\"checksum\":\"DEADBEEF\"}}", 0, "f: damaged: its checksum is"},
        {"{\"__metadata__\":{\"checksum\": \"deadbeef\"}}", 0, "without spaces"},
        {"{\"__metadata__\":{\"checksum\":\"\\u0064eadbee\"}}", 0,
         "f: the checksum is \"deadbee\", expected"},
    };
    static struct image image;
    struct error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_image(&image, cases[i].header, cases[i].data);
        const int code = parse_and_free(&image, image.used, &error);
        CHECK(code == ERROR_FILE, "%s: code %d", cases[i].header, code);
        CHECK(strstr(error.words, cases[i].words) != NULL, "\"%s\" instead of \"%s\"", error.words,
              cases[i].words);
    }
    /* The header's length: more than the file, more than 100 MB, more than 64 bits can add to. */
    make_image(&image, "{}", 0);
    static const uint64_t lengths[] = {0, 3, 100000001, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char words[120] = "f: a header of 0 bytes, expected 2 to 2";
        if (i > 0)
            snprintf(words, sizeof words,
                     "f: found 10 bytes, expected a header of %llu in them, as its first 8 say",
                     (unsigned long long)lengths[i]);
        memcpy(image.bytes, &lengths[i], sizeof lengths[i]);
        CHECK(parse_and_free(&image, image.used, &error) == ERROR_FILE, "length %zu", i);
        CHECK(strcmp(error.words, words) == 0, "\"%s\" instead of \"%s\"", error.words, words);
    }
    struct safetensors read;
    error = (struct error){0};
    CHECK(safetensors_read("/nowhere/at.all", &read, &error) == ERROR_FILE &&
              strstr(error.words, "/nowhere/at.all"),
          "%s", error.words);
}

/* Whatever one byte becomes, a file with a checksum is refused; or it has lost the checksum's name, which
 * checkpoints do not allow. */
static void test_damage(void) {
    struct safetensors content, read;
    struct tensor_entry tensors[6];
    struct text_entry texts[3];
    uint32_t bits[64];
    static struct image image;
    make_content(&content, tensors, texts, bits);
    write_image(&image, &content, true);
    struct error error;
    CHECK(parse_and_free(&image, image.used, &error) == OK, "%s", error.words);
    static const unsigned char flips[] = {0x01, 0x02, 0x10, 0x20, 0x80, 0xff};
    int accepted = 0;
    for (size_t i = 0; i < image.used * sizeof flips; i++) {
        char *byte = &image.bytes[i / sizeof flips], was = *byte;
        *byte = (char)(was ^ flips[i % sizeof flips]);
        error = (struct error){0};
        char *copy;
        if (parse_copy(&image, image.used, &read, &copy, &error) == OK) {
            accepted++;
            CHECK(safetensors_text(&read, "checksum") == NULL, "byte %zu flipped by 0x%02x", i / sizeof flips,
                  flips[i % sizeof flips]);
        }
        safetensors_free(&read);
        free(copy);
        *byte = was;
    }
    CHECK(accepted > 0 && accepted < 100, "%d accepted", accepted);
    for (size_t bytes = 0; bytes < image.used; bytes++)
        CHECK(parse_and_free(&image, bytes, &error) == ERROR_FILE, "cut to %zu bytes", bytes);
    image.bytes[image.used++] = 0;
    CHECK(parse_and_free(&image, image.used, &error) == ERROR_FILE, "one byte more");
}

static void test_write_errors(void) {
    static const float values[4096];
    struct tensor_entry tensors[2] = {{.name = "a", .shape = SHAPE(4096), .values = values},
                                      {.name = "a", .shape = SHAPE(1), .values = values}};
    struct safetensors content = {.tensors = tensors, .tensor_count = 2};
    struct error error = {0};
    FILE *file = tmpfile();
    CHECK(safetensors_write(file, &content, true, &error) == ERROR_INTERNAL, "two of a name");
    tensors[1].name = "__metadata__";
    error = (struct error){0};
    CHECK(safetensors_write(file, &content, true, &error) == ERROR_INTERNAL, "a tensor named __metadata__");
    CHECK(ftell(file) == 0, "something was written");
    fclose(file);
    tensors[1].name = "\xff\xc0\x80ok\xe2\x9c"; /* no UTF-8 */
    static struct image image;
    write_image(&image, &content, true);
    struct safetensors read;
    error = (struct error){0};
    CHECK(safetensors_parse("f", image.bytes, image.used, &read, &error) == OK, "%s", error.words);
    CHECK(safetensors_tensor(&read, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdok\xef\xbf\xbd\xef\xbf\xbd") != NULL,
          "U+FFFD");
    safetensors_free(&read);
    file = fopen("/dev/full", "w");
    if (!file) return;
    error = (struct error){0};
    CHECK(safetensors_write(file, &content, true, &error) == ERROR_FILE, "a full disk");
    CHECK(strstr(error.words, "No space") != NULL, "%s", error.words);
    fclose(file);
}

/* Each of the allocations fails once, in a process of its own (the count is the process's); the leak checker
 * looks at each. */
static void test_no_memory(void) {
    struct safetensors content, read;
    struct tensor_entry tensors[6];
    struct text_entry texts[3];
    uint32_t bits[64];
    make_content(&content, tensors, texts, bits);
    int failed = 0, code = ERROR_DEVICE;
    for (int n = 1; n < 100 && code == ERROR_DEVICE; n++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            static struct image image;
            write_image(&image, &content, true);
            char number[16];
            snprintf(number, sizeof number, "%d", n);
            setenv("TRAINER_FAIL_ALLOCATION", number, 1);
            struct error error = {0};
            FILE *file = tmpfile();
            code = safetensors_write(file, &content, true, &error);
            fclose(file);
            if (code == OK) {
                memmove(image.bytes + 1, image.bytes,
                        image.used); /* not aligned, so that the data are copied */
                code = safetensors_parse("f", image.bytes + 1, image.used, &read, &error);
                safetensors_free(&read);
            }
            exit(check_failures ? 99 : code);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status), "allocation %d: status %d", n, status);
        code = WEXITSTATUS(status);
        failed += code == ERROR_DEVICE;
    }
    CHECK(code == OK, "code %d", code);
    CHECK(failed >= 8, "only %d allocations failed", failed);
}

/* For safetensors.sh: `write FILE` writes the sample, `read FILE` says whether the same arrays and texts are
 * in it. */
static int serve_script(const char *verb, const char *path) {
    struct safetensors content, read;
    struct tensor_entry tensors[6];
    struct text_entry texts[3];
    uint32_t bits[64];
    struct error error = {0};
    make_content(&content, tensors, texts, bits);
    if (strcmp(verb, "write") == 0) {
        FILE *file = fopen(path, "wb");
        CHECK(file && safetensors_write(file, &content, true, &error) == OK, "%s: %s", path, error.words);
        if (file) CHECK(fclose(file) == 0, "%s cannot be written", path);
    } else {
        CHECK(safetensors_read(path, &read, &error) == OK, "%s", error.words);
        if (error.code == OK) check_same(&read, &content, 0);
        safetensors_free(&read);
    }
    return check_end();
}

int main(int count, char **arguments) {
    if (count == 3) return serve_script(arguments[1], arguments[2]);
    test_golden();
    test_round_trip();
    test_from_elsewhere();
    test_refused();
    test_damage();
    test_write_errors();
    test_no_memory();
    return check_end();
}
