/* BMP, the first frame of GIF, JPEG that lies on its side, and the part of a picture that is cut out: files
 * made by hand, pixel by pixel, cut at every byte, and such as are more work than they look. */
#include <stdlib.h>
#include "../../src/data/picture.h"
#include "../check.h"
#include "../picture_files.h"

enum { MOST = 1 << 22, HEIGHT = 3, WIDTH = 5, PIXELS = HEIGHT * WIDTH };

/* --- a picture's shape --- */

/* height x width as the shape down x across: where the part begins, and its size. */
static void check_crop(int height, int width, int down, int across, const int expected[4]) {
    const struct picture_part part = picture_middle(height, width, down, across);
    const double found[4] = {part.top, part.left, part.height, part.width};
    for (int i = 0; i < 4; i++)
        CHECK(found[i] == expected[i], "%d x %d as %d x %d: number %d is %g, expected %d", height, width,
              down, across, i, found[i], expected[i]);
}

static void check_crops(void) {
    check_crop(4, 10, 1, 1, (const int[]){0, 3, 4, 4});
    check_crop(10, 4, 1, 1, (const int[]){3, 0, 4, 4});
    check_crop(4, 7, 32, 32, (const int[]){0, 1, 4, 4});
    check_crop(6, 6, 2, 1, (const int[]){0, 1, 6, 3});
    check_crop(6, 6, 1, 3, (const int[]){2, 0, 2, 6});
    check_crop(5, 8, 5, 8, (const int[]){0, 0, 5, 8});
    check_crop(1, 9, 9, 1, (const int[]){0, 4, 1, 1});
}

#if TRAINER_STB

static uint8_t noise(int i) {
    return (uint8_t)((unsigned)(i + 1) * 2654435761u >> 13);
}

static int decode(struct picture *picture, int channels, const uint8_t *bytes, size_t count,
                  struct error *error) {
    uint8_t *exact = malloc(count > 0 ? count : 1); /* so that the address sanitizer sees a byte too many */
    *error = (struct error){0};
    if (!exact) return error_set(error, ERROR_DEVICE, "no memory");
    memcpy(exact, bytes, count);
    const int code = picture_decode(picture, channels, "f", exact, count, error);
    free(exact);
    return code;
}

static void refused(const uint8_t *bytes, size_t count, const char *words) {
    struct picture picture;
    struct error error;
    const int code = decode(&picture, 3, bytes, count, &error);
    CHECK(code == ERROR_FILE && strncmp(error.words, "f: ", 3) == 0 && strstr(error.words, words),
          "%zu bytes: code %d, %s, expected %s", count, code, error.words, words);
    picture_close(&picture);
}

/* pixels: [height][width][3]. */
static void shows(const char *what, const uint8_t *bytes, size_t count, int height, int width,
                  const uint8_t *pixels) {
    struct picture picture;
    struct error error;
    CHECK(decode(&picture, 3, bytes, count, &error) == OK, "%s: %s", what, error.words);
    CHECK(error.code != OK || (picture.height == height && picture.width == width), "%s: %d x %d", what,
          picture.height, picture.width);
    if (error.code == OK && picture.height == height && picture.width == width)
        for (int i = 0; i < height * width * 3; i++)
            CHECK(picture.pixels[i] == pixels[i], "%s: number %d is %d, expected %d", what, i,
                  picture.pixels[i], pixels[i]);
    picture_close(&picture);
}

/* --- BMP --- */

/* The bits of a pixel, and what they show. */
static unsigned long bmp_pixel(int i, int bits, const uint8_t *palette, uint8_t shown[3]) {
    const uint8_t colour[3] = {noise(3 * i), noise(3 * i + 1), noise(3 * i + 2)};
    const unsigned number = bits <= 8 ? (unsigned)colour[0] >> (8 - bits) : 0;
    memcpy(shown, colour, 3);
    if (bits <= 8) {
        for (int c = 0; c < 3; c++) shown[c] = palette[4 * number + 2 - (unsigned)c];
        return number;
    }
    if (bits > 16) return (unsigned long)colour[0] << 16 | (unsigned long)colour[1] << 8 | colour[2];
    for (int c = 0; c < 3; c++) shown[c] = (uint8_t)((colour[c] & 0xf8) | colour[c] >> 5); /* 5 bits each */
    return (unsigned long)(colour[0] >> 3) << 10 | (unsigned long)(colour[1] >> 3) << 5 | colour[2] >> 3;
}

