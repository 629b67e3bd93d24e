/* Files of pictures made by hand, for tests: BMP of every depth, GIF, and a JPEG that says which way is up.
 */
#ifndef TRAINER_TESTS_PICTURE_FILES_H
#define TRAINER_TESTS_PICTURE_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "jpeg_sample.h"

static inline void put_little(uint8_t *at, size_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> (8 * i));
}

enum { BMP_HEAD = 54 };

/* The heads of a BMP of so many colours in its palette; rows of `stride` bytes follow from above (height < 0)
 * or from below. Returns where they begin. */
static inline size_t bmp_head(uint8_t *out, int width, int height, int bits, int colours) {
    const size_t rows = BMP_HEAD + 4 * (size_t)colours;
    memset(out, 0, rows);
    memcpy(out, "BM", 2);
    put_little(out + 10, rows, 4);
    put_little(out + 14, 40, 4);
    put_little(out + 18, (size_t)width, 4);
    put_little(out + 22, (size_t)height, 4);
    put_little(out + 26, 1, 2);
    put_little(out + 28, (size_t)bits, 2);
    return rows;
}

static inline size_t bmp_stride(int width, int bits) {
    return ((size_t)width * (size_t)bits + 31) / 32 * 4;
}

/* A BMP of 24 bits, from above. pixels: [height][width][3]. Returns its bytes. */
static inline size_t make_bmp(uint8_t *out, int width, int height, const uint8_t *pixels) {
    const size_t rows = bmp_head(out, width, -height, 24, 0), stride = bmp_stride(width, 24);
    memset(out + rows, 0, stride * (size_t)height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                out[rows + (size_t)y * stride + (size_t)(3 * x + 2 - c)] = pixels[(y * width + x) * 3 + c];
    return rows + stride * (size_t)height;
}

/* Codes of GIF, packed into blocks. */
struct gif_codes {
    uint8_t *out;
    size_t used, block; /* block: where the length of the open one stands */
    unsigned held;
    int holds;
};

static inline void gif_byte(struct gif_codes *codes, unsigned byte) {
    if (codes->out[codes->block] == 255) {
        codes->block = codes->used++;
        codes->out[codes->block] = 0;
    }
    codes->out[codes->used++] = (uint8_t)byte;
    codes->out[codes->block]++;
}

static inline void gif_code(struct gif_codes *codes, unsigned code, int bits) {
    codes->held |= code << codes->holds;
    for (codes->holds += bits; codes->holds >= 8; codes->holds -= 8, codes->held >>= 8)
        gif_byte(codes, codes->held & 255);
}

/* Begins the blocks at out: 4 bits of a pixel. */
static inline struct gif_codes gif_begin(uint8_t *out) {
    out[0] = 4;
    out[1] = 0;
    return (struct gif_codes){.out = out, .used = 2, .block = 1};
}

static inline size_t gif_end(struct gif_codes *codes) {
    if (codes->holds > 0) gif_byte(codes, codes->held & 255);
    if (codes->out[codes->block] > 0) codes->out[codes->used++] = 0; /* else it is the empty one itself */
    return codes->used;
}

/* A GIF of 16 colours up to its first frame; back: the number of the background. Returns its bytes. */
static inline size_t gif_head(uint8_t *out, int width, int height, const uint8_t colours[48], int back) {
    memcpy(out, "GIF89a", 6);
    put_little(out + 6, (size_t)width, 2);
    put_little(out + 8, (size_t)height, 2);
    out[10] = 0x80 | 3;
    out[11] = (uint8_t)back;
    out[12] = 0;
    memcpy(out + 13, colours, 48);
    return 13 + 48;
}

enum { GIF_FRAME_HEAD = 10, GIF_CLEAR = 16, GIF_OVER = 17 };

/* The head of a frame at out. Returns its bytes. */
static inline size_t gif_frame(uint8_t *out, int left, int top, int width, int height, int flags) {
    out[0] = 0x2c;
    put_little(out + 1, (size_t)left, 2);
    put_little(out + 3, (size_t)top, 2);
    put_little(out + 5, (size_t)width, 2);
    put_little(out + 7, (size_t)height, 2);
    out[9] = (uint8_t)flags;
    return GIF_FRAME_HEAD;
}

/* Pixels 0 to 15, one code each, forgotten before codes get longer. Returns the bytes. */
static inline size_t gif_pixels(uint8_t *out, const uint8_t *pixels, int count) {
    enum { BITS = 5, OFTEN = 8 };
    struct gif_codes codes = gif_begin(out);
    for (int i = 0; i < count; i++) {
        if (i % OFTEN == 0) gif_code(&codes, GIF_CLEAR, BITS);
        gif_code(&codes, pixels[i], BITS);
    }
    gif_code(&codes, GIF_OVER, BITS);
    return gif_end(&codes);
}

/* The segment of a JPEG that says an orientation, in either order of bytes. Returns its bytes. */
enum { EXIF_SEGMENT = 36 };
static inline size_t make_exif(uint8_t out[EXIF_SEGMENT], int orientation, int is_big) {
    static const uint8_t little[] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0,    0, 'I', 'I',
                                     42,   0,    8, 0,  0,   0,   1,   0,   0x12, 1, 3,   0,
                                     1,    0,    0, 0,  1,   0,   0,   0,   0,    0, 0,   0};
    static const uint8_t big[] = {0xff, 0xe1, 0, 34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                                  0,    1,    1, 0x12, 0,   3,   0,   0,   0, 1, 0,   1,   0, 0,  0, 0, 0, 0};
    memcpy(out, is_big ? big : little, EXIF_SEGMENT);
    out[is_big ? 29 : 28] = (uint8_t)orientation;
    return EXIF_SEGMENT;
}

/* The sample with that segment at its beginning. Returns its bytes. */
static inline size_t make_turned_jpeg(uint8_t *out, int orientation, int is_big) {
    memcpy(out, jpeg_sample, 2);
    const size_t segment = make_exif(out + 2, orientation, is_big);
    memcpy(out + 2 + segment, jpeg_sample + 2, sizeof jpeg_sample - 2);
    return sizeof jpeg_sample + segment;
}

#endif
