/* Fuzzing of pictures: clang -fsanitize=fuzzer,address over this file and the library. An input is read
 * as a file as it is, and as the raw material of a PNG: a head, and rows that get compressed into chunks with
 * their check sums. Starts from JPEG, BMP and GIF files and from such rows. Says at the end how many inputs
 * of each kind were accepted, and fails when there was none of one. */
#include <zlib.h>
#include "../src/base/memory.h"
#include "../src/data/picture_check.h"
#include "fuzz.h"
#include "picture_files.h"

enum { MOST = 1 << 16, SIDE = 9 };

static const char *const kinds[] = {"PNG", "JPEG", "BMP", "GIF",
                                    NULL}; /* as picture_kind numbers them, from 1 */

static void put(uint8_t *at, size_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static size_t add_chunk(uint8_t *at, const char *kind, const uint8_t *bytes, size_t count) {
    put(at, count);
    memcpy(at + 4, kind, 4);
    if (count > 0) memcpy(at + 8, bytes, count);
    put(at + 8 + count, crc32(0, at + 4, (uInt)count + 4));
    return 12 + count;
}

/* A PNG of a small size: data[0..4] say its head, then come a palette when it needs one, and its rows. */
static size_t make_png(uint8_t *out, const uint8_t *data, size_t bytes) {
    static const uint8_t kinds[] = {0, 2, 3, 4, 6, 1, 7, 0}, depths[] = {8, 1, 2, 4, 16, 8, 8, 3};
    uint8_t head[13] = {0}, packed[MOST / 2];
    uLongf length = sizeof packed;
    if (bytes < 5 || bytes > MOST / 4) return 0;
    put(head, data[1] % 16);
    put(head + 4, data[2] % 16);
    head[8] = depths[data[3] & 7];
    head[9] = kinds[data[4] & 7];
    head[12] = data[3] >> 7;
    size_t used = 8, at = 5;
    memcpy(out, "\x89PNG\r\n\x1a\n", used);
    used += add_chunk(out + used, "IHDR", head, sizeof head);
    const size_t palette = (size_t)(data[4] >> 3) * 3;
    if (palette > 0 && at + palette < bytes) {
        used += add_chunk(out + used, "PLTE", data + at, palette);
        at += palette;
        if (data[3] & 64) used += add_chunk(out + used, "tRNS", data + at, bytes - at < 6 ? bytes - at : 6);
    }
    if (compress(packed, &length, data + at, bytes - at) != Z_OK) abort();
    if (data[3] & 32) /* the packed bytes themselves */
        used += add_chunk(out + used, "IDAT", data + at, bytes - at);
    else
        used += add_chunk(out + used, "IDAT", packed, length);
    return used + add_chunk(out + used, "IEND", NULL, 0);
}

static void fuzz_picture(const uint8_t *bytes, size_t count, int channels) {
    const struct picture_form form = {SIDE, SIDE - 2, channels,
                                      bytes[count / 2] % 2 ? PICTURE_CROP : PICTURE_SQUASH};
    const struct picture_form small = {2, 1, channels, form.fit}; /* of what may be decoded smaller */
    struct picture picture;
    struct error error = {0}, again = {0};
    float out[SIDE * SIDE * 3];
    const int code = picture_decode(&picture, channels, "f", bytes, count, &error);
    if (code == OK) {
        fuzz.accepted[picture_kind(bytes, count) - PICTURE_IS_PNG]++;
        if (picture.channels != channels || picture.height < 1 || picture.width < 1) abort();
    } else if (!*error.words) {
        abort();
    }
    picture_close(&picture);
    if (picture_read(&form, "f", bytes, count, out, &again) != code) abort();
    for (int i = 0; i < SIDE * (SIDE - 2) * channels && code == OK; i++)
        if (!(out[i] >= -0.01f && out[i] <= 255.01f)) abort();
    if (code == OK && picture_read(&small, "f", bytes, count, out, &again) != OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static uint8_t made[MOST];
    fuzz_count(kinds);
    if (bytes < 1) return 0;
    const size_t length = make_png(made, data, bytes);
    if (length > 0) fuzz_picture(made, length, data[0] & 1 ? 3 : 1);
    fuzz_picture(data, bytes, 3);
    return 0;
}

/* --- samples --- */

/* A JPEG file, now and then of another size, or one that says that it is progressive. */
static size_t make_jpeg(uint8_t *out, size_t most, unsigned seed) {
    if (most < sizeof jpeg_sample) return 0;
    memcpy(out, jpeg_sample, sizeof jpeg_sample);
    for (size_t i = 0; i + 8 < sizeof jpeg_sample; i++) {
        if (out[i] != 0xff || out[i + 1] != 0xc0) continue; /* the head of the frame */
        if (seed % 4 == 0) out[i + 1] = 0xc2;
        if (seed % 3 == 0) out[i + 6] = (uint8_t)(seed >> 4);
        if (seed % 3 == 1) out[i + 8] = (uint8_t)(seed >> 4);
    }
    return sizeof jpeg_sample;
}

/* What make_png takes: a head and rows. Half of them are a picture: 8 bits of grey, rows of the first three
 * filters. */
static size_t make_rows(uint8_t *out, size_t most, unsigned seed) {
    const size_t count = most < 1100 ? most : 1100;
    const bool good = seed >> 31;
    for (size_t i = 0; i < count; i++)
        out[i] = i < 5 ? (uint8_t)(seed >> (4 * i)) : (uint8_t)(good ? i % 3 : i % 3 * i);
    for (size_t i = 1; i < 5 && i < count && good; i++) out[i] = i < 3 ? out[i] % 15 + 1 : 0;
    return count;
}

/* A BMP of some depth, or a GIF of some screen. */
static size_t make_other(uint8_t *out, size_t most, unsigned seed) {
    enum { ENOUGH = 4000, WIDTH = 7, HEIGHT = 5, COLOURS = 48 };
    static const int depths[] = {1, 4, 8, 16, 24, 32};
    const int bits = depths[seed / 2 % 6];
    uint8_t pixels[WIDTH * HEIGHT], colours[COLOURS];
    if (most < ENOUGH) return 0;
    if (seed % 2 == 0) {
        const size_t rows =
            bmp_head(out, WIDTH, seed / 16 % 2 ? HEIGHT : -HEIGHT, bits, bits <= 8 ? 1 << bits : 0);
        const size_t bytes = bmp_stride(WIDTH, bits) * HEIGHT;
        for (size_t i = BMP_HEAD; i < rows + bytes; i++) out[i] = (uint8_t)(i * seed >> 3);
        return rows + bytes;
    }
    for (int i = 0; i < COLOURS; i++) colours[i] = (uint8_t)((unsigned)i * seed);
    for (int i = 0; i < WIDTH * HEIGHT; i++) pixels[i] = (seed >> i % 20) & 15;
    size_t count = gif_head(out, WIDTH + (int)(seed / 4 % 3), HEIGHT, colours, (int)(seed / 64 % 17));
    count += gif_frame(out + count, 0, 0, WIDTH, HEIGHT, seed / 32 % 2 ? 0x40 : 0);
    return count + gif_pixels(out + count, pixels, WIDTH * HEIGHT);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0) bytes = make_jpeg(data, most, seed / 16);
    if (seed % 16 == 1) bytes = make_rows(data, most, seed / 16 * 2654435761u);
    if (seed % 16 == 2) bytes = make_other(data, most, seed / 16);
    if (seed % 16 == 3)
        bytes = most < sizeof jpeg_sample + EXIF_SEGMENT
                    ? 0
                    : make_turned_jpeg(data, (int)(seed / 16 % 10), seed % 3 == 0);
    if (seed % 32 < 4) return bytes;
    return LLVMFuzzerMutate(data, bytes, most);
}
