/* Checks PNG and JPEG files before stb_image decodes them. */
#ifndef TRAINER_DATA_PICTURE_CHECK_H
#define TRAINER_DATA_PICTURE_CHECK_H

#include <stddef.h>
#include "../base/error.h"

/* Whether a file in memory is a PNG or JPEG that is all there: to its end mark, with the check sums of PNG
 * right, and the tables of JPEG such as a decoder may trust; and within the limits of picture.h, with no more
 * in a PNG than its pixels need. `name` is for the words. Errors: ERROR_FILE; ERROR_DEVICE: no memory. */
int picture_check(const char *name, const void *bytes, size_t count, struct error *error);

#endif
