/* Pictures: PNG files of every kind made here chunk by chunk, a JPEG file of another program, both cut
 * at every byte; scaling against the formula, written down plainly. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "../../src/data/picture.h"
#include "../check.h"
#include "../jpeg_sample.h"

enum { MOST = 1 << 16, HEIGHT = 5, WIDTH = 7, PIXELS = HEIGHT * WIDTH };

static uint8_t noise(int i) {
    return (uint8_t)((unsigned)(i + 1) * 2654435761u >> 13);
}

/* --- scaling --- */

/* Each value from all pixels of the part, in two dimensions at once. */
static double expected_at(const struct picture *picture, const struct picture_part *part, int height,
                          int width, int y, int x, int c) {
    const double tall = part->height / height, wide = part->width / width;
    const double reach_y = fmax(1, tall), reach_x = fmax(1, wide);
    const double middle_y = part->top + (y + 0.5) * tall, middle_x = part->left + (x + 0.5) * wide;
    double sum = 0, weights = 0;
    for (int row = (int)part->top; row < part->top + part->height; row++)
        for (int column = (int)part->left; column < part->left + part->width; column++) {
            const double tall_left = fmin(row + 1, part->top + part->height) - fmax(row, part->top),
                         wide_left = fmin(column + 1, part->left + part->width) - fmax(column, part->left);
            const double weight = tall_left * fmax(0, 1 - fabs(row + 0.5 - middle_y) / reach_y) * wide_left *
                                  fmax(0, 1 - fabs(column + 0.5 - middle_x) / reach_x);
            const int at = (row * picture->width + column) * picture->channels + c;
            sum += weight * picture->pixels[at];
            weights += weight;
        }
    return sum / weights;
}

static void check_fit(int from_height, int from_width, const struct picture_part *part, int height, int width,
                      int channels) {
    struct error error = {0};
    uint8_t *pixels = malloc((size_t)(from_height * from_width * channels));
    float *out = malloc((size_t)(height * width * channels) * sizeof *out);
    CHECK(pixels && out, "no memory");
    for (int i = 0; i < from_height * from_width * channels; i++) pixels[i] = noise(i);
    const struct picture picture = {
        .height = from_height, .width = from_width, .channels = channels, .pixels = pixels};
    for (int i = 0; i < height * width * channels; i++) out[i] = -1e9f; /* what was there does not count */
    CHECK(picture_fit(&picture, part, height, width, out, &error) == OK, "%s", error.words);
    for (int i = 0; i < height * width * channels; i++) {
        const int c = i % channels, x = i / channels % width, y = i / channels / width;
        const double wanted = expected_at(&picture, part, height, width, y, x, c);
        const int is_same =
            from_height == height && from_width == width && part->height == height && part->width == width;
        CHECK(is_same ? out[i] == (float)pixels[i] : fabs((double)out[i] - wanted) < 1e-3,
              "%dx%d to %dx%d: row %d, column %d, channel %d is %g, expected %g", from_height, from_width,
              height, width, y, x, c, (double)out[i], wanted);
    }
    free(pixels);
    free(out);
}

static void check_scaling(void) {
    const int sizes[][2] = {{1, 1}, {28, 28}, {5, 7}, {8, 56}, {100, 3}, {33, 32}};
    const int count = (int)(sizeof sizes / sizeof *sizes);
    const struct picture_part parts[] = {
        {3, 1, 20, 30}, {0.5, 0.25, 11.75, 25}, {32, 31, 1, 1}, {4.875, 7, 28.125, 24.5}};
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++) {
            const struct picture_part whole = {0, 0, sizes[from][0], sizes[from][1]};
            check_fit(sizes[from][0], sizes[from][1], &whole, sizes[to][0], sizes[to][1],
                      from % 2 == 0 ? 3 : 1);
        }
    for (int i = 0; i < 4; i++)
        for (int to = 0; to < count; to++)
            check_fit(33, 32, &parts[i], sizes[to][0], sizes[to][1], i % 2 == 0 ? 3 : 1);
}

/* --- files --- */

struct file {
    uint8_t bytes[MOST];
    size_t length;
};

