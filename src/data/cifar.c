/* The format has no header: only its length says whether a file is whole, so that is checked first. */
#include "cifar.h"

/* Planes become pixels: [3][32 * 32] to [32 * 32][3]. */
static void interleave(const uint8_t *restrict planes, uint8_t *restrict pixels) {
    const uint8_t *red = planes, *green = planes + CIFAR_PLANE, *blue = planes + 2 * CIFAR_PLANE;
    for (int i = 0; i < CIFAR_PLANE; i++, pixels += CIFAR_CHANNELS) {
        pixels[0] = red[i];
        pixels[1] = green[i];
        pixels[2] = blue[i];
    }
}

int cifar_parse(const struct cifar_file *file, int records, uint8_t *pixels, int *labels,
                struct error *error) {
    const size_t expected = (size_t)records * CIFAR_RECORD;
    if (file->length != expected)
        return error_set(error, ERROR_FILE,
                         "%s: found %zu bytes, expected %zu: %d records of a label and %d x %d x %d pixels",
                         file->name, file->length, expected, records, CIFAR_SIDE, CIFAR_SIDE, CIFAR_CHANNELS);
    for (int i = 0; i < records; i++) {
        const uint8_t *record = file->bytes + (size_t)i * CIFAR_RECORD;
        if (record[0] >= CIFAR_CLASSES)
            return error_set(error, ERROR_FILE,
                             "%s: found label %d in record %d (counted from 1), expected 0 to %d", file->name,
                             record[0], i + 1, CIFAR_CLASSES - 1);
        labels[i] = record[0];
        interleave(record + 1, pixels + (size_t)i * CIFAR_PIXELS);
    }
    return OK;
}
