/* Checks pictures, and refuses what is too large or too much work; here PNG, whose check sums stb_image
 * ignores. (ISO/IEC 15948 has the chunks.) */
#include "picture_check.h"

#include <limits.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include "../base/bytes.h"

static const uint8_t png_begin[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
static const uint8_t jpeg_begin[] = {0xff, 0xd8, 0xff};

static bool begins(const void *bytes, size_t count, const void *begin, size_t length) {
    return count >= length && memcmp(bytes, begin, length) == 0;
}

/* A BMP begins with two letters, as a table may; behind its length are four bytes of 0. A GIF of no more than
 * its name may be a table, too. */
enum picture_kind picture_kind(const void *bytes, size_t count) {
    enum { LEAST = 12 };
    if (begins(bytes, count, png_begin, sizeof png_begin)) return PICTURE_IS_PNG;
    if (begins(bytes, count, jpeg_begin, sizeof jpeg_begin)) return PICTURE_IS_JPEG;
    if (count < LEAST) return PICTURE_IS_NONE;
    if (memcmp(bytes, "GIF87a", 6) == 0 || memcmp(bytes, "GIF89a", 6) == 0) return PICTURE_IS_GIF;
    if (memcmp(bytes, "BM", 2) == 0 && memcmp((const char *)bytes + 6, "\0\0\0", 4) == 0)
        return PICTURE_IS_BMP;
    return PICTURE_IS_NONE;
}

bool picture_is(const void *bytes, size_t count) {
    return picture_kind(bytes, count) != PICTURE_IS_NONE;
}

bool picture_is_named(const char *path) {
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".bmp", ".gif"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
        if (strcasecmp(dot, ends[i]) == 0) return true;
    return false;
}

const char *picture_other(const void *bytes, size_t count) {
    const char *begin = bytes;
    enum { LEAST = 12 };
    if (count < LEAST) return NULL;
    if (memcmp(begin, "RIFF", 4) == 0 && memcmp(begin + 8, "WEBP", 4) == 0) return "WebP";
    if (memcmp(begin, "II*", 4) == 0 || memcmp(begin, "MM\0*", 4) == 0) return "TIFF";
    return NULL;
}

int picture_check_size(const char *name, uint32_t width, uint32_t height, struct error *error) {
    if (width > PICTURE_MOST_SIDE || height > PICTURE_MOST_SIDE)
        return error_set(error, ERROR_FILE, "%s: %u x %u pixels, expected at most %d a side", name, width,
                         height, PICTURE_MOST_SIDE);
    if ((uint64_t)width * height > PICTURE_MOST_PIXELS)
        return error_set(error, ERROR_FILE, "%s: %u x %u pixels, expected at most %d together", name, width,
                         height, PICTURE_MOST_PIXELS);
    return OK;
}

/* --- PNG --- */

static uint32_t number_of(const uint8_t *bytes) {
    return (uint32_t)bytes_big(bytes, 4);
}

/* The contents of IHDR: width, height, bits of a sample, kind, two bytes of no choice, interlaced. */
enum { HEAD_BYTES = 13, DEPTH_AT = 8, KIND_AT = 9, INTERLACE_AT = 12 };

/* Bytes of rows of so many pixels, each after the number of its filter. */
static uint64_t row_bytes(uint32_t width, uint32_t height, unsigned bits) {
    return width == 0 ? 0 : height * (1 + ((uint64_t)width * bits + 7) / 8);
}

/* Bytes that a picture's rows have; interlaced, it is seven smaller ones. */
static uint64_t unpacked_bytes(const uint8_t *head) {
    static const uint8_t samples[] = {1, 0, 3, 1, 2, 0, 4};
    static const uint8_t first_x[] = {0, 4, 0, 2, 0, 1, 0}, step_x[] = {8, 8, 4, 4, 2, 2, 1};
    static const uint8_t first_y[] = {0, 0, 4, 0, 2, 0, 1}, step_y[] = {8, 8, 8, 4, 4, 2, 2};
    const uint32_t width = number_of(head), height = number_of(head + 4);
    const unsigned bits =
        head[KIND_AT] < sizeof samples ? (unsigned)samples[head[KIND_AT]] * head[DEPTH_AT] : 0;
    uint64_t sum = 0;
    if (head[INTERLACE_AT] == 0) return row_bytes(width, height, bits);
    for (int i = 0; i < 7; i++)
        sum += row_bytes((width + step_x[i] - 1u - first_x[i]) / step_x[i],
                         (height + step_y[i] - 1u - first_y[i]) / step_y[i], bits);
    return sum;
}

/* The rows while they are unpacked, only to be counted: a few bytes may unpack to any number. */
struct rows {
    z_stream stream;
    bool open, over; /* over: their end was seen */
    uint64_t most, found;
};

static int rows_open(struct rows *rows, const char *name, bool bare, struct error *error) {
    enum { ZLIB = 15, BARE = -15 }; /* a window of 32 KB, with zlib's header and sum, or without */
    const int code = inflateInit2(&rows->stream, bare ? BARE : ZLIB);
    rows->open = code == Z_OK;
    if (rows->open) return OK;
    return error_set(error, ERROR_DEVICE, "%s: zlib did not start (%s)", name, zError(code));
}

static int rows_add(struct rows *rows, const char *name, const uint8_t *bytes, uint32_t count,
                    struct error *error) {
    uint8_t nowhere[1 << 15];
    rows->stream.next_in = (z_const Bytef *)bytes;
    rows->stream.avail_in = count;
    while (!rows->over) {
        rows->stream.next_out = nowhere;
        rows->stream.avail_out = sizeof nowhere;
        const int code = inflate(&rows->stream, Z_NO_FLUSH);
        rows->found += sizeof nowhere - rows->stream.avail_out;
        rows->over = code == Z_STREAM_END;
        if (rows->found > rows->most)
            return error_set(error, ERROR_FILE,
                             "%s: damaged PNG: more than the %llu bytes that its rows have", name,
                             (unsigned long long)rows->most);
        if (code == Z_BUF_ERROR || (code == Z_OK && rows->stream.avail_out > 0)) return OK; /* all taken */
        if (code == Z_MEM_ERROR)
            return error_set(error, ERROR_DEVICE, "memory: nothing left to unpack %s", name);
        if (code != Z_OK && code != Z_STREAM_END)
            return error_set(error, ERROR_FILE, "%s: damaged PNG: its rows cannot be unpacked (%s)", name,
                             rows->stream.msg ? rows->stream.msg : zError(code));
    }
    return OK;
}

/* A chunk with the right check sum. `bare`: the rows have no header of zlib, which the chunk CgBI says. */
static int check_chunk(struct rows *rows, bool *bare, const char *name, const uint8_t *chunk,
                       struct error *error) {
    enum { EXTRA_BYTES = 1 << 20 }; /* what some programs put behind the rows */
    const uint32_t length = number_of(chunk);
    const uint8_t *contents = chunk + 8;
    if (memcmp(chunk + 4, "CgBI", 4) == 0) *bare = true;
    if (memcmp(chunk + 4, "IHDR", 4) == 0 && length >= HEAD_BYTES) {
        RETURN_IF(picture_check_size(name, number_of(contents), number_of(contents + 4), error));
        rows->most = unpacked_bytes(contents) + EXTRA_BYTES;
    }
    if (memcmp(chunk + 4, "IDAT", 4) != 0) return OK;
    if (!rows->open) RETURN_IF(rows_open(rows, name, *bare, error));
    return rows_add(rows, name, contents, length, error);
}

/* Length, kind, contents, CRC of kind and contents; to the chunk IEND. */
static int check_chunks(struct rows *rows, const char *name, const uint8_t *bytes, size_t count,
                        struct error *error) {
    enum { AROUND = 12 };
    size_t at = sizeof png_begin;
    bool bare = false;
    while (count - at >= AROUND && number_of(bytes + at) <= count - at - AROUND) {
        const uint32_t length = number_of(bytes + at);
        const uint8_t *kind = bytes + at + 4, *sum = kind + 4 + length;
        if ((uint32_t)crc32(0, kind, (uInt)length + 4) != number_of(sum))
            return error_set(error, ERROR_FILE, "%s: damaged PNG: the check sum of chunk %.4s is wrong", name,
                             (const char *)kind);
        if (memcmp(kind, "IEND", 4) == 0) return OK;
        RETURN_IF(check_chunk(rows, &bare, name, bytes + at, error));
        at += AROUND + length;
    }
    return error_set(error, ERROR_FILE, "%s: the PNG ends too early, after %zu bytes", name, count);
}

static int check_png(const char *name, const uint8_t *bytes, size_t count, struct error *error) {
    struct rows rows = {0};
    const int code = check_chunks(&rows, name, bytes, count, error);
    if (rows.open) inflateEnd(&rows.stream);
    return code;
}

int picture_check(const char *name, const void *bytes, size_t count, struct picture_jpeg *jpeg,
                  struct error *error) {
    *jpeg = (struct picture_jpeg){0};
    switch (count > INT_MAX ? PICTURE_IS_NONE : picture_kind(bytes, count)) {
    case PICTURE_IS_PNG:
        return check_png(name, bytes, count, error);
    case PICTURE_IS_JPEG:
        return picture_check_jpeg(name, bytes, count, jpeg, error);
    case PICTURE_IS_BMP:
        return picture_check_bmp(name, bytes, count, error);
    case PICTURE_IS_GIF:
        return picture_check_gif(name, bytes, count, error);
    case PICTURE_IS_NONE:
        break;
    }
    return error_set(error, ERROR_FILE, "%s: no PNG, JPEG, BMP or GIF picture", name);
}