static size_t fill_bmp(uint8_t *out, int bits, int from_above, uint8_t *shown) {
    const int colours = bits <= 8 ? 1 << bits : 0;
    const size_t rows = bmp_head(out, WIDTH, from_above ? -HEIGHT : HEIGHT, bits, colours),
                 stride = bmp_stride(WIDTH, bits);
    for (int i = 0; i < 4 * colours; i++) out[BMP_HEAD + i] = i % 4 == 3 ? 0 : noise(500 + i);
    memset(out + rows, 0, stride * HEIGHT);
    for (int i = 0; i < PIXELS; i++) {
        const int y = i / WIDTH, x = i % WIDTH;
        uint8_t *row = out + rows + (size_t)(from_above ? y : HEIGHT - 1 - y) * stride;
        const unsigned long value = bmp_pixel(i, bits, out + BMP_HEAD, shown + 3 * i);
        if (bits < 8)
            row[x * bits / 8] = (uint8_t)(row[x * bits / 8] | value << (8 - bits - x * bits % 8));
        else
            put_little(row + x * bits / 8, value, bits / 8);
    }
    return rows + stride * HEIGHT;
}

static void check_bmp(void) {
    static const int depths[] = {1, 4, 8, 16, 24, 32};
    uint8_t bytes[2000], shown[3 * PIXELS];
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++)
        for (int from_above = 0; from_above < 2; from_above++) {
            char what[40];
            const size_t count = fill_bmp(bytes, depths[d], from_above, shown);
            snprintf(what, sizeof what, "a BMP of %d bits", depths[d]);
            CHECK(picture_is(bytes, count), "%s: not seen to be one", what);
            shows(what, bytes, count, HEIGHT, WIDTH, shown);
            for (size_t cut = 0; cut < count; cut++)
                refused(bytes, cut,
                        cut < 12 ? "no PNG, JPEG, BMP or GIF picture" : "the BMP ends too early, after ");
        }
}

static void check_bmp_limits(void) {
    uint8_t bytes[2000], shown[3 * PIXELS];
    const struct {
        int at, bytes;
        size_t value;
        const char *words;
    } wrong[] = {{18, 4, 0, "damaged BMP: 0 x 3 pixels"},
                 {22, 4, 0, "damaged BMP: 5 x 0 pixels"},
                 {18, 4, 65537, "65537 x 3 pixels, expected at most 65536 a side"},
                 {18, 4, 0xffffffff, "4294967295 x 3 pixels, expected at most"},
                 {22, 4, 0x80000000, "5 x 2147483648 pixels, expected at most"},
                 {22, 4, 65536, "the BMP ends too early, after "},
                 {28, 2, 7, "a BMP with a head of 40 bytes, 7 bits per pixel, packing 0"},
                 {30, 4, 1, "a BMP with a head of 40 bytes, 8 bits per pixel, packing 1"},
                 {14, 4, 12, "a BMP with a head of 12 bytes"},
                 {14, 4, 0xfffffff0, "damaged BMP: 5 x 3 pixels from byte "},
                 {10, 4, 53, "damaged BMP: 5 x 3 pixels from byte 53 on"},
                 {10, 4, 0xffffffff, "the BMP ends too early, after "},
                 {26, 2, 2, "not a usable picture: "}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const size_t count = fill_bmp(bytes, 8, 0, shown);
        put_little(bytes + wrong[i].at, wrong[i].value, wrong[i].bytes);
        refused(bytes, count, wrong[i].words);
    }
    const size_t rows = bmp_head(bytes, WIDTH, HEIGHT, 8, 3);
    memset(bytes + rows, 2, bmp_stride(WIDTH, 8) * HEIGHT);
    bytes[rows + 6] = 255; /* behind the end of a row, where no pixel is */
    memset(shown, 0, sizeof shown);
    shows("three colours", bytes, rows + bmp_stride(WIDTH, 8) * HEIGHT, HEIGHT, WIDTH, shown);
    bytes[rows + 9] = 3;
    refused(bytes, rows + bmp_stride(WIDTH, 8) * HEIGHT, "damaged BMP: a pixel beyond its 3 colours");
}

/* --- GIF --- */

static void fill_gif(uint8_t colours[48], uint8_t *numbers, uint8_t *shown, int count) {
    for (int i = 0; i < 48; i++) colours[i] = noise(i + 900);
    for (int i = 0; i < count; i++) {
        numbers[i] = noise(i) & 15;
        memcpy(shown + 3 * i, colours + 3 * numbers[i], 3);
    }
}

