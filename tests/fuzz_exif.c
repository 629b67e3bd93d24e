/* Fuzzing of the orientation of a JPEG: clang -fsanitize=fuzzer,address over this file and the library. An
 * input is the segments of a JPEG, and the contents of a TIFF in such a segment. Starts from segments that
 * say one. Counts those that say something else than upright. */
#include "../src/data/exif.h"
#include "fuzz.h"
#include "picture_files.h"

enum { MOST = 4096, AROUND = 12, SIDE = 37 };

static const char *const kinds[] = {"segments", "TIFF directories", NULL};

/* Where a pixel goes is within the picture, and nowhere twice. */
static void check_places(int orientation, int height, int width) {
    uint8_t seen[SIDE * SIDE] = {0};
    const int size[2] = {height, width};
    for (int row = 0; row < height; row++)
        for (int column = 0; column < width; column++) {
            const size_t place = exif_place(orientation, size, row, column);
            fuzz_require(place < (size_t)(height * width) && seen[place]++ == 0);
        }
}

static void read_segments(const uint8_t *bytes, size_t count, int kind) {
    uint8_t *exact = malloc(count > 0 ? count : 1);
    fuzz_require(exact != NULL);
    if (count > 0) memcpy(exact, bytes, count);
    const int orientation = exif_orientation(exact, count);
    free(exact);
    fuzz_require(orientation >= EXIF_UPRIGHT && orientation <= EXIF_MOST);
    fuzz.accepted[kind] += orientation != EXIF_UPRIGHT;
    check_places(orientation, 1 + (int)(count % SIDE), 1 + (int)(count / SIDE % SIDE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    uint8_t made[MOST + AROUND] = {0xff, 0xd8, 0xff, 0xe1, 0, 0, 'E', 'x', 'i', 'f', 0, 0};
    fuzz_count(kinds);
    read_segments(data, bytes, 0);
    if (bytes > MOST) return 0;
    made[4] = (uint8_t)((bytes + AROUND - 4) >> 8);
    made[5] = (uint8_t)(bytes + AROUND - 4);
    memcpy(made + AROUND, data, bytes);
    read_segments(made, AROUND + bytes, 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    enum { TIFF_AT = 10 }; /* in the segment */
    uint8_t segment[EXIF_SEGMENT];
    make_exif(segment, (int)(seed / 64 % 9), seed / 16 % 2 == 0);
    if (seed % 16 == 0 && most >= 2 + EXIF_SEGMENT) {
        data[0] = 0xff;
        data[1] = 0xd8;
        memcpy(data + 2, segment, EXIF_SEGMENT);
        bytes = 2 + EXIF_SEGMENT;
    } else if (seed % 16 == 1 && most >= EXIF_SEGMENT - TIFF_AT) {
        bytes = EXIF_SEGMENT - TIFF_AT;
        memcpy(data, segment + TIFF_AT, bytes);
    }
    return seed % 32 < 2 ? bytes : LLVMFuzzerMutate(data, bytes, most);
}
