/* Checks BMP files: head, palette and rows are all there. stb_image takes what it finds behind the end for 0,
 * and up to version 2.27 a place beyond the palette for whatever is in memory. (Microsoft, "Bitmap Storage";
 * numbers are little-endian.) */
#include <stdbool.h>
#include "../base/bytes.h"
#include "picture_check.h"

enum {
    FILE_HEAD = 14,
    ROWS_AT = 10,
    HEAD_AT = FILE_HEAD,
    WIDTH_AT = 18,
    HEIGHT_AT = 22,
    BITS_AT = 28,
    PACKING_AT = 30,
    LEAST_HEAD = 40, /* the one of OS/2 has 12 */
    PALETTE_MOST = 8 /* bits */
};

static uint32_t number_at(const uint8_t *bytes, size_t at, int size) {
    return (uint32_t)bytes_little(bytes + at, size);
}

static bool is_known(uint32_t bits) {
    return bits == 1 || bits == 4 || bits == 8 || bits == 16 || bits == 24 || bits == 32;
}

/* Whether no pixel of a row points behind the palette. */
static bool is_row_usable(const uint8_t *row, uint32_t width, uint32_t bits, uint64_t colours) {
    for (uint32_t x = 0; x < width && colours < (uint64_t)1 << bits; x++) {
        const uint32_t bit = x * bits, shift = 8 - bits - bit % 8;
        if ((uint32_t)(row[bit / 8] >> shift & ((1u << bits) - 1)) >= colours) return false;
    }
    return true;
}

int picture_check_bmp(const char *name, const uint8_t *bytes, size_t count, struct error *error) {
    enum { COLOUR = 4, BITFIELDS = 3 };
    if (count < FILE_HEAD + LEAST_HEAD)
        return error_set(error, ERROR_FILE, "%s: the BMP ends too early, after %zu bytes", name, count);
    const uint64_t rows = number_at(bytes, ROWS_AT, 4), head = number_at(bytes, HEAD_AT, 4);
    const uint32_t width = number_at(bytes, WIDTH_AT, 4), signed_height = number_at(bytes, HEIGHT_AT, 4);
    const uint32_t height = signed_height >> 31 ? 0u - signed_height : signed_height; /* from above */
    const uint32_t bits = number_at(bytes, BITS_AT, 2), packing = number_at(bytes, PACKING_AT, 4);
    if (head < LEAST_HEAD || !is_known(bits) || (packing != 0 && packing != BITFIELDS))
        return error_set(error, ERROR_FILE,
                         "%s: a BMP with a head of %u bytes, %u bits per pixel, packing %u, expected at "
                         "least 40, 1 to 32, 0 or 3",
                         name, (unsigned)head, bits, packing);
    RETURN_IF(picture_check_size(name, width, height, error));
    const uint64_t stride = ((uint64_t)width * bits + 31) / 32 * 4;
    if (rows < FILE_HEAD + head || width == 0 || height == 0)
        return error_set(error, ERROR_FILE, "%s: damaged BMP: %u x %u pixels from byte %u on", name, width,
                         height, (unsigned)rows);
    if (rows + stride * height > count)
        return error_set(error, ERROR_FILE, "%s: the BMP ends too early, after %zu bytes", name, count);
    const uint64_t colours = (rows - FILE_HEAD - head) / COLOUR;
    for (uint32_t y = 0; y < height && bits <= PALETTE_MOST; y++)
        if (!is_row_usable(bytes + rows + y * stride, width, bits, colours))
            return error_set(error, ERROR_FILE, "%s: damaged BMP: a pixel beyond its %u colours", name,
                             (unsigned)colours);
    return OK;
}
