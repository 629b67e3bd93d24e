/* How the bytes of a stored image become a network's input. CPU and CUDA code include this header, so they
 * agree on every pixel. Common part of C, C++ and CUDA.
 *
 * The chain, always in this order: pad with black, crop, flip, rotate, brightness, contrast, standardize or
 * scale, cutout; then an example may be mixed with the next one (mixup, cutmix). In training the place of the
 * crop, the flip, angle, brightness, contrast and cutout are random; in tests the crop is central and the
 * others are left out. A rotated crop is made of bytes again, as image libraries have it: each is the mean of
 * the four pixels around the place that it comes from, which may lie beside the crop, or outside of the
 * image, in black. Nothing is clipped to 0..255 on the way, as in TensorFlow with floats, so the chain is one
 * linear function per image and channel: a value is slope * byte + offset[channel], and both come from sums
 * of bytes that are exact integers. */
#ifndef TRAINER_DEVICE_AUGMENT_H
#define TRAINER_DEVICE_AUGMENT_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/rng.h"

#ifdef __CUDACC__
#    define AUGMENT_INLINE static inline __host__ __device__
#else
#    define AUGMENT_INLINE static inline
#endif

enum { AUGMENT_CHANNELS = 4, AUGMENT_BYTES = 1 << 16 }; /* at most; bytes of a crop */

/* How a test looks at an image; all 0: at the central crop. */
struct augment_view {
    int flip; /* 1: mirrored left to right */
    int down,
        right; /* pixels that the crop is moved by; what it then takes from outside the image is black */
};

/* The recipe of a data set. height 0: the examples are no images, or their bytes are only scaled. */
struct augment {
    int height, width, channels;         /* of the stored images, channels last */
    int pad;                             /* black pixels on every side, before the crop */
    int rows, columns;                   /* of the crop, inside the padded image: what the network is given */
    int flip;                            /* 1: every other image, on average, is mirrored left to right */
    float rotate;                        /* by uniform [-rotate, rotate) degrees about the crop's centre */
    float brightness;                    /* plus uniform [-brightness, brightness), in units of a byte */
    float contrast_least, contrast_most; /* uniform factor about each channel's mean; 1 and 1: none */
    int cutout;   /* a square of this side is 0, its centre anywhere in the crop; 0: none */
    float mixup;  /* alpha of the Beta distribution that shares are drawn by; 0: no mixing of whole images */
    float cutmix; /* the same for boxes of images */
    int standardize;          /* 1: (x - mean) / max(deviation, 1/sqrt(n)) over the n numbers of the crop */
    int whitened;             /* 1: the stored images are whitened ones; the chain does not look at it */
    struct augment_view view; /* of tests */
};

enum { AUGMENT_ONE = 1 << 16 }; /* what sine and cosine are multiplied by */

/* An angle, counterclockwise. */
struct augment_turn {
    int sine, cosine;
};

/* What one image gets. */
struct augment_draw {
    int top, left; /* of the crop in the padded image */
    int flip;
    struct augment_turn turn;
    float brightness, contrast;
    int cut_top, cut_bottom, cut_left, cut_right; /* [top, bottom) x [left, right) of the crop is 0 */
};

/* A number below `limit`, from 32 random bits. */
AUGMENT_INLINE int augment_below(uint32_t bits, int limit) {
    return (int)(((uint64_t)bits * (uint64_t)(uint32_t)limit) >> 32);
}

AUGMENT_INLINE int augment_clip(int value, int most) {
    return value < 0 ? 0 : value > most ? most : value;
}

/* By its own series, since those of the libraries of a CPU and of a GPU round differently. Multiples of 90
 * degrees are exact. */
AUGMENT_INLINE struct augment_turn augment_turn(float degrees) {
    const double quarters = floor((double)degrees / 90.0 + 0.5);
    const double x = ((double)degrees - 90.0 * quarters) * 0.017453292519943295, xx = x * x; /* pi / 180 */
    const double sine = x * (1.0 - xx / 6.0 * (1.0 - xx / 20.0 * (1.0 - xx / 42.0 * (1.0 - xx / 72.0))));
    const double cosine = 1.0 - xx / 2.0 * (1.0 - xx / 12.0 * (1.0 - xx / 30.0 * (1.0 - xx / 56.0)));
    const int s = (int)floor(AUGMENT_ONE * sine + 0.5), c = (int)floor(AUGMENT_ONE * cosine + 0.5);
    const int by = (int)quarters & 3;
    const struct augment_turn turn = {by == 0   ? s
                                      : by == 1 ? c
                                      : by == 2 ? -s
                                                : -c,
                                      by == 0   ? c
                                      : by == 1 ? -s
                                      : by == 2 ? -c
                                                : s};
    return turn;
}

