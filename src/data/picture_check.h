/* Checks pictures before stb_image decodes them. */
#ifndef TRAINER_DATA_PICTURE_CHECK_H
#define TRAINER_DATA_PICTURE_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include "picture.h"

/* What a file begins as. */
enum picture_kind { PICTURE_IS_NONE, PICTURE_IS_PNG, PICTURE_IS_JPEG, PICTURE_IS_BMP, PICTURE_IS_GIF };
enum picture_kind picture_kind(const void *bytes, size_t count);

/* The frame of a JPEG. */
struct picture_jpeg {
    uint8_t code; /* of its marker: 0xc0 baseline, 0xc1 extended, 0xc2 progressive; 0: there is none */
    int height, width, components;
};

/* Whether a file in memory is a picture that is all there: to its end mark, with the check sums of PNG right,
 * and the tables of JPEG such as a decoder may trust; to the end of a BMP's rows and of a GIF's first frame;
 * and within the limits of picture.h, with no more packed in it than its pixels need. `name` is for the
 * words; *jpeg: a JPEG's first frame, else zero. Errors: ERROR_FILE; ERROR_DEVICE: no memory. */
int picture_check(const char *name, const void *bytes, size_t count, struct picture_jpeg *jpeg,
                  struct error *error);

/* Its parts. Errors: ERROR_FILE. */
int picture_check_size(const char *name, uint32_t width, uint32_t height, struct error *error);
int picture_check_jpeg(const char *name, const uint8_t *bytes, size_t count, struct picture_jpeg *jpeg,
                       struct error *error);
int picture_check_bmp(const char *name, const uint8_t *bytes, size_t count, struct error *error);
int picture_check_gif(const char *name, const uint8_t *bytes, size_t count, struct error *error);

#endif
