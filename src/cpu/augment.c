/* An image augmented: cut out as bytes, measured, and stretched to floats (see ../device/augment.h).
 *
 * Both passes go over the crop in groups of whole pixels, LANES of them, so that a place in a group always
 * means the same channel and the compiler has loops of a constant length for every number of channels. */
#include <string.h>
#include "cpu.h"

enum { LANES = 16, MOST_GROUP = LANES * AUGMENT_CHANNELS };

/* --- the crop, as bytes --- */

/* One row of it: `count` pixels of the stored row from column `first` on, which may lie outside: black. */
static void cut_row(const uint8_t *restrict row, int width, int channels, int first, int count,
                    uint8_t *restrict out) {
    const int left = first < 0 ? -first : 0;
    const int right = first + count > width ? first + count - width : 0;
    const int inside = count - left - right;
    const size_t pixel = (size_t)channels;
    if (inside <= 0) {
        memset(out, 0, (size_t)count * pixel);
        return;
    }
    memset(out, 0, (size_t)left * pixel);
    memcpy(out + (size_t)left * pixel, row + (size_t)(first + left) * pixel, (size_t)inside * pixel);
    memset(out + (size_t)(left + inside) * pixel, 0, (size_t)right * pixel);
}

/* Mirrors a row of pixels in place. */
static void mirror_row(uint8_t *row, int count, int channels) {
    for (int a = 0, b = count - 1; a < b; a++, b--)
        for (int c = 0; c < channels; c++) {
            const uint8_t kept = row[a * channels + c];
            row[a * channels + c] = row[b * channels + c];
            row[b * channels + c] = kept;
        }
}

static void cut_out(const struct augment *a, const struct augment_draw *draw, const uint8_t *image,
                    uint8_t *crop) {
    const size_t stored = (size_t)a->width * (size_t)a->channels, row = (size_t)(a->columns * a->channels);
    for (int y = 0; y < a->rows; y++, crop += row) {
        const int from = draw->top - a->pad + y;
        if (from < 0 || from >= a->height) {
            memset(crop, 0, row);
            continue;
        }
        cut_row(image + (size_t)from * stored, a->width, a->channels, draw->left - a->pad, a->columns, crop);
        if (draw->flip) mirror_row(crop, a->columns, a->channels);
    }
}

/* The same for a rotated one. */
static void rotate(const struct augment *a, const struct augment_draw *draw, const uint8_t *image,
                   uint8_t *crop) {
    const int channels = a->channels, row = a->width * channels;
    for (int y = 0; y < a->rows; y++)
        for (int x = 0; x < a->columns; x++, crop += channels) {
            const struct augment_place place = augment_place(a, draw, y, x);
            const bool inside = place.row >= 0 && place.row < a->height - 1 && place.column >= 0 &&
                                place.column < a->width - 1;
            const uint8_t *one =
                inside ? image + (size_t)place.row * (size_t)row + (size_t)place.column * (size_t)channels
                       : image;
            for (int c = 0; c < channels; c++)
                crop[c] = inside ? augment_between(&place, one[c], one[channels + c], one[row + c],
                                                   one[row + channels + c])
                                 : augment_rotated(a, &place, image, c);
        }
}

/* --- the two passes; inlined with a constant number of channels --- */

/* Sums of a column of groups stay below 2^32: a crop has at most AUGMENT_BYTES bytes. */
static inline __attribute__((always_inline)) void measure(const uint8_t *restrict crop, size_t bytes,
                                                          size_t channels, struct augment_sums *sums) {
    uint32_t sum[MOST_GROUP] = {0}, squares[MOST_GROUP] = {0};
    const size_t group = channels * LANES;
    size_t at = 0;
    for (; at + group <= bytes; at += group)
        for (size_t k = 0; k < group; k++) {
            const uint32_t x = crop[at + k];
            sum[k] += x;
            squares[k] += x * x;
        }
    for (size_t k = 0; at + k < bytes; k++) {
        const uint32_t x = crop[at + k];
        sum[k] += x;
        squares[k] += x * x;
    }
    *sums = (struct augment_sums){0};
    for (size_t k = 0; k < group; k++) {
        sums->sum[k % channels] += sum[k];
        sums->squares += squares[k];
    }
}

static inline __attribute__((always_inline)) void stretch(const uint8_t *restrict crop, size_t bytes,
                                                          size_t channels, const struct augment_line *line,
                                                          float *restrict out) {
    float offset[MOST_GROUP] = {0};
    const float slope = line->slope;
    const size_t group = channels * LANES;
    size_t at = 0;
    for (size_t k = 0; k < group; k++) offset[k] = line->offset[k % channels];
    for (; at + group <= bytes; at += group)
        for (size_t k = 0; k < group; k++) out[at + k] = augment_value(crop[at + k], slope, offset[k]);
    for (size_t k = 0; at + k < bytes; k++) out[at + k] = augment_value(crop[at + k], slope, offset[k]);
}

static void measure_crop(const struct augment *a, const uint8_t *crop, size_t bytes,
                         struct augment_sums *sums) {
    if (a->channels == 3)
        measure(crop, bytes, 3, sums);
    else if (a->channels == 1)
        measure(crop, bytes, 1, sums);
    else
        measure(crop, bytes, (size_t)a->channels, sums);
}

static void stretch_crop(const struct augment *a, const uint8_t *crop, size_t bytes,
                         const struct augment_line *line, float *out) {
    if (a->channels == 3)
        stretch(crop, bytes, 3, line, out);
    else if (a->channels == 1)
        stretch(crop, bytes, 1, line, out);
    else
        stretch(crop, bytes, (size_t)a->channels, line, out);
}

void cpu_augment(const struct augment *augment, const struct augment_draw *draw, const uint8_t *image,
                 float scale, float *out) {
    const size_t row = (size_t)augment->columns * (size_t)augment->channels;
    const size_t bytes = (size_t)augment->rows * row;
    struct augment_sums sums = {0};
    uint8_t crop[AUGMENT_BYTES];
    if (augment_is_turned(draw))
        rotate(augment, draw, image, crop);
    else
        cut_out(augment, draw, image, crop);
    if (augment_needs_sums(augment, draw)) measure_crop(augment, crop, bytes, &sums);
    const struct augment_line line = augment_line(augment, draw, &sums, scale);
    stretch_crop(augment, crop, bytes, &line, out);
    const size_t cut = (size_t)(draw->cut_right - draw->cut_left) * (size_t)augment->channels;
    for (int y = draw->cut_top; y < draw->cut_bottom && cut > 0; y++)
        memset(out + (size_t)y * row + (size_t)(draw->cut_left * augment->channels), 0, cut * sizeof *out);
}