AUGMENT_INLINE int augment_is_turned(const struct augment_draw *draw) {
    return draw->turn.sine != 0 || draw->turn.cosine != AUGMENT_ONE;
}

/* For a test: the central crop, as the view has it, and nothing else. */
AUGMENT_INLINE struct augment_draw augment_centre(const struct augment *a) {
    struct augment_draw draw = {0, 0, 0, {0, AUGMENT_ONE}, 0.0f, 1.0f, 0, 0, 0, 0};
    draw.top = (a->height + 2 * a->pad - a->rows) / 2 + a->view.down;
    draw.left = (a->width + 2 * a->pad - a->columns) / 2 + a->view.right;
    draw.flip = a->view.flip;
    return draw;
}

/* For training: all from the example's key. Each number has random bits of its own, so that one setting does
 * not change what the others draw. */
AUGMENT_INLINE struct augment_draw augment_draw(const struct augment *a, uint64_t key) {
    const struct rng_block first = rng_philox(key, 0, 0), second = rng_philox(key, 0, 1);
    const int row = augment_below(second.word[1], a->rows),
              column = augment_below(second.word[2], a->columns);
    struct augment_draw draw = {0, 0, 0, {0, AUGMENT_ONE}, 0.0f, 1.0f, 0, 0, 0, 0};
    draw.top = augment_below(first.word[0], a->height + 2 * a->pad - a->rows + 1);
    draw.left = augment_below(first.word[1], a->width + 2 * a->pad - a->columns + 1);
    draw.flip = a->flip && first.word[2] >> 31;
    if (a->rotate > 0.0f) draw.turn = augment_turn(a->rotate * (2.0f * rng_unit(second.word[3]) - 1.0f));
    draw.brightness = a->brightness * (2.0f * rng_unit(first.word[3]) - 1.0f);
    draw.contrast = a->contrast_least + (a->contrast_most - a->contrast_least) * rng_unit(second.word[0]);
    draw.cut_top = augment_clip(row - a->cutout / 2, a->rows);
    draw.cut_bottom = augment_clip(row - a->cutout / 2 + a->cutout, a->rows);
    draw.cut_left = augment_clip(column - a->cutout / 2, a->columns);
    draw.cut_right = augment_clip(column - a->cutout / 2 + a->cutout, a->columns);
    return draw;
}

/* Where a pixel of a rotated crop comes from: between four pixels of the stored image, of which this is the
 * upper left one; it may lie outside. */
struct augment_place {
    int row, column;
    uint32_t down, right; /* how far from it, in 256ths of the way to the next */
};

/* Distances from the crop's centre are whole numbers of half pixels; shifts to the right round down. */
AUGMENT_INLINE struct augment_place augment_place(const struct augment *a, const struct augment_draw *draw,
                                                  int row, int column) {
    const int64_t down = 2 * row - (a->rows - 1), right = 2 * column - (a->columns - 1);
    const int64_t sine = draw->turn.sine, cosine = draw->turn.cosine;
    const int64_t y = cosine * down + sine * right, x = cosine * right - sine * down;
    const int64_t from_y = (2 * (draw->top - a->pad) + a->rows - 1) * (int64_t)AUGMENT_ONE + y;
    const int64_t from_x =
        (2 * (draw->left - a->pad) + a->columns - 1) * (int64_t)AUGMENT_ONE + (draw->flip ? -x : x);
    const struct augment_place place = {(int)(from_y >> 17), (int)(from_x >> 17),
                                        (uint32_t)(from_y >> 9) & 255u, (uint32_t)(from_x >> 9) & 255u};
    return place;
}

/* From the four, the upper left one first, then its right neighbour. */
AUGMENT_INLINE uint8_t augment_between(const struct augment_place *place, uint8_t one, uint8_t right,
                                       uint8_t below, uint8_t across) {
    const uint32_t upper = one * (256u - place->right) + right * place->right;
    const uint32_t lower = below * (256u - place->right) + across * place->right;
    return (uint8_t)((upper * (256u - place->down) + lower * place->down + 32768u) >> 16);
}

