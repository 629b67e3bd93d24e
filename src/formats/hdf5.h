/* HDF5 files, writing: groups, texts as their attributes, arrays of float32, numbers. Made in memory by
 * libhdf5, which is loaded for it, and then written to a stream. Paths are those in the file:
 * "model_weights/conv1". */
#ifndef TRAINER_FORMATS_HDF5_H
#define TRAINER_FORMATS_HDF5_H

#include <stdio.h>
#include "../base/error.h"
#include "../graph/shape.h"

struct hdf5;

/* Errors of all functions: ERROR_DEVICE (memory), ERROR_FILE (libhdf5 cannot be loaded, or cannot: a
 * name that is there). Not for several threads at a time. */
int hdf5_ready(struct error *error); /* whether libhdf5 can be loaded */
int hdf5_open(struct hdf5 **out, struct error *error);
/* With the groups that it lies in. "" and "/": the root, which is there. */
int hdf5_group(struct hdf5 *file, const char *path, struct error *error);
/* An attribute of a group: one text of any length; or several, each in as many bytes as the longest, less
 * than 64 KiB together. */
int hdf5_text(struct hdf5 *file, const char *path, const char *name, const char *text, struct error *error);
int hdf5_texts(struct hdf5 *file, const char *path, const char *name, const char *const *texts, int count,
               struct error *error);
/* An array, in groups that are made where they are not there. */
int hdf5_array(struct hdf5 *file, const char *path, const struct shape *shape, const float *values,
               struct error *error);
/* A whole number, which is an array of no dimensions. */
int hdf5_number(struct hdf5 *file, const char *path, long long value, struct error *error);
/* The whole file as it stands: bytes are owned by the caller (memory_free). */
int hdf5_image(struct hdf5 *file, void **bytes, size_t *count, struct error *error);
void hdf5_close(struct hdf5 *file); /* NULL is fine */

#endif
