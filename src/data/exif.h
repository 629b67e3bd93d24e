/* Which way is up in a JPEG, as the camera noted it. */
#ifndef TRAINER_DATA_EXIF_H
#define TRAINER_DATA_EXIF_H

#include <stddef.h>

/* Orientations are numbered from 1, upright, to 8, as the standard has them. */
enum { EXIF_UPRIGHT = 1, EXIF_MOST = 8 };

/* The orientation that the first EXIF segment of a JPEG in memory says; EXIF_UPRIGHT where there is none, or
 * none that can be read. Source: CIPA DC-008 (Exif 2.32), 4.6.2 and 4.6.4. */
int exif_orientation(const void *bytes, size_t count);

/* Where a pixel stands in the upright picture; size = {height, width} of the picture as it is stored. From an
 * orientation of 5 on the upright picture is [width, height]. Returns row * its width + column. */
size_t exif_place(int orientation, const int size[2], int row, int column);

#endif
