/* ONNX files, writing, opset 13 or what is needed: nodes, constants, inputs and outputs, notes, encoded by
 * protobuf-c as onnx.proto says. It knows no network: src/exports/onnx.c writes one. */
#ifndef TRAINER_FORMATS_ONNX_FILE_H
#define TRAINER_FORMATS_ONNX_FILE_H

#include <stdio.h>
#include "../base/error.h"
#include "../graph/graph.h"

struct onnx_file;
struct onnx_proto; /* a node as protobuf-c has it */

/* error: where all functions of this file say what went wrong. Errors: ERROR_DEVICE (memory), of all that
 * return a code. */
int onnx_open(struct onnx_file **out, struct error *error);
void onnx_close(struct onnx_file *file); /* NULL is fine */

/* One of its operations is there since this opset. */
void onnx_needs(struct onnx_file *file, int opset);

/* Zeroed floats that live as long as the file. */
int onnx_take_floats(struct onnx_file *file, float **out, size_t floats);

/* A node under way, with at most MAX_INPUTS inputs and as many attributes. Its mistakes are kept until
 * onnx_end, which returns the first; the other functions do nothing after one. */
struct onnx_node {
    struct onnx_file *file;
    struct onnx_proto *proto;
    int code;
};
struct onnx_node onnx_begin(struct onnx_file *file, const char *operation);
void onnx_input(struct onnx_node *made, const char *name);
void onnx_int(struct onnx_node *made, const char *name, int value);
void onnx_float(struct onnx_node *made, const char *name, float value);
void onnx_ints(struct onnx_node *made, const char *name, const int *values, int count);
/* Adds it to the file. No other node has its name, and no other value that of `output`, its only result. */
int onnx_end(struct onnx_node *made, const char *name, const char *output);

/* Constants; the floats are borrowed until onnx_close. */
int onnx_floats(struct onnx_file *file, const char *name, const struct shape *shape, const float *values);
int onnx_integers(struct onnx_file *file, const char *name, const int *values, int count);

/* An input or output of the whole model, of float32; its first dimension is any number. */
struct onnx_value {
    const char *name;
    const struct shape *shape;
};
struct onnx_ends {
    struct onnx_value input, outputs[2]; /* the second may have no name: then it is not there */
};
/* A named text that the model carries along. */
struct onnx_note {
    const char *name, *text; /* text NULL: left out */
};
/* notes: [count]. Errors: also ERROR_FILE: the stream; more than 2 GiB, which protobuf cannot have. */
int onnx_write(struct onnx_file *file, const struct onnx_ends *ends, const struct onnx_note *notes, int count,
               FILE *stream);

#endif