static void check_gif(void) {
    uint8_t bytes[2000], colours[48], numbers[PIXELS], shown[3 * PIXELS];
    fill_gif(colours, numbers, shown, PIXELS);
    size_t count = gif_head(bytes, WIDTH, HEIGHT, colours, 2);
    count += gif_frame(bytes + count, 0, 0, WIDTH, HEIGHT, 0);
    count += gif_pixels(bytes + count, numbers, PIXELS);
    CHECK(picture_is(bytes, count), "not seen to be a GIF");
    shows("a GIF", bytes, count, HEIGHT, WIDTH, shown);
    /* A byte may be missing behind the code for the end. */
    for (size_t cut = 0; cut + 1 < count; cut++)
        refused(bytes, cut, cut < 12 ? "no PNG, JPEG, BMP or GIF picture" : "the GIF ends too early, after ");
    uint8_t fewer[2000]; /* and the code for the end */
    memcpy(fewer, bytes, count);
    const size_t frame = gif_head(fewer, WIDTH, HEIGHT, colours, 2) + GIF_FRAME_HEAD;
    refused(fewer, frame + gif_pixels(fewer + frame, numbers, PIXELS - 1), "fewer pixels than its frame has");
    /* What follows the first frame is not looked at. */
    memset(bytes + count, 0x2c, 100);
    shows("a second frame that is none", bytes, count + 100, HEIGHT, WIDTH, shown);
    uint8_t extended[2000];
    const uint8_t comment[] = {0x21, 0xfe, 3, 'a', 'b', 'c', 1, 'd', 0};
    memcpy(extended, bytes, 61);
    memcpy(extended + 61, comment, sizeof comment);
    memcpy(extended + 61 + sizeof comment, bytes + 61, count - 61);
    shows("a comment", extended, count + sizeof comment, HEIGHT, WIDTH, shown);
    extended[61] = 0x22;
    refused(extended, count + sizeof comment, "damaged GIF: no frame at byte ");
}

/* Rows 0, 8, 16 ..., 4, 12, ..., 2, 6, ..., 1, 3, ... */
static void check_interlaced(void) {
    enum { TALL = 19 };
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    uint8_t bytes[2000], colours[48], numbers[TALL], shown[3 * TALL], ordered[3 * TALL];
    int row = 0;
    fill_gif(colours, numbers, shown, TALL);
    for (int pass = 0; pass < 4; pass++)
        for (int y = first[pass]; y < TALL; y += step[pass]) memcpy(ordered + 3 * y, shown + 3 * row++, 3);
    size_t count = gif_head(bytes, 1, TALL, colours, 0);
    count += gif_frame(bytes + count, 0, 0, 1, TALL, 0x40);
    count += gif_pixels(bytes + count, numbers, TALL);
    shows("an interlaced GIF", bytes, count, TALL, 1, ordered);
}

/* A frame in a part of the screen, of which one colour is transparent: the rest is white, whatever the
 * background. */
static void check_bare(void) {
    uint8_t bytes[2000], colours[48], numbers[4] = {3, 1, 1, 5}, shown[3 * PIXELS];
    const uint8_t transparent[] = {0x21, 0xf9, 4, 1, 0, 0, 1, 0};
    for (int i = 0; i < 48; i++) colours[i] = noise(i);
    for (int back = 0; back < 16; back += 7) {
        memset(shown, 255, sizeof shown);
        memcpy(shown + 3 * (1 * WIDTH + 2), colours + 3 * 3, 3);
        memcpy(shown + 3 * (2 * WIDTH + 3), colours + 3 * 5, 3);
        size_t count = gif_head(bytes, WIDTH, HEIGHT, colours, back);
        memcpy(bytes + count, transparent, sizeof transparent);
        count += sizeof transparent;
        count += gif_frame(bytes + count, 2, 1, 2, 2, 0);
        count += gif_pixels(bytes + count, numbers, 4);
        shows("a frame in the screen", bytes, count, HEIGHT, WIDTH, shown);
    }
}

