/* How light the pictures of a data set are, in the middle and at the border: so that a picture whose colours
 * are the reverse of theirs, dark figures on a light ground for light ones on a dark ground, is found before
 * somebody trusts what a network says of it. */
#ifndef TRAINER_DATA_LIGHT_H
#define TRAINER_DATA_LIGHT_H

#include "dataset.h"

struct light {
    double whole, border; /* mean of all pixels, and of the outermost; 0 black to 1 white; NAN: not known */
};

/* What number `at` of picture `picture` is, 0 to 1. */
typedef double light_number(const void *self, int picture, int at);

/* size = {height, width, channels} of pictures that have this shape: [pixels] of a square, grey or else of
 * three colours, [height, width] or [height, width, channels]. With an augment of height > 0 what it is
 * given. False: these are no pictures. */
bool light_size(int size[3], const struct shape *shape, const struct augment *augment);

struct light light_measure(const int size[3], int pictures, light_number *number, const void *self);
/* Of a thousand training examples at most, evenly spread; NAN where they are no pictures, or whitened.
 * Errors: ERROR_FILE: those of the file that they lie in. */
int light_of_dataset(struct light *light, const struct dataset *dataset, struct error *error);

/* Whether a picture is lit the other way round. False where the data set has no way of its own. */
bool light_reversed(const struct light *picture, const struct light *dataset);

#endif
