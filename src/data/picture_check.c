/* Pictures looked through. stb_image does not look at the check sums of PNG, and fills up what is missing of
 * a JPEG with grey, so both formats are walked through here, segment by segment, to their end. Up to version
 * 2.27, which Debian 12 has, it also believes the tables of a JPEG: more than 256 codes of a Huffman table,
 * differences of more than 15 bits and samplings that are no whole parts of the largest make it read and
 * write outside its memory. (ITU-T T.81 B.2 has the segments, ISO/IEC 15948 the chunks.) */
#include "picture_check.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include "picture.h"

static const uint8_t png_begin[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
static const uint8_t jpeg_begin[] = {0xff, 0xd8, 0xff};

static bool is_png(const uint8_t *bytes, size_t count) {
    return count >= sizeof png_begin && memcmp(bytes, png_begin, sizeof png_begin) == 0;
}

static bool is_jpeg(const uint8_t *bytes, size_t count) {
    return count >= sizeof jpeg_begin && memcmp(bytes, jpeg_begin, sizeof jpeg_begin) == 0;
}

bool picture_is(const void *bytes, size_t count) {
    return is_png(bytes, count) || is_jpeg(bytes, count);
}

/* --- PNG --- */

static uint32_t big_endian(const uint8_t *b) {
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3];
}

/* Length, kind, contents, CRC of kind and contents; to the chunk IEND. */
static int check_png(const char *name, const uint8_t *bytes, size_t count, struct error *error) {
    enum { AROUND = 12 };
    size_t at = sizeof png_begin;
    while (count - at >= AROUND && big_endian(bytes + at) <= count - at - AROUND) {
        const uint32_t length = big_endian(bytes + at);
        const uint8_t *kind = bytes + at + 4, *sum = kind + 4 + length;
        if ((uint32_t)crc32(0, kind, (uInt)length + 4) != big_endian(sum))
            return error_set(error, ERROR_FILE, "%s: damaged PNG: the check sum of chunk %.4s is wrong", name,
                             (const char *)kind);
        if (memcmp(kind, "IEND", 4) == 0) return OK;
        at += AROUND + length;
    }
    return error_set(error, ERROR_FILE, "%s: the PNG ends too early, after %zu bytes", name, count);
}

/* --- JPEG --- */

enum {
    FIRST_FRAME = 0xc0,
    TABLES = 0xc4,
    LAST_FRAME = 0xcf,
    FIRST_RESTART = 0xd0,
    LAST_RESTART = 0xd7,
    END = 0xd9
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

static bool is_segment_usable(uint8_t code, const uint8_t *at, size_t count) {
    if (code == TABLES) return are_tables_usable(at, count);
    return code < FIRST_FRAME || code > LAST_FRAME || is_frame_usable(at, count);
}

/* Markers, each but the last with its length; after a scan's head its data up to the next marker. */
static int check_jpeg(const char *name, const uint8_t *bytes, size_t count, struct error *error) {
    for (size_t at = next_marker(bytes, count, 2); at < count;) {
        if (bytes[at] == END) return OK;
        if (count - at < 3) break;
        const size_t length = (size_t)(bytes[at + 1] << 8 | bytes[at + 2]);
        if (length > count - at - 1) break;
        if (length < 2 || !is_segment_usable(bytes[at], bytes + at + 3, length - 2))
            return error_set(error, ERROR_FILE, "%s: damaged JPEG: segment ff%02x at byte %zu is not usable",
                             name, bytes[at], at - 1);
        at = next_marker(bytes, count, at + 1 + length);
    }
    return error_set(error, ERROR_FILE, "%s: the JPEG ends too early, after %zu bytes", name, count);
}

int picture_check(const char *name, const void *bytes, size_t count, struct error *error) {
    if (!picture_is(bytes, count) || count > INT_MAX)
        return error_set(error, ERROR_FILE, "%s: neither a PNG nor a JPEG picture", name);
    return (is_png(bytes, count) ? check_png : check_jpeg)(name, bytes, count, error);
}
