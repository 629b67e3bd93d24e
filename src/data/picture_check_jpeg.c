/* Checks JPEG files, segment by segment, to their end mark. stb_image fills what is missing with grey; and up
 * to version 2.27, which Debian 12 has, it trusts the tables: a Huffman table of more than 256 codes,
 * differences of more than 15 bits, and sampling factors that do not divide the largest make it read and
 * write outside its memory, and a scan with a table that the file does not have makes it read what was never
 * written. (ITU-T T.81 B.2 has the segments.) */
#include <stdbool.h>
#include <string.h>
#include "../base/bytes.h"
#include "picture_check.h"

enum {
    FIRST_FRAME = 0xc0,
    PROGRESSIVE = 0xc2,
    CODES = 0xc4,
    LAST_FRAME = 0xcf,
    FIRST_RESTART = 0xd0,
    LAST_RESTART = 0xd7,
    END = 0xd9,
    SCAN = 0xda,
    QUANTIZATION = 0xdb
};

enum { TABLES = 4 }; /* of each kind */

/* What there is before a scan. */
struct seen {
    const uint8_t *components; /* [jpeg->components][EACH] of the frame */
    unsigned codes[2], steps;  /* bit t: Huffman table t of DC or AC, quantization table t */
    int scans;
};

/* Where the next marker's code stands: after bytes ff, and neither 0 (a byte of data) nor a restart. */
static size_t next_marker(const uint8_t *bytes, size_t count, size_t at) {
    while (at + 1 < count) {
        const uint8_t *mark = memchr(bytes + at, 0xff, count - 1 - at);
        if (mark == NULL) break;
        const uint8_t code = mark[1];
        at = (size_t)(mark - bytes) + 1;
        if (code != 0 && code != 0xff && (code < FIRST_RESTART || code > LAST_RESTART)) return at;
    }
    return count;
}

/* Huffman tables, one behind the other: class and number, how many codes of 1 to 16 bits, a value each. */
static bool are_codes_usable(struct seen *seen, const uint8_t *at, size_t count) {
    enum { HEAD = 17, CODES_MOST = 256, BITS_MOST = 15 };
    while (count > 0) {
        size_t codes = 0;
        if (count < HEAD || at[0] >> 4 > 1 || (at[0] & 15) >= TABLES) return false;
        for (int i = 1; i < HEAD; i++) codes += at[i];
        if (codes > CODES_MOST || codes > count - HEAD) return false;
        for (size_t i = 0; i < codes && at[0] < 0x10; i++) /* of class 0: bits of a difference */
            if (at[HEAD + i] > BITS_MOST) return false;
        seen->codes[at[0] >> 4] |= 1u << (at[0] & 15);
        at += HEAD + codes;
        count -= HEAD + codes;
    }
    return true;
}

/* Quantization tables, one behind the other: precision and number, 64 steps of one byte or two. */
static bool are_steps_usable(struct seen *seen, const uint8_t *at, size_t count) {
    enum { STEPS = 64 };
    while (count > 0) {
        const size_t bytes = 1 + STEPS * (1 + (size_t)(at[0] >> 4));
        if (at[0] >> 4 > 1 || (at[0] & 15) >= TABLES || count < bytes) return false;
        seen->steps |= 1u << (at[0] & 15);
        at += bytes;
        count -= bytes;
    }
    return true;
}

/* Of a frame's head: how many bytes stand before the components, and of each: number, samplings, table. */
enum { HEAD = 6, EACH = 3 };

