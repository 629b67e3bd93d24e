/* A reader of one number: through the segments of a JPEG to its first APP1, there through the entries of the
 * first directory of a TIFF to the tag of the orientation. Every offset is compared with what is there before
 * it is used; what does not fit says nothing. */
#include "exif.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "../base/bytes.h"

struct bytes {
    const uint8_t *at;
    size_t count;
    bool big_endian;
};

/* A number of 2 or 4 bytes; 0 where it does not lie within. */
static uint32_t number_at(const struct bytes *bytes, size_t at, size_t size) {
    if (at > bytes->count || size > bytes->count - at) return 0;
    const uint8_t *number = bytes->at + at;
    return (uint32_t)(bytes->big_endian ? bytes_big(number, (int)size) : bytes_little(number, (int)size));
}

/* Of a TIFF: the order of its bytes, 42, where the directory begins; its entries of tag, type, count, value.
 */
static int read_tiff(const uint8_t *at, size_t count) {
    enum { HEAD = 8, ENTRY = 12, TAG = 0x0112, SHORT = 3, MAGIC = 42 };
    const struct bytes tiff = {at, count, count >= 2 && at[0] == 'M'};
    if (count < HEAD || at[0] != at[1] || (at[0] != 'M' && at[0] != 'I')) return EXIF_UPRIGHT;
    if (number_at(&tiff, 2, 2) != MAGIC) return EXIF_UPRIGHT;
    const size_t directory = number_at(&tiff, 4, 4), entries = number_at(&tiff, directory, 2);
    for (size_t i = 0; i < entries; i++) {
        const size_t entry = directory + 2 + i * ENTRY;
        if (entry > count || ENTRY > count - entry) break;
        if (number_at(&tiff, entry, 2) != TAG) continue;
        const uint32_t value = number_at(&tiff, entry + 8, 2);
        const bool fits = number_at(&tiff, entry + 2, 2) == SHORT && number_at(&tiff, entry + 4, 4) == 1;
        return fits && value >= EXIF_UPRIGHT && value <= EXIF_MOST ? (int)value : EXIF_UPRIGHT;
    }
    return EXIF_UPRIGHT;
}

int exif_orientation(const void *bytes, size_t count) {
    static const uint8_t name[] = {'E', 'x', 'i', 'f', 0, 0};
    enum { APP1 = 0xe1, FIRST_WITHOUT_LENGTH = 0xd0, SCAN = 0xda };
    const struct bytes jpeg = {bytes, count, true};
    size_t at = 2;
    while (at + 4 <= count && jpeg.at[at] == 0xff) {
        const uint8_t code = jpeg.at[at + 1];
        if (code == 0xff) { /* more of them may stand in front of a code */
            at++;
            continue;
        }
        const size_t length = number_at(&jpeg, at + 2, 2);
        if (length < 2 || length > count - at - 2 || (code >= FIRST_WITHOUT_LENGTH && code <= SCAN)) break;
        const uint8_t *contents = jpeg.at + at + 4;
        if (code == APP1 && length - 2 >= sizeof name && memcmp(contents, name, sizeof name) == 0)
            return read_tiff(contents + sizeof name, length - 2 - sizeof name);
        at += 2 + length;
    }
    return EXIF_UPRIGHT;
}

size_t exif_place(int orientation, const int size[2], int row, int column) {
    static const struct {
        bool swapped, from_right, from_bottom; /* axes; then of the stored picture */
    } ways[EXIF_MOST] = {{false, false, false}, {false, true, false}, {false, true, true},
                         {false, false, true},  {true, false, false}, {true, false, true},
                         {true, true, true},    {true, true, false}};
    const int way = orientation - EXIF_UPRIGHT;
    const int down = ways[way].from_bottom ? size[0] - 1 - row : row;
    const int across = ways[way].from_right ? size[1] - 1 - column : column;
    return ways[way].swapped ? (size_t)across * (size_t)size[0] + (size_t)down
                             : (size_t)down * (size_t)size[1] + (size_t)across;
}
