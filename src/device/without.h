/* Operations that devices are treated as having no kernel for, so that soft placement can be tried. */
#ifndef TRAINER_DEVICE_WITHOUT_H
#define TRAINER_DEVICE_WITHOUT_H

#include "device.h"

/* text: "gpu:lrn,gpu:maxpool"; NULL or empty: nothing. Errors: ERROR_USAGE: not understood, no such
 * operation. */
int devices_without(struct device *devices, int count, const char *text, struct error *error);

#endif
