/* HDF5 files in memory, reading, as far as Keras writes them: groups and their attributes of texts, arrays of
 * floats that lie in one piece. It is of our own because a file may come from anywhere: every place and size
 * in it is checked against the length before it is used, and what one look-up may walk through is counted.
 * Source: The HDF Group, "HDF5 File Format Specification Version 3.0"; of it the format of version 1.0
 * (superblock 0 or 1, object headers of version 1, groups as B-trees), which h5py and libhdf5 write unless
 * they are told otherwise, and groups whose names are messages, which they make of those that have a name
 * that is not ASCII. Paths are those in the file: "model_weights/conv1". */
#ifndef TRAINER_FORMATS_HDF5_READER_H
#define TRAINER_FORMATS_HDF5_READER_H

#include "../data/npy.h"

struct hdf5_reader {
    const char *name;     /* for the words; borrowed */
    const uint8_t *bytes; /* [length], borrowed */
    size_t length;
    uint64_t root; /* where the root group is */
    long steps;    /* that were taken so far, of a limited number */
};

/* Errors of all functions: ERROR_FILE; ERROR_DEVICE (memory). */
int hdf5_reader_open(struct hdf5_reader *file, const char *name, const uint8_t *bytes, size_t length,
                     struct error *error);

/* *object = where the group or array is; 0: nothing has that path. "" is the root. */
int hdf5_reader_find(struct hdf5_reader *file, const char *path, uint64_t *object, struct error *error);

/* An attribute's texts. */
struct hdf5_texts {
    char **texts; /* [count], owned */
    int count;
};

/* No texts where it has no such attribute. Errors: it is none of texts. */
int hdf5_reader_texts(struct hdf5_reader *file, uint64_t object, const char *attribute,
                      struct hdf5_texts *texts, struct error *error);
void hdf5_texts_close(struct hdf5_texts *texts); /* safe on a zeroed one */

/* The array there: float16, 32 or 64, of at least one dimension and one item. `path`: for the words, and
 * borrowed as the array's name. */
int hdf5_reader_array(struct hdf5_reader *file, uint64_t object, const char *path, struct npy *array,
                      struct error *error);

/* The one number there: an integer, or a float as above; of any number of dimensions. */
int hdf5_reader_number(struct hdf5_reader *file, uint64_t object, const char *path, double *number,
                       struct error *error);

#endif