static const uint8_t png_begin[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static void put(uint8_t *at, size_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void add_chunk(struct file *file, const char *kind, const uint8_t *bytes, size_t count) {
    uint8_t *at = file->bytes + file->length;
    put(at, count);
    memcpy(at + 4, kind, 4);
    if (count > 0) memcpy(at + 8, bytes, count);
    put(at + 8 + count, crc32(0, at + 4, (uInt)count + 4));
    file->length += 12 + count;
}

/* rows: [height][1 + row_bytes], each after its filter's number 0. */
static void make_png(struct file *file, size_t width, size_t height, int depth, int kind,
                     const uint8_t *palette, size_t palette_bytes, const uint8_t *rows, size_t bytes) {
    uint8_t head[13] = {0}, packed[MOST / 2];
    uLongf length = sizeof packed;
    put(head, width);
    put(head + 4, height);
    head[8] = (uint8_t)depth;
    head[9] = (uint8_t)kind;
    memcpy(file->bytes, png_begin, sizeof png_begin);
    file->length = sizeof png_begin;
    add_chunk(file, "IHDR", head, sizeof head);
    if (palette) add_chunk(file, "PLTE", palette, palette_bytes);
    CHECK(compress(packed, &length, rows, bytes) == Z_OK, "zlib");
    add_chunk(file, "tEXt", (const uint8_t *)"Title\0noise", 11);
    add_chunk(file, "IDAT", packed, length / 2);
    add_chunk(file, "IDAT", packed + length / 2, length - length / 2);
    add_chunk(file, "IEND", NULL, 0);
}

#if TRAINER_STB

static void refused(const struct file *file, size_t length, const char *words) {
    struct picture picture;
    struct error error = {0};
    uint8_t *exact = malloc(length + 1); /* so that the address sanitizer sees a byte too many */
    if (!exact) return;
    memcpy(exact, file->bytes, length);
    exact = realloc(exact, length > 0 ? length : 1);
    CHECK(picture_decode(&picture, 3, "cat.png", exact, length, &error) == ERROR_FILE,
          "%zu bytes: no error (%s)", length, words);
    CHECK(strncmp(error.words, "cat.png: ", 9) == 0 && strstr(error.words, words) != NULL,
          "found %s, expected %s", error.words, words);
    CHECK(picture.pixels == NULL, "pixels are left");
    free(exact);
}

static int on_white(int value, int opacity) {
    return (int)floor((value * opacity + 255.0 * (255 - opacity)) / 255.0 + 0.5);
}

static int grey_of(const int seen[3]) {
    return (int)floor((77 * seen[0] + 150 * seen[1] + 29 * seen[2]) / 256.0 + 0.5);
}

/* One kind of PNG into both numbers of channels. */
static void check_kind(int kind, int depth) {
    const int samples[] = {1, 0, 3, 1, 2, 0, 4};
    const int channels = samples[kind];
    const size_t row_bytes = (size_t)(WIDTH * channels * depth + 7) / 8;
    uint8_t rows[HEIGHT * (1 + WIDTH * 8)] = {0}, palette[3 * 256];
    int seen[PIXELS][3];
    struct file file;
    for (int i = 0; i < 3 * 256; i++) palette[i] = noise(1000 + i);
    for (int p = 0; p < PIXELS; p++) {
        int value[4] = {0};
        for (int c = 0; c < channels; c++) {
            const int raw = noise(p * 4 + c) >> (depth < 8 ? 8 - depth : 0),
                      most = depth < 8 ? (1 << depth) - 1 : 255;
            const size_t bit = (size_t)((p % WIDTH * channels + c) * depth);
            uint8_t *at = rows + (size_t)(p / WIDTH) * (1 + row_bytes) + 1 + bit / 8;
            *at = (uint8_t)(*at | raw << (depth < 8 ? 8 - depth - (int)(bit % 8) : 0));
            if (depth == 16) at[1] = noise(p * 4 + c + 77);
            value[c] = kind == 3 ? raw : raw * 255 / most;
        }
        const int opacity = kind == 4 ? value[1] : kind == 6 ? value[3] : 255;
        for (int c = 0; c < 3; c++) {
            const int colour = kind == 3                ? palette[3 * value[0] + c]
                               : kind == 2 || kind == 6 ? value[c]
                                                        : value[0];
            seen[p][c] = on_white(colour, opacity);
        }
    }
    make_png(&file, WIDTH, HEIGHT, depth, kind, kind == 3 ? palette : NULL,
             (size_t)3 << (depth > 8 ? 8 : depth), rows, HEIGHT * (1 + row_bytes));
    CHECK(picture_is(file.bytes, file.length), "not seen to be a PNG");
    for (int wanted = 1; wanted <= 3; wanted += 2) {
        struct picture picture;
        struct error error = {0};
        const int code = picture_decode(&picture, wanted, "f", file.bytes, file.length, &error);
        CHECK(code == OK, "kind %d, %d bits: %s", kind, depth, error.words);
        if (code != OK) continue;
        CHECK(picture.height == HEIGHT && picture.width == WIDTH && picture.channels == wanted,
              "%d x %d x %d", picture.height, picture.width, picture.channels);
        for (int i = 0; i < PIXELS * wanted; i++) {
            const int expected = wanted == 3 ? seen[i / 3][i % 3] : grey_of(seen[i]);
            CHECK(picture.pixels[i] == expected,
                  "kind %d, %d bits, %d channels: number %d is %d, expected %d", kind, depth, wanted, i,
                  picture.pixels[i], expected);
        }
        picture_close(&picture);
    }
}

static void check_kinds(void) {
    for (int depth = 1; depth <= 16; depth *= 2) {
        check_kind(0, depth);
        if (depth <= 8) check_kind(3, depth);
        if (depth >= 8) check_kind(2, depth);
        if (depth >= 8) check_kind(4, depth);
        if (depth >= 8) check_kind(6, depth);
    }
}

static void append(struct file *file, const uint8_t *bytes, size_t count) {
    memcpy(file->bytes + file->length, bytes, count);
    file->length += count;
}

static void check_jpeg(void) {
    struct file file = {.length = 0};
    struct picture picture;
    struct error error = {0};
    append(&file, jpeg_sample, sizeof jpeg_sample);
    for (int wanted = 1; wanted <= 3; wanted += 2) {
        CHECK(picture_decode(&picture, wanted, "f", file.bytes, file.length, &error) == OK, "%s",
              error.words);
        CHECK(picture.height == JPEG_HEIGHT && picture.width == JPEG_WIDTH, "%d x %d", picture.height,
              picture.width);
        for (int i = 0; i < JPEG_HEIGHT * JPEG_WIDTH * wanted && error.code == OK; i++) {
            const int p = i / wanted, seen[3] = {p % JPEG_WIDTH * 12, p / JPEG_WIDTH * 20, 99};
            const int expected = wanted == 3 ? seen[i % 3] : grey_of(seen);
            CHECK(abs(picture.pixels[i] - expected) <= 4, "number %d is %d, expected %d", i,
                  picture.pixels[i], expected);
        }
        picture_close(&picture);
    }
    for (size_t length = 0; length < file.length; length++)
        refused(&file, length,
                length < 3 ? "no PNG, JPEG, BMP or GIF picture" : "the JPEG ends too early, after ");
    /* A small picture within, as cameras put there: its end is not the end. */
    struct file within = {.length = 2};
    memcpy(within.bytes, file.bytes, 2);
    const size_t segment = file.length + 2;
    const uint8_t head[] = {0xff, 0xe1, (uint8_t)(segment >> 8), (uint8_t)segment};
    append(&within, head, sizeof head);
    append(&within, file.bytes, file.length);
    append(&within, file.bytes + 2, file.length - 2);
    CHECK(picture_decode(&picture, 3, "f", within.bytes, within.length, &error) == OK, "%s", error.words);
    picture_close(&picture);
    refused(&within, within.length - 2, "the JPEG ends too early, after ");
    refused(&within, 2 + segment + 2, "the JPEG ends too early, after ");
}

/* Where the contents of the first segment of that code begin. */
static uint8_t *find_segment(struct file *file, uint8_t code) {
    for (size_t i = 0; i + 4 < file->length; i++)
        if (file->bytes[i] == 0xff && file->bytes[i + 1] == code) return file->bytes + i + 4;
    CHECK(0, "no segment %02x", code);
    return file->bytes;
}

/* Tables that stb_image 2.27 believes. */
static void check_tables(void) {
    struct file file, good = {.length = 0};
    append(&good, jpeg_sample, sizeof jpeg_sample);
    file = good;
    find_segment(&file, 0xc4)[16] = 255; /* codes of 16 bits in the first table */
    refused(&file, file.length, "damaged JPEG: segment ffc4 at byte ");
    file = good;
    /* A segment more, of one table of 16 x 17 codes, all there. */
    enum { EACH = 17, CODES = 16 * EACH, LENGTH = 2 + 17 + CODES };
    const uint8_t head[] = {0xff, 0xd8, 0xff, 0xc4, LENGTH >> 8, LENGTH & 255, 0x10};
    uint8_t table[16 + CODES] = {0};
    memset(table, EACH, 16);
    file.length = 0;
    append(&file, head, sizeof head);
    append(&file, table, sizeof table);
    append(&file, good.bytes + 2, good.length - 2);
    refused(&file, file.length, "damaged JPEG: segment ffc4 at byte 2 ");
    file = good;
    find_segment(&file, 0xc4)[17 + 3] = 16; /* bits of a difference */
    refused(&file, file.length, "damaged JPEG: segment ffc4 at byte ");
    for (int sampling = 0; sampling < 256; sampling++) {
        const int across = sampling >> 4, down = sampling & 15;
        struct picture picture;
        struct error error = {0};
        file = good;
        find_segment(&file, 0xc0)[6 + 1] =
            (uint8_t)sampling; /* of the first component; 1 x 1 of the others */
        const int code = picture_decode(&picture, 1, "f", file.bytes, file.length, &error);
        CHECK((across >= 1 && down >= 1) || code == ERROR_FILE, "sampling %02x: accepted", sampling);
        picture_close(&picture);
        find_segment(&file, 0xc0)[9 + 1] = 0x22;
        error = (struct error){0};
        if ((across == 3 || down == 3) && sampling > 0x10)
            refused(&file, file.length, "damaged JPEG: segment ffc0 at byte ");
    }
    file = good;
    find_segment(&file, 0xda)[2] = 0x30; /* a scan with the fourth table of DC, which is not there */
    refused(&file, file.length, "damaged JPEG: segment ffda at byte ");
    file = good;
    find_segment(&file, 0xdb)[0] = 2; /* the quantization table 0 is number 2 */
    refused(&file, file.length, "damaged JPEG: segment ffda at byte ");
    file = good;
    find_segment(&file, 0xc0)[5] = 4; /* components, of which three are there */
    refused(&file, file.length, "damaged JPEG: segment ffc0 at byte ");
}

static void check_damage(void) {
    struct file file, broken;
    uint8_t rows[HEIGHT * (1 + WIDTH)] = {0};
    for (int i = 0; i < PIXELS; i++) rows[i / WIDTH * (1 + WIDTH) + 1 + i % WIDTH] = noise(i);
    make_png(&file, WIDTH, HEIGHT, 8, 0, NULL, 0, rows, sizeof rows);
    for (size_t length = 0; length < file.length; length++)
        refused(&file, length,
                length < sizeof png_begin ? "no PNG, JPEG, BMP or GIF picture"
                                          : "the PNG ends too early, after ");
    for (size_t i = 0; i < file.length; i++) {
        broken = file;
        broken.bytes[i] ^= 0x10;
        refused(&broken, broken.length, "");
    }
    broken = file;
    broken.bytes[file.length - 20] ^= 1; /* within the second IDAT */
    refused(&broken, broken.length, "damaged PNG: the check sum of chunk IDAT is wrong");
    make_png(&broken, WIDTH, HEIGHT + 1, 8, 0, NULL, 0, rows, sizeof rows); /* a row too few */
    refused(&broken, broken.length, "not a usable picture: ");
    make_png(&broken, 0, HEIGHT, 8, 0, NULL, 0, rows, sizeof rows);
    refused(&broken, broken.length, "not a usable picture: ");
    make_png(&broken, 8193, 8192, 8, 0, NULL, 0, rows, sizeof rows);
    refused(&broken, broken.length, "8193 x 8192 pixels, expected at most 67108864 together");
    make_png(&broken, 0x7fffffff, 0x7fffffff, 8, 6, NULL, 0, rows, sizeof rows);
    refused(&broken, broken.length, "");
}

static void accepted(const struct file *file, int width, int height) {
    struct picture picture;
    struct error error = {0};
    CHECK(picture_decode(&picture, 3, "f", file->bytes, file->length, &error) == OK, "%s", error.words);
    CHECK(picture.width == width && picture.height == height, "%d x %d", picture.width, picture.height);
    picture_close(&picture);
}

/* What is more than is decoded: sides, rows behind the rows, scans; and as much as is. */
static void check_limits(void) {
    enum { SIDE = 1 << 16, EXTRA = 1 << 20, SCANS = 100 };
    static uint8_t rows[2 + EXTRA + 1];
    static struct file file, good;
    make_png(&file, SIDE, 1, 8, 0, NULL, 0, rows, 1 + SIDE);
    accepted(&file, SIDE, 1);
    make_png(&file, 1, SIDE, 8, 0, NULL, 0, rows, 2 * SIDE);
    accepted(&file, 1, SIDE);
    make_png(&file, SIDE + 1, 1, 8, 0, NULL, 0, rows, 2 + SIDE);
    refused(&file, file.length, "65537 x 1 pixels, expected at most 65536 a side");
    make_png(&file, 1, SIDE + 1, 8, 0, NULL, 0, rows, 2 * SIDE + 2);
    refused(&file, file.length, "1 x 65537 pixels, expected at most 65536 a side");
    make_png(&file, 1, 1, 8, 0, NULL, 0, rows, 2 + EXTRA);
    accepted(&file, 1, 1);
    make_png(&file, 1, 1, 8, 0, NULL, 0, rows, 2 + EXTRA + 1);
    refused(&file, file.length, "damaged PNG: more than the 1048578 bytes that its rows have");
    append(&good, jpeg_sample, sizeof jpeg_sample);
    const size_t scan = (size_t)(find_segment(&good, 0xda) - good.bytes) - 4, bytes = good.length - 2 - scan;
    file = good;
    for (int scans = 1; scans <= SCANS; scans++) {
        if (scans == SCANS) accepted(&file, JPEG_WIDTH, JPEG_HEIGHT);
        file.length -= 2; /* the end mark */
        append(&file, good.bytes + scan, bytes + 2);
    }
    refused(&file, file.length, "a JPEG of more than 100 scans, expected at most 100");
    file = good;
    memset(find_segment(&file, 0xc0) + 1, 0xff, 4);
    refused(&file, file.length, "65535 x 65535 pixels, expected at most 67108864 together");
}

static void check_files(void) {
    check_kinds();
    check_jpeg();
    check_tables();
    check_damage();
    check_limits();
}

#else

static void check_files(void) {
    struct file file;
    struct picture picture;
    struct error error = {0};
    const uint8_t row[] = {0, 1};
    make_png(&file, 1, 1, 8, 0, NULL, 0, row, sizeof row);
    CHECK(picture_decode(&picture, 3, "f", file.bytes, file.length, &error) == ERROR_FILE, "no error");
    CHECK(strcmp(error.words, "f: a picture, which this build cannot read: it has no stb_image") == 0, "%s",
          error.words);
}

#endif

/* Other pictures are known by how they begin; a table that begins with the same letters is none. */
static void check_others(void) {
    const struct {
        const char *kind, *begin;
    } others[] = {{"WebP", "RIFF\x1a\0\0\0WEBP"},
                  {"TIFF", "II*\0\x8\0\0\0\0\0\0\0"},
                  {"TIFF", "MM\0*\0\0\0\x8\0\0\0\0"},
                  {NULL, "BMI,age,height\n"},
                  {NULL, "RIFF,WEBP,1,2"},
                  {NULL, "MM,II,1,2,3,4"},
                  {NULL, "1,2,3,4,5,6,7"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *found = picture_other(others[i].begin, 12);
        CHECK(others[i].kind ? found && strcmp(found, others[i].kind) == 0 : !found, "%s: found %s",
              others[i].begin, found ? found : "none");
        CHECK(picture_other(others[i].begin, 11) == NULL && !picture_is(others[i].begin, 12), "%s",
              others[i].begin);
    }
}

int main(void) {
    check_scaling();
    check_others();
    check_files();
    return check_end();
}
