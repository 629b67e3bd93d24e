/* Cutting a gradient's norm. */
#ifndef TRAINER_TRAIN_CLIP_H
#define TRAINER_TRAIN_CLIP_H

#include "../device/device.h"

/* Scales a gradient, values[layout floats] in the memory of `home`, down to the Euclidean
 * norm `most` when its own is larger. Statistics are no gradient: they do not count, and stay as they are.
 * Errors: ERROR_DEVICE. */
int gradient_clip(const struct layout *layout, const struct device *home, float *values, float most,
                  struct error *error);

#endif
