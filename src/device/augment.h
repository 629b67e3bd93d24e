/* How the bytes of a stored image become a network's input. CPU and CUDA code include this header, so they
 * agree on every pixel. Common part of C, C++ and CUDA.
 *
 * The chain, always in this order: pad with black, crop, flip, brightness, contrast, standardize or scale,
 * cutout. In training the place of the crop, the flip, brightness, contrast and cutout are random; in
 * tests the crop is central and the others are left out. Nothing is clipped to 0..255 on the way, as in
 * TensorFlow with floats, so the chain is one linear function per image and channel: a value is slope *
 * byte + offset[channel], and both come from sums of bytes that are exact integers. */
#ifndef TRAINER_DEVICE_AUGMENT_H
#define TRAINER_DEVICE_AUGMENT_H

#include <math.h>
#include <stdint.h>
#include "../base/rng.h"

#ifdef __CUDACC__
#    define AUGMENT_INLINE static inline __host__ __device__
#else
#    define AUGMENT_INLINE static inline
#endif

enum { AUGMENT_CHANNELS = 4, AUGMENT_BYTES = 1 << 16 }; /* at most; bytes of a crop */

/* The recipe of a data set. height 0: the examples are no images, or their bytes are only scaled. */
struct augment {
    int height, width, channels;         /* of the stored images, channels last */
    int pad;                             /* black pixels on every side, before the crop */
    int rows, columns;                   /* of the crop, inside the padded image: what the network is given */
    int flip;                            /* 1: every other image, on average, is mirrored left to right */
    float brightness;                    /* plus uniform [-brightness, brightness), in units of a byte */
    float contrast_least, contrast_most; /* uniform factor about each channel's mean; 1 and 1: none */
    int cutout;      /* a square of this side is 0, its centre anywhere in the crop; 0: none */
    int standardize; /* 1: (x - mean) / max(deviation, 1/sqrt(n)) over the n numbers of the crop */
    int whitened;    /* 1: the stored images are whitened ones; the chain does not look at it */
};

/* What one image gets. */
struct augment_draw {
    int top, left; /* of the crop in the padded image */
    int flip;
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

/* For a test: the central crop, and nothing else. */
AUGMENT_INLINE struct augment_draw augment_centre(const struct augment *a) {
    struct augment_draw draw = {0, 0, 0, 0.0f, 1.0f, 0, 0, 0, 0};
    draw.top = (a->height + 2 * a->pad - a->rows) / 2;
    draw.left = (a->width + 2 * a->pad - a->columns) / 2;
    return draw;
}

/* For training: all from the example's key. Each number has random bits of its own, so that one setting does
 * not change what the others draw. */
AUGMENT_INLINE struct augment_draw augment_draw(const struct augment *a, uint64_t key) {
    const struct rng_block first = rng_philox(key, 0, 0), second = rng_philox(key, 0, 1);
    const int row = augment_below(second.word[1], a->rows),
              column = augment_below(second.word[2], a->columns);
    struct augment_draw draw = {0, 0, 0, 0.0f, 1.0f, 0, 0, 0, 0};
    draw.top = augment_below(first.word[0], a->height + 2 * a->pad - a->rows + 1);
    draw.left = augment_below(first.word[1], a->width + 2 * a->pad - a->columns + 1);
    draw.flip = a->flip && first.word[2] >> 31;
    draw.brightness = a->brightness * (2.0f * rng_unit(first.word[3]) - 1.0f);
    draw.contrast = a->contrast_least + (a->contrast_most - a->contrast_least) * rng_unit(second.word[0]);
    draw.cut_top = augment_clip(row - a->cutout / 2, a->rows);
    draw.cut_bottom = augment_clip(row - a->cutout / 2 + a->cutout, a->rows);
    draw.cut_left = augment_clip(column - a->cutout / 2, a->columns);
    draw.cut_right = augment_clip(column - a->cutout / 2 + a->cutout, a->columns);
    return draw;
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

/* A byte of the crop as the network gets it. */
AUGMENT_INLINE float augment_value(uint8_t byte, float slope, float offset) {
    return (float)byte * slope + offset;
}

#endif
