/* Formats of other programs: a file each in src/exports/, as a descriptor `format_NAME`; the name is the
 * suffix of its files. */
#ifndef TRAINER_INFER_EXPORT_H
#define TRAINER_INFER_EXPORT_H

#include <stdio.h>
#include "../base/option.h"
#include "keras_training.h"
#include "layers_of.h"
#include "restore.h"

/* What is written. */
struct exported {
    const struct restored *restored; /* the weights, and what the training knew of its examples */
    const struct layers_of *layers;
    const struct keras_training
        *training; /* what Keras goes on from, where the format asks and it is there */
    bool torch;    /* names and layouts of arrays as PyTorch has them, where the format is one of arrays */
};

struct format {
    struct plugin plugin;
    const char *needs;        /* the package that this build lacks for it; NULL: nothing */
    bool arrays;              /* it has the weights alone, by name */
    enum keras_reader trains; /* who goes on from the optimizer's state in it; KERAS_NONE: it has none */
    /* Whether a library that is loaded on demand is there; NULL: it needs none. Errors: ERROR_FILE. */
    int (*ready)(struct error *error);
    /* Writes the whole file. Errors: ERROR_FILE: the stream; a layer that the format cannot say, by its
     * name; ERROR_DEVICE (memory). */
    int (*write)(FILE *file, const struct exported *exported, struct error *error);
};

/* Made by the Makefile from the file names in src/exports/. */
extern const struct format *const exports[];
extern const struct plugin_kind format_kind;

/* The format of a file, by its suffix. Errors: ERROR_USAGE: none of them, or one that this build lacks;
 * ERROR_FILE: the library that writes it cannot be loaded. */
int export_format(const struct format **format, const char *path, struct error *error);

/* Whether the folder is there that the file would be in: nobody wants to hear it when all is trained. "" is
 * no file. Errors: ERROR_FILE. */
int export_folder(const char *path, struct error *error);

/* Whether a file can be put there: no folder is in the way, and no file that nobody asked to replace. "" is
 * no file. Errors: ERROR_FILE. */
int export_check_free(const char *path, bool replace, struct error *error);

/* Whether the format of `path` can say a network, for inference, that is to be trained: it is written without
 * weights, nowhere. units: of its values. "" is no file. Errors: as export_write has them. */
int export_rehearse(const char *path, const struct network *network, const struct units *units,
                    struct error *error);

/* Writes the network of a checkpoint (see restored_open) to `path`, which appears under its name when it is
 * whole. What is left out of the training that the format could go on with is said on standard error. Errors:
 * ERROR_USAGE, ERROR_FILE, ERROR_DEVICE. */
int export_write(const char *checkpoint, const char *path, bool torch, bool replace, struct error *error);

#endif
