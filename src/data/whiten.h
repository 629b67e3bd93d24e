/* Whitening of colour images: neighbouring pixels and colours are strongly correlated, and a network
 * learns faster when that correlation is removed. ZCA of patches (Krizhevsky, "Learning Multiple Layers of
 * Features from Tiny Images", 2009, appendix A) with one small filter that is the same at every pixel. */
#ifndef TRAINER_DATA_WHITEN_H
#define TRAINER_DATA_WHITEN_H

#include <stddef.h>
#include <stdint.h>

enum { WHITEN_CHANNELS = 3, WHITEN_REACH = 2, WHITEN_ONE = 256 };

/* What channel `in` of the pixel so many rows and columns away (0 to WHITEN_REACH, either way) counts for
 * channel `out`, in units of 1/WHITEN_ONE. */
int whiten_weight(int rows, int columns, int in, int out);

/* image[height][width][3] is filtered, its outermost pixels standing for what lies beyond its boundary, and
 * stays bytes: 128 + 48 * the filter's answer to the image with mean 0 and deviation 1, cut to 0..255. The
 * same bytes on every machine, and of a mirrored image the mirrored ones. height * width is at most 2^20, and
 * `room` has whiten_room(height, width) bytes. */
void whiten_image(uint8_t *image, int height, int width, uint8_t *room);

size_t whiten_room(int height, int width);

#endif
