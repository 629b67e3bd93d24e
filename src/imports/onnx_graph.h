/* The graph of an ONNX file before it becomes layers: its nodes with their attributes, its values by name,
 * and those of them that are constants. ONNX's public onnx.proto and Operators.md say what is in it. */
#ifndef TRAINER_IMPORTS_ONNX_GRAPH_H
#define TRAINER_IMPORTS_ONNX_GRAPH_H

#include <stdint.h>
#include "../base/error.h"
#include "../base/mapping.h"
#include "../graph/shape.h"
#include "onnx.pb-c.h"

/* Among the numbers of a shape: the batch, however large. */
#define ONNX_BATCH INT64_MIN

/* Numbers that are known before the network runs; sizes may be 0. */
struct onnx_constant {
    struct shape shape; /* rank 0: one number */
    size_t count;
    const float *floats;  /* [count], or */
    const int64_t *whole; /* [count]; borrowed: of the file, or of a block of the graph */
};

/* What the network computes, for each example: which layer gives it, and how its elements lie. */
struct onnx_flow {
    int layer;           /* in the list, or LAYER_INPUT */
    struct shape theirs; /* its shape in the file, without the batch */
    struct shape ours;   /* the same elements as the layer gives them */
    /* {rows, columns, channels}: the elements lie in that order, where the file has channels, rows, columns
     * (both maybe as one row); rank 0: in the same order. */
    struct shape image;
    bool sole;          /* nobody else takes what the layer gives */
    bool at_least_zero; /* no element is below 0 */
};

enum onnx_state { ONNX_UNKNOWN, ONNX_CONSTANT, ONNX_FLOW };

struct onnx_value {
    const char *name;
    const Onnx__TensorProto *tensor; /* an initializer's; else NULL */
    int maker;                       /* the node; -1: an input or an initializer */
    int uses;                        /* by nodes that are needed, and as a result */
    bool is_result;
    enum onnx_state state;
    struct onnx_constant constant;
    struct onnx_flow flow;
};

enum { ONNX_DATA_FILES = 16 };

struct onnx_graph {
    const char *path;
    const Onnx__GraphProto *proto;
    const Onnx__ValueInfoProto *input; /* the only one that is no initializer */
    int64_t opset;
    int64_t batch;             /* the file's; 0: any */
    struct onnx_value *values; /* [count] by name */
    int count;
    bool *needed;  /* [nodes] */
    void **blocks; /* [block_count] in room for block_room: what was computed */
    int block_count, block_room;
    size_t computed; /* bytes of them */
    struct {
        char name[200];
        struct mapping mapping;
    } data[ONNX_DATA_FILES]; /* [data_count] files beside it that have its tensors */
    int data_count;
    struct error *error;
};

/* Of an unpacked model, which has to stay. Errors: ERROR_FILE: a value made twice, several inputs or none,
 * operators that are too new or of others. */
int onnx_graph_open(struct onnx_graph *graph, const Onnx__ModelProto *model, const char *path,
                    struct error *error);
void onnx_graph_close(struct onnx_graph *graph); /* safe on a zeroed or half-open one */

/* The value of that name, or NULL: "" or none. */
struct onnx_value *onnx_value(const struct onnx_graph *graph, const char *name);

/* --- nodes --- */

typedef Onnx__NodeProto onnx_op;

/* "net.onnx: node NAME: ..."; returns ERROR_FILE. */
__attribute__((format(printf, 3, 4))) int onnx_wrong(const struct onnx_graph *graph, const onnx_op *op,
                                                     const char *format, ...);

/* The name of input i; "" if it is not given. */
const char *onnx_input_name(const onnx_op *op, size_t i);

/* Input i as a value that is there: computed by a node before this one. NULL: onnx_wrong. */
struct onnx_value *onnx_operand(const struct onnx_graph *graph, const onnx_op *op, size_t i);

int64_t onnx_int_of(const onnx_op *op, const char *name, int64_t usual);
float onnx_float_of(const onnx_op *op, const char *name, float usual);
bool onnx_word_is(const onnx_op *op, const char *name, const char *word); /* a string attribute */

/* An attribute of so many numbers: out[count], of which it may have none (then out stays as it is). */
int onnx_ints_of(const struct onnx_graph *graph, const onnx_op *op, const char *name, int64_t *out,
                 size_t count);

/* The numbers of an attribute, or, where operators have them there since some opset, of input i: *out of
 * them, at most `most`; *count -1: not given. */
int onnx_list(struct onnx_graph *graph, const onnx_op *op, const char *name, size_t i, int64_t *out, int most,
              int *count);
/* The same of one float. */
int onnx_number(struct onnx_graph *graph, const onnx_op *op, const char *name, size_t i, float usual,
                float *out);

/* --- constants --- */

/* A block that the graph owns. Errors: ERROR_FILE: all of them together are too large. */
int onnx_block(struct onnx_graph *graph, void *out, size_t count, size_t bytes);

/* *constant = the numbers of a tensor. `name` for the words. */
int onnx_tensor(struct onnx_graph *graph, const Onnx__TensorProto *tensor, const char *name,
                struct onnx_constant *constant);

/* Input i as a constant of floats or of whole numbers. */
int onnx_float_input(struct onnx_graph *graph, const onnx_op *op, size_t i, const struct onnx_constant **out);
int onnx_whole_input(struct onnx_graph *graph, const onnx_op *op, size_t i, const struct onnx_constant **out);

/* --- onnx_fold.c --- */

/* Whether such a node is computed where its inputs are constants (or of a known shape, for Shape); then its
 * result becomes one. */
bool onnx_folds(const struct onnx_graph *graph, const onnx_op *op);
int onnx_fold(struct onnx_graph *graph, const onnx_op *op);

#endif