/* A frame's head: precision, height, width, how many components, these. */
static bool is_frame_usable(const uint8_t *at, size_t count) {
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

static bool has(unsigned tables, int number) {
    return number < TABLES && (tables >> number & 1);
}

/* Whether the component of that number has its quantization table. */
static bool has_steps(const struct seen *seen, const struct picture_jpeg *jpeg, uint8_t number) {
    for (int i = 0; i < jpeg->components; i++)
        if (seen->components[i * EACH] == number) return has(seen->steps, seen->components[i * EACH + 2]);
    return false;
}

/* A scan's head: how many components, of each number and tables; first and last frequency, bits before and
 * now. A scan of a progressive JPEG has differences (frequency 0), whose first bits alone have codes, or the
 * other frequencies. */
static bool is_scan_usable(const struct seen *seen, const struct picture_jpeg *jpeg, const uint8_t *at,
                           size_t count) {
    const size_t components = count > 0 ? at[0] : 0;
    if (jpeg->code == 0 || components == 0 || count != 4 + 2 * components) return false;
    const uint8_t *rest = at + 1 + 2 * components;
    const bool all = jpeg->code != PROGRESSIVE, dc = all || (rest[0] == 0 && rest[2] >> 4 == 0),
               ac = all || rest[0] > 0;
    for (at++; at < rest; at += 2) {
        if (at[1] >> 4 >= TABLES || (at[1] & 15) >= TABLES) return false;
        if ((dc && !has(seen->codes[0], at[1] >> 4)) || (ac && !has(seen->codes[1], at[1] & 15)))
            return false;
        if (!has_steps(seen, jpeg, at[0])) return false;
    }
    return true;
}

static bool is_frame(uint8_t code) {
    return code >= FIRST_FRAME && code <= LAST_FRAME && code != CODES;
}

static bool is_segment_usable(struct seen *seen, const struct picture_jpeg *jpeg, uint8_t code,
                              const uint8_t *at, size_t count) {
    if (code == CODES) return are_codes_usable(seen, at, count);
    if (code == QUANTIZATION) return are_steps_usable(seen, at, count);
    if (code == SCAN) return is_scan_usable(seen, jpeg, at, count);
    return !is_frame(code) || is_frame_usable(at, count);
}

/* Each scan of a progressive JPEG goes over the whole picture, however few bytes it has. */
static int check_work(const char *name, struct seen *seen, uint8_t code, const uint8_t *at,
                      struct picture_jpeg *jpeg, struct error *error) {
    if (is_frame(code)) {
        const struct picture_jpeg frame = {code, (int)bytes_big(at + 1, 2), (int)bytes_big(at + 3, 2),
                                           at[HEAD - 1]};
        if (jpeg->code == 0) seen->components = at + HEAD;
        if (jpeg->code == 0) *jpeg = frame;
        return picture_check_size(name, (uint32_t)frame.width, (uint32_t)frame.height, error);
    }
    seen->scans += code == SCAN;
    if (seen->scans <= PICTURE_MOST_SCANS) return OK;
    return error_set(error, ERROR_FILE, "%s: a JPEG of more than %d scans, expected at most %d", name,
                     PICTURE_MOST_SCANS, PICTURE_MOST_SCANS);
}

/* Markers, each but the last with its length; after a scan's head its data up to the next marker. */
int picture_check_jpeg(const char *name, const uint8_t *bytes, size_t count, struct picture_jpeg *jpeg,
                       struct error *error) {
    struct seen seen = {0};
    for (size_t at = next_marker(bytes, count, 2); at < count;) {
        if (bytes[at] == END) return OK;
        if (count - at < 3) break;
        const size_t length = (size_t)bytes_big(bytes + at + 1, 2);
        if (length > count - at - 1) break;
        if (length < 2 || !is_segment_usable(&seen, jpeg, bytes[at], bytes + at + 3, length - 2))
            return error_set(error, ERROR_FILE, "%s: damaged JPEG: segment ff%02x at byte %zu is not usable",
                             name, bytes[at], at - 1);
        RETURN_IF(check_work(name, &seen, bytes[at], bytes + at + 3, jpeg, error));
        at = next_marker(bytes, count, at + 1 + length);
    }
    return error_set(error, ERROR_FILE, "%s: the JPEG ends too early, after %zu bytes", name, count);
}
