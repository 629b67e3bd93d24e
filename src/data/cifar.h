/* The binary files of CIFAR-10: records of a label and a colour image, plane by plane. */
#ifndef TRAINER_DATA_CIFAR_H
#define TRAINER_DATA_CIFAR_H

#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"

enum {
    CIFAR_SIDE = 32,
    CIFAR_CHANNELS = 3,
    CIFAR_PLANE = CIFAR_SIDE * CIFAR_SIDE,
    CIFAR_PIXELS = CIFAR_PLANE * CIFAR_CHANNELS,
    CIFAR_RECORD = 1 + CIFAR_PIXELS, /* label, red plane, green plane, blue plane */
    CIFAR_CLASSES = 10,
};

/* A file in memory. */
struct cifar_file {
    const char *name;     /* for the words */
    const uint8_t *bytes; /* [length], borrowed */
    size_t length;
};

/* Reads exactly `records` records: pixels[records][32][32][3], channels last, and labels[records]. Errors:
 * ERROR_FILE: another length, a label beyond the classes; what was written by then is of no use. */
int cifar_parse(const struct cifar_file *file, int records, uint8_t *pixels, int *labels,
                struct error *error);

#endif
