/* Cutting a gradient's norm. */
#ifndef TRAINER_TRAIN_CLIP_H
#define TRAINER_TRAIN_CLIP_H

#include "../graph/layout.h"

/* Scales a gradient, values[layout floats], down to the Euclidean norm `most` when its own is larger.
 * Statistics are no gradient: they do not count, and stay as they are. */
void gradient_clip(const struct layout *layout, float *values, float most);

#endif
