/* Checks pictures, and refuses what is too large or too much work. stb_image ignores the check sums of a PNG
 * and fills the missing part of a JPEG with grey, so both formats are checked here, segment by segment, to
 * their end. Up to version 2.27, which Debian 12 has, it also trusts the tables of a JPEG: a Huffman table of
 * more than 256 codes, differences of more than 15 bits, and sampling factors that do not divide the largest
 * make it read and write outside its memory. (ITU-T T.81 B.2 has the segments, ISO/IEC 15948 the chunks.) */
#include "picture_check.h"

#include <limits.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

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

static uint32_t big_endian(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
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
    const uint32_t width = big_endian(head), height = big_endian(head + 4);
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
    const uint32_t length = big_endian(chunk);
    const uint8_t *contents = chunk + 8;
    if (memcmp(chunk + 4, "CgBI", 4) == 0) *bare = true;
    if (memcmp(chunk + 4, "IHDR", 4) == 0 && length >= HEAD_BYTES) {
        RETURN_IF(picture_check_size(name, big_endian(contents), big_endian(contents + 4), error));
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
    while (count - at >= AROUND && big_endian(bytes + at) <= count - at - AROUND) {
        const uint32_t length = big_endian(bytes + at);
        const uint8_t *kind = bytes + at + 4, *sum = kind + 4 + length;
        if ((uint32_t)crc32(0, kind, (uInt)length + 4) != big_endian(sum))
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

/* --- JPEG --- */

enum {
    FIRST_FRAME = 0xc0,
    TABLES = 0xc4,
    LAST_FRAME = 0xcf,
    FIRST_RESTART = 0xd0,
    LAST_RESTART = 0xd7,
    END = 0xd9,
    SCAN = 0xda
};

/* Where the next marker's code stands: after bytes ff, and neither 0 (a byte of data) nor a restart. */
static size_t next_marker(const uint8_t *bytes, size_t count, size_t at) {
    for (; at + 1 < count; at++) {
        const uint8_t code = bytes[at + 1];
        if (bytes[at] == 0xff && code != 0 && code != 0xff && (code < FIRST_RESTART || code > LAST_RESTART))
            return at + 1;
    }
    return count;
}

/* Huffman tables, one behind the other: class and number, how many codes of 1 to 16 bits, a value each. */
static bool are_tables_usable(const uint8_t *at, size_t count) {
    enum { HEAD = 17, CODES_MOST = 256, BITS_MOST = 15 };
    while (count > 0) {
        size_t codes = 0;
        if (count < HEAD) return false;
        for (int i = 1; i < HEAD; i++) codes += at[i];
        if (codes > CODES_MOST || codes > count - HEAD) return false;
        for (size_t i = 0; i < codes && at[0] < 0x10; i++) /* of class 0: bits of a difference */
            if (at[HEAD + i] > BITS_MOST) return false;
        at += HEAD + codes;
        count -= HEAD + codes;
    }
    return true;
}

/* A frame's head: precision, height, width, how many components, of each number, samplings, table. */
static bool is_frame_usable(const uint8_t *at, size_t count) {
    enum { HEAD = 6, EACH = 3 };
    int most_across = 1, most_down = 1;
    if (count < HEAD || count != HEAD + (size_t)at[HEAD - 1] * EACH) return false;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = HEAD; i < count; i += EACH) {
            const int across = at[i + 1] >> 4, down = at[i + 1] & 15;
            if (across == 0 || down == 0) return false;
            if (across > most_across) most_across = across;
            if (down > most_down) most_down = down;
            if (turn == 1 && (most_across % across != 0 || most_down % down != 0)) return false;
        }
    return true;
}

static bool is_frame(uint8_t code) {
    return code >= FIRST_FRAME && code <= LAST_FRAME && code != TABLES;
}

static bool is_segment_usable(uint8_t code, const uint8_t *at, size_t count) {
    if (code == TABLES) return are_tables_usable(at, count);
    return !is_frame(code) || is_frame_usable(at, count);
}

/* Each scan of a progressive JPEG goes over the whole picture, however few bytes it has. */
static int check_work(const char *name, uint8_t code, const uint8_t *at, int *scans, struct error *error) {
    if (is_frame(code))
        return picture_check_size(name, (uint32_t)(at[3] << 8 | at[4]), (uint32_t)(at[1] << 8 | at[2]),
                                  error);
    *scans += code == SCAN;
    if (*scans <= PICTURE_MOST_SCANS) return OK;
    return error_set(error, ERROR_FILE, "%s: a JPEG of more than %d scans, expected at most %d", name,
                     PICTURE_MOST_SCANS, PICTURE_MOST_SCANS);
}

/* Markers, each but the last with its length; after a scan's head its data up to the next marker. */
static int check_jpeg(const char *name, const uint8_t *bytes, size_t count, struct error *error) {
    int scans = 0;
    for (size_t at = next_marker(bytes, count, 2); at < count;) {
        if (bytes[at] == END) return OK;
        if (count - at < 3) break;
        const size_t length = (size_t)(bytes[at + 1] << 8 | bytes[at + 2]);
        if (length > count - at - 1) break;
        if (length < 2 || !is_segment_usable(bytes[at], bytes + at + 3, length - 2))
            return error_set(error, ERROR_FILE, "%s: damaged JPEG: segment ff%02x at byte %zu is not usable",
                             name, bytes[at], at - 1);
        RETURN_IF(check_work(name, bytes[at], bytes + at + 3, &scans, error));
        at = next_marker(bytes, count, at + 1 + length);
    }
    return error_set(error, ERROR_FILE, "%s: the JPEG ends too early, after %zu bytes", name, count);
}

int picture_check(const char *name, const void *bytes, size_t count, struct error *error) {
    switch (count > INT_MAX ? PICTURE_IS_NONE : picture_kind(bytes, count)) {
    case PICTURE_IS_PNG:
        return check_png(name, bytes, count, error);
    case PICTURE_IS_JPEG:
        return check_jpeg(name, bytes, count, error);
    case PICTURE_IS_BMP:
        return picture_check_bmp(name, bytes, count, error);
    case PICTURE_IS_GIF:
        return picture_check_gif(name, bytes, count, error);
    case PICTURE_IS_NONE:
        break;
    }
    return error_set(error, ERROR_FILE, "%s: no PNG, JPEG, BMP or GIF picture", name);
}
