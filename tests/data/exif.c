/* Which way is up: all orientations in both orders of bytes, where each puts a pixel, and segments that are
 * cut, lie, or say something else. */
#include "../../src/data/exif.h"
#include <stdlib.h>
#include "../check.h"
#include "../picture_files.h"

/* So that the address sanitizer sees a byte too many. */
static int orientation_of(const uint8_t *bytes, size_t count) {
    uint8_t *exact = malloc(count > 0 ? count : 1);
    if (!exact) return -1;
    memcpy(exact, bytes, count);
    const int found = exif_orientation(exact, count);
    free(exact);
    return found;
}

static void check_orientations(void) {
    uint8_t bytes[sizeof jpeg_sample + EXIF_SEGMENT];
    CHECK(orientation_of(jpeg_sample, sizeof jpeg_sample) == EXIF_UPRIGHT, "a JPEG that says nothing");
    for (int big = 0; big < 2; big++)
        for (int value = 0; value < 12; value++) {
            const size_t count = make_turned_jpeg(bytes, value, big);
            const int expected = value >= 1 && value <= 8 ? value : 1, found = orientation_of(bytes, count);
            CHECK(found == expected, "%d: found %d", value, found);
            for (size_t cut = 0; cut < 2 + EXIF_SEGMENT; cut++)
                CHECK(orientation_of(bytes, cut) == EXIF_UPRIGHT, "%d, cut after %zu bytes", value, cut);
            bytes[0] = 0; /* what it begins with is not asked about here */
            CHECK(orientation_of(bytes, count) == expected, "%d: the beginning counts", value);
        }
}

/* Every byte of the segment, one at a time, with every value: nothing but an orientation comes out. */
static void check_damage(void) {
    uint8_t bytes[2 + EXIF_SEGMENT + 4];
    for (int big = 0; big < 2; big++)
        for (size_t at = 0; at < 2 + EXIF_SEGMENT; at++)
            for (int value = 0; value < 256; value++) {
                memset(bytes, 0xff, sizeof bytes);
                make_exif(bytes + 2, 6, big);
                bytes[at] = (uint8_t)value;
                const int found = orientation_of(bytes, sizeof bytes);
                CHECK(found >= 1 && found <= 8, "byte %zu is %d: found %d", at, value, found);
            }
}

/* What stands in front of the segment, behind it, and instead of it. */
static void check_places(void) {
    uint8_t bytes[400] = {0xff, 0xd8};
    const uint8_t comment[] = {0xff, 0xfe, 0, 5, 1, 2, 3}, scan[] = {0xff, 0xda, 0, 2};
    memcpy(bytes + 2, comment, sizeof comment);
    bytes[9] = 0xff; /* a byte to fill */
    make_exif(bytes + 10, 3, 0);
    CHECK(orientation_of(bytes, 10 + EXIF_SEGMENT) == 3, "behind a comment and a filler");
    make_exif(bytes + 10 + EXIF_SEGMENT, 5, 1);
    CHECK(orientation_of(bytes, 10 + 2 * EXIF_SEGMENT) == 3, "the first one counts");
    memcpy(bytes + 10 + 4, "Exiv", 4);
    CHECK(orientation_of(bytes, 10 + 2 * EXIF_SEGMENT) == 5, "the first one that is Exif");
    memcpy(bytes + 2, scan, sizeof scan);
    make_exif(bytes + 6, 3, 0);
    CHECK(orientation_of(bytes, 6 + EXIF_SEGMENT) == EXIF_UPRIGHT, "behind the scan");
}

static void check_entries(void) {
    uint8_t bytes[2 + EXIF_SEGMENT];
    const struct {
        int at, value;
        const char *what;
    } wrong[] = {{2 + 20, 0x13, "another tag"},
                 {2 + 22, 4, "a number of 4 bytes"},
                 {2 + 24, 2, "two of them"},
                 {2 + 12, 43, "no TIFF"},
                 {2 + 10, 'M', "II and MM"},
                 {2 + 18, 0, "no entry"},
                 {2 + 14, 200, "a directory behind the end"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        make_exif(bytes + 2, 6, 0);
        CHECK(orientation_of(bytes, sizeof bytes) == 6, "the segment itself");
        bytes[wrong[i].at] = (uint8_t)wrong[i].value;
        CHECK(orientation_of(bytes, sizeof bytes) == EXIF_UPRIGHT, "%s", wrong[i].what);
    }
}

/* A picture of two rows of three, abc def, upright. */
static void check_turns(void) {
    const char *const expected[] = {"abcdef", "cbafed", "fedcba", "defabc",
                                    "adbecf", "daebfc", "fcebda", "cfbead"};
    const int size[2] = {2, 3};
    for (int orientation = 1; orientation <= 8; orientation++) {
        char out[7] = "......";
        for (int i = 0; i < 6; i++) out[exif_place(orientation, size, i / 3, i % 3)] = (char)('a' + i);
        CHECK(strcmp(out, expected[orientation - 1]) == 0, "%d: found %s, expected %s", orientation, out,
              expected[orientation - 1]);
    }
}

int main(void) {
    check_orientations();
    check_damage();
    check_places();
    check_entries();
    check_turns();
    return check_end();
}
