/* Private to the CPU backend. */
#ifndef TRAINER_CPU_CPU_H
#define TRAINER_CPU_CPU_H

#include "../device/device.h"

extern const struct backend cpu_backend;

/* The slots gather and gather_labels of the backend. */
int cpu_gather(const struct device *device, const struct examples *examples, const struct picks *picks,
               float *out, struct error *error);
int cpu_gather_labels(const struct device *device, const struct examples *examples, const struct picks *picks,
                      int *out, struct error *error);
/* One image, augmented: out[rows][columns][channels]. image[height][width][channels]. */
void cpu_augment(const struct augment *augment, const struct augment_draw *draw, const uint8_t *image,
                 float scale, float *out);

#endif
