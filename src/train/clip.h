/* Cutting a gradient's norm. */
#ifndef TRAINER_TRAIN_CLIP_H
#define TRAINER_TRAIN_CLIP_H

#include <stddef.h>

/* Scales values[floats] down to the Euclidean norm `most`, when theirs is larger. floats is a multiple of 8.
 */
void gradient_clip(float *values, size_t floats, float most);

#endif