/* Codes that grow: pixels that are all the same, each code one longer than the one before, over and over. */
static size_t fill_bomb(uint8_t *out, int width, int height, long pixels) {
    uint8_t colours[48];
    for (int i = 0; i < 48; i++) colours[i] = noise(i);
    size_t count = gif_head(out, width, height, colours, 0);
    count += gif_frame(out + count, 0, 0, width, height, 0);
    struct gif_codes codes = gif_begin(out + count);
    gif_code(&codes, GIF_CLEAR, 5);
    int bits = 5;
    for (long done = 0; done < pixels;) {
        int next = 18;
        gif_code(&codes, 7, bits);
        done++;
        for (int length = 2; next < 4095 && done < pixels; length++) {
            gif_code(&codes, (unsigned)next, bits); /* the one that is made just now */
            if (++next == 1 << bits && bits < 12) bits++;
            done += length;
        }
        gif_code(&codes, GIF_CLEAR, bits);
        bits = 5;
    }
    gif_code(&codes, GIF_OVER, bits);
    return count + gif_end(&codes);
}

static void check_gif_limits(void) {
    static uint8_t bytes[MOST];
    uint8_t colours[48], numbers[PIXELS], shown[3 * PIXELS];
    struct picture picture;
    struct error error;
    size_t count = fill_bomb(bytes, 1000, 1000, 1000000);
    CHECK(decode(&picture, 1, bytes, count, &error) == OK && picture.pixels[999999] == picture.pixels[0],
          "%s", error.words);
    picture_close(&picture);
    count = fill_bomb(bytes, 1, 1, 100000000);
    CHECK(count < MOST, "%zu bytes", count);
    refused(bytes, count, "damaged GIF: more pixels than its frame has at byte ");
    fill_gif(colours, numbers, shown, PIXELS);
    count = gif_head(bytes, 9000, 9000, colours, 0);
    refused(bytes, count, "9000 x 9000 pixels, expected at most 67108864 together");
    count = gif_head(bytes, 0, 5, colours, 0);
    refused(bytes, count, "damaged GIF: a screen without pixels");
    count = gif_head(bytes, WIDTH, HEIGHT, colours, 0);
    const size_t head = count;
    count += gif_frame(bytes + count, 1, 0, WIDTH, HEIGHT, 0);
    count += gif_pixels(bytes + count, numbers, PIXELS);
    refused(bytes, count, "damaged GIF: a frame beyond the screen");
    bytes[head + 1] = 0;
    bytes[head + GIF_FRAME_HEAD] = 9;
    refused(bytes, count, "damaged GIF: codes of an unknown size");
    bytes[head + GIF_FRAME_HEAD] = 4;
    struct gif_codes codes = gif_begin(bytes + head + GIF_FRAME_HEAD);
    gif_code(&codes, GIF_CLEAR, 5);
    gif_code(&codes, 18, 5); /* which nothing has made */
    refused(bytes, head + GIF_FRAME_HEAD + gif_end(&codes), "damaged GIF: a code that cannot be at byte ");
    bytes[10] = 0;
    memmove(bytes + 13, bytes + head, count - head);
    refused(bytes, count - 48, "damaged GIF: a frame without colours");
}

/* --- JPEG on its side --- */

static void check_turned(void) {
    uint8_t bytes[sizeof jpeg_sample + EXIF_SEGMENT], turned[3 * JPEG_HEIGHT * JPEG_WIDTH];
    struct picture upright;
    struct error error;
    CHECK(decode(&upright, 3, jpeg_sample, sizeof jpeg_sample, &error) == OK, "%s", error.words);
    const int h = JPEG_HEIGHT, w = JPEG_WIDTH;
    for (int orientation = 1; orientation <= 8; orientation++) {
        const int height = orientation > 4 ? w : h, width = orientation > 4 ? h : w;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                const int from[8][2] = {{y, x}, {y, w - 1 - x}, {h - 1 - y, w - 1 - x}, {h - 1 - y, x},
                                        {x, y}, {h - 1 - x, y}, {h - 1 - x, w - 1 - y}, {x, w - 1 - y}};
                const int *place = from[orientation - 1];
                memcpy(turned + 3 * (y * width + x), upright.pixels + 3 * (place[0] * w + place[1]), 3);
            }
        const size_t count = make_turned_jpeg(bytes, orientation, orientation % 2);
        shows("a JPEG on its side", bytes, count, height, width, turned);
    }
    picture_close(&upright);
}

static void check_files(void) {
    check_bmp();
    check_bmp_limits();
    check_gif();
    check_interlaced();
    check_bare();
    check_gif_limits();
    check_turned();
}

#else

static void check_files(void) {}

#endif

int main(void) {
    check_crops();
    check_files();
    return check_end();
}
