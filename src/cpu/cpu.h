/* Private to the CPU backend. */
#ifndef TRAINER_CPU_CPU_H
#define TRAINER_CPU_CPU_H

#include "../device/device.h"

extern const struct backend cpu_backend;

/* The slots gather and gather_labels of the backend. */
int cpu_gather(const struct device *device, const struct examples *examples, const struct indices *indices,
               float *out, struct error *error);
int cpu_gather_labels(const struct device *device, const struct examples *examples,
                      const struct indices *indices, int *out, struct error *error);
/* vectors.c */
extern const struct vectors cpu_vectors;
/* The step of a block of weights, and of their average, where there is one. */
void cpu_step(const struct update *update, size_t floats, float *weights, float *const *moments,
              const float *gradient, float *average);

/* racy.c: the slots update, for a slice that is racy, and copy_racy. */
void cpu_update_racy(const struct update *update, const struct update_slice *slice);
void cpu_copy_racy(float *out, const float *in, size_t floats, struct world *world);

int cpu_mix(const struct device *device, const struct augment *augment, const struct augment_mix *mix,
            int count, const float *rows, float *out, struct error *error);

/* One image, augmented: out[rows][columns][channels]. image[height][width][channels]. */
void cpu_augment(const struct augment *augment, const struct augment_draw *draw, const uint8_t *image,
                 float scale, float *out);

#endif
