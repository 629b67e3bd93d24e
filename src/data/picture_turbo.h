/* JPEG, decoded by libjpeg-turbo, which is some times as fast as stb_image. A build without it (TURBO=0)
 * takes none. */
#ifndef TRAINER_DATA_PICTURE_TURBO_H
#define TRAINER_DATA_PICTURE_TURBO_H

#include "picture_check.h"

/* Whether this kind of JPEG is for it: baseline or progressive, grey or of three components. The others,
 * arithmetic codes and inks (CMYK), are read by stb_image or not at all, whatever the build. */
bool picture_turbo_takes(const struct picture_jpeg *jpeg);

/* out[height][width][components] = the picture of a file that picture_check let through, grey or red, green,
 * blue; size = {height, width}: those in the file divided by 1, 2, 4 or 8, rounded up. False: there is
 * anything wrong with the file, or no memory; what is in `out` is then of no use. */
bool picture_turbo(const struct picture_jpeg *jpeg, const uint8_t *bytes, size_t count, const int size[2],
                   uint8_t *out);

#endif
