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

/* The optimizer that the network was trained with there, as far as it has a counterpart here. Its vectors are
 * among the file's arrays, named as in a checkpoint: "momentum:conv1/kernel". */
struct file_optimizer {
    char text[200];  /* as --optimizer takes it: "adam:rate=0.001,..."; empty: none */
    long updates;    /* that it has made */
    char words[240]; /* why it is left out, or what of it is; or "" */
};

struct network_file {
    struct layer_list list;    /* layers with weights have names, and those are in the arrays' names; count 0:
                                  the    file has weights only */
    struct file_array *arrays; /* [count] in room for `room` */
    int count, room;
    struct shape input; /* of one example: {features} or {rows, columns, channels}; rank 0: not said */
    int classes;        /* outputs of the last layer; 0: not said */
    bool ends_there;    /* with the list's last layer: no softmax or sigmoid of a loss is behind it */
    struct file_optimizer optimizer;
    char notice[240];   /* what is said there and not heeded here, for who takes the weights; or "" */
    char left_out[240]; /* layers that are there and not here, which changes no prediction; or "" */
};

/* What a network of a file is set by on the command line, after the reader's name: the settings of all
 * readers. */
struct network_file_settings {
    char file[1024];
    int weights; /* enum file_weights */
    int head;    /* enum file_head */
};
enum file_weights { FILE_WEIGHTS_AUTO, FILE_WEIGHTS_SAME, FILE_WEIGHTS_FRESH };
enum file_head { FILE_HEAD_SAME, FILE_HEAD_FIT };
extern const struct option network_file_options[];

struct reader {
    struct plugin plugin;        /* name: "keras", "onnx"; its options are network_file_options */
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

/* The outputs of the last dense layer or convolution of the list, if only activations, dropout and pooling
 * over all places come after it; 0: not known. */
int network_file_classes(const struct network_file *file);

/* The network in a file as a model's text, "layers:...", in text[bytes]. *has_weights: the file has its
 * weights. *optimizer: what it has of one; NULL: nobody asks. Errors: as network_file_open; ERROR_FILE: it is
 * longer as a text than `bytes`, or its end is no dense layer that could be made to fit. */
int network_file_text(const char *path, enum file_head head, char *text, size_t bytes, bool *has_weights,
                      struct file_optimizer *optimizer, struct error *error);

/* The array of that name, or NULL. */
const struct file_array *network_file_find(const struct network_file *file, const char *name);

/* Whether that names a reader: "keras:...". */
bool network_file_is_named(const char *text);
/* text[bytes] is such a name with its settings. Becomes a model's text, and weights[PATH_BYTES] the file
 * whose weights it starts with; empty: with fresh ones. Errors: ERROR_USAGE; as above. */
int network_file_typed(char *text, size_t bytes, char *weights, struct error *error);

/* An array of that shape, zeroed, that the file owns; NULL: too large (ERROR_FILE), a name too long, or no
 * memory. */
struct file_array *network_file_array(struct network_file *file, const char *name, const struct shape *shape,
                                      struct error *error);

/* Gives the layer the name that it has in the file, or one like it that it may have here and no other layer
 * has: "dense" becomes dense_0, what no name may hold becomes _. */
void network_file_name(const struct layer_list *list, struct layer *layer, const char *name);

#endif
