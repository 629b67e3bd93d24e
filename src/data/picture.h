/* Pictures: PNG, JPEG, BMP and the first frame of GIF, decoded by stb_image, JPEG by libjpeg-turbo where the
 * program is built with it; turned as the camera noted, scaled to the size and converted to the channels that
 * a network takes. */
#ifndef TRAINER_DATA_PICTURE_H
#define TRAINER_DATA_PICTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"

/* More is refused before anything is decoded: 8,192 x 8,192 pixels, as many on a side, as many scans. */
enum { PICTURE_MOST_PIXELS = 1 << 26, PICTURE_MOST_SIDE = 1 << 16, PICTURE_MOST_SCANS = 100 };

struct picture {
    int height, width, channels; /* 1: grey; 3: red, green, blue */
    uint8_t *pixels;             /* [height][width][channels], owned */
};

/* Bytes of a file that is read as a picture: more than the largest BMP has. */
enum { PICTURE_MOST_BYTES = 1 << 29 };

/* How a picture is brought to another shape: not at all, as none is; cut to it, or squashed. */
enum picture_fit { PICTURE_NONE, PICTURE_CROP, PICTURE_SQUASH, PICTURE_FITS };
extern const char *const picture_fits[PICTURE_FITS]; /* "none", "crop", "squash" */

/* Whether they begin as a PNG, JPEG, BMP or GIF file does. */
bool picture_is(const void *bytes, size_t count);
/* Whether its name ends as that of such a file: in .png, .jpg, .jpeg, .bmp or .gif, in letters of any case.
 */
bool picture_is_named(const char *path);

/* The name of another kind of picture, which is not read, that they begin as: "TIFF"; NULL: none that is
 * known. */
const char *picture_other(const void *bytes, size_t count);

/* What a network takes. */
struct picture_form {
    int height, width, channels; /* 1 or 3 channels */
    enum picture_fit fit;        /* PICTURE_NONE is as PICTURE_SQUASH */
};

/* A rectangle of pixels, whose edges may cut some. */
struct picture_part {
    double top, left, height, width;
};

/* Decodes a file in memory into 1 or 3 channels; `name` is for the words. 16 bits per channel become 8; what
 * is transparent shows white behind it; colours become grey by their brightness (ITU-R BT.601); a JPEG is
 * upright afterwards, as its EXIF segment says (exif.h). Errors:
 * ERROR_FILE: damaged, cut, beyond the limits above, a kind that stb_image cannot read, or a build without
 * it; ERROR_DEVICE: no memory. */
int picture_decode(struct picture *picture, int channels, const char *name, const void *bytes, size_t count,
                   struct error *error);
void picture_close(struct picture *picture); /* safe on a zeroed one */

/* The largest part of height x width pixels that has the shape down : across, in their middle: whole pixels.
 */
struct picture_part picture_middle(int height, int width, int down, int across);

/* out[height][width][channels] = a part of the picture, scaled to that size, its own shape or not; values
 * from 0 to 255. Each is a mean of the part's pixels around its place, weighted by a triangle as wide as two
 * pixels of the coarser of the two grids: at equal sizes the pixels themselves. A pixel
 * that is cut counts for what is left of it. Errors: ERROR_DEVICE. */
int picture_fit(const struct picture *picture, const struct picture_part *part, int height, int width,
                float *out, struct error *error);

/* All of it: out[form->height][form->width][form->channels] = the picture of a file, decoded, cut and scaled;
 * values from 0 to 255. A JPEG that is much larger is decoded to a half, a quarter or an eighth of its size
 * (picture.c). Errors: as those of picture_decode. */
int picture_read(const struct picture_form *form, const char *name, const void *bytes, size_t count,
                 float *out, struct error *error);

#endif
