/* Networks of Keras: the configuration of a model, as Keras 2 and 3 write it as JSON, and the weights beside
 * it. Errors of all functions: ERROR_FILE: "PATH: layer NAME: found ..., expected ..."; ERROR_DEVICE
 * (memory). */
#ifndef TRAINER_IMPORTS_KERAS_H
#define TRAINER_IMPORTS_KERAS_H

#include "../base/json.h"
#include "../formats/hdf5_reader.h"
#include "../graph/network_file.h"

enum keras_form { KERAS_JSON, KERAS_H5, KERAS_ARCHIVE };

/* Reads a whole file that lies in memory; `path` is for the words. */
int keras_file_read(struct network_file *file, const char *path, enum keras_form form, const uint8_t *bytes,
                    size_t length, struct error *error);

/* --- keras_config.c --- */

enum { KERAS_DEPTH_MOST = 8 /* models within each other */ };

/* What the file calls a layer, or a model that is a layer of another one. */
struct keras_named {
    int within; /* among network->inner; -1: the whole model */
    const char *name, *class_name;
    int number; /* of its class in its model, from 0 */
};

/* A layer of the list that has weights in the file. */
struct keras_weighted {
    int layer; /* its place in the list */
    struct keras_named named;
    bool is_fixed;           /* not trainable */
    bool no_scale, no_shift; /* a normalisation that does without: here it has ones and zeros */
};

struct keras_network {
    const char *path;          /* for the words; borrowed */
    struct network_file *file; /* borrowed */
    struct json json;
    const char **names;              /* [LAYERS_MOST] of each layer of the list, in the file */
    struct keras_weighted *weighted; /* [weighted_count] */
    int weighted_count;
    struct keras_named *inner; /* [inner_count] models within the model */
    int inner_count;
    bool is_second;                      /* Keras 2 wrote it */
    int fixed;                           /* layers with weights that are not trainable */
    char in_training[150], of_input[50]; /* names of layers that are left out: what they do is done in
                                            training alone, or before the network */
};

/* The list of layers and the shape of the input, from the JSON of a whole model. version: of Keras, as the
 * file has it elsewhere; NULL: what the JSON says of it. On error the caller closes. */
int keras_network_open(struct keras_network *network, struct network_file *file, const char *path,
                       const char *version, const char *text, size_t bytes, struct error *error);
void keras_network_close(struct keras_network *network); /* safe on a zeroed or half-open one; not the file */

/* --- keras_layer.c --- */

/* Whether an object {"class_name", "config"} is of a class of Keras itself. Files of Keras 3 say its module
 * and, of a user's class, "registered_name", too; a class of the same name may compute something else. */
bool keras_is_own(const struct json *json, const struct json_value *object);

/* As which the object's class is known: "my>Dense", or "Dense of mine.layers". */
enum { KERAS_CLASS_BYTES = 120 };
const char *keras_class_text(const struct json *json, const struct json_value *object,
                             char words[KERAS_CLASS_BYTES]);

/* One layer of the file. */
struct keras_part {
    const char *name, *class_name;
    const struct json_value *config;
    int inputs;
    int input[MAX_INPUTS]; /* values: places in the list, or LAYER_INPUT */
    int rank;              /* of what it gets: dimensions of an example; -1: not known */
    int value, value_rank; /* the same of what it gives */
};

/* Adds what it is to the list: no layer, where it changes nothing; one; or two. Sets value and value_rank. */
int keras_layer_add(struct keras_network *network, struct keras_part *part, struct error *error);

/* "PATH: layer NAME: ...". */
__attribute__((format(printf, 4, 5))) int keras_wrong(const struct keras_network *network, const char *name,
                                                      struct error *error, const char *format, ...);

/* --- keras_weights.c --- */

bool keras_has_weights(enum layer_kind kind);

/* What a layer's weights that the file has are called here, in Keras' order; returns how many. Those from
 * *trained on are statistics. */
enum { KERAS_WEIGHTS_MOST = 4 };
int keras_weights_of(const struct keras_network *network, const struct keras_weighted *weighted,
                     const char *names[KERAS_WEIGHTS_MOST], int *trained);

/* How the weights of a layer are found: in .h5 files by the layer's name and what `weight_names` says; in
 * .keras files by its class and number. */
enum keras_places { KERAS_BY_NAME, KERAS_BY_CLASS };

/* Adds the arrays of all layers with weights to the file. */
int keras_weights_read(const struct keras_network *network, struct hdf5_reader *from,
                       enum keras_places places, struct error *error);

/* --- keras_optimizer.c --- */

/* Takes the optimizer that a model was compiled with, and its state, as file->optimizer and arrays, behind
 * those of the layers. `compiled` of `json`: {"class_name": "Adam", "config": {...}}; NULL: there is none.
 * What has no counterpart here is left out, and file->optimizer.words says so. Errors: as above; arrays that
 * are damaged. */
int keras_optimizer_read(const struct keras_network *network, const struct json *json,
                         const struct json_value *compiled, struct hdf5_reader *from,
                         enum keras_places places, struct error *error);

/* --- keras_weights.c again --- */

/* "MaxPooling2D" is max_pooling2d in the weights of .keras files, the second one max_pooling2d_1. */
enum { KERAS_GROUP_BYTES = 200 };
void keras_group_name(const char *class_name, int number, char name[KERAS_GROUP_BYTES]);

#endif
