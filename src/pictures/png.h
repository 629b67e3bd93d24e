/* PNG, written by libpng. A build without libpng (PNG=0) says so. */
#ifndef TRAINER_PICTURES_PNG_H
#define TRAINER_PICTURES_PNG_H

#include <stdbool.h>
#include <stddef.h>
#include "canvas.h"

/* Whether this build can. Errors of all: ERROR_USAGE: it cannot; the words name the package. */
int png_check(struct error *error);

/* *bytes = the file (owned by the caller: memory_free). Errors: ERROR_DEVICE: no memory. */
int png_encode(const struct canvas *canvas, char **bytes, size_t *count, struct error *error);

/* Writes the file, which then is there as a whole, or not at all. What has its name is replaced. Errors:
 * ERROR_FILE. */
int png_write(const struct canvas *canvas, const char *path, struct error *error);

#endif