/* A byte of the stored image, black outside of it. */
AUGMENT_INLINE uint8_t augment_stored(const struct augment *a, const uint8_t *image, int row, int column,
                                      int channel) {
    if (row < 0 || row >= a->height || column < 0 || column >= a->width) return 0;
    return image[((size_t)row * (size_t)a->width + (size_t)column) * (size_t)a->channels + (size_t)channel];
}

/* A byte of the rotated crop. */
AUGMENT_INLINE uint8_t augment_rotated(const struct augment *a, const struct augment_place *place,
                                       const uint8_t *image, int channel) {
    return augment_between(place, augment_stored(a, image, place->row, place->column, channel),
                           augment_stored(a, image, place->row, place->column + 1, channel),
                           augment_stored(a, image, place->row + 1, place->column, channel),
                           augment_stored(a, image, place->row + 1, place->column + 1, channel));
}

/* What is measured of a crop: sums over its bytes, black borders included. */
struct augment_sums {
    int64_t sum[AUGMENT_CHANNELS]; /* a channel */
    int64_t squares;               /* all channels */
};

/* Whether the function depends on the pixels at all; else sums need not be measured. */
AUGMENT_INLINE int augment_needs_sums(const struct augment *a, const struct augment_draw *draw) {
    return a->standardize || draw->contrast < 1.0f || draw->contrast > 1.0f;
}

struct augment_line {
    float slope, offset[AUGMENT_CHANNELS];
};

/* The chain from brightness to standardize as one line per channel; `scale` is used without standardize. With
 * P pixels and C channels, contrast f and channel means m: the mean of all is that of the m plus brightness,
 * the variance f^2 times that inside the channels plus that of the m. */
AUGMENT_INLINE struct augment_line augment_line(const struct augment *a, const struct augment_draw *draw,
                                                const struct augment_sums *sums, float scale) {
    struct augment_line line = {scale, {0.0f, 0.0f, 0.0f, 0.0f}};
    const double pixels = (double)a->rows * a->columns, channels = a->channels;
    const double contrast = (double)draw->contrast;
    if (a->standardize) {
        int64_t all = 0, own = 0; /* sum of the channels' sums, and of their squares */
        for (int c = 0; c < a->channels; c++) {
            all += sums->sum[c];
            own += sums->sum[c] * sums->sum[c];
        }
        const double inside =
            (double)((int64_t)a->rows * a->columns * sums->squares - own) / (pixels * pixels * channels);
        const double between =
            (double)(a->channels * own - all * all) / (pixels * pixels * channels * channels);
        const double deviation = sqrt(contrast * contrast * inside + between);
        const double least = 1.0 / sqrt(pixels * channels);
        const double per = 1.0 / (deviation > least ? deviation : least);
        line.slope = (float)(contrast * per);
        for (int c = 0; c < a->channels; c++) {
            const double mean = (double)sums->sum[c] / pixels;
            line.offset[c] = (float)(((1.0 - contrast) * mean - (double)all / (pixels * channels)) * per);
        }
    } else if (augment_needs_sums(a, draw)) {
        line.slope = (float)(contrast * (double)scale);
        for (int c = 0; c < a->channels; c++)
            line.offset[c] =
                (float)(((1.0 - contrast) * (double)sums->sum[c] / pixels + (double)draw->brightness) *
                        (double)scale);
    } else {
        for (int c = 0; c < a->channels; c++) line.offset[c] = draw->brightness * scale;
    }
    return line;
}

/* --- mixup and cutmix: two examples become one, after all of the above --- */

/* How an example is mixed with another one. */
struct augment_mix {
    float share; /* of the example's own label in the loss; the other one's is the rest */
    int boxed;   /* 1: the pixels of the box are the other one's; 0: all are weighted means */
    int top, bottom, left, right; /* [top, bottom) x [left, right) of the crop */
};

AUGMENT_INLINE int augment_mixes(const struct augment *a) {
    return a->mixup > 0.0f || a->cutmix > 0.0f;
}

AUGMENT_INLINE float augment_mixed(float share, float own, float other) {
    return share * own + (1.0f - share) * other;
}

/* A byte of the crop as the network gets it. */
AUGMENT_INLINE float augment_value(uint8_t byte, float slope, float offset) {
    return (float)byte * slope + offset;
}

#endif
