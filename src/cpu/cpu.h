/* Private to the CPU backend. */
#ifndef TRAINER_CPU_CPU_H
#define TRAINER_CPU_CPU_H

#include "../device/device.h"

extern const struct backend cpu_backend;

/* The slots gather and gather_labels of the backend. */
void cpu_gather(const struct device *device, const struct examples *examples, const int *index, int count,
                float *out);
void cpu_gather_labels(const struct device *device, const struct examples *examples, const int *index,
                       int count, int *out);

#endif
