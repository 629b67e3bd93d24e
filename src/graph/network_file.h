/* A network that another program wrote: its layers, and its weights by our names and in our layouts. One file
 * per format in src/imports/readers/ reads it, as a descriptor `reader_NAME`; its parts are in src/imports/.
 */
#ifndef TRAINER_GRAPH_NETWORK_FILE_H
#define TRAINER_GRAPH_NETWORK_FILE_H

#include "../base/option.h"
#include "layers.h"

struct file_array {
    char name[80]; /* as the graph's layout has it: the layer's name and the weight's, "conv1/kernel" */
    struct shape shape;
    float *values; /* [shape_count] owned. Kernels are HWIO, of dense layers [in, out]; where an image was
                      flattened, `in` is in the order rows, columns, channels */
};

struct network_file {
    struct layer_list list;    /* layers with weights have names, and those are in the arrays' names; count 0:
                                  the    file has weights only */
    struct file_array *arrays; /* [count] in room for `room` */
    int count, room;
    struct shape input; /* of one example: {features} or {rows, columns, channels}; rank 0: not said */
    int classes;        /* outputs of the last layer; 0: not said */
};

struct reader {
    struct plugin plugin;        /* name: "keras", "onnx" */
    const char *const *suffixes; /* ".h5", ".keras"; ended by NULL */
    const char *needs;           /* the package that this build lacks for it; NULL: nothing */
    /* Reads the whole file into a zeroed one, which the caller closes, also after an error. Errors:
     * ERROR_FILE: "PATH: layer NAME: found ..., expected one of ..."; ERROR_DEVICE (memory). */
    int (*read)(struct network_file *file, const char *path, struct error *error);
};

/* Made by the Makefile from the file names in src/imports/readers/. */
extern const struct reader *const readers[];
extern const struct plugin_kind reader_kind;

/* Reads a file, by its suffix. `file` is zeroed first; the caller closes it. Errors: ERROR_USAGE: no suffix
 * of a reader, or one that this build lacks; those of the reader. */
int network_file_open(struct network_file *file, const char *path, struct error *error);
void network_file_close(struct network_file *file); /* safe on a zeroed or half-open one */

/* Whether a reader has the suffix of that path. */
bool network_file_has_reader(const char *path);

/* An array of that shape, zeroed, that the file owns; NULL: too large (ERROR_FILE), a name too long, or no
 * memory. */
struct file_array *network_file_array(struct network_file *file, const char *name, const struct shape *shape,
                                      struct error *error);

/* Gives the layer the name that it has in the file, or one like it that it may have here and no other layer
 * has: "dense" becomes dense_0, what no name may hold becomes _. */
void network_file_name(const struct layer_list *list, struct layer *layer, const char *name);

#endif
